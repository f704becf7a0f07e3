//! The store from outside: keys of any kind, a full and an empty store, and expiry in small steps.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use flowgate::{
    Ask, Decision, Hit, Limit, MemoryConfig, MemoryStats, MemoryStore, Op, Plan, RuleFlags, Seed, Span, Time, WhenFull,
};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

fn store(max_bytes: usize, when_full: WhenFull) -> MemoryStore {
    MemoryStore::new(MemoryConfig { max_bytes, when_full, ..MemoryConfig::default() })
}

/// Applies `op` to the one counter of `subject`, on the fast path.
fn apply(memory: &MemoryStore, limit: &Limit, subject: &[u8], op: Op, cost: u64, now: u64) -> Decision {
    let key = memory.subject(subject).counter(memory.counter(b"counter"));
    memory.apply_one(Ask::new(op, cost, Time::from_nanos(now)), key, limit)
}

/// The same by way of a plan.
fn apply_plan(memory: &MemoryStore, limit: &Limit, subject: &[u8], op: Op, cost: u64, now: u64) -> Decision {
    let key = memory.subject(subject).counter(memory.counter(b"counter"));
    let mut hits = [Hit::new(key, limit)];
    memory.apply(&mut Plan::one(Ask::new(op, cost, Time::from_nanos(now)), &mut hits));
    *hits[0].outcome()
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

#[test]
fn any_bytes_are_a_key() {
    let memory = MemoryStore::default();
    let limit = limit("5/60s");
    let megabyte = vec![b'x'; 1 << 20];
    let mut almost = megabyte.clone();
    almost[1 << 19] = b'y';
    let keys: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"\xff\xfe", "\u{1F980}".as_bytes(), &megabyte, &almost];
    for (taken, key) in keys.iter().enumerate() {
        let cost = taken as u64 % 4 + 1;
        assert_eq!(apply(&memory, &limit, key, Op::Take, cost, START).remaining, Some(5 - cost));
    }
    for (taken, key) in keys.iter().enumerate() {
        let cost = taken as u64 % 4 + 1;
        assert_eq!(apply(&memory, &limit, key, Op::Peek, 0, START).remaining, Some(5 - cost));
    }
    assert_eq!(memory.stats().counters, keys.len());
}

#[test]
fn no_two_keys_share_a_counter() {
    let memory = MemoryStore::default();
    let limit = limit("fixed 1000000/day");
    let cost = |key: u32| u64::from(key % 977) + 1;
    for key in 0..100_000u32 {
        let found = apply(&memory, &limit, &key.to_le_bytes(), Op::Take, cost(key), START);
        assert_eq!(found.remaining, Some(1_000_000 - cost(key)), "key {key} is fresh");
    }
    for key in 0..100_000u32 {
        let found = apply(&memory, &limit, &key.to_le_bytes(), Op::Peek, 0, START);
        assert_eq!(found.remaining, Some(1_000_000 - cost(key)), "key {key} has its own");
    }
    let stats = memory.stats();
    assert_eq!((stats.counters, stats.evicted), (100_000, 0));
}

#[test]
fn counters_of_one_subject_are_told_apart() {
    let memory = MemoryStore::default();
    let limit = limit("fixed 1000/day");
    let subject = memory.subject(b"subject");
    let ids: Vec<_> = (0..200u32).map(|id| memory.counter(&id.to_le_bytes())).collect();
    for (index, &id) in ids.iter().enumerate() {
        let mut hits = [Hit::new(subject.counter(id), &limit)];
        memory.apply(&mut Plan::one(Ask::new(Op::Record, index as u64, Time::from_nanos(START)), &mut hits));
    }
    for (index, &id) in ids.iter().enumerate() {
        let mut hits = [Hit::new(subject.counter(id), &limit)];
        memory.apply(&mut Plan::one(Ask::new(Op::Peek, 0, Time::from_nanos(START)), &mut hits));
        assert_eq!(hits[0].outcome().remaining, Some(1000 - index as u64));
    }
}

