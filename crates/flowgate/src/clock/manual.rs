//! A clock that is set by hand.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
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
    sleepers: Mutex<Vec<(Time, Waker)>>,
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
    pub fn advance(&self, span: Span) {
        let moved = |nanos| Some((Time::from_nanos(nanos) + span).as_nanos());
        // The closure never declines.
        let _ = self.inner.nanos.fetch_update(SeqCst, SeqCst, moved);
        self.wake_due();
    }

    /// How many wait for a time to come. A test can wait until this many do before it moves on.
    pub fn sleepers(&self) -> usize {
        self.lock().len()
    }

    pub(super) fn wake_at(&self, due: Time, waker: &Waker) {
        let mut sleepers = self.lock();
        match sleepers.iter_mut().find(|(_, sleeper)| sleeper.will_wake(waker)) {
            Some(sleeper) => sleeper.0 = due,
            None => sleepers.push((due, waker.clone())),
        }
        drop(sleepers);
        // The time may have come between the sleeper's look at the clock and now.
        self.wake_due();
    }

    fn wake_due(&self) {
        let now = self.now();
        let due: Vec<_> = self.lock().extract_if(.., |(due, _)| *due <= now).collect();
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Time, Waker)>> {
        self.inner.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
