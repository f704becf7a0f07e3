//! Cell: the arithmetic of redis-cell's `CL.THROTTLE`, equal in every digit.
//!
//! State      `tat`, the theoretical arrival time: the instant at which nothing is owed any more. No state means now.
//! Rule       A unit takes `interval = period / count` nanoseconds, cut off; `max_burst + 1` units may be owed. Taking
//!            `quantity` moves `tat` to `max(tat, now) + quantity * interval`; limited iff that is more than what may
//!            be owed ahead of `now`, and then nothing changes. A negative quantity gives back, never beyond `now`.
//! Invariant  Every number of nanoseconds fits an `i64`. A call whose numbers would not fit is an error and
//!            changes nothing.
//! Bound      Any span of length `w` admits at most `max_burst + 1 + w / interval` units.
//!
//! [`bucket`](crate::Limit) is the same algorithm made exact. This one is for callers that move from redis-cell
//! and expect its digits: its interval is cut to nanoseconds, `remaining` is computed in microseconds, waits are told
//! in seconds. Unlike there, nothing wraps around, and `remaining` never exceeds the limit.

use crate::clock::Reading;
use crate::memory::OtherAlgorithm;
use crate::share::Share;
use crate::time::{Span, Time};

const NANOS_PER_MICRO: i64 = 1_000;
const NANOS_PER_MILLI: i64 = 1_000_000;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The arguments of a call of `CL.THROTTLE`, checked.
///
/// ```
/// use flowgate::{MemoryStore, Throttle, Time};
///
/// let memory = MemoryStore::default();
/// let key = memory.subject(b"user 42").counter(memory.counter(b"replies"));
/// let reply = memory.throttle(key, &Throttle::new(15, 30, 60)?, Time::from_secs(1_700_000_000))?;
/// assert_eq!(reply.numbers(), [0, 16, 15, -1, 2]);
/// # Ok::<(), flowgate::ThrottleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The nanoseconds of a unit; more than zero.
    interval: i64,
    /// The units that may be taken at once; more than zero.
    limit: i64,
    /// The nanoseconds of these units.
    pub(crate) tolerance: i64,
    /// The nanoseconds that this call takes; negative if it gives back.
    pub(crate) increment: i64,
}

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThrottleError {
    /// A negative burst, count or period, or nanoseconds beyond an `i64`.
    #[error("value is out of range")]
    OutOfRange,
    /// The count or the period is zero, or a unit takes less than a nanosecond.
    #[error("Zero rates are not supported")]
    ZeroRate,
    /// The key is in use by a limit.
    #[error(transparent)]
    OtherAlgorithm(#[from] OtherAlgorithm),
}

impl Throttle {
    /// A limit of `count` units per `period` seconds and `max_burst` more at once. The call takes one unit.
    ///
    /// # Errors
    /// When a number is out of range, or the rate is zero.
    #[inline]
    pub fn new(max_burst: i64, count: i64, period: i64) -> Result<Throttle, ThrottleError> {
        if max_burst < 0 || count < 0 || period < 0 {
            return Err(ThrottleError::OutOfRange);
        }
        if count == 0 || period == 0 {
            return Err(ThrottleError::ZeroRate);
        }
        let period = period.checked_mul(NANOS_PER_SECOND).ok_or(ThrottleError::OutOfRange)?;
        let interval = interval(period, count);
        if interval == 0 {
            return Err(ThrottleError::ZeroRate);
        }
        let limit = max_burst.checked_add(1).ok_or(ThrottleError::OutOfRange)?;
        let tolerance = interval.checked_mul(limit).ok_or(ThrottleError::OutOfRange)?;
        Ok(Throttle { interval, limit, tolerance, increment: interval })
    }

    /// The same limit; the call takes `quantity` units. 0 only reads the state, a negative number gives back.
    ///
    /// # Errors
    /// When that takes more nanoseconds than fit.
    #[inline]
    pub fn quantity(self, quantity: i64) -> Result<Throttle, ThrottleError> {
        let increment = self.interval.checked_mul(quantity).ok_or(ThrottleError::OutOfRange)?;
        Ok(Throttle { increment, ..self })
    }

    /// The share of the limit that one of several nodes grants by itself, at least one unit at once.
    ///
    /// # Errors
    /// When that takes more nanoseconds than fit.
    pub fn share(self, share: Share) -> Result<Throttle, ThrottleError> {
        if share == Share::ALL {
            return Ok(self);
        }
        let slower = i128::from(self.interval) * i128::from(share.whole()) / i128::from(share.part());
        let interval = i64::try_from(slower).map_err(|_| ThrottleError::OutOfRange)?;
        let limit = (share.of_number(self.limit as u64) as i64).max(1);
        let tolerance = interval.checked_mul(limit).ok_or(ThrottleError::OutOfRange)?;
        Throttle { interval, limit, tolerance, increment: interval }.quantity(self.increment / self.interval)
    }

    /// The reply when no store can decide and the client is to be denied: limited, retry after `retry_after`.
    pub fn denied(&self, retry_after: Span) -> ThrottleReply {
        let (limited, limit, remaining) = (true, self.limit, 0);
        ThrottleReply { limited, limit, remaining, retry_after: Some(retry_after), reset_after: retry_after }
    }

    /// The reply when no store can decide and the client is to pass: nothing is owed.
    pub fn allowed(&self) -> ThrottleReply {
        let (limited, limit, remaining) = (false, self.limit, self.limit);
        ThrottleReply { limited, limit, remaining, retry_after: None, reset_after: Span::ZERO }
    }

    /// Decides a call. `tat` is the state; one in the past counts as no state.
    #[inline]
    pub(crate) fn decide(&self, tat: &mut Option<u64>, now: Time) -> Result<ThrottleReply, ThrottleError> {
        let now = now.as_nanos() as i64;
        // `decide` only writes states that fit an `i64`, so the state that it reads fits.
        let old = tat.map_or(now, |tat| tat as i64).max(now);
        let new = old.checked_add(self.increment).ok_or(ThrottleError::OutOfRange)?.max(now);
        // These sums fit an `i64`: all instants and the tolerance lie between zero and its maximum.
        let too_early = new - self.tolerance - now;
        let limited = self.increment >= 0 && too_early > 0;
        let (kept, retry_after) = match limited {
            true => (old, (self.increment <= self.tolerance).then_some(Span::from_nanos(too_early as u64))),
            false => (new, None),
        };
        *tat = (kept > now).then_some(kept as u64);
        let owed = kept - now;
        let remaining = self.remaining(owed);
        Ok(ThrottleReply {
            limited,
            limit: self.limit,
            remaining,
            retry_after,
            reset_after: Span::from_nanos(owed as u64),
        })
    }

    /// Units available at a debt of `owed` nanoseconds, in redis-cell's rounding.
    #[inline]
    fn remaining(&self, owed: i64) -> i64 {
        let free = self.tolerance - owed;
        let units = match self.interval / NANOS_PER_MICRO {
            0 => free / self.interval,
            micros => free / NANOS_PER_MICRO / micros,
        };
        units.clamp(0, self.limit)
    }

    /// The reply of a store that has no room for the key.
    pub(crate) fn refused(&self) -> ThrottleReply {
        let retry_after = Some(crate::plan::REFUSED_RETRY);
        ThrottleReply { limited: true, limit: self.limit, remaining: self.limit, retry_after, reset_after: Span::ZERO }
    }
}

/// The nanoseconds of a unit: the one place where redis-cell divides floats. A period that fits an `i64` and a count of
/// at least one give a quotient that fits, too.
#[inline]
#[expect(clippy::float_arithmetic, reason = "redis-cell's digits; one correctly rounded division, the same everywhere")]
fn interval(period: i64, count: i64) -> i64 {
    // An exact division would differ in the last digits of intervals beyond 2^53 ns, some hundred days.
    (period as f64 / count as f64) as i64
}

/// The answer to a call of `CL.THROTTLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleReply {
    /// True if the call was denied.
    pub limited: bool,
    /// The most that could be taken at once.
    pub limit: i64,
    /// The units that could be taken right after this call.
    pub remaining: i64,
    /// The wait after which the same call passes; `None` if it has passed, or no wait helps.
    pub retry_after: Option<Span>,
    /// The wait until nothing is owed any more.
    pub reset_after: Span,
}

