//! Classes: every decision writes the class of the counters it leaves, and an eviction goes by it.

use super::calls::{MIXED, apply, call};
use super::*;
use crate::{Retry, RuleFlags, Throttle, Verdict};

fn class(memory: &MemoryStore, key: Key) -> Option<Class> {
    let shard = memory.lock(key.shard(memory.shards.len()));
    shard.find(key.tag()).ok().map(|index| shard.slots[index].class())
}

fn key(memory: &MemoryStore, name: &[u8]) -> Key {
    memory.subject(b"subject").counter(memory.counter(name))
}

/// Ways to take from a counter. All answer alike.
const WAYS: [&str; 5] = ["one", "plan", "plan of two", "across shards", "same"];

fn take_by(way: &str, memory: &MemoryStore, key: Key, limit: &Limit, cost: u64, now: Time) -> Decision {
    let wide = "fixed 1000/60s".parse().unwrap();
    match way {
        "one" => return memory.apply_one(Ask::new(Op::Take, cost, now), key, limit),
        "same" => return memory.apply_same(Ask::new(Op::Take, cost, now), key, limit).unwrap(),
        _ => {}
    }
    let beside = match way {
        "across shards" => memory.subject(b"another").counter(memory.counter(b"wide")),
        _ => memory.subject(b"subject").counter(memory.counter(b"wide")),
    };
    let mut hits = vec![Hit::new(key, limit), Hit::new(beside, &wide)];
    hits.truncate(if way == "plan" { 1 } else { 2 });
    memory.apply(&mut Plan::one(Ask::new(Op::Take, cost, now), &mut hits));
    hits[0].outcome
}

#[test]
fn every_way_to_take_writes_the_class() {
    let classes = [0, 1, 1, 2, 2, 2, 2, 3, 3].map(Class::from_bits);
    let texts = ["sliding 8/60s", "fixed 8/60s", "approx 8/600s", "bucket 8/600s", "pace 8/600s burst=4 max_wait=5m"];
    for (text, apart) in texts.iter().flat_map(|text| [(text, 0), (text, 1_000)]) {
        let limit: Limit = text.parse().unwrap();
        for way in WAYS {
            let memory = MemoryStore::default();
            let key = key(&memory, b"counter");
            let taken = (0..9).map(|number| {
                let now = Time::from_nanos(START + number * apart);
                let allowed = take_by(way, &memory, key, &limit, 1, now).allowed();
                assert_eq!(allowed, number < 8, "{text} by {way}");
                class(&memory, key).unwrap()
            });
            assert_eq!(taken.collect::<Vec<_>>(), classes, "{text} by {way}, {apart} ns apart");
        }
    }
}

/// The class is the highest although units are left, because the counter denies the request. A cost that never passes
/// changes nothing.
#[test]
fn a_denial_of_a_known_counter_writes_the_class() {
    for text in ["sliding 10/60s", "fixed 10/60s", "approx 10/600s", "bucket 10/600s", "pace 10/600s max_wait=9m"] {
        let limit: Limit = text.parse().unwrap();
        for way in WAYS {
            let memory = MemoryStore::default();
            let (key, now) = (key(&memory, b"counter"), Time::from_nanos(START));
            assert!(take_by(way, &memory, key, &limit, 2, now).allowed());
            assert_eq!(class(&memory, key), Some(Class::LITTLE), "{text} by {way}");
            assert_eq!(take_by(way, &memory, key, &limit, 11, now).verdict, Verdict::Deny(Retry::Never));
            assert_eq!(class(&memory, key), Some(Class::LITTLE), "{text} by {way}");
            assert!(take_by(way, &memory, key, &limit, 9, now).retry_after().is_some());
            assert_eq!(class(&memory, key), Some(Class::EXHAUSTED), "{text} by {way}");
        }
    }
}

