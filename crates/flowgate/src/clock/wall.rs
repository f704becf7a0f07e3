//! The wall clock: how its steps are followed, and what is counted of them.
//!
//! State      A step forward that is not confirmed yet: how far it goes and how long it has lasted.
//! Rule       A wall clock that is behind is waited for at half speed. One that is ahead is followed: at once by up to
//!            a second and what drift explains; by more once the step has lasted two seconds, and then as far as every
//!            reading in between confirms. So a wall clock that was wrong for less than two seconds changes nothing.
//! Rule       Drift is a thousandth of the time since the last reading. It covers a wall clock that is slewed (500
//!            parts in a million) and a counter that is off by as much, however long ago the clock was last read.
//! Rule       How long a step has lasted is what passed between readings of the wall clock, so a counter that starts
//!            over does not count. After a sleep that the counter did not see, the time is followed two seconds of
//!            use later.

use super::anchor::Anchor;
use crate::time::Span;

/// A wall clock that is ahead by no more than this is followed at once.
const MAX_SMALL_STEP_NANOS: u64 = 1_000_000_000;
/// Drift explains at most one part in this many.
const MAX_DRIFT_DIVISOR: u64 = 1_000;
/// The time that a step forward must last before it is followed. Two seconds need three readings, a second apart.
const STEP_CONFIRMED_NANOS: u64 = 2_000_000_000;

/// How a [`Clock`](crate::Clock) and the wall clock differ, and the steps of the wall clock that it has seen.
///
/// Steps of up to a second are not counted, nor is drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStatus {
    /// How far the clock is ahead of the wall clock. While it is, it runs at half speed.
    pub ahead: Span,
    /// Steps of the wall clock back. Each put the clock ahead of it.
    pub back: Steps,
    /// Steps of the wall clock forward that were followed.
    pub forward: Steps,
    /// Steps forward that were taken back within two seconds or so, and were not followed.
    pub ignored: Steps,
}

/// Steps of the wall clock in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The number of steps.
    pub count: u64,
    /// The length of the latest step.
    pub latest: Span,
}

impl Steps {
    pub(super) fn note(&mut self, nanos: u64) {
        *self = Steps { count: self.count + 1, latest: Span::from_nanos(nanos) };
    }
}

/// Follows the wall clock.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    unconfirmed: Option<UnconfirmedJump>,
    /// The steps of the wall clock so far. `ahead` stays zero here: the anchor has it.
    steps: ClockStatus,
}

/// A step forward that every reading so far has confirmed.
#[derive(Clone, Copy, Debug)]
struct UnconfirmedJump {
    nanos: u64,
    lasted: u64,
}

impl WallClock {
    /// The anchor to use in place of `anchor` when the monotonic clock and the wall clock say this.
    pub(super) fn follow(&mut self, anchor: Anchor, monotonic: u64, wall: u64) -> Anchor {
        let elapsed = monotonic.saturating_sub(anchor.since);
        // Rounds to an even number of nanoseconds since the last reading, so that half speed loses no half nanosecond.
        let odd = elapsed % 2;
        let (monotonic, wall) = (monotonic - odd, wall.saturating_sub(odd));
        let (at, tolerance) = (anchor.read(monotonic), MAX_SMALL_STEP_NANOS + elapsed / MAX_DRIFT_DIVISOR);
        let (now, expected_ahead) = (at.now.as_nanos(), at.ahead.as_nanos());
        let forward = wall.saturating_sub(now);
        let followed = if forward <= tolerance {
            if let Some(taken_back) = self.unconfirmed.take() {
                self.steps.ignored.note(taken_back.nanos);
            }
            forward
        } else if let Some(confirmed) = self.confirm(forward, elapsed, tolerance) {
            confirmed
        } else {
            // The step is not confirmed yet, so this reading of the wall clock is ignored.
            return Anchor { since: monotonic, time: now, ahead: expected_ahead };
        };
        let ahead = now.saturating_sub(wall);
        if ahead > expected_ahead + tolerance {
            self.steps.back.note(ahead - expected_ahead);
        } else if followed + expected_ahead > ahead + tolerance {
            self.steps.forward.note(followed + expected_ahead - ahead);
        }
        Anchor { since: monotonic, time: now + followed, ahead }
    }

    /// Notes a large step forward. Returns how far to follow it once it has lasted long enough.
    fn confirm(&mut self, forward: u64, elapsed: u64, tolerance: u64) -> Option<u64> {
        let step = match self.unconfirmed.take() {
            None => UnconfirmedJump { nanos: forward, lasted: 0 },
            Some(UnconfirmedJump { nanos, lasted }) => {
                UnconfirmedJump { nanos: forward.min(nanos + tolerance), lasted: lasted + elapsed }
            }
        };
        if step.lasted >= STEP_CONFIRMED_NANOS {
            return Some(step.nanos);
        }
        self.unconfirmed = Some(step);
        None
    }

