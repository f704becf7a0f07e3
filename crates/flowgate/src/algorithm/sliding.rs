//! Sliding: an exact log of what was counted, in bounded memory.
//!
//! State      The counted units with the instant at which each leaves the window: at most the newest N units.
//! Rule       A unit counted at `t` leaves at `t + P`. Allowed iff the units in the window plus `cost` are at most N.
//! Invariant  The log is sorted: a time before the newest is stored as the newest. Only a charge or a refund
//!            removes units that have left, so a look with an older time still sees them.
//! Bound      Any span of length P admits at most N. That is what users expect of "N per P".
//! Portable   Terms `count period grid` (grid 0 keeps times as they are); state `number {leaves_at left}`, where `left`
//!            is the sum of the units up to and with this entry; undo `s leaves_at`.
//!
//! Memory: up to N = 1024, units keep their own time (those of one request share an entry). Above, times are
//! rounded **up** to a grid of P/1024, so at most 1025 entries are kept; a unit is held one grid step too long at
//! most, never too short. A log that limits of different numbers charge in turn may need more entries: the oldest ones join then,
//! and leave with the last of them. An entry takes 8 bytes, or 16 where a request has more than three units. A single entry, all that most
//! keys ever have, needs no log at all, and a few need no memory beside the log's place.

mod entries;

pub(crate) use entries::{Entries, MAX_WORDS, UsualCharge};

#[cfg(feature = "portable")]
use super::MAX_EXACT_INTEGER;
use super::{Charge, Meter, Numbers};
use crate::ask::Ask;
use crate::decision::{Retry, Verdict};
#[cfg(feature = "portable")]
use crate::portable::{Arguments, Portable};
use crate::time::{NANOS_PER_MICRO, Span};

/// The most entries that keep their exact time; also the number of grid steps in a period.
const MAX_EXACT_ENTRIES: u64 = 1024;

/// The most entries of a log that one limit charges: a whole period of grid steps and the one that is being left.
const MAX_ENTRIES: usize = MAX_EXACT_ENTRIES as usize + 1;

/// The numbers of a sliding limit.
#[derive(Clone, Debug)]
pub(crate) struct Sliding {
    pub(crate) count: u64,
    pub(crate) period: u64,
    /// Times are rounded up to multiples of this many nanoseconds; 1 keeps them as they are.
    grid: u64,
}

/// Units that leave the window together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    pub(crate) leaves_at: u64,
    pub(crate) units: u64,
}

/// What was counted, oldest first. Never empty: a counter without units has no state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    One(Entry),
    Many(Entries),
}

impl Sliding {
    pub(crate) fn new(count: u64, period: u64) -> Sliding {
        let grid = if count <= MAX_EXACT_ENTRIES {
            1
        } else {
            (period / NANOS_PER_MICRO).div_ceil(MAX_EXACT_ENTRIES) * NANOS_PER_MICRO
        };
        Sliding { count, period, grid }
    }

    /// Counts `cost` in a log where it lies.
    #[inline]
    pub(crate) fn charge(&self, log: &mut Log, now: u64, cost: u64) {
        log.push(self.entry(now, cost), now, self.count);
    }

    /// The entry of `cost` units that are counted now.
    #[inline]
    pub(crate) fn entry(&self, now: u64, cost: u64) -> Entry {
        Entry { leaves_at: self.stamp(now) + self.period, units: cost.min(self.count) }
    }

    /// Counts a take in a log where it lies if it passes and the charge is [usual](Entries::charge_usual). The log's last unit
    /// leaves at `last_leaves_at`.
    #[inline]
    pub(crate) fn take_usual(&self, log: &mut Log, ask: Ask, last_leaves_at: u64) -> Option<UsualCharge> {
        let Log::Many(entries) = log else { return None };
        if ask.cost == 0 {
            return None;
        }
        let now = ask.now.as_nanos();
        let new = Entry { leaves_at: self.stamp(now) + self.period, units: ask.cost };
        entries.charge_usual(new, now, self.count, last_leaves_at)
    }

