//! The real clock: the wall clock, anchored to the monotonic one.
//!
//! State      An anchor: at monotonic instant `since` the time was `wall`, `ahead` nanoseconds more than the wall
//!            clock said.
//! Rule       `now = wall + elapsed`, less half of what elapsed until `ahead` is worked off. Every second of use the
//!            anchor is renewed: a wall clock that is ahead is followed at once, one that is behind is waited for at
//!            half speed.
//! Invariant  It never runs back, so no state is ever newer than `now` by more than two threads race. A correction
//!            of the wall clock by `d` holds callers up by `d` in all, and calendar days are right again after `2d`.
//!
//! The monotonic clock is the processor's own counter where it can be relied on (`quanta`). Reading the system's
//! costs about the same by itself, but it waits for all loads before it: a cache miss on the table can then not
//! overlap with the next one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::time::Time;

/// How long an anchor is used.
const RENEW_AFTER_NANOS: u64 = 1_000_000_000;

/// The time now: the same clock for the whole process.
#[inline]
pub(super) fn now() -> Time {
    static CLOCK: OnceLock<SystemClock> = OnceLock::new();
    CLOCK.get_or_init(SystemClock::start).now()
}

/// Time since the first call, by the system's monotonic clock. The processor's counter would be cheaper, but it can
/// start over when a machine wakes, and a deadline would then never come.
pub(super) fn monotonic() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    Time::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

struct SystemClock {
    counter: quanta::Clock,
    /// Even: the anchor holds. Odd: someone is renewing it.
    version: AtomicU64,
    since: AtomicU64,
    wall: AtomicU64,
    ahead: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor {
    since: u64,
    wall: u64,
    ahead: u64,
}

impl Anchor {
    #[inline]
    fn time(self, monotonic: u64) -> u64 {
        let elapsed = monotonic.saturating_sub(self.since);
        self.wall + elapsed - (elapsed / 2).min(self.ahead)
    }

    /// The anchor to use from `monotonic` on, when the wall clock says `wall`.
    fn renewed(self, monotonic: u64, wall: u64) -> Anchor {
        let time = self.time(monotonic);
        Anchor { since: monotonic, wall: time.max(wall), ahead: time.saturating_sub(wall) }
    }
}

impl SystemClock {
    fn start() -> SystemClock {
        let [version, since, wall, ahead] = [const { AtomicU64::new(0) }; 4];
        let clock = SystemClock { counter: quanta::Clock::new(), version, since, wall, ahead };
        // In this order: whatever comes in between, it starts no later than the wall clock says.
        clock.wall.store(wall_clock(), Relaxed);
        clock.since.store(clock.monotonic(), Relaxed);
        clock
    }

    #[inline]
    fn now(&self) -> Time {
        loop {
            let version = self.version.load(Acquire);
            let anchor = self.anchor();
            let monotonic = self.monotonic();
            fence(Acquire);
            if version & 1 != 0 || self.version.load(Relaxed) != version {
                // Renewing takes a tenth of a microsecond, unless the one who does it lost the processor.
                std::thread::yield_now();
            } else if monotonic.abs_diff(anchor.since) < RENEW_AFTER_NANOS {
                return Time::from_nanos(anchor.time(monotonic));
            } else {
                self.renew(version);
            }
        }
    }

    /// Renews the anchor unless someone else does.
    #[cold]
    fn renew(&self, version: u64) {
        if self.version.compare_exchange(version, version + 1, Acquire, Relaxed).is_err() {
            return;
        }
        // Read after the anchor is locked: nobody has used the old one for a later instant than this.
        let Anchor { since, wall, ahead } = self.anchor().renewed(self.monotonic(), wall_clock());
        fence(Release);
        self.since.store(since, Relaxed);
        self.wall.store(wall, Relaxed);
        self.ahead.store(ahead, Relaxed);
        self.version.store(version + 2, Release);
    }

    #[inline]
    fn anchor(&self) -> Anchor {
        let [since, wall, ahead] = [&self.since, &self.wall, &self.ahead].map(|word| word.load(Relaxed));
        Anchor { since, wall, ahead }
    }

    /// Nanoseconds on the processor's counter. It starts over when a machine wakes from a deep sleep, so an anchor that
    /// lies far ahead is as good as an old one.
    #[inline]
    fn monotonic(&self) -> u64 {
        self.counter.delta_as_nanos(0, self.counter.raw())
    }
}

/// What the system's wall clock says; a date before 1970 is the epoch.
fn wall_clock() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)).as_nanos()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_wall_clock_put_forward_is_followed_at_once() {
        let anchor = Anchor { since: 0, wall: 100 * SECOND, ahead: 0 }.renewed(SECOND, 5000 * SECOND);
        assert_eq!(anchor.time(2 * SECOND), 5001 * SECOND);
    }

    #[test]
    fn a_wall_clock_put_back_is_waited_for_at_half_speed() {
        let mut anchor = Anchor { since: 0, wall: 100 * SECOND, ahead: 0 };
        let mut last = 0;
        // The wall clock is put back by ten seconds at once and goes on from there.
        for second in 1..=40 {
            let before = anchor.time(second * SECOND);
            anchor = anchor.renewed(second * SECOND, (90 + second) * SECOND);
            assert_eq!(anchor.time(second * SECOND), before, "renewing moves nothing");
            assert!(before > last, "it never runs back, nor stands still");
            last = before;
        }
        assert_eq!(last, 130 * SECOND, "both agree again");
    }

    #[test]
    fn it_agrees_with_the_wall_clock() {
        let clock = SystemClock::start();
        let (before, now, after) = (wall_clock(), clock.now().as_nanos(), wall_clock());
        assert!(before <= now + SECOND && now <= after + SECOND);
    }

    #[test]
    fn it_goes_on_when_the_counter_starts_over() {
        let clock = SystemClock::start();
        let before = clock.now();
        clock.since.store(clock.monotonic() + 3600 * SECOND, Relaxed);
        let woken = clock.now();
        assert!(before <= woken && woken.since(before).as_nanos() < SECOND);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(clock.now().since(woken).as_nanos() >= 900_000, "it does not stand still");
    }

    #[test]
    fn it_never_runs_back_across_threads_and_renewals() {
        let clock = SystemClock::start();
        let latest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..200_000_u32 {
                        let seen = latest.load(SeqCst);
                        let now = clock.now().as_nanos();
                        assert!(now + 1_000 >= seen, "{now} after {seen}");
                        latest.fetch_max(now, SeqCst);
                        if round % 1000 == 0 {
                            let version = clock.version.load(SeqCst);
                            if version & 1 == 0 {
                                clock.renew(version);
                            }
                        }
                    }
                });
            }
        });
    }
}
