//! The clock: the only place that reads the time.
//!
//! Everything else takes time as an argument; a [`Clock`] is where a [`Limiter`](crate::Limiter) gets it from. The
//! real one is the wall clock anchored to the monotonic one (see [`system`]); a manual one moves when it is told to,
//! which is what tests want.

mod anchor;
mod manual;
mod reading;
mod system;
mod wall;

pub use manual::ManualClock;
pub use reading::Reading;
pub use wall::{ClockStatus, Steps};

use std::task::Waker;

use crate::time::{Span, Time};

/// The source of the time.
///
/// ```
/// use flowgate::{Clock, Limiter, ManualClock, Span, Time};
///
/// let time = ManualClock::new(Time::from_secs(1_700_000_000));
/// let limiter = Limiter::builder("1/60s").clock(time.clone()).build()?;
/// assert!(limiter.take("job").allowed());
/// assert!(!limiter.take("job").allowed());
/// time.advance(Span::from_secs(60));
/// assert!(limiter.take("job").allowed());
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The real time. It never runs back while the process lives. When the wall clock is put back, this one goes at
    /// half speed until both agree again, and waits are told accordingly. When the wall clock is put forward, this one
    /// follows: by up to a second within a second, by more once the step has lasted two seconds.
    #[default]
    System,
    /// A time that a caller sets.
    Manual(ManualClock),
}

impl From<ManualClock> for Clock {
    fn from(clock: ManualClock) -> Clock {
        Clock::Manual(clock)
    }
}

impl Clock {
    /// The time now, and how far it is ahead of the wall clock. Read it once for a batch of decisions: a reading
    /// between two accesses to a large table prevents the processor from overlapping their cache misses.
    #[inline]
    pub fn read(&self) -> Reading {
        match self {
            Clock::System => system::read(),
            Clock::Manual(clock) => clock.read(),
        }
    }

    /// The time now.
    #[inline]
    pub fn now(&self) -> Time {
        self.read().now
    }

    /// A time for deadlines and for measuring durations. It neither steps nor slows down, as [`now`](Clock::now) does
    /// when the wall clock is put forward or back. It counts from an instant of its own, so compare it with other
    /// monotonic times only.
    ///
    /// ```
    /// use flowgate::{Clock, Span};
    ///
    /// let deadline = Clock::System.monotonic() + Span::from_millis(100);
    /// assert!(Clock::System.monotonic() < deadline);
    /// ```
    pub fn monotonic(&self) -> Time {
        match self {
            Clock::System => system::monotonic(),
            Clock::Manual(clock) => clock.monotonic(),
        }
    }

    /// Moves the clock forward to `earliest`, which an earlier process has seen, unless the clock is later already.
    /// From there the real clock runs at half speed until the wall clock agrees.
    pub fn not_before(&self, earliest: Time) {
        match self {
            Clock::System => system::not_before(earliest),
            Clock::Manual(clock) => clock.advance(earliest.since(clock.read().now)),
        }
    }

    /// How far the clock is ahead of the wall clock, and how often the wall clock has stepped. The real clock notices a
    /// step when it is read a second after the last time, by this or by anything else.
    pub fn status(&self) -> ClockStatus {
        match self {
            Clock::System => system::status(),
            Clock::Manual(clock) => clock.status(),
        }
    }

    /// How long the sleeper `id` sleeps until the monotonic time `due`; `None`: a manual clock wakes it.
    pub(crate) fn sleep_until(&self, due: Time, id: u64, waker: &Waker) -> Option<Span> {
        match self {
            Clock::System => Some(due.since(self.monotonic())),
            Clock::Manual(clock) => {
                clock.wake_at(id, due, waker);
                None
            }
        }
    }

    /// Forgets the sleeper `id`.
    pub(crate) fn forget(&self, id: u64) {
        if let Clock::Manual(clock) = self {
            clock.forget(id);
        }
    }
}