#[test]
fn a_look_leaves_the_class() {
    for text in ["sliding 10/60s", "fixed 10/60s", "bucket 10/60s", "fixed 10/60s after=10/60s"] {
        let (memory, limit) = (MemoryStore::default(), text.parse::<Limit>().unwrap());
        let key = key(&memory, b"counter");
        memory.apply_one(Ask::new(Op::Record, 6, Time::from_nanos(START)), key, &limit);
        let before = class(&memory, key);
        for (cost, later) in [(0, 0), (10, 0), (1, 50 * SECOND)] {
            memory.apply_one(Ask::new(Op::Peek, cost, Time::from_nanos(START + later)), key, &limit);
            let mut hits = [Hit::new(key, &limit)];
            memory.apply(&mut Plan::one(Ask::new(Op::Peek, cost, Time::from_nanos(START + later)), &mut hits));
        }
        assert_eq!(class(&memory, key), before, "{text}");
    }
}

/// Only the limit that denies is exhausted.
#[test]
fn the_verdict_of_each_counter_counts() {
    let (memory, limits) = (MemoryStore::default(), ["fixed 1/60s", "fixed 100/60s"].map(|text| text.parse().unwrap()));
    for rules in [[0, 0], [0, 1]] {
        let keys = ["strict", "lax"].map(|name| key(&memory, name.as_bytes()));
        for _ in 0..5 {
            let hit = |index: usize| {
                let flags = RuleFlags { count_denied: rules[1] == 1, shadow: false };
                Hit::new(keys[index], &limits[index]).in_rule(rules[index], flags)
            };
            memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut [hit(0), hit(1)]));
        }
        assert_eq!(keys.map(|key| class(&memory, key)), [Some(Class::EXHAUSTED), Some(Class::LITTLE)]);
    }
}

#[test]
fn a_cell_has_a_class() {
    let memory = MemoryStore::default();
    let (key, throttle) = (key(&memory, b"counter"), Throttle::new(7, 8, 600).unwrap());
    let classes = (0..9).map(|_| {
        memory.throttle(key, &throttle, Time::from_nanos(START)).unwrap();
        class(&memory, key).unwrap()
    });
    assert_eq!(classes.collect::<Vec<_>>(), [0, 1, 1, 2, 2, 2, 2, 3, 3].map(Class::from_bits));
    memory.throttle(key, &throttle.quantity(-6).unwrap(), Time::from_nanos(START)).unwrap();
    assert_eq!(class(&memory, key), Some(Class::QUARTER), "what is given back counts");
}

/// The neighbours that an eviction from the hand on chooses among, with class and end, and the tags of their parts.
fn sample(shard: &Shard, now: u64) -> Vec<(Class, u64, Vec<Tag>)> {
    let len = shard.slots.len();
    let hand = if shard.hand < len { shard.hand } else { 0 };
    let mut counters = Vec::new();
    for index in (hand..len).chain(0..hand).filter(|&index| !shard.slots[index].is_empty()) {
        if index > 0 && shard.is_pair(index - 1) {
            continue;
        }
        let parts: Vec<&Slot> = shard.slots[index..].iter().take(1 + usize::from(shard.is_pair(index))).collect();
        let class = |slot: &&Slot| if slot.forget_at() < now { Class::LITTLE } else { slot.class() };
        let class = parts.iter().map(class).max().unwrap();
        let forget_at = parts.iter().map(|slot| slot.forget_at()).max().unwrap();
        counters.push((class, forget_at, parts.iter().map(|slot| slot.tag()).collect()));
    }
    counters.truncate(super::super::super::eviction::EVICTION_SAMPLE_SLOTS);
    counters
}

