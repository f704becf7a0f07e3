//! Class: how much of its limit a counter has used, in two bits.
//!
//! A full table forgets counters of the lowest class first. A crowd of new keys is of the lowest class, so it displaces
//! other new keys and not the counters that deny requests.
//!
//! | class | counter |
//! |---|---|
//! | [`Class::LITTLE`] | less than a quarter of the limit is used: most new keys |
//! | [`Class::QUARTER`] | a quarter is used |
//! | [`Class::HALF`] | half is used |
//! | [`Class::EXHAUSTED`] | nothing is left, or the counter has denied a request; also a ban, and the strikes before it |
//!
//! The decision that writes a counter sets its class. Time alone does not lower a class: it stays until the next
//! decision about the counter, or until the counter expires.

use crate::algorithm::{Counter, Law, Meter, WindowCount, dispatch};
use crate::decision::Decision;
use crate::limit::Limit;
use crate::redis_cell::ThrottleReply;
use crate::time::Time;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u8);

impl Class {
    pub(crate) const LITTLE: Class = Class(0);
    #[cfg(test)]
    pub(crate) const QUARTER: Class = Class(1);
    pub(crate) const HALF: Class = Class(2);
    pub(crate) const EXHAUSTED: Class = Class(3);

    /// The class of a counter that has `left` of `whole`.
    #[inline(always)]
    pub(crate) fn from_left(left: u64, whole: u64) -> Class {
        // Limits are far below 2^62, so this does not wrap.
        let used_four_times = whole.wrapping_sub(left) << 2;
        Class(u8::from(used_four_times >= whole) + u8::from(used_four_times >= whole << 1) + u8::from(left == 0))
    }

    /// The class in the two low bits.
    #[inline(always)]
    pub(crate) fn from_bits(bits: u8) -> Class {
        Class(bits & 3)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

impl Limit {
    /// The class of a counter after the operation that `decision` answers. Its waits count from the time of that
    /// operation.
    #[inline]
    pub(crate) fn class(&self, decision: &Decision) -> Class {
        dispatch!(self.law(), meter => meter.class(decision), decision.class())
    }

    /// The classes of both parts of a counter, the limit's own and that of `after=`, after `verdict`.
    #[inline]
    pub(crate) fn classes(&self, counter: &Counter, now: Time, outcome: &Decision) -> [Class; 2] {
        let Some(after) = self.after_window() else { return [self.class(outcome), Class::LITTLE] };
        let own = self.own_status(counter, now, outcome.verdict);
        let counted = WindowCount::count_at(counter.seen.as_ref(), now.as_nanos());
        [self.class(&own), Class::from_left(after.free.saturating_sub(counted), after.free)]
    }
}

impl Decision {
    /// The class of a counter by the numbers of a decision about it.
    #[inline(always)]
    pub(crate) fn class(&self) -> Class {
        match (self.limit, self.remaining) {
            // The counter itself denies. A cost above the whole limit (`Retry::Never`) says nothing about its use.
            _ if self.retry_after().is_some() => Class::EXHAUSTED,
            (Some(limit), Some(remaining)) => Class::from_left(remaining, limit),
            _ => Class::LITTLE,
        }
    }
}

impl ThrottleReply {
    /// The class of the counter after the call.
    #[inline]
    pub(crate) fn class(&self) -> Class {
        match self.retry_after {
            Some(_) => Class::EXHAUSTED,
            // Both numbers are at least zero.
            None => Class::from_left(self.remaining as u64, self.limit as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Ask, Op};
    use crate::decision::{Retry, Verdict};
    use crate::time::Span;

    #[test]
    fn the_class_follows_what_is_used() {
        let classes =
            |whole: u64| (0..=whole).map(|used| Class::from_left(whole - used, whole).bits()).collect::<Vec<_>>();
        assert_eq!(classes(1), [0, 3]);
        assert_eq!(classes(2), [0, 2, 3]);
        assert_eq!(classes(3), [0, 1, 2, 3]);
        assert_eq!(classes(4), [0, 1, 2, 2, 3]);
        assert_eq!(classes(10), [0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3]);
        assert_eq!(Class::from_left((1 << 59) + 1, 1 << 60), Class::QUARTER);
    }

    /// The class after `units` units were taken one by one at one instant.
    fn class_after(limit: &str, units: u64) -> Class {
        let (limit, now, mut counter) = (limit.parse::<Limit>().unwrap(), Time::from_secs(100), Counter::default());
        let last = (0..units).map(|_| limit.apply(Ask::new(Op::Take, 1, now), &mut counter)).last().unwrap();
        let [own, seen] = limit.classes(&counter, now, &last);
        own.max(seen)
    }

    #[test]
    fn every_algorithm_counts_its_use() {
        for limit in ["sliding 8/60s", "fixed 8/60s", "approx 8/60s", "bucket 8/60s", "bucket 1/60s burst=8"] {
            let found = [1, 2, 3, 4, 7, 8, 9].map(|units| class_after(limit, units).bits());
            assert_eq!(found, [0, 1, 1, 2, 2, 3, 3], "{limit}");
        }
    }

    /// A burst of 2 and 6 s of waiting at one a second: eight units fit.
    #[test]
    fn a_pace_is_used_as_far_as_its_queue_is_full() {
        let found = [1, 2, 3, 4, 7, 8, 9].map(|units| class_after("pace 1/s burst=2 max_wait=6s", units).bits());
        assert_eq!(found, [0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(class_after("pace 1/s max_wait=none", 1000), Class::LITTLE);
    }

    #[test]
    fn the_free_part_of_a_limit_counts_by_itself() {
        let found = [1, 2, 4, 8].map(|units| class_after("5/60s after=8/day", units).bits());
        assert_eq!(found, [0, 1, 2, 3]);
        assert_eq!(class_after("8/60s after=100/day", 103), Class::EXHAUSTED);
    }

    #[test]
    fn only_a_denial_with_a_wait_marks_a_counter_exhausted() {
        let limit: Limit = "10/60s".parse().unwrap();
        let class = |retry| {
            let verdict = Verdict::Deny(retry);
            limit.class(&Decision { verdict, limit: Some(10), remaining: Some(9), reset_after: Span::ZERO })
        };
        assert_eq!(class(Retry::After(Span::from_secs(1))), Class::EXHAUSTED);
        assert_eq!(class(Retry::Never), Class::LITTLE);
    }
}