    /// Whether `ask` passes where `used` units are in the window. `leaving` tells when an excess of units has left it.
    #[inline]
    pub(crate) fn verdict(&self, used: u64, ask: Ask, leaving: impl FnOnce(u64) -> u64) -> Verdict {
        if ask.cost > self.count {
            return Verdict::Deny(Retry::Never);
        }
        match (used + ask.cost).checked_sub(self.count) {
            None | Some(0) => Verdict::PASS,
            _ if ask.cost == 0 => Verdict::PASS,
            Some(excess) => Verdict::Deny(Retry::After(Span::from_nanos(leaving(excess) - ask.now.as_nanos()))),
        }
    }

    /// The numbers where `used` units are in the window and the last one leaves at `left_at`.
    #[inline]
    pub(crate) fn numbers_of(&self, used: u64, left_at: u64, now: u64) -> Numbers {
        let remaining = self.count.saturating_sub(used);
        Numbers { limit: self.count, remaining, reset_after: Span::from_nanos(left_at.saturating_sub(now)) }
    }

    #[inline]
    fn stamp(&self, now: u64) -> u64 {
        if self.grid == 1 { now } else { (now / self.grid + 1) * self.grid }
    }
}

impl Meter for Sliding {
    type State = Log;

    #[inline]
    fn check(&self, state: Option<&Log>, ask: Ask) -> Verdict {
        let now = ask.now.as_nanos();
        let used = state.map_or(0, |log| log.used(now));
        self.verdict(used, ask, |excess| state.and_then(|log| log.leaving(now, excess)).unwrap_or(now))
    }

    /// The log keeps the newest N units, whichever operation counted them.
    #[inline]
    fn charged(&self, state: Option<Log>, now: u64, cost: u64, _: Charge) -> Log {
        match state {
            None => Log::One(self.entry(now, cost)),
            Some(mut log) => {
                self.charge(&mut log, now, cost);
                log
            }
        }
    }

    /// The newest units go first.
    fn refunded(&self, state: Option<Log>, now: u64, cost: u64) -> Option<Log> {
        state.and_then(|mut log| log.pop_newest(now, cost).then_some(log))
    }

    #[inline]
    fn used(&self, state: Option<&Log>, now: u64) -> u64 {
        state.map_or(0, |log| log.used(now))
    }

    #[inline]
    fn numbers(&self, state: Option<&Log>, now: u64) -> Numbers {
        self.numbers_of(state.map_or(0, |log| log.used(now)), state.map_or(0, Log::last_leaves_at), now)
    }
}

impl Entry {
    /// The units in the window at `now`.
    #[inline]
    pub(crate) fn used(self, now: u64) -> u64 {
        if now < self.leaves_at { self.units } else { 0 }
    }

    /// The same entry with the units of `new`, which comes no later.
    #[inline]
    fn joined_by(self, new: Entry) -> Entry {
        Entry { units: self.units + new.units, ..self }
    }

    /// The only entry of a log of `most` units once `new` has come; `None` if both are needed.
    #[inline]
    pub(crate) fn joined(self, new: Entry, now: u64, most: u64) -> Option<Entry> {
        if self.leaves_at <= now {
            Some(new)
        } else if new.leaves_at <= self.leaves_at {
            Some(Entry { units: (self.units + new.units).min(most), ..self })
        } else {
            // If the new entry alone fills the window.
            (new.units >= most).then_some(new)
        }
    }
}

impl Log {
    /// A log of these entries; `None` where there are none.
    pub(crate) fn from_entries(entries: Entries) -> Option<Log> {
        match entries.only() {
            Some(entry) => Some(Log::One(entry)),
            None => (!entries.is_empty()).then_some(Log::Many(entries)),
        }
    }

    /// When the last unit leaves.
    #[inline]
    pub(crate) fn last_leaves_at(&self) -> u64 {
        match self {
            Log::One(entry) => entry.leaves_at,
            Log::Many(log) => log.last_leaves_at(),
        }
    }

    /// Where its oldest entry and the place of the next one lie beside it, for a prefetch.
    #[inline]
    pub(crate) fn ends(&self) -> [Option<*const u64>; 2] {
        match self {
            Log::One(_) => [None; 2],
            Log::Many(log) => log.ends(),
        }
    }

