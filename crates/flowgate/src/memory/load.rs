//! Loading: the states of [records](super::record) into a table, whatever its size.
//!
//! Rule       Records are loaded in the order in which they were written; of the records of a counter the last one
//!            counts.
//! Rule       An expired state replaces an older one like any other state, because one part of a counter may have
//!            expired and the other not. A table that needs room drops expired states. The caller sweeps the table once
//!            all records are loaded.
//! Rule       Whether a state has expired is judged at the time when the records were written, not at the time of
//!            loading. A later record may continue a log whose entries have all left by now.
//! Rule       A record that cannot be used changes nothing: it is of a kind this version does not know, it is
//!            malformed, or it continues a log that is not there.
//! Bound      The table stays within its budget: where the states do not fit, it evicts or refuses as it does for new
//!            keys.

use super::MemoryStore;
use super::budget::Budget;
use super::key::Tag;
use super::record::{Content, LogTail, Record};
use super::shard::Shard;
use super::slot::{Kind, Slot};
use crate::algorithm::{Entries, Entry, Log, MAX_DEBT_NANOS, MAX_EXACT_INTEGER, State};
use crate::time::{Span, Time};

/// The longest life of a state: a ban of the longest length that is remembered for as long again.
const MAX_LIFETIME_NANOS: u64 = 2 * MAX_DEBT_NANOS;

/// When records are loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadAt {
    /// States that have expired at this time may be dropped. It is not later than any change in this record or a later
    /// one.
    pub now: Time,
    /// How far all states are moved back in time: where the clock was put back between two runs.
    pub back: Span,
}

/// The result of loading a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadOutcome {
    /// The counter has this state.
    Kept,
    /// The counter is gone.
    Gone,
    /// The record continues a log, and an earlier record of that log is missing.
    Orphan,
    /// A full table had no room for the counter.
    NoRoom,
    /// The record is of a kind that this version does not know, or malformed.
    Unknown,
}

#[doc(hidden)]
impl MemoryStore {
    /// Fetches into the cache what loading a record needs.
    pub fn prefetch_load(&self, record: Record<'_>) {
        if let Some(content) = record.content() {
            let tag = content.tag();
            self.shards.prefetch(tag.shard(self.shards.len()), tag, 1);
        }
    }

    /// Sets the number of counters that the table will hold once all records are loaded, so that it does not grow step
    /// by step.
    pub fn expect(&self, counters: usize) {
        self.budget.expect_per_shard(counters.div_ceil(self.shards.len()));
    }

    /// Drops states that are over once all records are loaded, and gives back room that was not needed.
    pub fn finish_load(&self, now: Time) {
        self.budget.expect_per_shard(0);
        for index in 0..self.shards.len() {
            let mut shard = self.lock(index);
            let slots = shard.slots.len();
            shard.drop_expired(0, slots, now.as_nanos());
            shard.trim(now.as_nanos(), &self.budget);
        }
    }

    /// Loads a record.
    pub fn load(&self, record: Record<'_>, at: LoadAt) -> LoadOutcome {
        let Some(content) = record.content() else { return LoadOutcome::Unknown };
        let tag = content.tag();
        if tag.is_in_other_database() {
            self.count_databases();
        }
        let (now, back) = (at.now.as_nanos(), at.back.as_nanos());
        let mut shard = self.lock(tag.shard(self.shards.len()));
        match content {
            Content::Gone(_) => {
                shard.unload(tag, &self.budget);
                LoadOutcome::Gone
            }
            Content::Slot(slot) => shard.load_state(&slot.moved_back(back), None, now, &self.budget),
            Content::Log(slot, tail) => match shard.continued(tag, &tail, back) {
                Some(log) => shard.load_state(&slot, Some(log), now, &self.budget),
                None => LoadOutcome::Orphan,
            },
        }
    }
}

