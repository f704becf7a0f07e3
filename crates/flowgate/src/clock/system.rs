//! The real clock: the wall clock, anchored to the monotonic one.
//!
//! State      An [`Anchor`]: what the time was at a tick of a monotonic counter.
//! Rule       Every second of use the anchor is renewed from the wall clock, which is followed as [`WallClock`] says.
//! Invariant  It never runs back, so a state is newer than `now` only by the time between the readings of two
//!            racing threads. A correction of the wall clock by `d` holds callers up by `d` in all, and calendar days
//!            are right again after `2d`.
//!
//! The monotonic clock is the processor's own counter where it can be relied on (`quanta`). Reading the system's clock
//! costs about the same, but it waits for all earlier loads, so that cache misses of two decisions cannot overlap.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, fence};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::Reading;
use super::anchor::Anchor;
use super::wall::{ClockStatus, WallClock};
use crate::time::Time;

/// The age at which an anchor is renewed.
const RENEW_AFTER_NANOS: u64 = 1_000_000_000;

/// Ticks are multiplied by the nanoseconds of 2^32 ticks and divided by 2^32.
const SCALE_BITS: u32 = 32;

/// The time now: the same clock for the whole process.
#[inline]
pub(super) fn read() -> Reading {
    process_clock().read()
}

/// Puts the clock forward to `earliest`, unless it is later.
pub(super) fn not_before(earliest: Time) {
    process_clock().not_before(earliest);
}

/// How far the clock is ahead of the wall clock, and the steps of the wall clock so far.
pub(super) fn status() -> ClockStatus {
    process_clock().status()
}

#[inline]
fn process_clock() -> &'static SystemClock<Machine> {
    static CLOCK: OnceLock<SystemClock<Machine>> = OnceLock::new();
    CLOCK.get_or_init(|| SystemClock::start(Machine { counter: quanta::Clock::new() }))
}

/// Time since the first call, by the system's monotonic clock. The processor's counter would be cheaper, but it can
/// start over when a machine wakes, and a deadline would then never come.
pub(super) fn monotonic() -> Time {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    Time::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

/// Where readings come from; tests bring their own.
trait Source {
    /// A counter. It may start over when a machine wakes from a deep sleep.
    fn ticks(&self) -> u64;

    /// The nanoseconds in 2^[`SCALE_BITS`] ticks, at least one.
    fn scale(&self) -> u64;

    /// Nanoseconds since the epoch, as the wall clock says.
    fn wall(&self) -> u64;
}

struct Machine {
    counter: quanta::Clock,
}

impl Source for Machine {
    #[inline]
    fn ticks(&self) -> u64 {
        self.counter.raw()
    }

    fn scale(&self) -> u64 {
        self.counter.delta_as_nanos(0, 1 << SCALE_BITS).max(1)
    }

    /// A wall clock before 1970 reads as the epoch.
    fn wall(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX)).as_nanos()
    }
}

struct SystemClock<S> {
    source: S,
    scale: u64,
    /// The ticks for which an anchor is used.
    renew_after: u64,
    /// Even: the anchor holds. Odd: a thread is renewing it.
    version: AtomicU64,
    /// The ticks at the anchor.
    since: AtomicU64,
    time: AtomicU64,
    ahead: AtomicU64,
    /// The nanoseconds that had passed since the anchor at `since`: zero or one.
    carried: AtomicU64,
    plain: PlainTime,
    /// Tracks the wall clock. The lock is held briefly: once a second to renew the anchor, and for a report.
    wall: Mutex<WallClock>,
}

/// While the clock is not ahead, the time is this one and what has passed since the ticks at the anchor.
#[derive(Default)]
struct PlainTime {
    time: AtomicU64,
    /// The ticks after which the clock is not ahead: mostly none. A counter that is a little fast puts the clock ahead at every
    /// anchor, by microseconds.
    from: AtomicU64,
    /// The number of ticks for which this holds.
    ticks: AtomicU64,
}

