//! A reading of a clock: the time, and how far that is ahead of the wall clock.
//!
//! Rule       A clock that is ahead runs at half speed until the wall clock has caught up. While it is `ahead`, a wait
//!            of `w` on it takes `w + min(w, ahead)` of real time.
//! Rule       Decisions are made on the clock's time. Their waits are given in real time: the front that reads the
//!            clock ([`Limiter`](crate::Limiter), [`Single`](crate::Single), the rule engine) converts each decision
//!            once.

use crate::time::{Span, Time};

/// The time on a clock, and how far that is ahead of the wall clock: zero, unless the wall clock was put back.
///
/// A [`Time`] converts to a reading that is not ahead, so either will do where a reading is asked for.
///
/// ```
/// use flowgate::{Limiter, ManualClock, Span, Time};
///
/// let clock = ManualClock::new(Time::from_secs(1_700_000_000));
/// let limiter = Limiter::builder("1/60s").clock(clock.clone()).build()?;
/// limiter.take("user:42");
/// clock.put_back(Span::from_secs(5));
/// assert_eq!(limiter.clock().read().ahead, Span::from_secs(5));
///
/// // The clock runs at half speed for ten seconds: 60 seconds on it take 65.
/// let wait = limiter.take("user:42").retry_after().expect("it was denied");
/// assert_eq!(wait, Span::from_secs(65));
/// clock.advance(wait);
/// assert!(limiter.take("user:42").allowed());
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The time on the clock.
    pub now: Time,
    /// The time by which `now` is ahead of the wall clock.
    pub ahead: Span,
}

impl From<Time> for Reading {
    #[inline]
    fn from(now: Time) -> Reading {
        Reading { now, ahead: Span::ZERO }
    }
}

impl Reading {
    /// The real time that a wait of `span` on the clock takes from here.
    #[inline]
    pub fn real_wait(self, span: Span) -> Span {
        span + span.min(self.ahead)
    }

    /// The time that passes on the clock while `real` passes in reality, rounded down: the reverse of
    /// [`real_wait`](Reading::real_wait).
    pub fn passes_in(self, real: Span) -> Span {
        let lost = real.as_nanos().div_ceil(2).min(self.ahead.as_nanos());
        Span::from_nanos(real.as_nanos() - lost)
    }

    /// What a wall clock shows when this clock shows `then`. The two differ where `then` comes before the wall clock
    /// has caught up.
    pub fn on_the_wall(self, then: Time) -> Time {
        let still_ahead = self.ahead.as_nanos() - self.ahead.min(then.since(self.now)).as_nanos();
        Time::from_nanos(then.as_nanos().saturating_sub(still_ahead))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reading(ahead: u64) -> Reading {
        Reading { now: Time::from_secs(1_700_000_000), ahead: Span::from_secs(ahead) }
    }

    #[test]
    fn a_wait_is_doubled_until_the_wall_clock_has_caught_up() {
        let real = |ahead, wait| reading(ahead).real_wait(Span::from_secs(wait));
        assert_eq!(real(0, 7), Span::from_secs(7));
        assert_eq!(real(3600, 2), Span::from_secs(4));
        assert_eq!(real(5, 5), Span::from_secs(10));
        assert_eq!(real(5, 60), Span::from_secs(65));
        assert_eq!(reading(5).real_wait(Span::MAX), Span::MAX);
    }

    #[test]
    fn an_instant_is_told_as_the_wall_clock_will_show_it() {
        // The clock shows noon, the wall clock an hour less.
        let (noon, at) = (reading(0).now, reading(3600));
        let seconds_before_noon =
            |then: Span| (noon.as_nanos() - at.on_the_wall(noon + then).as_nanos()) / 1_000_000_000;
        assert_eq!(seconds_before_noon(Span::ZERO), 3600);
        assert_eq!(seconds_before_noon(Span::from_secs(60)), 3600 - 120, "in 120 seconds");
        assert_eq!(seconds_before_noon(Span::from_secs(1800)), 0, "in an hour");
        assert_eq!(at.on_the_wall(noon + Span::from_secs(3600)), noon + Span::from_secs(3600), "both agree again");
        assert_eq!(at.on_the_wall(noon + Span::from_secs(9000)), noon + Span::from_secs(9000));
    }

    proptest! {
        #[test]
        fn waits_and_what_passes_in_them_agree(ahead in 0..1000_u64, wait in 0..2000_u64) {
            let at = Reading { ahead: Span::from_nanos(ahead), ..reading(0) };
            let (wait, real) = (Span::from_nanos(wait), at.real_wait(Span::from_nanos(wait)));
            prop_assert_eq!(at.passes_in(real), wait);
            prop_assert!(wait.is_zero() || at.passes_in(Span::from_nanos(real.as_nanos() - 1)) < wait);
            // An instant is given as the wall clock shows it after the real wait.
            let wall = Time::from_nanos(at.now.as_nanos() - ahead);
            prop_assert_eq!(at.on_the_wall(at.now + wait), wall + real);
        }
    }
}
