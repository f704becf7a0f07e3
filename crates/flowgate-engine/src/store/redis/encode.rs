//! A request as the arguments of `decide.lua`.
//!
//! ```text
//! call   = op time cost rules {rule}                   op: take, peek, record, check (and record), refund, deny
//! rule   = flags limits bans {limit} [ban]             flags: 1 counts denied, 2 shadow; limits, bans: how many
//! limit  = numbers never after                         never: 1 if a denial stays, however long the client waits
//! numbers= (b|p) want want room room capacity capacity ticks    each as whole microseconds and remainder
//!        | f count window | s count period grid | a count period | u
//! after  = "-" | free window
//! window = p length | c unit | l from number {end}     plain, aligned to the epoch, a calendar's ends
//! ban    = strikes within forget number {length}
//! ```
//!
//! A take from a single limit, where nothing else is to be done, goes a shorter way, which is told by its letter:
//!
//! ```text
//! short  = (b|p) want room [want room ticks [time]]    wholes before remainders
//!        | (f|s|a) time cost numbers
//! ```
//!
//! Times are microseconds; an empty `time` is Redis's own.

use flowgate::portable::{AfterTerms, AlgorithmTerms, BanTerms, Exact, Terms, WindowTerms};
use flowgate::{Algorithm, Limit, MAX_COUNT, Op, RuleFlags, Time};

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
        match self.op {
            _ if self.cost == 0 => b"peek",
            Op::Take | Op::TakeWithin(_) => b"take",
            Op::Peek => b"peek",
            Op::Record => b"record",
            Op::CheckAndRecord => b"check",
            Op::Refund => b"refund",
            // `Op::Deny`.
            _ => b"deny",
        }
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

/// What precedes the limits of a rule.
pub(super) fn rule(args: &mut Parts, flags: RuleFlags, limits: usize, bans: bool) {
    args.number(u64::from(flags.count_denied) + 2 * u64::from(flags.shadow));
    args.number(limits as u64);
    args.number(u64::from(bans));
}

/// A call of one limit and nothing else.
pub(super) fn one_limit(args: &mut Parts, ask: Ask, flags: RuleFlags, limit: &Limit, around: Time) {
    let (algorithm, terms) = (limit.algorithm(), limit.terms(ask.op, ask.cost, around));
    if !short(args, ask, flags, algorithm, &terms) {
        head(args, ask, 1);
        rule(args, flags, 1, false);
        self::limit(args, algorithm, &terms);
    }
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

/// The short way of one limit, where it gives the same answer.
fn short(args: &mut Parts, ask: Ask, flags: RuleFlags, algorithm: Algorithm, terms: &Terms) -> bool {
    let Terms { own, after: None, .. } = terms else { return false };
    if ask.word() != b"take" || flags.count_denied {
        return false;
    }
    match own {
        AlgorithmTerms::Unlimited => return false,
        AlgorithmTerms::Bucket { ticks, want, room, .. } => {
            args.push(letter(algorithm));
            args.number(want.micros);
            room_micros(args, *room);
            let injected = ask.time.micros();
            if *ticks > 1 || injected.is_some() {
                args.number(want.ticks);
                args.number(room.map_or(0, |room| room.ticks));
                args.number(*ticks);
            }
            injected.into_iter().for_each(|micros| args.number(micros));
        }
        own => {
            args.push(letter(algorithm));
            time(args, ask.time);
            args.number(ask.units());
            numbers(args, own);
        }
    }
    true
}

/// No debt is less than nothing: with that much room, nothing passes.
fn room_micros(args: &mut Parts, room: Option<Exact>) {
    match room {
        Some(room) => args.number(room.micros),
        None => args.push(b"-1"),
    }
}

fn letter(algorithm: Algorithm) -> &'static [u8] {
    match algorithm {
        Algorithm::Sliding => b"s",
        Algorithm::Fixed => b"f",
        Algorithm::Bucket => b"b",
        Algorithm::Pace => b"p",
        Algorithm::Approx => b"a",
        Algorithm::Unlimited => b"u",
    }
}

pub(super) fn limit(args: &mut Parts, algorithm: Algorithm, terms: &Terms) {
    args.push(letter(algorithm));
    numbers(args, &terms.own);
    args.number(u64::from(terms.never));
    match &terms.after {
        None => args.push(b"-"),
        Some(AfterTerms { free, window }) => {
            args.number(*free);
            self::window(args, window);
        }
    }
}

fn numbers(args: &mut Parts, own: &AlgorithmTerms) {
    match own {
        AlgorithmTerms::Unlimited => {}
        AlgorithmTerms::Bucket { ticks, want, room, capacity } => {
            args.number(want.micros);
            args.number(want.ticks);
            room_micros(args, *room);
            args.number(room.map_or(0, |room| room.ticks));
            args.number(capacity.micros);
            args.number(capacity.ticks);
            args.number(*ticks);
        }
        AlgorithmTerms::Fixed { count, window } => {
            args.number(*count);
            self::window(args, window);
        }
        AlgorithmTerms::Sliding { count, period, grid } => {
            [count, period, grid].into_iter().for_each(|n| args.number(*n))
        }
        AlgorithmTerms::Approx { count, period } => [count, period].into_iter().for_each(|n| args.number(*n)),
    }
}

fn window(args: &mut Parts, window: &WindowTerms) {
    match window {
        WindowTerms::Plain(length) => {
            args.push(b"p");
            args.number(*length);
        }
        WindowTerms::Aligned(unit) => {
            args.push(b"c");
            args.number(*unit);
        }
        WindowTerms::Calendar { from, ends } => {
            args.push(b"l");
            args.number(*from);
            args.number(ends.len() as u64);
            ends.iter().for_each(|end| args.number(*end));
        }
    }
}

pub(super) fn ban(args: &mut Parts, BanTerms { after, within, lengths, forget }: &BanTerms) {
    [after, within, forget].into_iter().for_each(|number| args.number(*number));
    args.number(lengths.len() as u64);
    lengths.iter().for_each(|length| args.number(*length));
}
