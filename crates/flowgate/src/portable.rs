//! Portable counters: for a store whose arithmetic happens elsewhere, such as in a script that runs in Redis.
//!
//! Embedders do not need this module. It exists for the Redis store of `flowgate-engine`, and its types change when that
//! store does.
//!
//! Rule       [`Limit::write_terms`] writes the numbers with which a script adds and compares. The script replies with
//!            the states that it **found**. [`Hit::restore`] reads them into the hits, and [`decide`] derives the answers
//!            with the functions that decide in memory. So both stores give the same answers as long as the script
//!            counts alike.
//! Invariant  Times are whole microseconds. Every number of a term, and every sum that the script makes of two
//!            numbers, is below 2^53 until the year 2155: a double holds it exactly.
//!
//! Only `bucket` and `pace` divide a microsecond further. Their instants are whole microseconds and *ticks*. A
//! microsecond has less than 10^15 ticks, as many as make the interval of the limit a whole number of them.

mod ban;

use crate::algorithm::{Counter, Law, Meter, State, StateKind, WindowCount, dispatch};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::limit::{Limit, MAX_COUNT};
use crate::memory::Key;
use crate::plan::joint::{self, Shared};
use crate::plan::{self, Hit, Plan, PlanPart};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::{NANOS_PER_MICRO, Time};

/// The arguments of a script call, which are written in order.
pub trait Arguments {
    /// Appends a text.
    fn text(&mut self, text: &str);
    /// Appends a number.
    fn number(&mut self, number: u64);
}

/// What a call to undo a charge needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// There is nothing to undo.
    Nothing,
    /// The key of the counter.
    Counter,
    /// The key of the counter, and a key beside it. The script remembers there which charges it has moved.
    CounterAndMoves,
}

/// The portable form of an algorithm. The module of each algorithm lists the numbers.
pub(crate) trait Portable: Meter {
    /// Names the algorithm to the script.
    const LETTER: &'static str;

    /// Writes the numbers by which the script decides, at about the time of `ask`.
    fn write_terms(&self, ask: Ask, args: &mut impl Arguments);

    /// Writes the numbers of a take from this limit alone, with the time in microseconds if the script is not to use
    /// its own.
    fn write_take(&self, ask: Ask, time: Option<u64>, args: &mut impl Arguments) {
        match time {
            None => args.text(""),
            Some(micros) => args.number(micros),
        }
        args.number(ask.cost.min(MAX_COUNT + 1));
        self.write_terms(ask, args);
    }

    /// Reads the state that the script found; the inner `None` is that of a key never used.
    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<Self::State>>;

    /// Writes the name of the charge of `ask`, the newest in `state`: when, or in which window, it was made. A charge
    /// of another name belongs to another request, and stays.
    fn write_undo(&self, state: &Self::State, ask: Ask, args: &mut impl Arguments) -> Undo;
}

impl Limit {
    /// Writes what a script needs to know in order to apply `ask`, at about its time.
    pub fn write_terms(&self, ask: Ask, args: &mut impl Arguments) {
        dispatch!(
            self.law(),
            meter => {
                args.text(letter(meter));
                meter.write_terms(ask, args);
            },
            args.text("u")
        );
        match self.after_window() {
            None => args.text("-"),
            Some(after) => {
                args.number(after.free);
                after.window.write_terms(ask.now.as_nanos(), args);
            }
        }
    }

    /// Writes the shorter call of a take from this limit alone. Writes nothing, and is false, for a limit that has none.
    pub fn write_take(&self, ask: Ask, time: Option<u64>, args: &mut impl Arguments) -> bool {
        if self.after_window().is_some() {
            return false;
        }
        dispatch!(
            self.law(),
            meter => {
                args.text(letter(meter));
                meter.write_take(ask, time, args);
                true
            },
            false
        )
    }
}

fn letter<M: Portable>(_: &M) -> &'static str {
    M::LETTER
}

impl<'a> Hit<'a> {
    /// A hit on a counter that something else keeps.
    pub fn portable(limit: &'a Limit) -> Hit<'a> {
        Hit::new(Key::NOWHERE, limit)
    }

    /// Reads the state that the script found; `None` if the numbers are not those of a state.
    pub fn restore(&mut self, reply: &mut impl Iterator<Item = u64>) -> Option<()> {
        let state = dispatch!(self.limit.law(), meter => meter.read(reply)?.map(StateKind::into_state), None);
        let seen = match self.limit.after_window() {
            None => None,
            Some(_) => WindowCount::read(reply)?,
        };
        self.counter = Counter { state: state.unwrap_or_default(), seen };
        Some(())
    }

    /// Puts in an outcome that was decided elsewhere.
    pub fn settle(&mut self, outcome: Decision) {
        self.outcome = outcome;
    }

    /// Writes how to undo what [`decide`] has charged to the hit for a take, `ask`, that passed.
    pub fn write_undo(&self, ask: Ask, args: &mut impl Arguments) -> Undo {
        let after = self.limit.after_window();
        let seen = self.counter.seen.filter(|_| after.is_some());
        // As it was charged: only from the last free unit on.
        let enforced = seen.is_none_or(|seen| after.is_none_or(|after| seen.count >= after.free));
        let state = if enforced { &self.counter.state } else { &State::Unused };
        let undo = dispatch!(
            self.limit.law(),
            meter => StateKind::borrow(state).map_or(Undo::Nothing, |state| meter.write_undo(state, ask, args)),
            Undo::Nothing
        );
        if undo == Undo::Nothing {
            if seen.is_none() {
                return Undo::Nothing;
            }
            args.text("n");
        }
        args.number(seen.map_or(0, |seen| seen.ends_at / NANOS_PER_MICRO));
        if undo == Undo::Nothing { Undo::Counter } else { undo }
    }
}

impl Throttle {
    /// Answers a call on a key that the script keeps and has found in the state `tat`.
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

/// Decides a plan whose hits were restored, as of the script's `now`, and fills in the outcomes. Hits that name the
/// same counter share the state of the first.
pub fn decide(plan: &mut Plan<'_, '_>) {
    match &mut *plan.parts {
        [PlanPart { op, cost, hits, bans }] => {
            plan::decide_banning(Ask::new(*op, *cost, plan.now), hits, bans);
        }
        parts => {
            let mut shared = Shared::new(parts).with_copies();
            joint::decide(plan.now, parts, &mut shared);
        }
    }
}