impl<S: Source> SystemClock<S> {
    fn start(source: S) -> SystemClock<S> {
        let scale = source.scale();
        // A second has at most 2^62 ticks, and its ticks times `scale` are below 2^62.
        let renew_after = ((u128::from(RENEW_AFTER_NANOS) << SCALE_BITS) / u128::from(scale)) as u64;
        // The wall clock is read first, so the clock never starts later than the wall clock says.
        let anchor = Anchor { since: 0, time: source.wall(), ahead: 0 };
        let ticks = source.ticks();
        let [version, since, time, ahead, carried] = [const { AtomicU64::new(0) }; 5];
        let (plain, wall) = (PlainTime::default(), Mutex::default());
        let clock = SystemClock { source, scale, renew_after, version, since, time, ahead, carried, plain, wall };
        clock.set_anchor(ticks, anchor, 0);
        clock
    }

    #[inline]
    fn read(&self) -> Reading {
        self.read_plain().unwrap_or_else(|| self.read_any())
    }

    /// The usual case is a few instructions: the anchor is young, the clock is not ahead, and no thread is renewing the anchor.
    #[inline]
    fn read_plain(&self) -> Option<Reading> {
        let version = self.version.load(Acquire);
        let PlainTime { time, from, ticks } = &self.plain;
        let [since, time, from, plain_for] = [&self.since, time, from, ticks].map(|word| word.load(Relaxed));
        let elapsed = self.source.ticks().wrapping_sub(since);
        fence(Acquire);
        let is_plain = elapsed.wrapping_sub(from) < plain_for && version & 1 == 0;
        (is_plain && self.version.load(Relaxed) == version)
            .then(|| Time::from_nanos(time + ((elapsed * self.scale) >> SCALE_BITS)).into())
    }

    #[cold]
    fn read_any(&self) -> Reading {
        loop {
            let version = self.version.load(Acquire);
            let (since, anchor, carried) = self.anchor();
            let ticks = self.source.ticks();
            fence(Acquire);
            if version & 1 != 0 || self.version.load(Relaxed) != version {
                // Renewing takes a tenth of a microsecond, unless the thread that does it lost the processor.
                std::thread::yield_now();
            } else if ticks.abs_diff(since) < self.renew_after {
                return anchor.read(carried + self.nanos(ticks.saturating_sub(since)));
            } else {
                // If the anchor is far ahead, the counter has started over. The anchor is then renewed like an old one.
                self.renew(version);
            }
        }
    }

    /// Renews the anchor unless another thread does.
    #[cold]
    fn renew(&self, version: u64) {
        if self.version.compare_exchange(version, version + 1, Acquire, Relaxed).is_err() {
            return;
        }
        // The counter is read after the anchor is locked, so that no thread has used the old anchor for a later
        // instant.
        let (ticks, wall) = (self.source.ticks(), self.source.wall());
        let (since, anchor, carried) = self.anchor();
        let elapsed = carried + self.nanos(ticks.saturating_sub(since));
        let anchor = self.wall_clock().follow(anchor, elapsed, wall);
        fence(Release);
        self.set_anchor(ticks, anchor, elapsed - anchor.since);
        self.version.store(version + 2, Release);
    }

    /// Notes what the time was `carried` nanoseconds before these ticks.
    fn set_anchor(&self, ticks: u64, Anchor { since: _, time, ahead }: Anchor, carried: u64) {
        // At half speed, what the clock is ahead takes twice that.
        let until_even = ((2 * u128::from(ahead)) << SCALE_BITS).div_ceil(u128::from(self.scale));
        let from = u64::try_from(until_even).unwrap_or(u64::MAX);
        self.since.store(ticks, Relaxed);
        self.time.store(time, Relaxed);
        self.ahead.store(ahead, Relaxed);
        self.carried.store(carried, Relaxed);
        self.plain.time.store(time + carried - ahead, Relaxed);
        self.plain.from.store(from, Relaxed);
        self.plain.ticks.store(self.renew_after.saturating_sub(from), Relaxed);
    }

    fn not_before(&self, earliest: Time) {
        let mut version = self.version.load(Relaxed);
        while version & 1 != 0 || self.version.compare_exchange(version, version + 1, Acquire, Relaxed).is_err() {
            std::thread::yield_now();
            version = self.version.load(Relaxed);
        }
        let ticks = self.source.ticks();
        let (since, anchor, carried) = self.anchor();
        let at = anchor.read(carried + self.nanos(ticks.saturating_sub(since)));
        fence(Release);
        if let Some(step) = earliest.as_nanos().checked_sub(at.now.as_nanos()).filter(|&step| step > 0) {
            let ahead = at.ahead.as_nanos() + step;
            self.set_anchor(ticks, Anchor { since: 0, time: earliest.as_nanos(), ahead }, 0);
        }
        self.version.store(version + 2, Release);
    }

