//! A shard: a part of the table behind one lock.
//!
//! An open-addressed table whose slots stay **sorted** by tag. The home position is the tag's home scaled to the
//! number of positions, which is monotone, so sorting and probing agree: a search starts at the home position, ends
//! at the first greater tag, and finds the counters of one subject side by side. The table can have any size, so it
//! grows by about a tenth at a time instead of doubling, and laying it out anew is one pass over a bounded number
//! of slots.
//!
//! Invariant  Each slot lies at or after its home position, no empty slot between the two. The last slot is empty.
//! Invariant  What the shard holds was reserved of the budget before it was allocated, and is given back with it.

mod bans;
mod fast_path;
mod resize;
#[cfg(test)]
mod tests;

use std::mem::offset_of;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::budget::{Budget, WhenFull};
use super::changes::{CHANGED_GROUPS, Followed};
use super::database::DatabaseCounts;
use super::key::Tag;
use super::logs::Logs;
use super::shards::CACHE_LINE;
use super::slot::{Kind, Label, Slot};
use crate::algorithm::{Counter, Law, Log, State, StateKind};
use crate::class::Class;
use crate::plan::{Hit, LoadedCounter};
pub(super) use resize::{RESERVED_BYTES, Room, SpareRoom};

// In this order: what every call needs comes first and shares a cache line with the lock. The second line has the rest of what a
// take writes, and where the logs are.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Shard {
    pub(super) slots: Vec<Slot>,
    positions: usize,
    /// Every request is decided at this time or later. States that were dropped as expired had ended by then.
    pub(super) floor: u64,
    /// The number of calls until the next sweep.
    pub(super) calls_to_sweep: u32,
    live: usize,
    /// See [`changes`](super::changes).
    pub(super) changed_groups: [u64; CHANGED_GROUPS / 64],
    pub(super) logs: Logs,
    /// Where the next sweep starts.
    pub(super) hand: usize,
    /// The index behind the last slot in use.
    end: usize,
    /// The number of places for logs that may be used. The allocation may have more, which are never touched.
    places: usize,
    /// The bytes of the logs' own allocations.
    log_bytes: usize,
    /// The bytes that this shard has taken from the budget.
    reserved: usize,
    /// When it was last swept whole because it was full.
    pub(super) swept_at: u64,
    /// Its slots in each database, once they are counted.
    pub(super) databases: Option<Arc<DatabaseCounts>>,
    /// Where changes are followed.
    pub(super) followed: Option<Box<Followed>>,
    /// The number of slots that were examined to drop counters or to move logs.
    #[cfg(test)]
    touched: usize,
}

/// The mutex takes this many bytes before the shard.
const MUTEX_BYTES: usize = 8;

const _: () = {
    let (groups, logs) = (offset_of!(Shard, changed_groups), offset_of!(Shard, logs));
    assert!(MUTEX_BYTES + groups == CACHE_LINE, "changed groups begin the second line");
    assert!(MUTEX_BYTES + logs + size_of::<Vec<u8>>() <= 2 * CACHE_LINE, "which also has the table of logs");
};

impl Shard {
    /// Loads the counter of a hit. A log moves out of the shard until [`Shard::keep`] brings it back.
    #[inline]
    pub(super) fn load(&mut self, hit: &mut Hit<'_>) {
        let tag = hit.key.tag();
        hit.no_room = false;
        hit.new_slots = 0;
        hit.counter = LoadedCounter::default();
        hit.classes = [Class::LITTLE; 2];
        if Shard::slots_of(hit) == 0 {
            return;
        }
        match self.find(tag) {
            Ok(index) => {
                hit.classes[0] = self.slots[index].class();
                hit.counter.state = self.take_at(index);
            }
            Err(_) => hit.new_slots += 1,
        }
        if hit.limit.after_window().is_some() {
            match self.find(tag.seen()) {
                Ok(index) => {
                    hit.classes[1] = self.slots[index].class();
                    hit.counter.seen = StateKind::take(self.take_at(index));
                }
                Err(_) => hit.new_slots += 1,
            }
        }
    }