impl ThrottleReply {
    /// The five numbers of redis-cell's reply, waits in seconds.
    #[inline]
    pub fn numbers(&self) -> [i64; 5] {
        let retry_after = self.retry_after.map_or(-1, seconds);
        [i64::from(self.limited), self.limit, self.remaining, retry_after, seconds(self.reset_after)]
    }

    /// Converts the waits to real time. The call was decided on the clock of `at`.
    #[inline]
    pub fn make_real(&mut self, at: Reading) {
        if !at.ahead.is_zero() {
            self.retry_after = self.retry_after.map(|wait| at.real_wait(wait));
            self.reset_after = at.real_wait(self.reset_after);
        }
    }

    /// Converts waits that count from `at` to ones that count from `now`.
    #[inline]
    pub(crate) fn count_from(&mut self, now: Time, at: Time) {
        let later = |span: Span| Span::from_nanos(span.as_nanos() + at.since(now).as_nanos());
        if at != now {
            self.retry_after = self.retry_after.map(later);
            self.reset_after = if self.reset_after.is_zero() { Span::ZERO } else { later(self.reset_after) };
        }
    }
}

/// Whole seconds, rounded up if the rest is a millisecond or more.
#[inline]
fn seconds(span: Span) -> i64 {
    let nanos = span.as_nanos() as i64;
    nanos / NANOS_PER_SECOND + i64::from(nanos % NANOS_PER_SECOND >= NANOS_PER_MILLI)
}

#[cfg(test)]
mod tests;
