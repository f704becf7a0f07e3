//! Bucket: a token bucket kept as a single instant. Pace: the same bucket, handing out turns.
//!
//! State      `full_at`, the instant at which the bucket is full again. No state means full.
//! Rule       `debt = max(0, full_at - now)`. Taking `cost` moves `full_at` to `now + debt + cost * interval`; bucket
//!            allows it iff the new debt is at most `burst * interval`, pace hands out what is beyond as a delay.
//! Invariant  `full_at` never lies before the `now` that wrote it, so an idle key banks one burst and no more.
//! Bound      Any span of length `w` admits at most `burst + w / interval` units. With `burst=1`, pace lets
//!            requests leave exactly one interval apart.
//!
//! The interval is period / count, seldom a whole number of nanoseconds. It is exact nonetheless: all sums are made
//! in *ticks*, a fraction of a nanosecond chosen such that both the nanosecond and the interval are whole numbers of
//! them. `7/s` has 7 ticks to the nanosecond and 10^9 to the interval.

use super::{Charge, MAX_DEBT_NANOS, Meter, Numbers, Words};
use crate::decision::{Retry, Verdict};
use crate::limit::{MICRO, MaxWait};
use crate::time::Span;

/// The numbers of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    ticks_per_nano: u64,
    ticks_per_unit: u128,
    burst: u64,
    /// `burst` units in ticks.
    capacity: u128,
    /// The longest debt, 36,500 days, in ticks.
    longest: u128,
}

/// The instant at which a bucket is full again: `nanos` and `ticks` of the next nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FullAt {
    pub(crate) nanos: u64,
    pub(crate) ticks: u64,
}

impl Bucket {
    /// A bucket of `micros` millionths of a unit per `period` nanoseconds; `None` when it would need more than
    /// 36,500 days to fill.
    pub(crate) fn new(micros: u64, period: u64, burst: u64) -> Option<Bucket> {
        let scaled_period = u128::from(period) * u128::from(MICRO);
        let common = gcd(scaled_period, u128::from(micros));
        let ticks_per_unit = scaled_period / common;
        let ticks_per_nano = u64::try_from(u128::from(micros) / common).ok()?;
        // The largest product: 10^12 units of 366 days in millionths of a nanosecond, 3.2 * 10^34.
        let capacity = u128::from(burst) * ticks_per_unit;
        let longest = u128::from(MAX_DEBT_NANOS) * u128::from(ticks_per_nano);
        (capacity <= longest).then_some(Bucket { ticks_per_nano, ticks_per_unit, burst, capacity, longest })
    }

    pub(crate) fn burst(&self) -> u64 {
        self.burst
    }

    #[inline]
    fn debt(&self, state: Option<&FullAt>, now: u64) -> u128 {
        match state {
            Some(&FullAt { nanos, ticks }) if nanos >= now => {
                // A limit with a coarser tick may have taken the state over; a nanosecond bounds the remainder.
                let ticks = ticks.min(self.ticks_per_nano - 1);
                u128::from(nanos - now) * u128::from(self.ticks_per_nano) + u128::from(ticks)
            }
            _ => 0,
        }
    }

    #[inline]
    fn ticks(&self, cost: u64) -> u128 {
        u128::from(cost) * self.ticks_per_unit
    }

    #[inline]
    fn full_at(&self, now: u64, debt: u128) -> FullAt {
        let (nanos, ticks) = divide(debt, u128::from(self.ticks_per_nano));
        // A debt is at most 36,500 days and the rest below `ticks_per_nano`: both fit.
        FullAt { nanos: now + nanos as u64, ticks: ticks as u64 }
    }

    fn nanos_ceil(&self, ticks: u128) -> Span {
        let (nanos, rest) = divide(ticks, u128::from(self.ticks_per_nano));
        Span::from_nanos(nanos as u64 + u64::from(rest > 0))
    }
}

// Always inlined, together in `apply`: what they compute twice is then computed once.
impl Meter for Bucket {
    type State = FullAt;

    #[inline(always)]
    fn check(&self, state: Option<&FullAt>, now: u64, cost: u64) -> Verdict {
        if cost > self.burst {
            return Verdict::Deny(Retry::Never);
        }
        let debt = self.debt(state, now) + self.ticks(cost);
        if debt <= self.capacity {
            return Verdict::PASS;
        }
        Verdict::Deny(Retry::After(self.nanos_ceil(debt - self.capacity)))
    }

