//! A clock that is set by hand.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::time::{Span, Time};

/// A clock for tests and simulations. Clones share the time; whoever waits on it wakes when the time has come.
///
/// ```
/// use flowgate::{ManualClock, Span, Time};
///
/// let clock = ManualClock::new(Time::from_secs(100));
/// clock.advance(Span::from_millis(500));
/// assert_eq!(clock.now(), Time::from_millis(100_500));
/// clock.set(Time::from_secs(7)); // it does not run back
/// assert_eq!(clock.now(), Time::from_millis(100_500));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    nanos: AtomicU64,
    sleepers: Mutex<Vec<Sleeper>>,
}

#[derive(Debug)]
struct Sleeper {
    id: u64,
    due: Time,
    waker: Waker,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Time) -> ManualClock {
        let clock = ManualClock::default();
        clock.set(now);
        clock
    }

    /// The time it shows.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.inner.nanos.load(SeqCst))
    }

    /// Moves to `now`, or stays where it is if that lies in the past.
    pub fn set(&self, now: Time) {
        self.inner.nanos.fetch_max(now.as_nanos(), SeqCst);
        self.wake_due();
    }

    /// Moves on by `span`.
    pub fn advance(&self, span: impl Into<Span>) {
        let span = span.into();
        let moved = |nanos| Some((Time::from_nanos(nanos) + span).as_nanos());
        // The closure never declines.
        let _ = self.inner.nanos.fetch_update(SeqCst, SeqCst, moved);
        self.wake_due();
    }

    /// How many wait for a time to come. A test can wait until this many do before it moves on.
    pub fn sleepers(&self) -> usize {
        self.lock().len()
    }

    /// Wakes the sleeper `id` at `due`, and no longer when it had asked before.
    pub(super) fn wake_at(&self, id: u64, due: Time, waker: &Waker) {
        let mut sleepers = self.lock();
        sleepers.retain(|sleeper| sleeper.id != id);
        sleepers.push(Sleeper { id, due, waker: waker.clone() });
        drop(sleepers);
        // The time may have come between the sleeper's look at the clock and now.
        self.wake_due();
    }

    pub(super) fn forget(&self, id: u64) {
        self.lock().retain(|sleeper| sleeper.id != id);
    }

    fn wake_due(&self) {
        let now = self.now();
        let due: Vec<_> = self.lock().extract_if(.., |sleeper| sleeper.due <= now).collect();
        due.into_iter().for_each(|sleeper| sleeper.waker.wake());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sleeper>> {
        self.inner.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