#[test]
fn a_reset_forgets_one_counter_and_no_other() {
    let memory = MemoryStore::default();
    let limits = [limit("5/60s"), limit("bucket 5/60s"), limit("5/60s after=2/60s")];
    for limit in &limits {
        for key in [b"a", b"b"] {
            for _ in 0..5 {
                apply(&memory, limit, key, Op::Record, 1, START);
            }
        }
        let a = memory.subject(b"a").counter(memory.counter(b"counter"));
        assert!(memory.reset(a));
        assert!(!memory.reset(a));
        let fresh = apply(&memory, limit, b"nobody", Op::Peek, 0, START);
        assert_eq!(apply(&memory, limit, b"a", Op::Peek, 0, START), fresh);
        assert!(!apply(&memory, limit, b"b", Op::Peek, 2, START).allowed());
        assert!(memory.reset(memory.subject(b"b").counter(memory.counter(b"counter"))));
    }
    assert_eq!(memory.stats().counters, 0);
}

/// A key whose limit becomes one of another algorithm starts afresh, and the old state leaves nothing behind.
#[test]
fn a_key_that_changes_its_algorithm_starts_afresh() {
    let texts = ["5/60s", "bucket 5/60s", "fixed 5/60s", "approx 5/60s", "pace 5/60s burst=5", "5/60s after=2/60s"];
    for way in [apply, apply_plan] {
        for old in texts.map(limit) {
            for new in texts.map(limit) {
                let memory = MemoryStore::default();
                let empty = memory.stats().bytes;
                for step in 0..4 {
                    apply_plan(&memory, &old, b"key", Op::Record, 1, START + step);
                }
                let same = old.algorithm() == new.algorithm() || is_bucket(&old) && is_bucket(&new);
                if !same {
                    let state = apply_plan(&memory, &old, b"key", Op::Peek, 1, START + 4);
                    for op in [Op::Peek, Op::Take] {
                        let [found, fresh] =
                            [&b"key"[..], b"fresh"].map(|key| way(&memory, &new, key, op, 6, START + 4));
                        assert_eq!(found, fresh, "{op:?} when {old} becomes {new}");
                    }
                    let found = apply_plan(&memory, &old, b"key", Op::Peek, 1, START + 4);
                    assert_eq!(found, state, "what takes nothing changes nothing, though {old} becomes {new}");
                    let found = way(&memory, &new, b"key", Op::Take, 1, START + 4);
                    assert_eq!(found, way(&memory, &new, b"fresh", Op::Take, 1, START + 4), "{old} becomes {new}");
                }
                for step in 5..9 {
                    way(&memory, &old, b"key", Op::Record, 1, START + step);
                    way(&memory, &new, b"key", Op::Record, 1, START + step);
                }
                memory.sweep(Time::from_nanos(START + 1_000 * SECOND));
                let stats = memory.stats();
                assert_eq!((stats.counters, stats.bytes), (0, empty), "{old} became {new}");
            }
        }
    }
}

fn is_bucket(limit: &Limit) -> bool {
    matches!(limit.algorithm(), flowgate::Algorithm::Bucket | flowgate::Algorithm::Pace)
}

#[test]
fn a_swept_store_returns_its_memory() {
    let memory = MemoryStore::default();
    let empty = memory.stats().bytes;
    let limits = [limit("20/60s"), limit("bucket 5/s"), limit("fixed 5/60s after=3/30s")];
    for key in 0..20_000u32 {
        for (number, limit) in (0..3).zip(&limits) {
            let name = [key.to_le_bytes(), [number; 4]].concat();
            for step in 0..4 {
                apply(&memory, limit, &name, Op::Take, 1, START + u64::from(key + step) * 1_000);
            }
        }
    }
    let full = memory.stats();
    assert_eq!(full.counters, 20_000 * 4);
    assert!(full.bytes > empty + 20_000 * 4 * 32);
    // Nothing has expired yet.
    memory.sweep(Time::from_nanos(START + SECOND));
    assert_eq!(memory.stats().counters, full.counters);
    memory.sweep(Time::from_nanos(START + 100 * SECOND));
    let swept = memory.stats();
    assert_eq!((swept.counters, swept.bytes, swept.evicted), (0, empty, 0));
}