    pub(super) fn status(&self, ahead: Span) -> ClockStatus {
        ClockStatus { ahead, ..self.steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;

    /// A clock whose wall clock differs from the real time.
    struct Watched {
        wall: WallClock,
        anchor: Anchor,
        real: u64,
    }

    impl Watched {
        fn new() -> Watched {
            let real = 1_700_000_000 * SECOND;
            Watched { wall: WallClock::default(), anchor: Anchor { since: real, time: real, ahead: 0 }, real }
        }

        /// Reads the wall clock after `elapsed` when it is wrong by `off`. Returns how far the clock is ahead of the
        /// real time.
        fn read(&mut self, elapsed: u64, off: i64) -> i64 {
            self.real += elapsed;
            let before = self.anchor.read(self.real).now;
            self.anchor = self.wall.follow(self.anchor, self.real, self.real.saturating_add_signed(off));
            let now = self.anchor.read(self.real).now;
            assert!(now >= before, "it never runs back");
            now.as_nanos() as i64 - self.real as i64
        }

        fn counts(&self) -> [u64; 3] {
            let ClockStatus { back, forward, ignored, .. } = self.wall.status(Span::ZERO);
            [back.count, forward.count, ignored.count]
        }
    }

    const AHEAD: i64 = HOUR as i64;

    #[test]
    fn a_small_step_forward_is_followed_at_once() {
        let mut clock = Watched::new();
        assert_eq!(clock.read(SECOND, SECOND as i64), SECOND as i64);
        assert_eq!(clock.counts(), [0, 0, 0]);
    }

    #[test]
    fn a_large_step_forward_is_followed_when_it_has_lasted_two_seconds() {
        let mut clock = Watched::new();
        assert_eq!(clock.read(SECOND, AHEAD), 0);
        assert_eq!(clock.read(SECOND, AHEAD), 0, "a second later");
        assert_eq!(clock.read(SECOND, AHEAD), AHEAD);
        assert_eq!(clock.read(SECOND, AHEAD), AHEAD);
        assert_eq!((clock.counts(), clock.wall.steps.forward.latest), ([0, 1, 0], Span::from_nanos(HOUR)));
    }

    #[test]
    fn a_wall_clock_that_is_wrong_for_less_than_two_seconds_costs_nothing() {
        // Readings are a second apart: of 1.8 s ahead at most two readings tell.
        let mut clock = Watched::new();
        for off in [0, AHEAD, AHEAD, 0, 0] {
            assert_eq!(clock.read(SECOND, off), 0);
        }
        assert_eq!(clock.anchor.ahead, 0, "and the clock runs at full speed");
        assert_eq!((clock.counts(), clock.wall.steps.ignored.latest), ([0, 0, 1], Span::from_nanos(HOUR)));
    }

    #[test]
    fn a_step_is_followed_as_far_as_all_readings_confirm() {
        let mut clock = Watched::new();
        for off in [AHEAD, 2 * AHEAD] {
            assert_eq!(clock.read(SECOND, off), 0);
        }
        let followed = clock.read(SECOND, 3 * AHEAD);
        assert!(followed >= AHEAD && followed < AHEAD + 3 * SECOND as i64, "{followed}");
        let mut clock = Watched::new();
        for off in [3 * AHEAD, AHEAD] {
            assert_eq!(clock.read(SECOND, off), 0);
        }
        assert_eq!(clock.read(SECOND, 2 * AHEAD), AHEAD + SECOND as i64 + SECOND as i64 / 1000);
    }

    #[test]
    fn a_step_back_is_waited_for_at_half_speed_and_counted_once() {
        let mut clock = Watched::new();
        let back = -10 * SECOND as i64;
        for second in 0..30 {
            let ahead = clock.read(SECOND, back);
            assert_eq!(ahead, (-second * SECOND as i64 / 2).max(back), "{second} seconds after it was seen");
        }
        assert_eq!((clock.counts(), clock.wall.steps.back.latest), ([1, 0, 0], Span::from_secs(10)));
    }

    #[test]
    fn a_step_back_that_is_taken_back_costs_half_of_what_it_lasted() {
        let mut clock = Watched::new();
        clock.read(SECOND, -AHEAD);
        assert_eq!(clock.read(SECOND, 0), 0, "half a second late, and followed at once");
        assert_eq!(clock.anchor.ahead, 0);
        assert_eq!(clock.counts(), [1, 1, 0]);
    }

    #[test]
    fn drift_during_idleness_is_not_a_step() {
        for (idle, drift) in [(HOUR, 2 * SECOND), (24 * HOUR, 60 * SECOND)] {
            let mut clock = Watched::new();
            let drift = drift as i64;
            assert_eq!(clock.read(idle, drift), drift, "slewed forward between two readings");
            clock.read(idle, 0);
            assert_eq!(clock.anchor.ahead, drift as u64, "slewed back");
            assert_eq!(clock.counts(), [0, 0, 0]);
        }
    }

    #[test]
    fn a_step_after_idleness_needs_two_more_seconds() {
        let mut clock = Watched::new();
        assert_eq!(clock.read(HOUR, AHEAD), 0);
        assert_eq!(clock.read(SECOND, AHEAD), 0);
        assert_eq!(clock.read(SECOND, AHEAD), AHEAD);
    }

    #[test]
    fn a_sleep_that_the_counter_did_not_see_is_followed_after_two_seconds() {
        // The counter stands still, or starts over: either way nothing has elapsed.
        for woken in [1000 * SECOND, 5 * SECOND] {
            let mut wall = WallClock::default();
            let mut anchor = Anchor { since: 1000 * SECOND, time: 1000 * SECOND, ahead: 0 };
            for second in 0..3 {
                let (monotonic, now) = (woken + second * SECOND, (1000 + second) * SECOND + HOUR);
                anchor = wall.follow(anchor, monotonic, now);
                let expected = if second < 2 { now - HOUR } else { now };
                assert_eq!(anchor.read(monotonic).now.as_nanos(), expected, "{second} seconds after it woke");
            }
            assert_eq!(wall.steps.forward.count, 1);
        }
    }

    #[test]
    fn a_clock_that_is_ahead_does_not_believe_a_glitch_either() {
        let mut clock = Watched::new();
        clock.read(SECOND, -AHEAD);
        let ahead = clock.anchor.ahead;
        clock.read(SECOND, AHEAD);
        assert_eq!(clock.anchor.ahead, ahead - SECOND / 2, "it goes on at half speed");
        clock.read(SECOND, -AHEAD);
        assert_eq!((clock.anchor.ahead, clock.counts()), (ahead - SECOND, [1, 0, 1]));
    }
}
