//! Redis's clock, as this node knows it.
//!
//! State      How far Redis's clock was ahead of this node's monotonic clock when Redis last told its time.
//! Rule       Bans on Redis end by this clock, so they last equally long on every node, whatever their wall clocks say.
//! Bound      This clock is never ahead of Redis's. It is behind by at most the time that Redis's reply took, and by the
//!            drift of both clocks since. So a ban ends no sooner here than on Redis.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use flowgate::{Clock, Time};

#[derive(Debug)]
pub(crate) struct RedisClock {
    clock: Clock,
    /// How far Redis's clock is ahead, in nanoseconds.
    ahead: AtomicI64,
}

impl RedisClock {
    /// Begins with this node's own clock, until Redis tells its time.
    pub(crate) fn new(clock: Clock) -> RedisClock {
        let redis = RedisClock { ahead: AtomicI64::new(0), clock };
        redis.set(redis.clock.now());
        redis
    }

    pub(crate) fn now(&self) -> Time {
        let monotonic = self.clock.monotonic().as_nanos();
        Time::from_nanos(monotonic.saturating_add_signed(self.ahead.load(Relaxed)))
    }

    /// Notes what Redis's clock said a moment ago.
    pub(crate) fn set(&self, said: Time) {
        let ahead = i128::from(said.as_nanos()) - i128::from(self.clock.monotonic().as_nanos());
        // Times are below 2^63 nanoseconds, which is the year 2262.
        self.ahead.store(i64::try_from(ahead).unwrap_or(i64::MAX), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use flowgate::{ManualClock, Span};

    use super::*;

    #[test]
    fn the_clock_continues_from_the_last_time_of_redis() {
        let own = ManualClock::new(Time::from_secs(5000));
        let redis = RedisClock::new(own.clone().into());
        assert_eq!(redis.now(), Time::from_secs(5000));
        for said in [Time::from_secs(1400), Time::from_secs(8600)] {
            redis.set(said);
            own.advance(Span::from_secs(20));
            assert_eq!(redis.now(), said + Span::from_secs(20));
        }
    }

    #[test]
    fn the_wall_clock_has_no_say() {
        let redis = RedisClock::new(Clock::System);
        let wall = Clock::System.now();
        assert!(redis.now().since(wall) < Span::from_secs(10) && wall.since(redis.now()) < Span::from_secs(10));
        redis.set(Time::from_secs(1000));
        assert!(redis.now() >= Time::from_secs(1000) && redis.now() < Time::from_secs(1010));
    }
}