impl Shard {
    fn unload(&mut self, tag: Tag, budget: &Budget) {
        if let Ok(index) = self.find(tag) {
            self.take_at(index);
            self.close_gap(index);
            self.settle(budget);
        }
    }

    /// Puts a slot, or one for `log`, in the place of the one that the counter has.
    fn load_state(&mut self, slot: &Slot, log: Option<Log>, now: u64, budget: &Budget) -> LoadOutcome {
        let (tag, forget_at) = (slot.tag(), log.as_ref().map_or(slot.forget_at(), Log::last_leaves_at));
        if forget_at > now.saturating_add(MAX_LIFETIME_NANOS) {
            return LoadOutcome::Unknown;
        }
        let found = if self.is_behind_all(tag) { None } else { self.find(tag).ok() };
        match found {
            Some(index) => _ = self.take_at(index),
            None if !self.make_room_to_load(budget.room(1, 1), now, budget) => return LoadOutcome::NoRoom,
            None => {}
        }
        let mut slot = match log {
            Some(log) => self.slot(tag, State::Sliding(log), slot.label(), now, budget),
            None => Some(*slot),
        };
        if let Some(slot) = &mut slot {
            // A state that was just read need not be written again.
            slot.clear_changed();
        }
        match slot {
            Some(slot) if self.is_behind_all(tag) => self.append(slot),
            slot => self.put(tag, slot),
        }
        self.settle(budget);
        LoadOutcome::Kept
    }

    /// The log that ends with `tail`.
    fn continued(&mut self, tag: Tag, tail: &LogTail<'_>, back: u64) -> Option<Log> {
        let old = match self.find(tag) {
            Ok(index) => match self.slots[index].log_index() {
                Some(place) => self.logs.get(place).cloned(),
                None => {
                    let words = self.slots[index].words(Kind::One);
                    words.map(|[leaves_at, units]| Log::One(Entry { leaves_at, units }))
                }
            },
            Err(_) => None,
        };
        // The older records of the log were also moved back in time.
        let entries =
            tail.continue_from(old.map(|log| moved(log, back, u64::saturating_add)).as_ref(), MAX_EXACT_INTEGER)?;
        let mut log = Log::from_entries(entries)?;
        if let Log::Many(entries) = &mut log {
            entries.clear_changed();
        }
        Some(moved(log, back, u64::saturating_sub))
    }
}

/// A log whose times are moved by `nanos`.
fn moved(log: Log, nanos: u64, by: fn(u64, u64) -> u64) -> Log {
    if nanos == 0 {
        return log;
    }
    let moved = |entry: Entry| Entry { leaves_at: by(entry.leaves_at, nanos), units: entry.units };
    match log {
        Log::One(entry) => Log::One(moved(entry)),
        Log::Many(entries) => {
            let mut all = Entries::default();
            entries.iter().for_each(|entry| all.push_back(moved(entry), u64::MAX));
            all.clear_changed();
            Log::Many(all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Records;
    use super::*;

    /// A bucket that owes a part of a nanosecond ends one nanosecond after its first word.
    #[test]
    fn a_state_that_lasts_longer_than_any_limit_is_refused() {
        let now = 1_700_000_000_000_000_000;
        let (most, memory) = (now + MAX_LIFETIME_NANOS, MemoryStore::default());
        for (forget_at, ticks, outcome) in [
            (most, 0, LoadOutcome::Kept),
            (most - 1, 1, LoadOutcome::Kept),
            (most, 1, LoadOutcome::Unknown),
            (u64::MAX, 0, LoadOutcome::Unknown),
            (u64::MAX, 1, LoadOutcome::Unknown),
        ] {
            let words = [Kind::Bucket as u64, 1, forget_at, ticks].map(u64::to_le_bytes);
            let record = Records::new(words.as_flattened()).next().unwrap();
            let at = LoadAt { now: Time::from_nanos(now), back: Span::ZERO };
            assert_eq!(memory.load(record, at), outcome, "{forget_at} {ticks}");
        }
    }
}
