//! Many threads on the same counters: what passes is exact, and no thread waits for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::{
    Ask, Decision, Hit, Limit, Limiter, MemoryConfig, MemoryStore, Op, Plan, PlanPart, Single, Time, WhenFull,
};

const THREADS: u64 = 8;
const SECOND: u64 = 1_000_000_000;
const START: Time = Time::from_secs(1_700_000_000);

/// Runs `work` on all threads at once, with the thread's number; gives the sum of what they return.
fn together(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (barrier, total) = (Barrier::new(THREADS as usize), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (barrier, total, work) = (&barrier, &total, &work);
            scope.spawn(move || {
                barrier.wait();
                total.fetch_add(work(thread), Relaxed);
            });
        }
    });
    total.into_inner()
}

fn limit(text: &str) -> Limit {
    text.parse().unwrap()
}

/// Each limit with what it lets through at one instant.
const LIMITS: [(&str, u64); 11] = [
    ("sliding 700/60s", 700),
    ("sliding 5000/60s", 5_000),
    ("fixed 700/60s", 700),
    ("fixed 700/day tz=Asia/Shanghai", 700),
    ("bucket 700/60s", 700),
    ("bucket 7/60s burst=700", 700),
    // An interval of whole nanoseconds.
    ("bucket 600/60s burst=700", 700),
    ("pace 1000/s burst=200 max_wait=500ms", 700),
    ("approx 700/60s", 700),
    // The unit that uses up what is free is the first that counts.
    ("fixed 600/60s after=101/day", 700),
    ("sliding 600/60s after=101/day", 700),
];

#[test]
fn threads_on_one_key_get_what_the_limit_grants() {
    for (text, grants) in LIMITS {
        let (memory, limit) = (MemoryStore::default(), limit(text));
        let key = memory.subject(b"key").counter(memory.counter(b""));
        let passed = together(|_| {
            let take = |_: &u64| memory.apply_one(Ask::new(Op::Take, 1, START), key, &limit).allowed();
            (0..grants / 4).filter(take).count() as u64
        });
        assert_eq!(passed, grants, "{text}");
        assert_eq!(memory.apply_one(Ask::new(Op::Peek, 0, START), key, &limit).remaining, Some(0), "{text}");
    }
}

#[test]
fn threads_on_many_keys_get_what_each_limit_grants() {
    let memory = MemoryStore::default();
    let limits = LIMITS.map(|(text, grants)| (limit(text), grants));
    let passed = together(|thread| {
        let mut passed = 0;
        for round in 0..700 {
            for step in 0..limits.len() as u64 {
                // Each thread starts elsewhere, so that they meet on some keys and not on others.
                let number = (step + thread + round) % limits.len() as u64;
                let key = memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
                let (limit, _) = &limits[number as usize];
                passed += u64::from(memory.apply_one(Ask::new(Op::Take, 1, START), key, limit).allowed());
            }
        }
        passed
    });
    assert_eq!(passed, limits.iter().map(|(_, grants)| grants.min(&(700 * THREADS))).sum::<u64>());
}

#[test]
fn threads_without_a_key_get_what_the_limit_grants() {
    for (text, grants) in LIMITS {
        let single = Single::new(text).unwrap();
        let take = |_: &u64| single.take_at(1, START).allowed();
        let passed = together(|_| (0..grants / 4).filter(take).count() as u64);
        assert_eq!(passed, grants, "{text}");
    }
}

/// The tightest decides, and the others count only what it lets through.
#[test]
fn several_limits_at_once_are_all_or_nothing() {
    let limiter = Limiter::new(["sliding 900/60s", "bucket 700/60s", "fixed 800/60s", "approx 1000/60s"]).unwrap();
    let passed = together(|_| (0..300).filter(|_| limiter.take_at("key", 1, START).allowed()).count() as u64);
    assert_eq!(passed, 700);
    limiter.set_limits(["sliding 900/60s"]).unwrap();
    assert_eq!(limiter.apply_at(Op::Peek, "key", 0, START).remaining, Some(200));
    limiter.set_limits(["fixed 800/60s"]).unwrap();
    assert_eq!(limiter.apply_at(Op::Peek, "key", 0, START).remaining, Some(100));
    limiter.set_limits(["approx 1000/60s"]).unwrap();
    assert_eq!(limiter.apply_at(Op::Peek, "key", 0, START).remaining, Some(300));
}