proptest! {
    #![proptest_config(cases(60))]

    /// Of the lowest class in the sample the counter that ends first goes, of several the last one.
    #[test]
    fn an_eviction_takes_no_class_above_the_lowest_in_its_sample(
        seed in any::<[u64; 2]>(),
        max_kib in 12..100usize,
        calls in prop::collection::vec(call(400), 1..600),
        evictions in 1..60usize,
    ) {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: max_kib << 10, seed: Seed(seed), ..MemoryConfig::default() });
        let limits = MIXED.map(|limit| limit.parse().unwrap());
        let [within, length, forget] = [20, 5, 60].map(Span::from_secs);
        let ban = Ban::new(4, within, &[length], forget).unwrap();
        let mut now = START;
        for call in &calls {
            now += call.later;
            apply(&memory, &limits, &ban, call, now);
        }
        for index in (0..memory.shards.len()).cycle().take(evictions) {
            let mut shard = memory.lock(index);
            let (sample, before) = (sample(&shard, now), memory.budget.evicted_in_use.load(Relaxed));
            shard.evict(now, &memory.budget);
            let Some(&(class, forget_at, _)) = sample.iter().min_by_key(|(class, forget_at, _)| (class, forget_at)) else {
                continue;
            };
            let gone: Vec<_> = sample.iter().filter(|(_, _, tags)| tags.iter().all(|&tag| shard.find(tag).is_err())).collect();
            prop_assert_eq!(gone.len(), 1);
            prop_assert_eq!((gone[0].0, gone[0].1), (class, forget_at));
            let last = sample.iter().rfind(|other| (other.0, other.1) == (class, forget_at)).unwrap();
            prop_assert_eq!(&gone[0].2, &last.2);
            let in_use = u64::from(class >= Class::HALF && forget_at >= now);
            prop_assert_eq!(memory.budget.evicted_in_use.load(Relaxed), before + in_use);
            drop(shard);
            memory.check_invariants();
        }
    }

    /// A log that needs bytes takes them from a log of a lower class, or from one that has expired, or from none.
    #[test]
    fn a_log_displaces_no_log_of_its_own_class(
        seed in any::<[u64; 2]>(),
        calls in prop::collection::vec(call(200), 1..600),
        class in (0..4u8).prop_map(Class::from_bits),
    ) {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 40 << 10, seed: Seed(seed), ..MemoryConfig::default() });
        let limits = MIXED.map(|limit| limit.parse().unwrap());
        let ban = Ban::new(4, Span::from_secs(20), &[Span::from_secs(5)], Span::from_secs(60)).unwrap();
        let mut now = START;
        for call in &calls {
            now += call.later;
            apply(&memory, &limits, &ban, call, now);
        }
        for index in 0..memory.shards.len() {
            let mut shard = memory.lock(index);
            let before = shard.slots.clone();
            shard.evict_log(class, now, &memory.budget);
            let gone: Vec<&Slot> =
                before.iter().filter(|slot| !slot.is_empty() && shard.find(slot.tag()).is_err()).collect();
            prop_assert!(gone.iter().all(|slot| slot.class_at(now) < class || slot.forget_at() < now));
            prop_assert!(gone.is_empty() || gone.iter().any(|slot| slot.holds_log()));
            drop(shard);
            memory.check_invariants();
        }
    }
}

/// The table is full of counters that are hardly used, and of logs of the highest class: none of those goes.
#[test]
fn an_exhausted_log_outlives_newer_logs() {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 64 << 10, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let limit: Limit = "sliding 20/60s".parse().unwrap();
    let name = |number: u32| memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
    let record =
        |number: u32, now: u64| memory.apply_one(Ask::new(Op::Record, 1, Time::from_nanos(now)), name(number), &limit);
    for step in 0..20 {
        (0..30).for_each(|number| _ = record(number, START + step));
    }
    for step in 0..8 {
        (1_000..1_300).for_each(|number| _ = record(number, START + SECOND + step));
    }
    memory.check_invariants();
    let stats = memory.stats();
    assert!(stats.coarsened > 0, "{stats:?}");
    let now = START + 2 * SECOND;
    let left =
        |number: u32| memory.apply_one(Ask::new(Op::Peek, 0, Time::from_nanos(now)), name(number), &limit).remaining;
    assert!((0..30).all(|number| left(number) == Some(0)), "{stats:?}");
}
