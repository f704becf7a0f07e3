//! The fast path and the slow path: two stores, one on each path, give the same answers call by call.

use super::super::super::{OneShard, VisitCursor, apply_to};
use super::*;
use crate::algorithm::Log;

const LIMITS: [&str; 8] = [
    "sliding 3/2s",
    "sliding 9/3s",
    "sliding 40/5s",
    "sliding 2000/3s",
    "bucket 5/2s",
    "pace 3/s burst=2 max_wait=2s",
    "fixed 7/3s",
    "approx 9/2s",
];

#[derive(Clone, Debug)]
struct Take {
    subject: usize,
    /// One of the subject's counters or several, some of them twice.
    counters: Vec<usize>,
    cost: u64,
    later: u64,
    back: u64,
    /// Whether the changes are visited before.
    visited: bool,
}

const SUBJECTS: usize = 6;
const COUNTERS: usize = 10;

fn taking() -> impl Strategy<Value = Take> {
    let cost = prop_oneof![6 => Just(1), 2 => 0..5u64, 1 => 0..3_000u64];
    let later = prop_oneof![2 => Just(0), 4 => 0..SECOND / 4, 1 => 0..5 * SECOND];
    let back = prop_oneof![4 => Just(0), 2 => 0..=super::super::super::expiry::GRACE_NANOS];
    let (one, several) = (prop::collection::vec(0..COUNTERS, 1), prop::collection::vec(0..COUNTERS, 2..5));
    // Each once, in any order.
    let distinct = Just(Vec::from_iter(0..COUNTERS)).prop_shuffle();
    let distinct = (distinct, 2..=COUNTERS).prop_map(|(all, number)| all[..number].to_vec());
    let counters = prop_oneof![one, several, distinct];
    (0..SUBJECTS, counters, cost, later, back, any::<bool>()).prop_map(
        |(subject, counters, cost, later, back, visited)| Take { subject, counters, cost, later, back, visited },
    )
}

/// The contents of a slot, independent of the place of its log.
#[derive(Debug, PartialEq)]
struct Content {
    tag: Tag,
    forget_at: u64,
    mark: u8,
    class: Class,
    /// The second word, unless it is the place of a log.
    word: Option<usize>,
    log: Option<Log>,
}

impl Shard {
    fn contents(&self) -> Vec<Content> {
        let content = |slot: &Slot| Content {
            tag: slot.tag(),
            forget_at: slot.forget_at(),
            mark: slot.mark(),
            class: slot.class(),
            word: (!slot.holds_log()).then_some(slot.log().0),
            log: slot.log_index().map(|index| self.logs[index].clone()),
        };
        self.slots.iter().filter(|slot| !slot.is_empty()).map(content).collect()
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn counters_are_decided_where_they_lie_as_if_taken_out(
        max_bytes in prop_oneof![Just(0), 11_000..16_000usize, Just(1 << 20)],
        when_full in prop::sample::select(vec![WhenFull::Evict, WhenFull::Deny]),
        takes in prop::collection::vec(taking(), 1..400),
    ) {
        let [short, long] = [(); 2].map(|()| MemoryStore::new(MemoryConfig { max_bytes, when_full, seed: Seed([1, 2]) }));
        let limits = LIMITS.map(|limit| limit.parse::<Limit>().unwrap());
        let first_shard = |number: &u32| {
            short.subject(&number.to_le_bytes()).counter(CounterId::default()).shard(short.shards.len()) == 0
        };
        let subjects: Vec<u32> = (0..).filter(first_shard).take(SUBJECTS).collect();
        let key = |subject: usize, counter: usize| {
            short.subject(&subjects[subject].to_le_bytes()).counter(short.counter(&[counter as u8]))
        };
        let mut latest = START;
        for Take { subject, counters, cost, later, back, visited } in takes {
            if visited {
                let mut visit = VisitCursor::default();
                while short.changed(&mut visit, &mut Vec::new()) {}
            }
            latest += later;
            let now = Time::from_nanos(latest - back);
            let hits = || -> Vec<Hit<'_>> {
                let limit = |counter: usize| &limits[(subject + counter) % limits.len()];
                counters.iter().map(|&counter| Hit::new(key(subject, counter), limit(counter))).collect()
            };
            let [(mut by_short, mut left), (mut by_long, mut right)] =
                [(hits(), short.lock(0)), (hits(), long.lock(0))];
            if !left.take_fast(cost, now, &mut by_short, &short.budget) {
                left.check_invariants();
                // When the fast path gives up, it has already done its step of the sweep.
                right.tick(now.as_nanos(), &long.budget);
                apply_to(&mut OneShard(&mut left), &short.budget, Ask::new(Op::Take, cost, now), &mut by_short, &mut []);
            }
            apply_to(&mut OneShard(&mut right), &long.budget, Ask::new(Op::Take, cost, now), &mut by_long, &mut []);
            for (by_short, by_long) in by_short.iter().zip(&by_long) {
                prop_assert_eq!(by_short.outcome(), by_long.outcome());
            }
            prop_assert_eq!(left.contents(), right.contents());
            prop_assert_eq!(left.floor, right.floor);
            drop((left, right));
            prop_assert_eq!(short.stats(), long.stats());
            short.check_invariants();
        }
    }
}