    /// The bytes it holds beyond the state itself.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Log::One(_) => 0,
            Log::Many(log) => log.heap_bytes(),
        }
    }

    /// The bytes that it holds more, beyond the state itself, after a charge of `new` at `now` to a log of `most` units.
    #[inline]
    pub(crate) fn lacking_bytes(&self, new: Entry, now: u64, most: u64) -> usize {
        match self {
            Log::One(_) => 0,
            Log::Many(log) => log.lacking_bytes(new, now, most),
        }
    }

    /// Gives up all precision in time: every unit leaves together with the last one, which may be later than it had to,
    /// never earlier.
    pub(crate) fn collapse(&mut self) {
        if let Log::Many(log) = self {
            let units = log.total();
            *self = Log::One(Entry { leaves_at: self.last_leaves_at(), units });
        }
    }

    /// Undoes a charge that nothing has followed.
    pub(crate) fn undo_usual(&mut self, charge: &UsualCharge) {
        if let Log::Many(log) = self {
            log.undo_usual(charge);
        }
    }

    /// The units in the window at `now`.
    #[inline]
    pub(crate) fn used(&self, now: u64) -> u64 {
        match self {
            Log::One(entry) => entry.used(now),
            Log::Many(log) => log.total() - log.left(now),
        }
    }

    /// The instant at which `excess` units that are in the window at `now` have left it.
    pub(crate) fn leaving(&self, now: u64, excess: u64) -> Option<u64> {
        match self {
            Log::One(entry) => Some(entry.leaves_at),
            Log::Many(log) => {
                let mut still = excess;
                let mut inside = log.iter().skip_while(|entry| entry.leaves_at <= now);
                inside.find(|entry| {
                    still = still.saturating_sub(entry.units);
                    still == 0
                })
            }
            .map(|entry| entry.leaves_at),
        }
    }

    /// Appends `new`, drops what has left at `now` and all but the newest `most` units.
    #[inline]
    fn push(&mut self, new: Entry, now: u64, most: u64) {
        match self {
            Log::One(old) => match old.joined(new, now, most) {
                Some(joined) => *old = joined,
                None => {
                    let mut log = Entries::default();
                    log.push_back(*old, most);
                    log.push_back(new, most);
                    log.keep_newest(most);
                    *self = Log::Many(log);
                }
            },
            Log::Many(log) => {
                if log.charge_usual(new, now, most, log.last_leaves_at()).is_some() {
                    return;
                }
                log.drop_left(now);
                if log.is_empty() {
                    *self = Log::One(new);
                    return;
                }
                log.push_back(new, most);
                log.keep_newest(most);
                log.keep_bounded();
            }
        }
    }

    /// Drops what has left at `now` and the newest `units`; false when nothing is left.
    fn pop_newest(&mut self, now: u64, units: u64) -> bool {
        match self {
            Log::One(entry) => {
                entry.units = entry.units.saturating_sub(units);
                entry.units > 0 && now < entry.leaves_at
            }
            Log::Many(log) => {
                log.drop_left(now);
                log.drop_newest(units);
                !log.is_empty()
            }
        }
    }
}

/// The script's store keeps entries for a while after they have left, but never this many.
#[cfg(feature = "portable")]
const MAX_ENTRIES_OF_REPLY: u64 = 8 * MAX_EXACT_ENTRIES;

#[cfg(feature = "portable")]
impl Portable for Sliding {
    const LETTER: u8 = b's';

    fn write_terms(&self, _: Ask, args: &mut impl Arguments) {
        args.number(self.count);
        args.number(self.period / NANOS_PER_MICRO);
        // A grid of one nanosecond is written as 0.
        args.number(self.grid / NANOS_PER_MICRO);
    }

    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<Log>> {
        let (mut log, mut left_before) = (Entries::default(), 0);
        for _ in 0..reply.next().filter(|entries| *entries <= MAX_ENTRIES_OF_REPLY)? {
            let [leaves_at, left] = [reply.next()? * NANOS_PER_MICRO, reply.next()?];
            let units = left.checked_sub(left_before).filter(|units| *units <= MAX_EXACT_INTEGER)?;
            if units > 0 {
                log.push_back(Entry { leaves_at, units }, MAX_ENTRIES as u64);
            }
            left_before = left;
        }
        Some(Log::from_entries(log))
    }

    fn write_undo(&self, log: &Log, _: Ask, args: &mut impl Arguments) {
        args.letter(b's');
        args.number(log.last_leaves_at() / NANOS_PER_MICRO);
    }
}