/// The keys of yesterday expire while those of today arrive, and the store stays as large as one day needs.
#[test]
fn a_million_keys_expire_by_the_way() {
    let memory = store(96 << 20, WhenFull::Deny);
    let limit = limit("bucket 1/s burst=10");
    for key in 0..1_000_000u32 {
        assert!(apply(&memory, &limit, &key.to_le_bytes(), Op::Take, 1, START).allowed());
    }
    let full = memory.stats();
    assert_eq!(full.counters, 1_000_000);
    let later = START + 100 * SECOND;
    for key in 0..200_000u32 {
        let name = (u64::from(key) << 32).to_le_bytes();
        assert!(apply(&memory, &limit, &name, Op::Take, 1, later + u64::from(key)).allowed());
    }
    let stats = memory.stats();
    assert!(stats.counters < 900_000, "{stats:?}");
    assert_eq!((stats.evicted, stats.refused), (0, 0));
    memory.sweep(Time::from_nanos(later + SECOND / 2));
    let stats = memory.stats();
    assert_eq!(stats.counters, 200_000);
    assert!(stats.bytes < full.bytes / 3, "{stats:?}");
}

/// Logs that find no room give up their precision: they hold units longer, never shorter.
#[test]
fn a_coarse_log_is_never_laxer() {
    let (roomy, tight) = (store(64 << 20, WhenFull::Deny), store(48 << 10, WhenFull::Deny));
    let limit = limit("sliding 40/60s");
    let known: Vec<u32> = (0..300).collect();
    for memory in [&roomy, &tight] {
        for key in &known {
            assert!(apply(memory, &limit, &key.to_le_bytes(), Op::Record, 1, START).allowed());
        }
    }
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut now = START;
    for _ in 0..30_000 {
        now += random(SECOND / 100);
        let key = (random(300) as u32).to_le_bytes();
        let op = if random(8) == 0 { Op::Refund } else { Op::Record };
        let cost = random(4);
        for memory in [&roomy, &tight] {
            apply(memory, &limit, &key, op, cost, now);
        }
        let [exact, coarse] = [&roomy, &tight].map(|memory| apply(memory, &limit, &key, Op::Peek, 5, now));
        assert!(coarse.remaining <= exact.remaining, "{coarse:?} against {exact:?}");
        assert!(coarse.retry_after() >= exact.retry_after(), "{coarse:?} against {exact:?}");
        assert!(coarse.reset_after >= exact.reset_after, "{coarse:?} against {exact:?}");
    }
    let (roomy, tight) = (roomy.stats(), tight.stats());
    assert_eq!((roomy.coarsened, roomy.counters), (0, 300));
    assert!(tight.coarsened > 0 && tight.bytes <= tight.max_bytes, "{tight:?}");
    assert_eq!(tight.refused, 0);
}

/// A peek changes nothing, however full the store is. Only its step of the sweep may give vacant memory back.
#[test]
fn a_peek_changes_nothing_in_a_full_store() {
    for when_full in [WhenFull::Deny, WhenFull::Evict] {
        let memory = store(48 << 10, when_full);
        let limit = limit("sliding 40/60s");
        for step in 0..5_000u32 {
            let key = (step % 300).to_le_bytes();
            apply(&memory, &limit, &key, Op::Record, 1, START + u64::from(step));
        }
        let now = START + SECOND;
        let look = || (0..400u32).map(|key| apply(&memory, &limit, &key.to_le_bytes(), Op::Peek, 3, now)).collect();
        let (before, stats): (Vec<Decision>, _) = (look(), memory.stats());
        for _ in 0..5 {
            assert!(look() == before);
            let bytes = memory.stats().bytes;
            assert!(bytes <= stats.bytes);
            assert_eq!(memory.stats(), MemoryStats { bytes, ..stats });
        }
    }
}