/// Steps of two and three parts that share subjects in opposite orders. Every step that passes is in all counters of
/// its parts; a step that is denied is in none.
#[test]
fn no_interleaving_charges_half_a_plan_of_several_parts() {
    let memory = MemoryStore::default();
    let limits = ["fixed 700/60s", "sliding 900/60s", "bucket 500/60s"].map(limit);
    let subjects: Vec<_> = (0..3u64).map(|number| memory.subject(&number.to_le_bytes())).collect();
    let id = memory.counter(b"");
    let hit = |index: usize| [Hit::new(subjects[index].counter(id), &limits[index])];
    let passed = together(|thread| {
        let mut passed = [0; 3];
        for round in 0..400 {
            let mut order = [round % 3, (round + 1) % 3, (round + 2) % 3];
            if thread % 2 == 1 {
                order.reverse();
            }
            let parts = 2 + round % 2;
            let mut hits = order.map(hit);
            let mut plan = Plan::new(START);
            for hits in hits.iter_mut().take(parts) {
                plan.push(PlanPart::new(Op::Take, 1, hits));
            }
            memory.apply(&mut plan);
            if plan.allowed() {
                order.iter().take(parts).for_each(|&index| passed[index] += 1);
            }
        }
        // Three counts of up to 2^20 in one number.
        passed[0] + (passed[1] << 20) + (passed[2] << 40)
    });
    let left = |index: usize| memory.apply_one(Ask::new(Op::Peek, 0, START), hit(index)[0].key(), &limits[index]);
    for (index, limit) in [700, 900, 500].into_iter().enumerate() {
        let counted = passed >> (20 * index) & 0xf_ffff;
        assert_eq!(left(index).remaining, Some(limit - counted), "counter {index}");
    }
    assert!((0..3).any(|index| left(index).remaining == Some(0)), "some limit was reached");
}

/// Plans over the same subjects in opposite orders, in as many shards as there are subjects.
#[test]
fn plans_in_opposite_orders_do_not_wait_for_each_other() {
    let memory = MemoryStore::default();
    let limits = ["fixed 1500/60s", "sliding 1200/60s", "bucket 1800/60s", "fixed 900/60s after=200/60s"].map(limit);
    let subjects: Vec<_> = (0..12u64).map(|number| memory.subject(&number.to_le_bytes())).collect();
    let id = memory.counter(b"");
    let hit = |index: usize| Hit::new(subjects[index].counter(id), &limits[index % limits.len()]);
    let passed = together(|thread| {
        let mut passed = 0;
        for round in 0..600 {
            // A few neighbours, from either end.
            let from = (round + thread as usize) % subjects.len();
            let mut plan: Vec<Hit<'_>> = (0..5).map(|step| hit((from + step) % subjects.len())).collect();
            if thread % 2 == 1 {
                plan.reverse();
            }
            memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, START), &mut plan));
            passed += 5 * u64::from(Decision::from_hits(&plan).allowed());
        }
        passed
    });
    // Every unit that passed is in exactly one counter, and no counter has more.
    let taken = |index: usize| {
        let mut hits = [hit(index)];
        memory.apply(&mut Plan::one(Ask::new(Op::Peek, 0, START), &mut hits));
        let Decision { limit, remaining, .. } = *hits[0].outcome();
        // Those with `after` tell what is left of what is free until that is used up.
        let free = if index % limits.len() == 3 && limit == Some(900) { 199 } else { 0 };
        limit.unwrap() - remaining.unwrap() + free
    };
    let taken: Vec<u64> = (0..subjects.len()).map(taken).collect();
    assert_eq!(taken.iter().sum::<u64>(), passed);
    let most = [1_500, 1_200, 1_800, 1_099];
    assert!(taken.iter().enumerate().all(|(index, &taken)| taken <= most[index % most.len()]), "{taken:?}");
    assert!(taken.iter().enumerate().any(|(index, &taken)| taken == most[index % most.len()]), "{taken:?}");
}

