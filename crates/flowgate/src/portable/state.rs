//! States that the other side found, and the hits that they are put into.

use smallvec::SmallVec;

use super::scale::Exact;
use crate::algorithm::{Counter, Entry, Log, Pair, State, WindowCount};
use crate::ban::{Ban, BanHit, LastBan, Record, Standing};
use crate::decision::Decision;
use crate::limit::Limit;
use crate::memory::Key;
use crate::plan::Hit;
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::{NANOS_PER_MICRO, Time};

/// A state as the other side keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlgorithmState {
    /// When the bucket is full again.
    Bucket(Exact),
    /// A window.
    Fixed(WindowState),
    /// When units leave, oldest first, and how many at each.
    Sliding(SmallVec<[(u64, u64); 3]>),
    /// Two windows; the newer one ends a period before `forget_at`.
    Approx {
        /// In microseconds.
        forget_at: u64,
        /// Units of the older window.
        previous: u64,
        /// Units of the newer window.
        current: u64,
    },
}

/// An open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowState {
    /// In microseconds.
    pub ends_at: u64,
    /// What was counted in it.
    pub count: u64,
}

/// What the other side remembers of the subject of a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BanState {
    /// The end of the last ban, in microseconds; 0: there was none.
    pub until: u64,
    /// Until when it is remembered.
    pub forget_at: u64,
    /// How many there were in a row.
    pub level: u8,
    /// The strikes within the window.
    pub strikes: u64,
}

impl<'a> Hit<'a> {
    /// A hit on a counter that something else keeps.
    pub fn portable(limit: &'a Limit) -> Hit<'a> {
        Hit::new(Key::NOWHERE, limit)
    }

    /// Puts in the state that the other side has found.
    pub fn restore(&mut self, own: Option<AlgorithmState>, seen: Option<WindowState>) {
        let state = own.map_or(State::Unused, |own| state(self.limit, own));
        self.counter = Counter { state, seen: seen.map(WindowState::counted) };
    }

    /// Puts in an outcome that was decided elsewhere.
    pub fn settle(&mut self, outcome: Decision) {
        self.outcome = outcome;
    }
}

impl WindowState {
    fn counted(self) -> WindowCount {
        WindowCount { ends_at: self.ends_at * NANOS_PER_MICRO, count: self.count }
    }
}

fn state(limit: &Limit, own: AlgorithmState) -> State {
    match own {
        AlgorithmState::Bucket(full_at) => {
            limit.law().scale().map_or(State::Unused, |scale| State::Bucket(scale.full_at(full_at)))
        }
        AlgorithmState::Fixed(window) => State::Fixed(window.counted()),
        AlgorithmState::Sliding(entries) => {
            let entries = entries.into_iter();
            let entries = entries.map(|(at, units)| Entry { leaves_at: at * NANOS_PER_MICRO, units });
            Log::from_entries(entries).map_or(State::Unused, State::Sliding)
        }
        AlgorithmState::Approx { forget_at, previous, current } => {
            let narrow = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
            let forget_at = forget_at * NANOS_PER_MICRO;
            State::Approx(Pair { forget_at, previous: narrow(previous), current: narrow(current) })
        }
    }
}

impl<'a> BanHit<'a> {
    /// A ban whose record something else keeps.
    pub fn portable(ban: &'a Ban, rule_id: u32) -> BanHit<'a> {
        BanHit::new(Key::NOWHERE, ban, rule_id)
    }

    /// Puts in what the other side has found at `now`.
    pub fn restore(&mut self, kept: BanState, now: Time) {
        let nanos = |micros: u64| micros * NANOS_PER_MICRO;
        let BanState { until, forget_at, level, strikes } = kept;
        let last = (until > 0).then(|| LastBan { until: nanos(until), forget_at: nanos(forget_at), level });
        // When they leave makes no difference to what a strike does now.
        let inside = Entry { leaves_at: now.as_nanos() + 1, units: strikes };
        let strikes = (strikes > 0).then_some(Log::One(inside));
        self.record = Record { last, strikes };
    }

    /// Puts in a standing that was worked out elsewhere.
    pub fn settle(&mut self, standing: Standing) {
        self.standing = standing;
    }
}

impl Throttle {
    /// Answers a call on a key that the other side keeps and has found in the state `tat`.
    ///
    /// # Errors
    /// When the nanoseconds do not fit.
    pub fn answer(&self, tat: Option<Time>, now: Time) -> Result<ThrottleReply, ThrottleError> {
        self.decide(&mut tat.map(Time::as_nanos), now)
    }

    /// What the call takes (negative when it gives back) and what may be owed, in nanoseconds.
    pub fn nanos(&self) -> (i64, i64) {
        (self.increment, self.tolerance)
    }
}