    /// Debts saturate at 36,500 days; a denied request does not raise them above a full burst.
    #[inline(always)]
    fn charged(&self, state: Option<FullAt>, now: u64, cost: u64, charge: Charge) -> FullAt {
        let debt = self.debt(state.as_ref(), now);
        let cap = match charge {
            Charge::Counted => self.longest,
            Charge::Denied => self.capacity,
        };
        self.full_at(now, (debt + self.ticks(cost)).min(cap).max(debt))
    }

    fn refunded(&self, state: Option<FullAt>, now: u64, cost: u64) -> Option<FullAt> {
        let debt = self.debt(state.as_ref(), now).saturating_sub(self.ticks(cost));
        (debt > 0).then(|| self.full_at(now, debt))
    }

    #[inline(always)]
    fn numbers(&self, state: Option<&FullAt>, now: u64) -> Numbers {
        let debt = self.debt(state, now);
        // The room is at most `burst` units.
        let remaining = divide(self.capacity.saturating_sub(debt), self.ticks_per_unit).0 as u64;
        let reset_after = match state {
            Some(&FullAt { nanos, ticks }) if nanos >= now => nanos - now + u64::from(ticks > 0),
            _ => 0,
        };
        Numbers { limit: self.burst, remaining, reset_after: Span::from_nanos(reset_after) }
    }
}

impl Words for FullAt {
    #[inline(always)]
    fn pack(&self) -> [u64; 2] {
        [self.nanos, self.ticks]
    }

    #[inline(always)]
    fn unpack([nanos, ticks]: [u64; 2]) -> FullAt {
        FullAt { nanos, ticks }
    }
}

/// A bucket that hands out turns: the numbers of `pace`.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) bucket: Bucket,
    /// In ticks.
    max_wait: u128,
}

impl Pace {
    pub(crate) fn new(bucket: Bucket, max_wait: MaxWait) -> Pace {
        let nanos = match max_wait {
            MaxWait::AtMost(span) => span.as_nanos().min(MAX_DEBT_NANOS),
            MaxWait::Unbounded => MAX_DEBT_NANOS,
        };
        let max_wait = u128::from(nanos) * u128::from(bucket.ticks_per_nano);
        Pace { bucket, max_wait }
    }

    /// The same for one who would not be held: any delay is too long.
    #[inline]
    pub(crate) fn at_once(&self) -> Pace {
        Pace { bucket: self.bucket.clone(), max_wait: 0 }
    }
}

impl Meter for Pace {
    type State = FullAt;

    #[inline]
    fn check(&self, state: Option<&FullAt>, now: u64, cost: u64) -> Verdict {
        let capacity = self.bucket.capacity;
        let debt = self.bucket.debt(state, now) + self.bucket.ticks(cost);
        let delay = debt.saturating_sub(capacity);
        if self.bucket.ticks(cost).saturating_sub(capacity) > self.max_wait {
            Verdict::Deny(Retry::Never)
        } else if delay > self.max_wait && capacity + self.max_wait <= self.bucket.longest {
            Verdict::Deny(Retry::After(self.bucket.nanos_ceil(delay - self.max_wait)))
        } else if debt > self.bucket.longest {
            // No turn is that far away. Nor does it help to wait until the delay is short enough, where that would
            // still be beyond the longest debt.
            Verdict::Deny(Retry::Never)
        } else {
            Verdict::Allow { delay: self.bucket.nanos_ceil(delay) }
        }
    }

    #[inline]
    fn charged(&self, state: Option<FullAt>, now: u64, cost: u64, charge: Charge) -> FullAt {
        self.bucket.charged(state, now, cost, charge)
    }

    fn refunded(&self, state: Option<FullAt>, now: u64, cost: u64) -> Option<FullAt> {
        self.bucket.refunded(state, now, cost)
    }

    #[inline]
    fn numbers(&self, state: Option<&FullAt>, now: u64) -> Numbers {
        self.bucket.numbers(state, now)
    }
}

/// Quotient and remainder; one machine division when the numbers are as small as they mostly are.
#[inline]
fn divide(dividend: u128, divisor: u128) -> (u128, u128) {
    match (u64::try_from(dividend), u64::try_from(divisor)) {
        (Ok(dividend), Ok(1)) => (u128::from(dividend), 0),
        (Ok(dividend), Ok(divisor)) => (u128::from(dividend / divisor), u128::from(dividend % divisor)),
        _ => (dividend / divisor, dividend % divisor),
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
