//! Bucket: a token bucket kept as a single instant. Pace: the same bucket, handing out turns.
//!
//! State      `full_at`, the instant at which the bucket is full again. No state means full.
//! Rule       `debt = max(0, full_at - now)`. Taking `cost` moves `full_at` to `now + debt + cost * interval`; `bucket`
//!            allows it iff the new debt is at most `burst * interval`. `pace` lets the request wait for the part of
//!            the debt beyond that.
//! Invariant  `full_at` never lies before the `now` that wrote it, so an idle key banks
//!            one burst and no more.
//! Bound      Any span of length `w` admits at most `burst + w / interval` units. With `burst=1`, pace lets
//!            requests leave exactly one interval apart.
//! Portable   Terms `want room capacity ticks`; state `full_at`, zeros if unused; undo `b full_at want ticks`. Each but
//!            `ticks` is whole microseconds and a remainder in ticks, of which a microsecond has `ticks`.
//!
//! The interval is period / count, seldom a whole number of nanoseconds. It is exact nonetheless: all sums are made
//! in *ticks*, a fraction of a nanosecond chosen such that both the nanosecond and the interval are whole numbers of
//! them. `7/s` has 7 ticks to the nanosecond and 10^9 to the interval.

#[cfg(feature = "portable")]
mod portable;

use super::ticks::Ticks;
use super::{Charge, MAX_DEBT_NANOS, Meter, Numbers, Words};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::{MICRO, MaxWait};
use crate::time::Span;

/// The numbers of a bucket, in ticks of type `T`.
#[derive(Clone, Debug)]
pub(crate) struct Bucket<T = u128> {
    ticks_per_nano: u64,
    ticks_per_unit: T,
    burst: u64,
    /// `burst` units.
    capacity: T,
    /// The longest debt, 36,500 days.
    longest: T,
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
        let capacity = ticks_per_unit.times(burst);
        let longest = Ticks::from_nanos(MAX_DEBT_NANOS, ticks_per_nano);
        (capacity <= longest).then_some(Bucket { ticks_per_nano, ticks_per_unit, burst, capacity, longest })
    }

    /// The same bucket in narrow ticks, if two of the longest debts fit them.
    pub(crate) fn narrow(&self) -> Option<Bucket<u64>> {
        let &Bucket { ticks_per_nano, burst, .. } = self;
        u64::try_from(2 * self.longest).ok()?;
        Some(Bucket {
            ticks_per_nano,
            ticks_per_unit: u64::try_from(self.ticks_per_unit).ok()?,
            burst,
            capacity: u64::try_from(self.capacity).ok()?,
            longest: u64::try_from(self.longest).ok()?,
        })
    }
}

/// A bucket whose state is one word: see [`Bucket::has_whole_nanos`].
impl Bucket<u64> {
    /// The instant at which it is full again once `cost` is taken; `None` if that is denied. `full_at` is zero if it
    /// was never used.
    ///
    /// It computes with instants, not debts, and has no branch on which instant is later. That changes from call to
    /// call if calls come as fast as the clock ticks, and one mispredicted branch takes as long as the whole function.
    #[inline(always)]
    pub(crate) fn taken(&self, full_at: u64, now: u64, cost: u64) -> Option<u64> {
        // An instant is below 2^63, and the costs up to a burst are at most 36,500 days.
        let taken = full_at.max(now).saturating_add(self.ticks_per_unit.times(cost));
        (cost <= self.burst && taken <= now + self.capacity).then_some(taken)
    }
}

impl<T: Ticks> Bucket<T> {
    #[inline(always)]
    fn debt(&self, state: Option<&FullAt>, now: u64) -> T {
        match state {
            Some(&FullAt { nanos, ticks }) if nanos >= now => {
                // A limit with another tick may have written the remainder `ticks`. It stands for less than a
                // nanosecond, so it is cut to that.
                T::from_nanos(nanos - now, self.ticks_per_nano).plus(ticks.min(self.ticks_per_nano - 1).into())
            }
            _ => T::default(),
        }
    }

    #[inline(always)]
    fn full_at(&self, now: u64, debt: T) -> FullAt {
        // A debt is at most 36,500 days.
        let (nanos, ticks) = debt.split(self.ticks_per_nano);
        FullAt { nanos: now + nanos, ticks }
    }

    /// Whether `cost` passes at this debt.
    #[inline(always)]
    fn verdict(&self, debt: T, cost: u64) -> Verdict {
        if cost > self.burst {
            return Verdict::Deny(Retry::Never);
        }
        let asked = debt.plus(self.ticks_per_unit.times(cost));
        if asked <= self.capacity {
            return Verdict::PASS;
        }
        Verdict::Deny(Retry::After(self.nanos_ceil(asked.minus(self.capacity))))
    }

    /// The numbers of a state and of its debt.
    #[inline(always)]
    fn numbers_of(&self, debt: T, state: Option<&FullAt>, now: u64) -> Numbers {
        // The room is at most `burst` units.
        let remaining = self.capacity.minus(debt).over(self.ticks_per_unit);
        let reset_after = match state {
            Some(&FullAt { nanos, ticks }) if nanos >= now => nanos - now + u64::from(ticks > 0),
            _ => 0,
        };
        Numbers { limit: self.burst, remaining, reset_after: Span::from_nanos(reset_after) }
    }

    /// Whether a tick is a nanosecond. Then the second word of every state is zero, and one word is enough.
    pub(crate) fn has_whole_nanos(&self) -> bool {
        self.ticks_per_nano == 1
    }

