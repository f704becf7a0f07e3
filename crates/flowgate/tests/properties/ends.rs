//! The ends of the ranges: no panic (tests check for overflow), and the bounds hold there too.

use flowgate::{Decision, Op, RuleFlags, Span, Time};
use flowgate_testkit::properties::naive::{self, Counter, RuleHits};
use flowgate_testkit::properties::specs::{DAYS, SECONDS, Spec};
use proptest::prelude::*;

use crate::Store;

const LATELY: u64 = 1_700_000_000 * SECONDS;
const MAX_COST: u64 = 1_000_000_000_000;

/// Debts saturate at 36,500 days, and a `take` that would pass that is denied for good.
#[test]
fn pace_gives_no_turn_beyond_the_longest_debt() {
    // A turn every 20,000 days.
    let store = Store::from_limit("pace 0.01/200d max_wait=none");
    assert!(store.take(1, LATELY).allowed());
    assert_eq!(store.peek(1, LATELY).retry_after(), None);
    assert!(store.peek(1, LATELY).never());
    assert!(store.peek(2, LATELY).never());
    let later = LATELY + 20_000 * DAYS;
    assert_eq!(store.peek(1, later).delay().as_nanos(), 0);
    assert!(store.peek(2, later).never());
    // A wait that would end beyond the longest debt helps no caller, however short `max_wait` is.
    let store = Store::from_limit("pace 0.01/364d max_wait=366d");
    assert!(store.take(1, LATELY).allowed());
    assert!(store.peek(1, LATELY).never());
    // Where it ends within, it helps.
    let store = Store::from_limit("pace 0.01/200d max_wait=366d");
    store.apply(Op::Record, 3, LATELY);
    let wait = store.peek(1, LATELY).retry_after().unwrap().as_nanos();
    assert_eq!(wait, (36_500 - 366) * DAYS);
    assert!(!store.peek(1, LATELY + wait - 1).allowed());
    assert!(store.peek(1, LATELY + wait).allowed());
}

const LIMITS: [&str; 24] = [
    "bucket 1/us",
    "bucket 1/366d",
    "bucket 1/366d burst=99",
    "bucket 0.000001/s burst=3153",
    "bucket 1000000000000/us",
    "bucket 1000000000000/366d",
    "bucket 999999999999.999/366d burst=1000000000000",
    "pace 1/366d burst=99 max_wait=366d",
    "pace 0.000001/s max_wait=none",
    "pace 1000000000000/us burst=1000000000000 max_wait=0s",
    "pace 1000000000000/366d max_wait=none",
    "fixed 1/us",
    "fixed 1000000000000/366d",
    "fixed 1000000000000/month tz=Pacific/Apia",
    "fixed 3/us tz=UTC",
    "sliding 1/us",
    "sliding 1/366d",
    "sliding 1000000000000/us",
    "sliding 1000000000000/366d",
    "approx 1/us",
    "approx 4000000000/366d",
    "approx 4000000000/us after=1000000000000/366d",
    "sliding 1/366d after=1000000000000/us",
    "bucket 1000000000000/366d after=1/month tz=UTC",
];

fn cost() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![
        0,
        1,
        2,
        99,
        1_025,
        4_000_000_000,
        1 << 32,
        MAX_COST - 1,
        MAX_COST,
        MAX_COST + 1,
        1 << 53,
        u64::MAX / 2,
        u64::MAX,
    ])
}

fn time() -> impl Strategy<Value = u64> {
    const MAX: u64 = Time::MAX.as_nanos();
    let edges = [0, 1, 999, 1_000, 366 * DAYS, LATELY, MAX - 366 * DAYS, MAX - 1_000, MAX - 1, MAX, u64::MAX];
    prop_oneof![prop::sample::select(edges.to_vec()), any::<u64>()]
}

fn op() -> impl Strategy<Value = Op> {
    let within = any::<u64>().prop_map(|nanos| Op::TakeWithin(Span::from_nanos(nanos)));
    let others = prop::sample::select(vec![Op::Take, Op::TakeWithin(Span::ZERO), Op::Peek, Op::Record, Op::Refund]);
    prop_oneof![3 => Just(Op::Take), 1 => within, 4 => others]
}

proptest! {
    #![proptest_config(crate::cases(500))]

    /// Wherever time jumps, nothing panics and no answer contradicts itself.
    #[test]
    fn any_cost_at_any_time_is_answered(
        limit in prop::sample::select(LIMITS.to_vec()),
        steps in prop::collection::vec((op(), cost(), time()), 1..40),
    ) {
        let store = Store::from_limit(limit);
        for (op, cost, now) in steps {
            let answer = store.apply(op, cost, now);
            prop_assert!(answer.remaining <= answer.limit, "{}: {:?}", limit, answer);
            prop_assert!(cost > 0 || answer.allowed(), "{}: {:?}", limit, answer);
            prop_assert!(!matches!(op, Op::Record | Op::Refund) || answer.allowed(), "{}: {:?}", limit, answer);
            prop_assert!(!matches!(op, Op::Take) || cost <= MAX_COST || answer.never(), "{}: {:?}", limit, answer);
        }
    }

    /// In the order of their times, the answers are those of the reference to the end of time.
    #[test]
    fn any_cost_until_the_end_of_time_is_answered_as_by_the_reference(
        limit in prop::sample::select(LIMITS.to_vec()),
        steps in prop::collection::vec((op(), cost()), 1..40),
        times in prop::collection::vec(time(), 40),
    ) {
        let store = Store::from_limit(limit);
        let mut counter = Counter::new(&Spec::parse(limit).unwrap());
        let mut times: Vec<u64> = times.into_iter().map(|time| Time::from_nanos(time).as_nanos()).collect();
        times.sort_unstable();
        for ((op, cost), now) in steps.into_iter().zip(times) {
            let op = if matches!(op, Op::TakeWithin(_)) { Op::Take } else { op };
            let expected = one(&mut counter, op, cost, now);
            prop_assert_eq!(store.apply(op, cost, now), expected, "{}: {:?} {} at {}", limit, op, cost, now);
        }
    }

    /// However often a caller asks at one instant, no more than the limit passes. This also holds at the earliest and
    /// the latest instant.
    #[test]
    fn an_instant_admits_no_more_than_the_limit(
        limit in prop::sample::select(LIMITS.to_vec()),
        costs in prop::collection::vec(cost(), 1..40),
        now in time(),
    ) {
        let (store, spec) = (Store::from_limit(limit), Spec::parse(limit).unwrap());
        let takes = costs.iter().map(|&cost| (cost, store.take(cost, now)));
        let admitted: u128 = takes
            .filter(|(_, answer)| answer.allowed() && answer.delay().is_zero())
            .map(|(cost, _)| u128::from(cost))
            .sum();
        let free = spec.after.as_ref().map_or(0, |(free, _)| *free);
        prop_assert!(admitted <= u128::from(spec.most()) + u128::from(free), "{}: {}", limit, admitted);
    }
}

fn one(counter: &mut Counter, op: Op, cost: u64, now: u64) -> Decision {
    let rule = RuleHits { flags: RuleFlags::default(), counters: vec![0] };
    naive::apply(std::slice::from_mut(counter), &[rule], op, cost, now)[0]
}
