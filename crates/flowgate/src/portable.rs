//! Portable counters: for a store whose arithmetic happens elsewhere, such as in a script that runs in Redis.
//!
//! Embedders do not need this module. It exists for the Redis store of `flowgate-engine`, and its types change when
//! that store does.
//!
//! Rule       [`Limit::write_terms`] writes the numbers with which a script adds and compares. The script replies with
//!            the states that it **found**. [`Hit::restore`] reads them into the hits, and [`decide`] derives the
//!            answers with the functions that decide in memory. So both stores give the same answers as long as the
//!            script counts alike.
//! Invariant  Times are whole microseconds. Every number of a term, and every sum that the script makes of two
//!            numbers, is below 2^53 until the year 2155: a double holds it exactly.
//!
//! Only `bucket` and `pace` divide a microsecond further. Their instants are whole microseconds and *ticks*. A
//! microsecond has less than 10^15 ticks, as many as make the interval of the limit a whole number of them.

mod ban;

use crate::algorithm::{Counter, Law, Meter, State, StateKind, WindowCount, dispatch};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::limit::Limit;
use crate::memory::Key;
use crate::plan::joint::{self, SharedCounters};
use crate::plan::{self, Hit, Plan, PlanPart};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::{NANOS_PER_MICRO, Time};

/// The arguments of a script call, which are written in order.
pub trait Arguments {
    /// Appends a letter.
    fn letter(&mut self, letter: u8);
    /// Appends a number below 2^53.
    fn number(&mut self, number: u64);
    /// Appends -1.
    fn minus_one(&mut self);
}

/// The portable form of an algorithm. The module of each algorithm lists the numbers.
pub(crate) trait Portable: Meter {
    /// Names the algorithm to the script.
    const LETTER: u8;

    /// Writes the numbers by which the script decides, at about the time of `ask`.
    fn write_terms(&self, ask: Ask, args: &mut impl Arguments);

    /// Reads the state that the script found; the inner `None` is the state of a key that was never used.
    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<Self::State>>;

    /// Writes the name of the charge of `ask`, which is the newest charge in `state`. The name is the charge's time or
    /// window. The script keeps charges of other names, because they belong to other requests.
    fn write_undo(&self, state: &Self::State, ask: Ask, args: &mut impl Arguments);
}

impl Limit {
    /// Writes what a script needs in order to apply `ask`, at about its time. The letter is a capital if the window of
    /// `after=` follows.
    pub fn write_terms(&self, ask: Ask, args: &mut impl Arguments) {
        let after = self.after_window();
        let mark = |letter: u8| if after.is_some() { letter.to_ascii_uppercase() } else { letter };
        dispatch!(
            self.law(),
            meter => {
                args.letter(mark(letter(meter)));
                meter.write_terms(ask, args);
            },
            args.letter(mark(b'u'))
        );
        if let Some(after) = after {
            args.number(after.free);
            after.window.write_terms(ask.now.as_nanos(), args);
        }
    }
}

fn letter<M: Portable>(_: &M) -> u8 {
    M::LETTER
}

impl<'a> Hit<'a> {
    /// A hit on a counter that another store keeps.
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
        self.counter = Counter { state: state.unwrap_or_default(), seen }.into();
        Some(())
    }

    /// Sets an outcome that was decided elsewhere.
    pub fn settle(&mut self, outcome: Decision) {
        self.outcome = outcome;
    }

    /// Writes how to undo what [`decide`] has charged to the hit for the allowed take `ask`. Returns false, and writes
    /// nothing, if nothing was charged.
    pub fn write_undo(&self, ask: Ask, args: &mut impl Arguments) -> bool {
        let after = self.limit.after_window();
        let seen = self.counter.seen.filter(|_| after.is_some());
        // The limit's own state is charged only from the last free unit on.
        let enforced = seen.is_none_or(|seen| after.is_none_or(|after| seen.count >= after.free));
        let state = if enforced { &self.counter.state } else { &State::Unused };
        let is_counted = dispatch!(
            self.limit.law(),
            meter => StateKind::borrow(state).is_some_and(|state| {
                meter.write_undo(state, ask, args);
                true
            }),
            false
        );
        if !is_counted {
            if seen.is_none() {
                return false;
            }
            args.letter(b'n');
        }
        args.number(seen.map_or(0, |seen| seen.ends_at / NANOS_PER_MICRO));
        true
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

    /// The nanoseconds that the call takes (negative if it gives back), and the most that may be owed.
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
            let mut shared = SharedCounters::new(parts).with_copies();
            joint::decide(plan.now, parts, &mut shared);
        }
    }
}