#[test]
fn a_full_store_that_evicts_lets_everyone_in() {
    let memory = store(64 << 10, WhenFull::Evict);
    let limit = limit("fixed 10/60s");
    for key in 0..10_000u32 {
        assert!(apply(&memory, &limit, &key.to_le_bytes(), Op::Take, 1, START).allowed());
        let stats = memory.stats();
        assert!(stats.bytes <= stats.max_bytes);
    }
    let stats = memory.stats();
    assert_eq!(stats.refused, 0);
    assert_eq!(stats.evicted, 10_000 - stats.counters as u64);
}

/// An operation that needs no counter needs no room.
#[test]
fn a_full_store_still_answers_what_counts_nothing() {
    let memory = store(64 << 10, WhenFull::Deny);
    let fixed = limit("fixed 10/60s");
    let fill = |key: &u32| apply(&memory, &fixed, &key.to_le_bytes(), Op::Take, 1, START).allowed();
    let full = (0..10_000u32).filter(fill).count();
    assert!(full < 10_000);
    let unlimited = Limit::unlimited();
    for key in 20_000..20_100u32 {
        let found = apply(&memory, &unlimited, &key.to_le_bytes(), Op::Take, 1, START);
        assert!(found.allowed(), "unlimited is always allowed: {found:?}");
        let found = apply(&memory, &fixed, &key.to_le_bytes(), Op::Take, 0, START);
        assert!(found.allowed(), "nothing is always allowed: {found:?}");
        let found = apply(&memory, &fixed, &key.to_le_bytes(), Op::Take, 11, START);
        assert!(found.never(), "too much never passes: {found:?}");
    }
    assert_eq!(memory.stats().counters, full);
    // It also leaves the counts of another limit for the key as they are.
    let taken = |key: &[u8]| apply(&memory, &fixed, key, Op::Peek, 0, START).remaining;
    for key in (0..10_000u32).map(u32::to_le_bytes).filter(|key| taken(key) == Some(9)).take(100) {
        assert!(apply(&memory, &unlimited, &key, Op::Take, 1, START).allowed());
        assert_eq!(taken(&key), Some(9));
    }
}

/// A shadow rule that finds no room is not counted; what the other rules decide is.
#[test]
fn a_shadow_rule_without_room_changes_no_verdict() {
    let memory = store(64 << 10, WhenFull::Deny);
    let limit = limit("fixed 10/60s");
    assert!(apply(&memory, &limit, b"user", Op::Take, 1, START).allowed());
    for key in 0..10_000u32 {
        apply(&memory, &limit, &key.to_le_bytes(), Op::Take, 1, START);
    }
    let id = memory.counter(b"counter");
    let shadow = RuleFlags { shadow: true, ..RuleFlags::default() };
    let mut taken = 1;
    for address in 20_000..20_100u32 {
        let mut hits = [
            Hit::new(memory.subject(b"user").counter(id), &limit),
            Hit::new(memory.subject(&address.to_le_bytes()).counter(id), &limit).in_rule(1, shadow),
        ];
        memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut hits));
        taken += u64::from(Decision::from_hits(&hits).allowed());
        assert!(!hits[1].outcome().allowed(), "there is no room for {address}");
    }
    assert_eq!(taken, 10, "the user's own limit is enforced all the while");
}