/// What is taken and given back, counted and given back, leaves nothing; what is only counted stays.
#[test]
fn refunds_and_records_conserve_the_count() {
    for text in
        ["sliding 1000000/60s", "sliding 1000/60s", "fixed 1000000/60s", "bucket 1000000/60s", "approx 1000000/60s"]
    {
        let (memory, limit) = (MemoryStore::default(), limit(text));
        let key = memory.subject(b"key").counter(memory.counter(b""));
        let apply = |op, cost| memory.apply_one(Ask::new(op, cost, START), key, &limit);
        let kept = together(|thread| {
            let mut kept = 0;
            for round in 0..400 {
                let cost = (round + thread) % 3 + 1;
                if apply(Op::Take, cost).allowed() {
                    apply(Op::Refund, cost);
                }
                if round % 100 == 0 {
                    apply(Op::Record, 2);
                    kept += 2;
                }
            }
            kept
        });
        let Decision { limit, remaining, .. } = apply(Op::Peek, 0);
        assert_eq!(limit.unwrap() - remaining.unwrap(), kept, "{text}");
        apply(Op::Refund, kept);
        assert_eq!(apply(Op::Peek, 0).remaining, limit, "{text}");
        assert_eq!(memory.stats().counters, 0, "{text}");
    }
}

/// Times that differ a little from thread to thread do not let more through.
#[test]
fn clocks_that_disagree_a_little_reset_no_counter() {
    for (text, most) in
        [("sliding 500/60s", 500), ("fixed 500/60s", 500), ("bucket 500/60s", 500), ("sliding 2000/60s", 2_000)]
    {
        let (memory, limit) = (MemoryStore::default(), limit(text));
        let key = memory.subject(b"key").counter(memory.counter(b""));
        let passed = together(|thread| {
            let now = |step: u64| Time::from_nanos(START.as_nanos() + (step * 31 + thread * 1_000_003) % 5_000_000);
            let take = |step: &u64| memory.apply_one(Ask::new(Op::Take, 1, now(*step)), key, &limit).allowed();
            (0..1_000).filter(take).count() as u64
        });
        assert_eq!(passed, most, "{text}");
    }
}

/// A store that is full all the time is shared without a panic, and stays within its bounds.
#[test]
fn a_full_store_is_shared_by_threads() {
    for when_full in [WhenFull::Evict, WhenFull::Deny] {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 64 << 10, when_full, ..MemoryConfig::default() });
        let limits = ["sliding 50/5s", "bucket 5/s", "fixed 5/5s after=3/2s", "sliding 5000/5s"].map(limit);
        let id = memory.counter(b"");
        together(|thread| {
            for round in 0..3_000u64 {
                let subject = |number: u64| memory.subject(&((round * 7 + number * 13) % 2_000).to_le_bytes());
                let hit = |number: u64| {
                    let limit = &limits[((round * 7 + number * 13) % 4) as usize];
                    Hit::new(subject(number).counter(id), limit)
                };
                let mut plan = [hit(thread), hit(thread + 1)];
                let now = Time::from_nanos(START.as_nanos() + round * SECOND / 100);
                memory.apply(&mut Plan::one(
                    Ask::new(if round % 5 == 0 { Op::Record } else { Op::Take }, 1, now),
                    &mut plan,
                ));
                let stats = memory.stats();
                assert!(stats.bytes <= stats.max_bytes, "{stats:?}");
            }
            0
        });
        let stats = memory.stats();
        assert!(stats.counters > 0 && stats.evicted + stats.refused > 0, "{stats:?}");
        memory.sweep(Time::from_nanos(START.as_nanos() + 1_000 * SECOND));
        assert_eq!(memory.stats().counters, 0);
    }
}

/// Settings change under way; every decision is one of the old or of the new.
#[test]
fn limits_may_be_changed_while_threads_take() {
    let limiter = Limiter::new("fixed 100/60s").unwrap();
    let passed = together(|thread| {
        if thread == 0 {
            limiter.set_limits("fixed 300/60s").unwrap();
        }
        (0..200).filter(|_| limiter.take_at("key", 1, START).allowed()).count() as u64
    });
    assert!(passed <= 300, "{passed}");
    let rest = (0..300).filter(|_| limiter.take_at("key", 1, START).allowed()).count() as u64;
    assert_eq!(passed + rest, 300);
}
