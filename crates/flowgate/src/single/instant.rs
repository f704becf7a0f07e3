//! A counter that is one atomic instant: that of a bucket whose interval is a whole number of nanoseconds.
//!
//! A decision is one compare-and-exchange, or none if nothing changes. With several threads that costs half as much as
//! a lock and two words.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

use crate::algorithm::{Bucket, FullAt, Meter, apply};
use crate::ask::{Ask, Op};
use crate::decision::{Decision, Verdict};
use crate::time::Time;

#[derive(Debug)]
pub(super) struct AtomicInstant {
    /// Zero stands for an unused counter: no bucket is full again at the epoch.
    full_at: AtomicU64,
    bucket: Bucket<u64>,
}

impl AtomicInstant {
    /// An unused counter of a bucket [with whole nanoseconds](Bucket::has_whole_nanos).
    pub(super) fn new(bucket: Bucket<u64>) -> AtomicInstant {
        AtomicInstant { full_at: AtomicU64::new(0), bucket }
    }

    /// Takes `cost` units, at least one.
    #[inline(always)]
    pub(super) fn take(&self, cost: u64, now: Time) -> Decision {
        let mut full_at = self.full_at.load(Acquire);
        while let Some(taken) = self.bucket.taken(full_at, now.as_nanos(), cost) {
            match self.full_at.compare_exchange_weak(full_at, taken, AcqRel, Acquire) {
                Ok(_) => return self.bucket.numbers(state(taken).as_ref(), now.as_nanos()).beside(Verdict::PASS),
                Err(changed) => full_at = changed,
            }
        }
        self.bucket.take(&mut state(full_at), Ask::new(Op::Take, cost, now))
    }

    /// Applies any operation.
    pub(super) fn apply(&self, ask: Ask) -> Decision {
        let mut old = self.full_at.load(Acquire);
        loop {
            let mut new = state(old);
            let decision = apply(&self.bucket, ask, &mut new);
            let new = new.map_or(0, |full_at| full_at.nanos);
            if new == old {
                return decision;
            }
            match self.full_at.compare_exchange_weak(old, new, AcqRel, Acquire) {
                Ok(_) => return decision,
                Err(changed) => old = changed,
            }
        }
    }
}

#[inline(always)]
fn state(full_at: u64) -> Option<FullAt> {
    (full_at > 0).then_some(FullAt { nanos: full_at, ticks: 0 })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Release;

    use proptest::prelude::*;

    use super::*;
    use crate::algorithm::MAX_DEBT_NANOS;
    use crate::limit::Limit;

    proptest! {
        /// The test includes the earliest and latest instants, costs that no limit grants, and debts that a record has
        /// made.
        #[test]
        fn a_take_is_the_same_as_any_other_operation(
            limit in prop_oneof![
                Just("bucket 1000000000/s"), Just("bucket 1/d"), Just("bucket 5/s burst=1000"), Just("bucket 1/100d burst=365"),
            ],
            now in prop_oneof![0..=3_u64, any::<u64>().prop_map(|now| now >> 1), Just(Time::MAX.as_nanos())],
            debt in prop_oneof![0..=3_u64, 0..10_000_000_000_u64, 0..=MAX_DEBT_NANOS],
            is_past in any::<bool>(),
            cost in prop_oneof![1..=3_u64, 1..=1000_u64, any::<u64>().prop_map(|cost| cost.max(1))],
        ) {
            let limit: Limit = limit.parse().unwrap();
            let counter = AtomicInstant::new(limit.instant_bucket().unwrap().clone());
            let full_at = if is_past { now.saturating_sub(debt) } else { now + debt };
            let now = Time::from_nanos(now);
            counter.full_at.store(full_at, Release);
            let took = (counter.take(cost, now), counter.full_at.load(Acquire));
            counter.full_at.store(full_at, Release);
            prop_assert_eq!(took, (counter.apply(Ask::new(Op::Take, cost, now)), counter.full_at.load(Acquire)));
        }
    }
}
