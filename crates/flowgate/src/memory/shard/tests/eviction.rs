//! Which counters go when a shard is full.

use super::*;

#[test]
fn the_counter_closest_to_unused_goes_first() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(14).collect();
    let lives = [40, 10, 70, 60, 20, 50, 30];
    for (key, secs) in keys.iter().zip(lives) {
        take(&memory, *key, &format!("fixed 5/{secs}s"), START);
    }
    assert!(keys[..7].iter().all(|&key| holds(&memory, key)));
    // The new counter lives long, so the old counter that expires first is evicted.
    let mut order: Vec<usize> = (0..7).collect();
    order.sort_by_key(|&index| lives[index]);
    for (count, (&newcomer, &goes)) in keys[7..].iter().zip(&order).enumerate() {
        take(&memory, newcomer, "fixed 5/day", START);
        assert!(holds(&memory, newcomer) && !holds(&memory, keys[goes]), "the {count}th");
        assert_eq!(memory.stats().counters, 7);
        assert_eq!(memory.stats().evicted, count as u64 + 1);
    }
}

#[test]
fn expired_counters_go_before_live_ones() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(10).collect();
    for (index, &key) in keys[..7].iter().enumerate() {
        take(&memory, key, if index < 3 { "fixed 5/10s" } else { "fixed 5/60s" }, START);
    }
    // The counters have expired, but too recently to be swept.
    let now = START + 10 * SECOND + 1;
    for &newcomer in &keys[7..] {
        assert!(take(&memory, newcomer, "fixed 5/5s", now).allowed());
    }
    assert!(keys[3..].iter().all(|&key| holds(&memory, key)));
    assert_eq!(memory.stats().evicted, 0);
    // A time before the end of a forgotten state is decided at that end. That is stricter, and the waits include it.
    let late = take(&memory, keys[9], "fixed 1/5s", START);
    assert_eq!(late.retry_after().map(|wait| wait.as_nanos()), Some(15 * SECOND + 1));
}

/// The two counters of a limit with `after=` are one: it is as close to never used as the one that is less so.
#[test]
fn the_two_parts_of_a_counter_live_and_die_together() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(10).collect();
    let both = |key: Key| {
        let shard = memory.lock(0);
        [key.tag(), key.tag().seen()].map(|tag| shard.find(tag).is_ok())
    };
    // The counter of `after=` is soon forgotten, the limit's own counter is not.
    for &key in &keys[..2] {
        take(&memory, key, "fixed 5/1h after=1/1s", START);
    }
    for &key in &keys[2..5] {
        take(&memory, key, "fixed 5/60s", START);
    }
    assert_eq!(memory.stats().counters, 7);
    // Counters of other subjects that are less used are evicted first.
    for &key in &keys[5..8] {
        take(&memory, key, "fixed 5/day", START + 2 * SECOND);
    }
    assert!(keys[..2].iter().all(|&key| both(key) == [true; 2]));
    assert!(keys[2..5].iter().all(|&key| both(key) == [false; 2]));
    assert_eq!(memory.stats().evicted, 3);
    // Then this counter is evicted, with both parts.
    take(&memory, keys[8], "fixed 5/day", START + 2 * SECOND);
    let left: Vec<[bool; 2]> = keys[..2].iter().map(|&key| both(key)).collect();
    assert!(left.contains(&[true; 2]) && left.contains(&[false; 2]), "{left:?}");
    assert_eq!(memory.stats().evicted, 4);
}

/// A peek, a refund and a denied request need no room, even if the limit gets `after=` later.
#[test]
fn an_operation_that_takes_nothing_inserts_nothing() {
    for when_full in [WhenFull::Deny, WhenFull::Evict] {
        let memory = smallest(when_full);
        let full = if when_full == WhenFull::Deny { 6 } else { 7 };
        let keys: Vec<Key> = neighbours(&memory).take(full).collect();
        for &key in &keys {
            assert!(take(&memory, key, "fixed 5/60s", START).allowed());
        }
        let (before, later) = (memory.stats(), "fixed 5/60s after=2/60s".parse().unwrap());
        for (op, cost) in [(Op::Peek, 1), (Op::Take, 0), (Op::Refund, 0), (Op::Peek, 9)] {
            for &key in &keys {
                let mut hits = [Hit::new(key, &later)];
                memory.apply(&mut Plan::one(Ask::new(op, cost, Time::from_nanos(START)), &mut hits));
                memory.check_invariants();
            }
        }
        assert_eq!(memory.stats(), before);
    }
}

/// Also where the next few slots are all in use and what has expired lies elsewhere.
#[test]
fn a_few_expired_counters_are_found_before_any_eviction() {
    let store =
        || MemoryStore::new(MemoryConfig { max_bytes: 64 << 10, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let name = |memory: &MemoryStore, number: u32| memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
    let life = |number: u32| if number.is_multiple_of(50) { "fixed 5/10s" } else { "fixed 5/1h" };
    let in_first = |memory: &MemoryStore, number: u32| name(memory, number).shard(memory.shards.len()) == 0;
    // The number of keys that a store holds without an eviction, after it holds earlier ones.
    let fit = |before: &[u32], keys: &mut dyn Iterator<Item = u32>| {
        let memory = store();
        let take = |number: u32| take(&memory, name(&memory, number), life(number), START);
        before.iter().for_each(|&number| _ = take(number));
        keys.take_while(|&number| take(number).allowed() && memory.stats().evicted == 0).collect::<Vec<u32>>()
    };
    // All shards fill the store together, then the first shard fills its own table.
    let mut fits = fit(&[], &mut (0..));
    let memory = store();
    fits.extend(fit(&fits, &mut (5_000..).filter(|&number| in_first(&memory, number))));
    for &number in &fits {
        take(&memory, name(&memory, number), life(number), START);
    }
    assert_eq!((memory.stats().counters, memory.stats().evicted), (fits.len(), 0));
    let expired = fits.iter().filter(|&&number| number.is_multiple_of(50) && in_first(&memory, number)).count();
    assert!(expired > 0);
    let now = START + 12 * SECOND;
    for number in (10_000..).filter(|&number| in_first(&memory, number)).take(expired) {
        take(&memory, name(&memory, number), "fixed 5/1h", now);
    }
    assert_eq!(memory.stats().evicted, 0);
}

#[test]
fn databases_share_a_full_store_and_are_counted_apart() {
    let memory = smallest(WhenFull::Evict);
    memory.count_databases();
    let databases = [0, 1, 15].map(|number| Database::new(number).unwrap());
    for number in 0..3_000_u32 {
        let subject = memory.subject(&(number / 3).to_le_bytes());
        let key = subject.counter(memory.counter(b"")).in_database(databases[number as usize % 3]);
        take(&memory, key, "fixed 5/60s", START);
    }
    let counts = databases.map(|database| memory.counters_in(database));
    assert_eq!(counts.iter().sum::<usize>(), memory.stats().counters);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert_eq!(memory.counters_in(Database::new(2).unwrap()), 0);
}
