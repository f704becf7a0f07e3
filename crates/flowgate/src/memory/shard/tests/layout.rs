//! Where counters lie: side by side for one subject, in a table that grows in place.

use super::*;

/// The counters of one subject lie side by side, also where its home is the last position of the table.
#[test]
fn a_large_plan_fits_at_the_end_of_a_table() {
    for plain in [0, 5, 100] {
        let memory =
            MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
        let limit: Limit = "sliding 5/60s after=2/60s".parse().unwrap();
        for key in neighbours(&memory).take(plain) {
            take(&memory, key, "5/60s", START);
        }
        let subjects = (0..5_000u32).map(|number| memory.subject(&number.to_le_bytes()));
        let in_shard = subjects.filter(|subject| subject.counter(memory.counter(b"")).shard(memory.shards.len()) == 0);
        let last = in_shard.max_by_key(|subject| subject.counter(memory.counter(b"")).tag()).unwrap();
        let key = |number: u32| last.counter(memory.counter(&number.to_le_bytes()));
        let mut hits: Vec<Hit<'_>> = (0..20).map(|number| Hit::new(key(number), &limit)).collect();
        for _ in 0..2 {
            memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut hits));
            memory.check_invariants();
        }
        assert_eq!(memory.stats().counters, plain + 40);
    }
}

fn take_all(memory: &MemoryStore, limit: &Limit, subject: u32, ids: &[CounterId]) -> bool {
    let subject = memory.subject(&subject.to_le_bytes());
    let hit = |&id| Hit::new(subject.counter(id), limit);
    let mut hits: Vec<Hit<'_>> = ids.iter().map(hit).collect();
    memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut hits));
    Decision::from_hits(&hits).allowed()
}

/// The counters of one subject lie side by side, also where its home is the last of the table.
#[test]
fn a_subject_may_have_many_counters() {
    for text in ["fixed 5/60s", "sliding 5/60s", "bucket 5/60s after=2/60s"] {
        let limit: Limit = text.parse().unwrap();
        for (max_kib, when_full) in [(1024, WhenFull::Evict), (12, WhenFull::Evict), (12, WhenFull::Deny)] {
            for many in [8, 9, 10, 12, 40_u32] {
                let memory =
                    MemoryStore::new(MemoryConfig { max_bytes: max_kib << 10, when_full, ..Default::default() });
                let ids: Vec<_> = (0..many).map(|id| memory.counter(&id.to_le_bytes())).collect();
                for subject in 0..500 {
                    take_all(&memory, &limit, subject, &ids);
                }
                memory.check_invariants();
            }
        }
    }
}

/// This also holds if the memory was filled by subjects with few counters.
#[test]
fn a_full_store_that_evicts_makes_room_for_many_counters() {
    let limit: Limit = "fixed 5/60s".parse().unwrap();
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 128 << 10, ..Default::default() });
    let ids: Vec<_> = (0..40_u32).map(|id| memory.counter(&id.to_le_bytes())).collect();
    assert!((0..5_000).all(|subject| take_all(&memory, &limit, subject, &ids[..1])));
    for subject in 5_000..6_000 {
        assert!(take_all(&memory, &limit, subject, &ids));
        memory.check_invariants();
    }
    assert_eq!(memory.stats().refused, 0);
}

/// Each allocation that a table frees is a hole in the heap that few other allocations fit in.
#[test]
fn a_growing_table_is_allocated_a_few_times_only() {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 8 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let limit: Limit = "bucket 5/d".parse().unwrap();
    let (mut moves, mut before) = (0, std::ptr::null());
    for key in 0..150_000u32 {
        let key = memory.subject(&key.to_le_bytes()).counter(CounterId::default());
        memory.apply_one(Ask::new(Op::Take, 1, Time::from_secs(1_700_000_000)), key, &limit);
        let shard = memory.lock(0);
        let table = shard.slots.as_ptr();
        moves += usize::from(shard.slots.len() > 128 && table != std::mem::replace(&mut before, table));
    }
    memory.check_invariants();
    assert!(memory.lock(0).slots.len() > 8_000, "{}", memory.lock(0).slots.len());
    assert!((1..=2).contains(&moves), "{moves}");
}

#[test]
fn counters_are_counted_while_a_shard_is_locked() {
    let memory = MemoryStore::default();
    let limit: Limit = "bucket 5/d".parse().unwrap();
    for key in 0..100u32 {
        let key = memory.subject(&key.to_le_bytes()).counter(CounterId::default());
        memory.apply_one(Ask::new(Op::Take, 1, Time::from_secs(1_700_000_000)), key, &limit);
    }
    let _locked: Vec<_> = (0..memory.shards.len()).map(|index| memory.lock(index)).collect();
    assert_eq!(memory.stats().counters, 100);
}