    /// How long an empty bucket takes to fill, rounded up.
    pub(crate) fn fill_time(&self) -> Span {
        self.nanos_ceil(self.capacity)
    }

    #[inline(always)]
    fn nanos_ceil(&self, ticks: T) -> Span {
        let (nanos, rest) = ticks.split(self.ticks_per_nano);
        Span::from_nanos(nanos + u64::from(rest > 0))
    }
}

// Both are always inlined into `apply`, so that a value that both compute is computed once.
impl<T: Ticks> Meter for Bucket<T> {
    type State = FullAt;

    #[inline(always)]
    fn check(&self, state: Option<&FullAt>, ask: Ask) -> Verdict {
        self.verdict(self.debt(state, ask.now.as_nanos()), ask.cost)
    }

    /// Works out the debt once.
    #[inline(always)]
    fn take(&self, state: &mut Option<FullAt>, ask: Ask) -> Decision {
        let now = ask.now.as_nanos();
        let mut debt = self.debt(state.as_ref(), now);
        let verdict = self.verdict(debt, ask.cost);
        if verdict.allowed() {
            debt = debt.plus(self.ticks_per_unit.times(ask.cost));
            *state = Some(self.full_at(now, debt));
        }
        self.numbers_of(debt, state.as_ref(), now).beside(verdict)
    }

    /// Debts saturate at 36,500 days; a denied request does not raise them above a full burst.
    #[inline(always)]
    fn charged(&self, state: Option<FullAt>, now: u64, cost: u64, charge: Charge) -> FullAt {
        let debt = self.debt(state.as_ref(), now);
        let cap = match charge {
            Charge::Counted => self.longest,
            Charge::Denied => self.capacity,
        };
        self.full_at(now, debt.plus(self.ticks_per_unit.times(cost)).min(cap).max(debt))
    }

    fn refunded(&self, state: Option<FullAt>, now: u64, cost: u64) -> Option<FullAt> {
        let debt = self.debt(state.as_ref(), now).minus(self.ticks_per_unit.times(cost));
        (debt > T::default()).then(|| self.full_at(now, debt))
    }

    #[inline(always)]
    fn used(&self, state: Option<&FullAt>, now: u64) -> u64 {
        let units = self.debt(state, now).wide().div_ceil(self.ticks_per_unit.wide());
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    #[inline]
    fn numbers(&self, state: Option<&FullAt>, now: u64) -> Numbers {
        self.numbers_of(self.debt(state, now), state, now)
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

/// The numbers of `pace`: a bucket that gives each request a turn.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub(crate) bucket: Bucket,
    /// In ticks.
    max_wait: u128,
    /// The nanoseconds of debt that fit: the burst and `max_wait` together.
    whole: u64,
    /// The nanoseconds of a unit, rounded up; at most `whole`.
    unit: u64,
}

impl Pace {
    pub(crate) fn new(bucket: Bucket, max_wait: MaxWait) -> Pace {
        let nanos = match max_wait {
            MaxWait::AtMost(span) => span.as_nanos().min(MAX_DEBT_NANOS),
            MaxWait::Unbounded => MAX_DEBT_NANOS,
        };
        let max_wait = Ticks::from_nanos(nanos, bucket.ticks_per_nano);
        // Each is at most 36,500 days.
        let whole = bucket.fill_time().as_nanos() + nanos;
        let unit = bucket.nanos_ceil(bucket.ticks_per_unit).as_nanos();
        Pace { bucket, max_wait, whole, unit }
    }

    /// The longest delay, in ticks, that a caller of `op` accepts.
    #[inline]
    fn max_wait(&self, op: Op) -> u128 {
        match op {
            Op::TakeWithin(longest) => {
                let nanos = longest.as_nanos().min(MAX_DEBT_NANOS);
                self.max_wait.min(Ticks::from_nanos(nanos, self.bucket.ticks_per_nano))
            }
            _ => self.max_wait,
        }
    }
}

impl Meter for Pace {
    type State = FullAt;

    #[inline]
    fn check(&self, state: Option<&FullAt>, ask: Ask) -> Verdict {
        let Bucket { ticks_per_unit, capacity, longest, .. } = self.bucket;
        let max_wait = self.max_wait(ask.op);
        let asked = ticks_per_unit.times(ask.cost);
        let debt = self.bucket.debt(state, ask.now.as_nanos()) + asked;
        let delay = debt.minus(capacity);
        if asked.minus(capacity) > max_wait {
            Verdict::Deny(Retry::Never)
        } else if delay > max_wait && capacity + max_wait <= longest {
            Verdict::Deny(Retry::After(self.bucket.nanos_ceil(delay - max_wait)))
        } else if debt > longest {
            // The turn would be beyond the longest debt. Waiting for a shorter delay does not help if that is beyond
            // it, too.
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
    fn used(&self, state: Option<&FullAt>, now: u64) -> u64 {
        self.bucket.used(state, now)
    }

    #[inline]
    fn numbers(&self, state: Option<&FullAt>, now: u64) -> Numbers {
        self.bucket.numbers(state, now)
    }

    /// The debt in whole units, measured against the burst and `max_wait` together, as for `remaining`.
    #[inline]
    fn class(&self, decision: &Decision) -> Class {
        let left = self.whole.saturating_sub(decision.reset_after.as_nanos());
        match decision.retry_after() {
            Some(_) => Class::EXHAUSTED,
            None => Class::from_left(left / self.unit, self.whole / self.unit),
        }
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
