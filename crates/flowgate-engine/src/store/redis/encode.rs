//! A request as the arguments of `decide.lua`.
//!
//! ```text
//! call   = op time cost rules {rule}                   op: take, peek, record, check (and record), refund, deny
//! rule   = flags limits bans {limit} [ban]             flags: 1 counts denied, 2 shadow; limits: how many; bans: 1 it
//!                                                      bans, 2 it only may have banned the subject (no `ban` follows)
//! limit  = letter terms after
//! after  = "-" | free window
//! ban    = strikes within forget number {length}
//! ```
//!
//! The letter names the algorithm. The library writes its terms; each algorithm's file there lists them.
//!
//! A take from a single limit has a shorter call, which begins with the letter. Behind the key of the counter may stand those of
//! bans that are only watched:
//!
//! ```text
//! take   = (b|p) want room [want room ticks [time]]    wholes before remainders
//!        | letter time cost terms                      all other algorithms
//! ```
//!
//! Several requests that pass together or not at all go to `joint.lua`:
//!
//! ```text
//! joint  = "joint" time denied parts {part}            denied: 1 if something other than a limit denies
//! part   = op cost rules {rule}
//! ```
//!
//! Times are microseconds; an empty `time` is Redis's own.

use flowgate::portable::Arguments;
use flowgate::{Limit, MAX_COUNT, Op, RuleFlags, Time};

use super::script::Parts;

pub(super) const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Whose clock decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptTime {
    /// Redis's.
    Redis,
    /// The caller's: for tests. In whole microseconds, but for `CL.THROTTLE`.
    Injected(Time),
}

impl ScriptTime {
    pub(super) fn micros(self) -> Option<u64> {
        match self {
            ScriptTime::Redis => None,
            ScriptTime::Injected(time) => Some(time.as_nanos() / 1000),
        }
    }
}

/// What is asked of every counter.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) op: Op,
    pub(super) cost: u64,
    pub(super) time: ScriptTime,
}

impl Ask {
    /// What costs nothing changes nothing.
    fn word(self) -> &'static [u8] {
        if self.cost == 0 { b"peek" } else { self.op_word() }
    }

    fn op_word(self) -> &'static [u8] {
        match self.op {
            Op::Take | Op::TakeWithin(_) => b"take",
            Op::Peek => b"peek",
            Op::Record => b"record",
            Op::CheckAndRecord => b"check",
            Op::Refund => b"refund",
            // `Op::Deny`.
            _ => b"deny",
        }
    }

    /// The same question to the library, at about the time of Redis.
    pub(super) fn around(self, around: Time) -> flowgate::Ask {
        flowgate::Ask::new(self.op, self.cost, around)
    }

    /// One more than can be counted is as good as any number that never passes.
    fn units(self) -> u64 {
        match self.op {
            Op::Record | Op::Refund => self.cost.min(MAX_COUNT),
            _ => self.cost.min(MAX_COUNT + 1),
        }
    }
}

/// What precedes the rules of a call.
pub(super) fn head(args: &mut Parts, ask: Ask, rules: usize) {
    args.push(ask.word());
    time(args, ask.time);
    args.number(ask.units());
    args.number(rules as u64);
}

/// What precedes the parts of a call for several requests.
pub(super) fn joint_head(args: &mut Parts, at: ScriptTime, denied: bool, parts: usize) {
    args.push(b"joint");
    time(args, at);
    args.number(u64::from(denied));
    args.number(parts as u64);
}

/// What precedes the rules of a part.
pub(super) fn part_head(args: &mut Parts, ask: Ask, rules: usize) {
    args.push(ask.op_word());
    args.number(ask.units());
    args.number(rules as u64);
}

/// What a rule has to do with bans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bans {
    No = 0,
    Yes = 1,
    /// Only a ban in force matters.
    Watched = 2,
}

/// What precedes the limits of a rule.
pub(super) fn rule(args: &mut Parts, flags: RuleFlags, limits: usize, bans: Bans) {
    args.number(u64::from(flags.count_denied) + 2 * u64::from(flags.shadow));
    args.number(limits as u64);
    args.number(bans as u64);
}

/// A call of one limit and, behind it, some bans that are only watched.
pub(super) fn one_limit(args: &mut Parts, ask: Ask, flags: RuleFlags, limit: &Limit, around: Time, watched: usize) {
    let plain_take = ask.word() == b"take" && !flags.count_denied;
    if plain_take && limit.write_take(ask.around(around), ask.time.micros(), args) {
        return;
    }
    head(args, ask, 1 + watched);
    rule(args, flags, 1, Bans::No);
    limit.write_terms(ask.around(around), args);
    (0..watched).for_each(|_| rule(args, RuleFlags::default(), 0, Bans::Watched));
}

pub(super) fn time(args: &mut Parts, time: ScriptTime) {
    match time.micros() {
        None => args.push(b""),
        Some(micros) => args.number(micros),
    }
}

/// Nanoseconds as seconds, rounded down, and nanoseconds of the next.
pub(super) fn nanos(args: &mut Parts, nanos: i64) {
    let seconds = nanos.div_euclid(NANOS_PER_SECOND);
    args.write(|arg| arg.extend_from_slice(seconds.to_string().as_bytes()));
    args.number(nanos.rem_euclid(NANOS_PER_SECOND).unsigned_abs());
}

impl Arguments for Parts {
    fn text(&mut self, text: &str) {
        self.push(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.number(number);
    }
}