    /// The number of slots that the counter of a hit needs; 0 if the hit counts nothing.
    #[inline]
    pub(super) fn slots_of(hit: &Hit<'_>) -> usize {
        if matches!(hit.limit.law(), Law::Unlimited) { 0 } else { 1 + usize::from(hit.limit.after_window().is_some()) }
    }

    /// Makes room for the counters of a plan; false when the shard is full and may not forget any counter for them.
    #[inline]
    pub(super) fn make_room(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        self.has_room(room) || self.grow(room, now, budget)
    }

    /// Keeps the counter of a hit.
    #[inline]
    pub(super) fn keep(&mut self, hit: &mut Hit<'_>, now: u64, budget: &Budget) {
        if Shard::slots_of(hit) == 0 {
            return;
        }
        let tag = hit.key.tag();
        let mark = hit.limit.law().algorithm() as u8;
        let Counter { state, seen } = std::mem::take(&mut hit.counter).into_counter();
        let [label, seen_label] = hit.classes.map(|class| Label { mark, class });
        let mut main = self.slot(tag, state, label, now, budget);
        let mut second = seen.and_then(|seen| self.slot(tag.seen(), seen.into_state(), seen_label, now, budget));
        if hit.limit.after_window().is_some() && hit.new_slots == 0 {
            // Both parts get a slot or none: a counter with one part will need the other later, which must not fail
            // then.
            main = main.or(second.map(|second| Slot::unused(tag, mark, second.forget_at())));
            second = second.or(main.map(|main| Slot::unused(tag.seen(), mark, main.forget_at())));
        }
        self.put(tag, main);
        if hit.limit.after_window().is_some() {
            self.put(tag.seen(), second);
        }
        self.settle(budget);
    }

    /// The instant from which the counter of `tag` has expired (is as if never used), and the mark of the algorithm
    /// that made it.
    pub(super) fn owner(&self, tag: Tag) -> Option<(u64, u8)> {
        let parts = [tag, tag.seen()].into_iter().filter_map(|tag| self.find(tag).ok());
        // A counter with `after=` has two slots. The slot of an unused part only accompanies the other one.
        let parts = parts.map(|index| &self.slots[index]).filter(|slot| !slot.is(Kind::Unused));
        parts.map(|slot| (slot.forget_at(), slot.mark())).max()
    }

    /// Forgets a counter; true when there was one.
    pub(super) fn forget(&mut self, tag: Tag, budget: &Budget) -> bool {
        let mut found = false;
        for tag in [tag, tag.seen()] {
            found |= self.take(tag) != State::Unused;
            if let Ok(index) = self.find(tag) {
                self.remove(index);
            }
        }
        self.settle(budget);
        found
    }

    /// The home positions of its table.
    #[inline]
    pub(super) fn positions(&self) -> usize {
        self.positions
    }

    pub(super) fn has_logs(&self) -> bool {
        !self.logs.is_empty()
    }

    /// The number of counters (those with `after=` count twice).
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// The state of `tag`; a log moves out, so the slot must be written anew or closed.
    #[inline]
    fn take(&mut self, tag: Tag) -> State {
        let Ok(index) = self.find(tag) else { return State::Unused };
        self.take_at(index)
    }

    #[inline]
    pub(super) fn take_at(&mut self, index: usize) -> State {
        let state = self.slots[index].take(&mut self.logs);
        if let State::Sliding(log) = &state {
            self.log_bytes -= log.heap_bytes();
        }
        state
    }

    /// A slot for `state`, if there is anything to keep.
    #[inline]
    pub(super) fn slot(&mut self, tag: Tag, mut state: State, label: Label, now: u64, budget: &Budget) -> Option<Slot> {
        if let State::Sliding(log) = &mut state {
            self.fit(log, label.class, now, budget);
        }
        Slot::new(tag, state, label, &mut self.logs)
    }

    #[inline]
    pub(super) fn put(&mut self, tag: Tag, slot: Option<Slot>) {
        match (self.find(tag), slot) {
            // If the slot has a log already, the plan names its counter twice, and the first of the two was kept.
            (Ok(index), slot) if self.slots[index].holds_log() => self.discard(slot),
            (Ok(index), Some(slot)) => {
                self.slots[index] = slot;
                self.mark(index);
            }
            (Err(index), Some(slot)) => self.insert(index, slot),
            (Ok(index), None) => self.remove(index),
            (Err(_), None) => {}
        }
    }