/// A subject that is known is not refused because its limit begins to be enforced.
#[test]
fn a_full_store_keeps_both_counters_of_a_known_subject() {
    let memory = store(64 << 10, WhenFull::Deny);
    let limit = limit("fixed 2/60s after=3/60s");
    let take = |key: u32| apply(&memory, &limit, &key.to_le_bytes(), Op::Take, 1, START);
    let kept: Vec<u32> = (0..10_000).filter(|&key| take(key).allowed()).collect();
    assert!(kept.len() > 500);
    for &key in &kept {
        // Three are free, and the last of them is the first that counts.
        let passed = (0..10).filter(|_| take(key).allowed()).count();
        assert_eq!(passed, 3, "of key {key}");
        assert_eq!(take(key).retry_after(), Some(Span::from_secs(60)));
    }
}

#[test]
fn a_full_store_that_denies_keeps_what_it_has() {
    let memory = store(64 << 10, WhenFull::Deny);
    let limit = limit("fixed 10/60s");
    let take = |key: u32, now| apply(&memory, &limit, &key.to_le_bytes(), Op::Take, 1, now);
    let kept: Vec<u32> = (0..10_000).filter(|&key| take(key, START).allowed()).collect();
    let stats = memory.stats();
    assert!(kept.len() > 1_000, "{} keys fit", kept.len());
    assert_eq!(stats.counters, kept.len());
    assert_eq!((stats.evicted, stats.refused), (0, 10_000 - kept.len() as u64));
    // A subject with a counter keeps it, to the last unit.
    for &key in &kept {
        for taken in 2..=10 {
            assert_eq!(take(key, START).remaining, Some(10 - taken));
        }
        assert_eq!(take(key, START).retry_after(), Some(Span::from_secs(60)));
    }
    // A subject without a counter gets a wait, and may peek.
    let newcomer = (0..10_000).find(|key| !kept.contains(key)).unwrap();
    assert_eq!(take(newcomer, START).retry_after(), Some(Span::from_secs(1)));
    let looked = apply(&memory, &limit, &newcomer.to_le_bytes(), Op::Peek, 1, START);
    assert!(looked.allowed());
    assert_eq!(looked.remaining, Some(10));
    // When the old ones have expired there is room again.
    let found = take(newcomer, START + 62 * SECOND);
    assert!(found.allowed(), "{found:?} {:?}", memory.stats());
}

/// A plan that names one counter several times is a mistake; it must neither lift a limit nor cost memory.
#[test]
fn a_counter_named_twice_keeps_its_limit() {
    let memory = MemoryStore::default();
    let empty = memory.stats().bytes;
    for (text, most) in [("sliding 50/60s", 50), ("bucket 50/60s", 50), ("sliding 50/60s after=5/60s", 54)] {
        let limit = limit(text);
        let key = memory.subject(b"key").counter(memory.counter(b"counter"));
        let take = |step: u64| {
            let mut hits = [(); 3].map(|()| Hit::new(key, &limit));
            memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START + step)), &mut hits));
            Decision::from_hits(&hits).allowed()
        };
        let passed = (0..100).filter(|&step| take(step)).count();
        assert!((1..=most).contains(&passed), "{passed} under {limit}");
        memory.sweep(Time::from_nanos(START + 1_000 * SECOND));
        let stats = memory.stats();
        assert_eq!((stats.counters, stats.bytes), (0, empty), "{limit}");
    }
}

/// Limits for crowds that fill 2 MiB, how many keys they have and how often each takes.
const CROWDS: [(&str, u32, u64); 3] = [("3/10s", 22_000, 2), ("9/10s", 10_000, 4), ("bucket 3/10s", 40_000, 1)];

/// Every key takes `times` times, once a second.
fn take_all(memory: &MemoryStore, text: &str, keys: std::ops::Range<u32>, times: u64, from: u64) -> MemoryStats {
    let limit = limit(text);
    for second in 0..times {
        for key in keys.clone() {
            apply(memory, &limit, &key.to_le_bytes(), Op::Take, 1, from + second * SECOND);
        }
    }
    memory.stats()
}

