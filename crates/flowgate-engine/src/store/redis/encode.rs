//! A request as the argument of `decide.lua`: cells of eight bytes, each a double in little-endian order, or a name.
//!
//! ```text
//! call   = op time cost rules {rule} padding           op: 1 take, 2 peek, 3 record, 4 check (and record), 5 refund, 6 deny
//! rule   = flags limits bans key {limit} [ban]         flags: 1 counts denied, 2 shadow; limits: how many; bans: 1 it
//!                                                      bans, 2 it only may have banned the subject; key: which, from 1 on
//! limit  = name letter terms [free window]             a capital letter: the window of `after=` follows
//! ban    = name [strikes within forget number {length}]
//! ```
//!
//! The letter, by its code, names the algorithm. The library writes its terms; each algorithm's file there lists them.
//! The padding lets the script read seven terms of every limit, though few have as many, and those of the first together with
//! what precedes it.
//!
//! Several requests that pass together or not at all go to `joint.lua`:
//!
//! ```text
//! joint  = time denied parts {part}                    denied: 1 if something other than a limit denies
//! part   = op cost rules keys {rule}                   keys: how many of KEYS are this part's
//! ```
//!
//! Times are microseconds; a `time` of -1 is Redis's own.

use flowgate::portable::Arguments;
use flowgate::{Limit, MAX_COUNT, Op, RuleFlags, Time};

use super::keys::CounterName;
use super::script::Parts;

/// The script reads this many cells of every limit: the name, the letter and seven terms.
const LIMIT_BYTES: usize = 9 * 8;

/// The cells before the first limit: the head of the call and of its first rule.
const BEFORE_LIMITS: usize = 8 * 8;

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

/// The operation, the cost and the time, which are the same for every counter.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) op: Op,
    pub(super) cost: u64,
    pub(super) time: ScriptTime,
}

impl Ask {
    /// The operation's number in the script. A request of cost 0 changes nothing, so it is a peek.
    fn number(self) -> u64 {
        if self.cost == 0 { 2 } else { self.op_number() }
    }

    fn op_number(self) -> u64 {
        match self.op {
            Op::Take | Op::TakeWithin(_) => 1,
            Op::Peek => 2,
            Op::Record => 3,
            Op::CheckAndRecord => 4,
            Op::Refund => 5,
            // `Op::Deny`.
            _ => 6,
        }
    }

    /// The same question for the library, at about Redis's time.
    pub(super) fn around(self, around: Time) -> flowgate::Ask {
        flowgate::Ask::new(self.op, self.cost, around)
    }

    /// The cost in units that the script can count. A take of more units than can be counted never passes, so
    /// `MAX_COUNT + 1` stands for all of them.
    fn units(self) -> u64 {
        match self.op {
            Op::Record | Op::Refund => self.cost.min(MAX_COUNT),
            _ => self.cost.min(MAX_COUNT + 1),
        }
    }
}

/// The argument of a call, cell by cell.
pub(super) struct Cells<'a> {
    bytes: &'a mut Vec<u8>,
    /// The position of the last limit; without a limit, the position of the first one.
    last_limit: usize,
}

impl Cells<'_> {
    /// Writes the one argument of a call.
    pub(super) fn write(args: &mut Parts, write: impl FnOnce(&mut Cells<'_>)) {
        args.write(|bytes| write(&mut Cells::on(bytes)));
    }

    /// Appends cells to those of `bytes`.
    pub(super) fn on(bytes: &mut Vec<u8>) -> Cells<'_> {
        Cells { last_limit: bytes.len() + BEFORE_LIMITS, bytes }
    }

    /// Appends cells that were written elsewhere.
    pub(super) fn append(&mut self, cells: &[u8]) {
        self.bytes.extend_from_slice(cells);
    }

    fn double(&mut self, number: f64) {
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn name(&mut self, name: &CounterName) {
        self.bytes.extend_from_slice(name);
    }

    /// What precedes the rules of a call.
    pub(super) fn head(&mut self, ask: Ask, rules: usize) {
        self.number(ask.number());
        self.time(ask.time);
        self.number(ask.units());
        self.number(rules as u64);
    }

    /// What follows the rules of a call.
    pub(super) fn padding(&mut self) {
        while self.bytes.len() < self.last_limit + LIMIT_BYTES {
            self.number(0);
        }
    }

    /// What precedes the parts of a call for several requests.
    pub(super) fn joint_head(&mut self, at: ScriptTime, denied: bool, parts: usize) {
        self.time(at);
        self.number(u64::from(denied));
        self.number(parts as u64);
    }

    /// What precedes the rules of a part.
    pub(super) fn part_head(&mut self, ask: Ask, rules: usize, keys: usize) {
        self.number(ask.op_number());
        self.number(ask.units());
        self.number(rules as u64);
        self.number(keys as u64);
    }

    /// What precedes the limits of a rule.
    pub(super) fn rule(&mut self, flags: RuleFlags, limits: usize, bans: Bans, key: usize) {
        self.number(u64::from(flags.count_denied) + 2 * u64::from(flags.shadow));
        self.number(limits as u64);
        self.number(bans as u64);
        self.number(key as u64);
    }

    /// A limit on a counter.
    pub(super) fn limit(&mut self, name: &CounterName, limit: &Limit, ask: Ask, around: Time) {
        self.last_limit = self.bytes.len();
        self.name(name);
        limit.write_terms(ask.around(around), self);
    }

    pub(super) fn time(&mut self, time: ScriptTime) {
        match time.micros() {
            None => self.minus_one(),
            Some(micros) => self.number(micros),
        }
    }

    /// Writes nanoseconds as two cells: whole seconds, rounded down, and the nanoseconds that are left.
    pub(super) fn nanos(&mut self, nanos: i64) {
        // Seconds of an i64 of nanoseconds are well below 2^53.
        self.double(nanos.div_euclid(NANOS_PER_SECOND) as f64);
        self.number(nanos.rem_euclid(NANOS_PER_SECOND).unsigned_abs());
    }
}

impl Arguments for Cells<'_> {
    fn letter(&mut self, letter: u8) {
        self.number(letter.into());
    }

    fn number(&mut self, number: u64) {
        // All numbers are below 2^53, so the double is exact.
        self.double(number as f64);
    }

    fn minus_one(&mut self) {
        self.double(-1.0);
    }
}

/// Whether a rule bans.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bans {
    No = 0,
    Yes = 1,
    /// The rule starts no ban, but a ban that it has imposed earlier on the subject counts.
    Watched = 2,
}