    #[cold]
    fn discard(&mut self, slot: Option<Slot>) {
        if let Some(State::Sliding(log)) = slot.map(|mut slot| slot.take(&mut self.logs)) {
            self.log_bytes -= log.heap_bytes();
        }
    }

    /// Reserves the bytes that a log of some class needs. If the budget has none left, a log of a lower class is
    /// evicted. If that is not enough, this log gives up its precision in time, which holds units longer, never
    /// shorter.
    #[inline]
    fn fit(&mut self, log: &mut Log, class: Class, now: u64, budget: &Budget) {
        if matches!(log, Log::One(_)) || self.reserve_log(log, budget) {
            return;
        }
        if budget.when_full == WhenFull::Evict {
            self.evict_log(class, now, budget);
            if self.reserve_log(log, budget) {
                return;
            }
        }
        log.collapse();
        budget.coarsened.fetch_add(1, Relaxed);
    }

    /// Takes of the budget what `log` and its place among the logs need, if it is there.
    #[inline]
    fn reserve_log(&mut self, log: &Log, budget: &Budget) -> bool {
        let places = self.places;
        let grown = if self.logs.len() == places { (places + places / 2).max(4) } else { places };
        let needed = self.held() + log.heap_bytes() + place_bytes(grown - places);
        let fits = self.reserve(needed, budget);
        if fits {
            self.places = grown;
            if grown > self.logs.capacity() {
                let capacity = budget.capacity_for(place_bytes(grown)) / place_bytes(1);
                self.logs.reserve_exact(capacity - self.logs.len());
            }
            self.log_bytes += log.heap_bytes();
        }
        fits
    }

    /// The slot of `tag`, or where it would go.
    #[inline]
    pub(super) fn find(&self, tag: Tag) -> Result<usize, usize> {
        self.find_from(self.first_at_home(tag), tag)
    }

    /// Where the counters of a tag's subject lie, or would go.
    #[inline]
    fn first_at_home(&self, tag: Tag) -> usize {
        let mut index = self.position(tag.place());
        // The last slot is empty, so this ends; `get` covers a table without slots.
        while self.slots.get(index).is_some_and(|slot| slot.is_before_home(tag)) {
            index += 1;
        }
        index
    }

    /// The counters of a tag's subject.
    #[inline]
    pub(super) fn counters_at_home(&self, tag: Tag) -> Range<usize> {
        let first = self.first_at_home(tag);
        let slots = self.slots.get(first..).unwrap_or_default().iter();
        first..first + slots.take_while(|slot| slot.is_at_home(tag)).count()
    }

    /// As [`Shard::find`], where `first` is the first counter of the tag's subject.
    #[inline]
    fn find_from(&self, first: usize, tag: Tag) -> Result<usize, usize> {
        let mut index = first;
        while let Some(slot) = self.slots.get(index).filter(|slot| slot.is_at_home(tag)) {
            if slot.name() >= tag.name {
                return if slot.name() == tag.name { Ok(index) } else { Err(index) };
            }
            index += 1;
        }
        Err(index)
    }

    #[inline]
    pub(super) fn position(&self, place: u32) -> usize {
        position(place, self.positions)
    }

    /// Inserts a slot at the position that `find` has given. There is room for it: the plan has made room, or the slot
    /// was there before and was taken out. The layout of a table does not depend on the order of inserts.
    fn insert(&mut self, index: usize, slot: Slot) {
        let run = self.slots[index..].iter().take_while(|slot| !slot.is_empty()).count();
        let gap = index + run;
        self.slots.copy_within(index..gap, index + 1);
        self.slots[index] = slot;
        self.mark(index);
        self.live += 1;
        self.count_database(slot.tag(), 1);
        self.end = self.end.max(gap + 1);
    }

    /// Whether a tag comes after those of all slots.
    #[inline]
    pub(super) fn is_behind_all(&self, tag: Tag) -> bool {
        self.end == 0 || self.slots[self.end - 1].tag() < tag
    }