/// What a crowd has left behind is given back though others go on, and no other key loses its counter.
#[test]
fn the_memory_of_a_crowd_is_freed_under_load() {
    for (crowd, keys, times) in CROWDS {
        let memory =
            MemoryStore::new(MemoryConfig { max_bytes: 2 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
        let alone = take_all(&memory, "3/10s", 0..600, 10, START);
        let crowded = take_all(&memory, crowd, 1_000..1_000 + keys, times, START + 1_000 * SECOND);
        assert!(crowded.bytes > 10 * alone.bytes, "{crowd}: {crowded:?}");
        let after = take_all(&memory, "3/10s", 0..600, 300, START + 5_000 * SECOND);
        assert_eq!((after.counters, after.evicted), (alone.counters, crowded.evicted), "{crowd}");
        assert!(after.bytes < 2 * alone.bytes, "{crowd}: {} bytes, {} before", after.bytes, alone.bytes);
        let full = take_all(&memory, "bucket 5/60s", 100_000..140_000, 1, START + 5_300 * SECOND);
        assert_eq!(full.evicted, crowded.evicted, "{crowd}");
    }
}

/// New keys find room before that is done.
#[test]
fn newcomers_take_the_room_of_a_crowd_that_has_just_left() {
    for (crowd, keys, times) in CROWDS {
        let memory =
            MemoryStore::new(MemoryConfig { max_bytes: 2 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
        let crowded = take_all(&memory, crowd, 1_000..1_000 + keys, times, START);
        take_all(&memory, "3/10s", 0..600, 2, START + 60 * SECOND);
        let full = take_all(&memory, "bucket 5/60s", 100_000..140_000, 1, START + 62 * SECOND);
        assert_eq!(full.evicted, crowded.evicted, "{crowd}");
    }
}

/// This holds at every place in the table, and even if one of the counter's two parts expires early.
#[test]
fn the_counter_furthest_from_unused_is_evicted_last() {
    // A sample decides which counter is evicted, so the test uses a fixed seed.
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 64 << 10, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let strict = limit("bucket 1/day burst=1000 after=1/1s");
    for key in 0..50u32 {
        apply(&memory, &strict, &key.to_le_bytes(), Op::Record, 1000, START);
    }
    let now = START + 2 * SECOND;
    let crowd = limit("fixed 10/60s");
    for key in 1_000..20_000u32 {
        assert!(apply(&memory, &crowd, &key.to_le_bytes(), Op::Take, 1, now).allowed());
    }
    let debts = (0..50u32).filter(|key| !apply(&memory, &strict, &key.to_le_bytes(), Op::Peek, 2, now).allowed());
    assert_eq!(debts.count(), 50);
    let stats = memory.stats();
    assert_eq!(stats.evicted as usize + stats.counters, 19_000 + 100);
}

#[test]
fn a_peek_tells_how_much_is_used_also_beyond_the_limit() {
    let memory = MemoryStore::default();
    let used = |text: &str, recorded: u64| {
        let limit: Limit = text.parse().unwrap();
        let key = memory.subject(text.as_bytes()).counter(memory.counter(&recorded.to_le_bytes()));
        let mut hits = [Hit::new(key, &limit)];
        for (op, cost) in [(Op::Record, recorded), (Op::Peek, 0)] {
            memory.apply(&mut Plan::one(Ask::new(op, cost, Time::from_nanos(START)), &mut hits));
        }
        hits[0].used()
    };
    for limit in ["fixed 5/60s", "sliding 5/60s", "approx 5/60s", "bucket 5/60s", "pace 5/60s burst=5"] {
        assert_eq!([0, 1, 5].map(|recorded| used(limit, recorded)), [0, 1, 5], "{limit}");
        assert_eq!(used(limit, 8), if limit.starts_with("sliding") { 5 } else { 8 }, "{limit}");
    }
    assert_eq!(used("fixed 5/60s after=10/1h", 4), 4, "of the free units");
    assert_eq!(used("fixed 5/60s after=10/1h", 12), 12, "the free units included");
    assert_eq!(used("unlimited", 7), 0);
}