    /// Reads the clock first, so that a step shows here even if nothing else has used the clock since.
    fn status(&self) -> ClockStatus {
        let ahead = self.read().ahead;
        self.wall_clock().status(ahead)
    }

    /// The ticks at the anchor; the anchor itself, whose `since` is 0; and the nanoseconds that had passed at these ticks.
    fn anchor(&self) -> (u64, Anchor, u64) {
        let [since, time, ahead, carried] =
            [&self.since, &self.time, &self.ahead, &self.carried].map(|word| word.load(Relaxed));
        (since, Anchor { since: 0, time, ahead }, carried)
    }

    /// The nanoseconds that a number of ticks takes, rounded down.
    fn nanos(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.scale)) >> SCALE_BITS) as u64
    }

    fn wall_clock(&self) -> MutexGuard<'_, WallClock> {
        self.wall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use proptest::prelude::*;

    use super::*;
    use crate::time::Span;

    const SECOND: u64 = 1_000_000_000;
    const START: u64 = 1_700_000_000 * SECOND;

    /// A counter and a wall clock that are set by hand.
    #[derive(Default)]
    struct Fake {
        nanos_per_tick: u64,
        counter: AtomicU64,
        wall: AtomicU64,
    }

    impl Source for &Fake {
        fn ticks(&self) -> u64 {
            self.counter.load(SeqCst) / self.nanos_per_tick
        }

        fn scale(&self) -> u64 {
            self.nanos_per_tick << SCALE_BITS
        }

        fn wall(&self) -> u64 {
            self.wall.load(SeqCst)
        }
    }

    impl Fake {
        fn new() -> Fake {
            let fake = Fake { nanos_per_tick: 1, ..Fake::default() };
            fake.pass(START);
            fake
        }

        fn pass(&self, nanos: u64) {
            self.counter.fetch_add(nanos, SeqCst);
            self.wall.fetch_add(nanos, SeqCst);
        }

        /// Lets time pass, during which the clock is read every tenth of a second.
        fn pass_in_use(&self, clock: &SystemClock<&Fake>, seconds: u64) {
            for _ in 0..seconds * 10 {
                self.pass(SECOND / 10);
                clock.read();
            }
        }
    }

    fn machine() -> SystemClock<Machine> {
        SystemClock::start(Machine { counter: quanta::Clock::new() })
    }

    #[test]
    fn an_hour_ahead_for_less_than_two_seconds_costs_nothing() {
        // The step is tried at every offset between two readings of the wall clock.
        for begins in 0..10 {
            let fake = Fake::new();
            let clock = SystemClock::start(&fake);
            for tenth in 0..60 {
                match tenth - begins {
                    10 => _ = fake.wall.fetch_add(3600 * SECOND, SeqCst),
                    28 => _ = fake.wall.fetch_sub(3600 * SECOND, SeqCst),
                    _ => {}
                }
                assert_eq!(clock.read(), Time::from_nanos(fake.counter.load(SeqCst)).into());
                fake.pass(SECOND / 10);
            }
            assert_eq!((clock.status().forward.count, clock.status().ignored.count), (0, 1), "from {begins} on");
        }
    }

    #[test]
    fn a_step_forward_that_stays_is_followed() {
        let fake = Fake::new();
        let clock = SystemClock::start(&fake);
        fake.wall.fetch_add(3600 * SECOND, SeqCst);
        fake.pass_in_use(&clock, 4);
        assert_eq!(clock.read(), Time::from_nanos(fake.wall.load(SeqCst)).into());
        assert_eq!(clock.status().forward.count, 1);
    }

    #[test]
    fn a_step_back_puts_the_clock_ahead() {
        let fake = Fake::new();
        let clock = SystemClock::start(&fake);
        fake.wall.fetch_sub(3600 * SECOND, SeqCst);
        fake.pass(SECOND);
        let before = clock.read();
        assert_eq!(before, Reading { now: Time::from_nanos(START + SECOND), ahead: Span::from_secs(3600) });
        fake.pass_in_use(&clock, 60);
        assert_eq!(clock.read(), Reading { now: before.now + Span::from_secs(30), ahead: Span::from_secs(3570) });
        assert_eq!(clock.status().back.count, 1);
    }

    proptest! {
        /// This holds while the clock is ahead, however often the anchor is renewed meanwhile.
        #[test]
        fn a_wait_takes_exactly_what_is_told(
            ahead in 1..100 * SECOND,
            before in 0..30 * SECOND,
            wait in 1..60 * SECOND,
            looks in proptest::collection::vec(1..5 * SECOND, 0..30),
        ) {
            let fake = Fake::new();
            let clock = SystemClock::start(&fake);
            fake.wall.fetch_sub(ahead, SeqCst);
            fake.pass(SECOND);
            clock.read();
            fake.pass(before);
            let at = clock.read();
            let due = at.now + Span::from_nanos(wait);
            let mut left = at.real_wait(Span::from_nanos(wait)).as_nanos();
            for look in looks {
                if look + 2 < left {
                    fake.pass(look);
                    left -= look;
                    prop_assert!(clock.read().now < due);
                }
            }
            // Half a nanosecond is rounded up, so a wait may be one longer than needed.
            fake.pass(left.saturating_sub(2));
            prop_assert!(left < 2 || clock.read().now < due);
            fake.pass(left.min(2));
            prop_assert_eq!(clock.read().now, due);
        }
    }

    #[test]
    fn the_short_way_to_read_and_the_long_one_agree() {
        for nanos_per_tick in [1, 7, 40, 1000] {
            let fake = Fake { nanos_per_tick, ..Fake::default() };
            fake.pass(START);
            let clock = SystemClock::start(&fake);
            for step in 0..3000 {
                // Every second of use the anchor is renewed; for the last part the clock is ahead.
                fake.pass(1_234_567 + step);
                if step == 2000 {
                    fake.wall.fetch_sub(60 * SECOND, SeqCst);
                }
                assert_eq!(clock.read(), clock.read_any(), "step {step} of {nanos_per_tick} ns a tick");
            }
            assert!(clock.read().ahead > Span::ZERO);
        }
    }

    /// A counter that is a little fast: at every anchor the clock is ahead by a few microseconds.
    #[test]
    fn a_clock_that_was_ahead_takes_the_short_way_once_it_is_not() {
        for nanos_per_tick in [1, 7, 1000] {
            let fake = Fake { nanos_per_tick, ..Fake::default() };
            fake.pass(START);
            let clock = SystemClock::start(&fake);
            for second in 1..5 {
                fake.wall.fetch_sub(20_000, SeqCst);
                fake.pass(SECOND);
                assert!(clock.read().ahead > Span::from_micros(19), "second {second}");
                assert_eq!(clock.read_plain(), None);
                let mut is_plain = false;
                for _ in 0..100 {
                    fake.pass(777);
                    let reading = clock.read_any();
                    match clock.read_plain() {
                        Some(plain) => assert_eq!(plain, reading),
                        None => assert!(!is_plain, "it stays on the short way"),
                    }
                    is_plain |= reading.ahead == Span::ZERO && clock.read_plain().is_some();
                }
                assert!(is_plain, "after twice the time that it was ahead");
            }
        }
    }

    #[test]
    fn the_clock_agrees_with_the_wall_clock() {
        let clock = machine();
        let (before, now, after) = (clock.source.wall(), clock.read().now.as_nanos(), clock.source.wall());
        assert!(before <= now + SECOND && now <= after + SECOND);
    }

    #[test]
    fn the_clock_continues_when_the_counter_restarts() {
        let clock = machine();
        let before = clock.read().now;
        clock.since.store(clock.source.ticks() + 3600 * clock.renew_after, Relaxed);
        let woken = clock.read().now;
        assert!(before <= woken && woken.since(before).as_nanos() < SECOND);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(clock.read().now.since(woken).as_nanos() >= 900_000, "it does not stand still");
    }

    #[test]
    fn the_clock_never_runs_back_across_threads_and_renewals() {
        let clock = machine();
        let latest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..200_000_u32 {
                        let seen = latest.load(SeqCst);
                        let now = clock.read().now.as_nanos();
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