    /// Inserts a slot that is not changed behind all others. There is room for it, as in [`Shard::insert`].
    pub(super) fn append(&mut self, slot: Slot) {
        let index = self.position(slot.place()).max(self.end);
        self.slots[index] = slot;
        (self.live, self.end) = (self.live + 1, index + 1);
        self.count_database(slot.tag(), 1);
    }

    /// Removes a counter before its time.
    pub(super) fn remove(&mut self, index: usize) {
        self.note_gone(self.slots[index].tag());
        self.close_gap(index);
    }

    /// Empties a slot. The slots after it that are not at their home position move one position back.
    pub(super) fn close_gap(&mut self, index: usize) {
        let behind = &self.slots[index + 1..];
        let away = |(offset, slot): &(usize, &Slot)| !slot.is_empty() && self.position(slot.place()) <= index + offset;
        let run = behind.iter().enumerate().take_while(away).count();
        self.count_database(self.slots[index].tag(), -1);
        self.slots.copy_within(index + 1..=index + run, index);
        self.slots[index + run] = Slot::EMPTY;
        self.live -= 1;
        self.find_end();
    }

    /// Moves the end back to the last slot that is taken.
    #[inline]
    fn find_end(&mut self) {
        while self.end > 0 && self.slots[self.end - 1].is_empty() {
            self.end -= 1;
        }
    }

    /// Drops the counters among the slots `from..to` for which `goes` holds of the instant they are forgettable,
    /// and closes the gaps. The two parts of a counter with `after=` go together. Gives the number of counters.
    pub(super) fn drop_where(&mut self, from: usize, to: usize, goes: impl FnMut(u64) -> bool) -> usize {
        let dropped = self.close_gaps(from, to, goes);
        self.find_end();
        dropped
    }

    fn close_gaps(&mut self, from: usize, to: usize, mut goes: impl FnMut(u64) -> bool) -> usize {
        let mut index = from - usize::from(from > 0 && self.is_pair(from - 1));
        let mut free = index;
        let mut dropped = 0;
        while index < self.slots.len() {
            #[cfg(test)]
            {
                self.touched += 1;
            }
            if self.slots[index].is_empty() {
                if index >= to {
                    break;
                }
                index += 1;
                continue;
            }
            let parts = 1 + usize::from(self.is_pair(index));
            let forget_at = self.slots[index].forget_at().max(self.slots[index + parts - 1].forget_at());
            if index < to && goes(forget_at) {
                (index..index + parts).for_each(|part| self.empty(part));
                dropped += 1;
                index += parts;
                continue;
            }
            for part in index..index + parts {
                let target = self.position(self.slots[part].place()).max(free);
                if target < part {
                    self.slots[target] = self.slots[part];
                    self.slots[part] = Slot::EMPTY;
                } else if part >= to {
                    // No slot moved to this position, so no later slot moves.
                    return dropped;
                }
                free = target + 1;
            }
            index += parts;
        }
        dropped
    }

    /// Empties a slot, and the log that lies beside the table for it.
    #[inline]
    fn empty(&mut self, index: usize) {
        if self.slots[index].holds_log() {
            self.take_at(index);
        }
        self.count_database(self.slots[index].tag(), -1);
        self.slots[index] = Slot::EMPTY;
        self.live -= 1;
    }

    /// Counts slots that come or go in their database. The first database is not counted: it has what the others leave.
    #[inline]
    fn count_database(&self, tag: Tag, slots: i32) {
        if tag.is_in_other_database() {
            self.count_other_database(tag, slots);
        }
    }

    #[cold]
    fn count_other_database(&self, tag: Tag, slots: i32) {
        if let Some(databases) = &self.databases {
            databases.add(tag.database(), slots);
        }
    }

    /// Whether the slot at `index` is a limit's own counter and the next one its `after=` counter.
    pub(super) fn is_pair(&self, index: usize) -> bool {
        let Some(seen) = self.slots.get(index + 1) else { return false };
        seen.is_second() && !seen.is_empty() && seen.tag().is_seen_of(self.slots[index].tag())
    }
}

#[inline]
pub(super) fn position(place: u32, positions: usize) -> usize {
    ((u64::from(place) * positions as u64) >> 32) as usize
}

/// The bytes of `places` places for logs.
fn place_bytes(places: usize) -> usize {
    places * Logs::PLACE_BYTES
}
