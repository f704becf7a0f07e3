//! Instants and spans: whole nanoseconds, so that no decision ever rounds.
//!
//! Nothing here reads a clock (see [`crate::Clock`]); time is an argument everywhere else.
//!
//! Invariant  A [`Time`] is at most [`Time::MAX`] (the year 2262), which is half of what a `u64` of nanoseconds
//!            holds. Adding any lifetime that a limit can have (100 years) to a `Time` therefore never overflows
//!            the `u64` instants that states keep, and no algorithm needs a special case at the end of time.

use std::fmt;
use std::time::Duration;

pub(crate) const NANOS_PER_MICRO: u64 = 1_000;
pub(crate) const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// An instant: nanoseconds since the Unix epoch, from 1970 to 2262.
///
/// ```
/// use flowgate::{Span, Time};
///
/// let noon = Time::from_secs(1_700_000_000);
/// assert_eq!(noon + Span::from_millis(1500), Time::from_millis(1_700_000_001_500));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Time = Time(0);
    /// The last instant, in the year 2262. A later one counts as this one.
    pub const MAX: Time = Time(i64::MAX as u64);

    /// An instant from nanoseconds since the epoch; past [`Time::MAX`] it is `Time::MAX`.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        if nanos > Time::MAX.0 { Time::MAX } else { Time(nanos) }
    }

    /// An instant from microseconds since the epoch.
    pub const fn from_micros(micros: u64) -> Time {
        Time::from_nanos(micros.saturating_mul(NANOS_PER_MICRO))
    }

    /// An instant from milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Time {
        Time::from_nanos(millis.saturating_mul(1_000_000))
    }

    /// An instant from seconds since the epoch.
    pub const fn from_secs(secs: u64) -> Time {
        Time::from_nanos(secs.saturating_mul(NANOS_PER_SECOND))
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this instant; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Span> for Time {
    type Output = Time;

    fn add(self, span: Span) -> Time {
        Time::from_nanos(self.0.saturating_add(span.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND)
    }
}

/// A length of time in nanoseconds: a wait, a delay. Where an exact value is a fraction, it is rounded **up**, so
/// a caller that waits that long passes.
///
/// ```
/// use flowgate::Span;
/// use std::time::Duration;
///
/// let wait = Span::from_millis(12_250);
/// assert_eq!(Duration::from(wait), Duration::from_millis(12_250));
/// assert_eq!(wait.to_string(), "12.25s");
/// assert_eq!(Span::from_nanos(1).as_micros_ceil(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl std::ops::Add for Span {
    type Output = Span;

    /// The sum of both spans, at most [`Span::MAX`].
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span, about 584 years.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// A span of `micros` microseconds, at most [`Span::MAX`].
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros.saturating_mul(NANOS_PER_MICRO))
    }

    /// A span of `millis` milliseconds, at most [`Span::MAX`].
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds, at most [`Span::MAX`].
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(NANOS_PER_SECOND))
    }

    /// Whole nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds, rounded up.
    pub const fn as_micros_ceil(self) -> u64 {
        self.0.div_ceil(NANOS_PER_MICRO)
    }

    /// Milliseconds, rounded up.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Whole seconds, rounded up.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(NANOS_PER_SECOND)
    }

    /// True if the span is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_nanos(span.0)
    }
}

impl From<Duration> for Span {
    /// Durations beyond [`Span::MAX`] become `Span::MAX`.
    fn from(duration: Duration) -> Span {
        Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, nanos) = (self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND);
        if nanos == 0 {
            return write!(f, "{secs}s");
        }
        let fraction = format!("{nanos:09}");
        write!(f, "{secs}.{}s", fraction.trim_end_matches('0'))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_saturate() {
        assert_eq!(Time::from_secs(u64::MAX), Time::MAX);
        assert_eq!(Time::MAX + Span::MAX, Time::MAX);
        assert_eq!(Time::EPOCH.since(Time::MAX), Span::ZERO);
        assert_eq!(Span::from(Duration::MAX), Span::MAX);
        assert_eq!(Span::MAX.as_secs_ceil(), 18_446_744_074);
    }

    #[test]
    fn spans_read_as_seconds() {
        assert_eq!(Span::from_nanos(1).to_string(), "0.000000001s");
        assert_eq!(Span::from_secs(60).to_string(), "60s");
        assert_eq!(format!("{:?}", Span::from_millis(1500)), "1.5s");
    }
}
