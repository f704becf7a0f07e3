//! A clock that is set by hand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::Reading;
use super::anchor::Anchor;
use super::wall::{ClockStatus, Steps};
use crate::time::{Span, Time};

/// A clock for tests and simulations. Clones share the time; a task that waits on it wakes when its time has come.
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
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The real time that has passed. Until the wall clock is first put back, it is the time that the clock shows.
    real: Time,
    anchor: Anchor,
    put_back: Steps,
    sleepers: Vec<Sleeper>,
}

#[derive(Debug)]
struct Sleeper {
    id: u64,
    /// When the sleeper wakes, in real time.
    due: Time,
    waker: Waker,
}

impl State {
    fn read(&self) -> Reading {
        self.anchor.read(self.real.as_nanos())
    }
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Time) -> ManualClock {
        let clock = ManualClock::default();
        clock.set(now);
        clock
    }

    /// The time that the clock shows.
    pub fn now(&self) -> Time {
        self.read().now
    }

    /// Moves to `now`, or stays where it is if that lies in the past.
    pub fn set(&self, now: Time) {
        self.change(|state| {
            let at = state.read();
            state.real = state.real + at.real_wait(now.since(at.now));
        });
    }

    /// Moves on by `span` of real time.
    pub fn advance(&self, span: impl Into<Span>) {
        let span = span.into();
        self.change(|state| state.real = state.real + span);
    }

    /// Does what the real clock does when the wall clock is put back by `span`: it is that far ahead from here on, and
    /// runs at half speed until both agree again.
    ///
    /// ```
    /// use flowgate::{ManualClock, Span, Time};
    ///
    /// let clock = ManualClock::new(Time::from_secs(100));
    /// clock.put_back(Span::from_secs(10));
    /// clock.advance(Span::from_secs(6));
    /// assert_eq!(clock.now(), Time::from_secs(103));
    /// clock.advance(Span::from_secs(20));
    /// assert_eq!(clock.now(), Time::from_secs(116)); // 10 less than without the step
    /// ```
    pub fn put_back(&self, span: impl Into<Span>) {
        let span = span.into();
        self.change(|state| {
            let Reading { now, ahead } = state.read();
            let ahead = (ahead + span).as_nanos();
            state.anchor = Anchor { since: state.real.as_nanos(), time: now.as_nanos(), ahead };
            state.put_back.note(span.as_nanos());
        });
    }

    /// The number of sleepers whose time has not come. A test can wait for them to sleep before it moves the clock.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    pub(super) fn read(&self) -> Reading {
        self.lock().read()
    }

    pub(super) fn monotonic(&self) -> Time {
        self.lock().real
    }

    pub(super) fn status(&self) -> ClockStatus {
        let state = self.lock();
        ClockStatus { ahead: state.read().ahead, back: state.put_back, ..ClockStatus::default() }
    }

    /// Wakes the sleeper `id` at `due` in real time. This replaces an earlier time of the same sleeper.
    pub(super) fn wake_at(&self, id: u64, due: Time, waker: &Waker) {
        // Due sleepers are woken at once: the time may have come since the sleeper looked at the clock.
        self.change(|state| {
            state.sleepers.retain(|sleeper| sleeper.id != id);
            state.sleepers.push(Sleeper { id, due, waker: waker.clone() });
        });
    }

    pub(super) fn forget(&self, id: u64) {
        self.lock().sleepers.retain(|sleeper| sleeper.id != id);
    }

    /// Changes the state, and wakes the sleepers whose time has come.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let real = state.real;
        let due: Vec<_> = state.sleepers.extract_if(.., |sleeper| sleeper.due <= real).collect();
        drop(state);
        due.into_iter().for_each(|sleeper| sleeper.waker.wake());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
