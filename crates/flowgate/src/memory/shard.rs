//! A shard: a part of the table behind one lock.
//!
//! An open-addressed table whose slots stay **sorted** by tag. The home position is the tag's home scaled to the
//! number of positions, which is monotone, so sorting and probing agree: a search starts at the home position, ends
//! at the first greater tag, and finds the counters of one subject side by side. The table can have any size, so it
//! grows by about a tenth at a time instead of doubling, and laying it out anew is one pass over a bounded number
//! of slots.
//!
//! Invariant  Each slot lies at or after its home position, no empty slot between the two. The last slot is empty.
//! Invariant  What the shard holds is reserved of the budget.

use std::sync::atomic::Ordering::Relaxed;

use super::budget::{Budget, WhenFull};
use super::key::Tag;
use super::slot::{Logs, Slot};
use crate::algorithm::{Counter, Log, State};
use crate::ban::{BanHit, Record};
use crate::decision::Decision;
use crate::limit::Limit;
use crate::plan::{self, Hit, Op};
use crate::time::Time;

/// A table is laid out anew when more than 7/8 of its positions would be taken...
const FULL: (usize, usize) = (7, 8);
/// ...with so many positions that 4/5 are.
const ROOMY: (usize, usize) = (4, 5);
/// It shrinks when fewer than 3/8 are.
const SPARSE: (usize, usize) = (3, 8);

/// The fewest positions of a table that has any, and the slots behind the last one for what is displaced there.
const MIN_POSITIONS: usize = 8;
const OVERHANG: usize = 8;

/// The bytes that every shard may use whatever the others do, so that each can hold a few keys.
pub(super) const RESERVED_BYTES: usize = slot_bytes(MIN_POSITIONS + OVERHANG);

const fn slot_bytes(slots: usize) -> usize {
    slots * size_of::<Slot>()
}

#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) slots: Vec<Slot>,
    positions: usize,
    live: usize,
    logs: Logs,
    /// What the logs hold beside their slots.
    log_bytes: usize,
    /// What was taken of the budget.
    reserved: usize,
    /// Where the next sweep starts, and how many calls from now.
    pub(super) hand: usize,
    pub(super) calls_to_sweep: u32,
    /// No time is decided for before this: what was dropped as expired no longer mattered then.
    pub(super) floor: u64,
}

impl Shard {
    /// Decides a hit whose counter is two words: the short way for the many requests that meet one limit.
    #[inline(always)]
    pub(super) fn apply_words(
        &mut self,
        op: Op,
        cost: u64,
        now: Time,
        tag: Tag,
        limit: &Limit,
        budget: &Budget,
    ) -> Decision {
        self.tick(now.as_nanos(), budget);
        let at = now.max(Time::from_nanos(self.floor));
        let found = self.find(tag);
        let mut words = found.ok().and_then(|index| self.slots[index].words());
        let mut decision = limit.apply_words(op, &mut words, at, cost);
        match (found, words) {
            (Ok(index), Some(words)) => self.slots[index].set_words(words),
            (Ok(index), None) => self.close_gap(index),
            (Err(index), Some(words)) => {
                let slot = Slot::of_words(tag, limit.algorithm(), words);
                if self.has_room(1) {
                    self.insert(index, slot);
                } else if self.grow(1, at.as_nanos(), budget) {
                    let (Ok(index) | Err(index)) = self.find(tag);
                    self.insert(index, slot);
                } else {
                    budget.refused.fetch_add(1, Relaxed);
                    decision = plan::refused(limit, at, decision.verdict);
                }
            }
            (Err(_), None) => {}
        }
        decision.count_from(now, at);
        decision
    }

    /// Loads the counter of a hit. A log moves out of the shard until [`Shard::keep`] brings it back.
    #[inline]
    pub(super) fn load(&mut self, hit: &mut Hit<'_>) {
        let tag = hit.key.tag();
        hit.counter.state = self.take(tag);
        if hit.limit.after_window().is_some() {
            hit.counter.seen = match self.take(tag.seen()) {
                State::Fixed(counted) => Some(counted),
                _ => None,
            };
        }
    }

    /// How many slots the counter of a loaded hit may need that it does not have.
    #[inline]
    pub(super) fn missing(hit: &Hit<'_>) -> usize {
        let Counter { state, seen } = &hit.counter;
        let after = hit.limit.after_window().is_some();
        usize::from(*state == State::Unused) + usize::from(after && seen.is_none())
    }

    /// Makes room for `missing` new slots; false when there is none and nothing may be forgotten for it.
    #[inline]
    pub(super) fn make_room(&mut self, missing: usize, now: u64, budget: &Budget) -> bool {
        self.has_room(missing) || self.grow(missing, now, budget)
    }

    /// Keeps the counter of a hit.
    #[inline]
    pub(super) fn keep(&mut self, hit: &mut Hit<'_>, now: u64, budget: &Budget) {
        let tag = hit.key.tag();
        let mark = hit.limit.law().algorithm() as u8;
        let Counter { state, seen } = std::mem::take(&mut hit.counter);
        self.put(tag, state, mark, now, budget);
        if hit.limit.after_window().is_some() {
            self.put(tag.seen(), seen.map_or(State::Unused, State::Fixed), mark, now, budget);
        }
    }

    /// Loads what is remembered of the subject of a ban.
    pub(super) fn load_ban(&mut self, hit: &mut BanHit<'_>) {
        let tag = hit.key.tag();
        if let State::Banned(last) = self.take(tag) {
            hit.record.last = Some(last);
        }
        if let State::Sliding(log) = self.take(tag.seen()) {
            hit.record.strikes = Some(log);
        }
    }

    /// How many slots the record of a loaded ban may need that it does not have.
    pub(super) fn missing_ban(hit: &BanHit<'_>) -> usize {
        usize::from(hit.record.last.is_none()) + usize::from(hit.record.strikes.is_none())
    }

    /// Keeps what is remembered of the subject of a ban. The strikes lie beside the ban as an `after=` counter lies
    /// beside its limit's own, and both are forgotten together.
    pub(super) fn keep_ban(&mut self, hit: &mut BanHit<'_>, now: u64, budget: &Budget) {
        let tag = hit.key.tag();
        let Record { last, strikes } = std::mem::take(&mut hit.record);
        self.put(tag, last.map_or(State::Unused, State::Banned), last.map_or(0, |last| last.level), now, budget);
        self.put(tag.seen(), strikes.map_or(State::Unused, State::Sliding), 0, now, budget);
    }

    /// When the counter of `tag` is as if never used, and the mark of who made it.
    pub(super) fn owner(&self, tag: Tag) -> Option<(u64, u8)> {
        let parts = [tag, tag.seen()].into_iter().filter_map(|tag| self.find(tag).ok());
        parts.map(|index| (self.slots[index].forget_at(), self.slots[index].mark())).max()
    }

    /// Forgets a counter; true when there was one.
    pub(super) fn forget(&mut self, tag: Tag, budget: &Budget) -> bool {
        let mut found = false;
        for tag in [tag, tag.seen()] {
            found |= self.take(tag) != State::Unused;
            if let Ok(index) = self.find(tag) {
                self.close_gap(index);
            }
        }
        self.settle(budget);
        found
    }

    /// The number of counters (those with `after=` count twice).
    pub(super) fn live(&self) -> usize {
        self.live
    }

    #[inline]
    fn has_room(&self, missing: usize) -> bool {
        (self.live + missing) * FULL.1 <= self.positions * FULL.0
    }

    #[cold]
    fn grow(&mut self, missing: usize, now: u64, budget: &Budget) -> bool {
        if self.resize(missing, now, budget) {
            return true;
        }
        while budget.when_full == WhenFull::Evict && !self.has_room(missing) && self.live > 0 {
            self.evict(now, budget);
        }
        self.has_room(missing)
    }

    /// Gives memory back when a sweep has left the table sparse.
    pub(super) fn shrink(&mut self, now: u64, budget: &Budget) {
        if self.positions > MIN_POSITIONS && self.live * SPARSE.1 < self.positions * SPARSE.0 {
            self.resize(0, now, budget);
        }
        if self.logs.is_empty() {
            self.logs.shrink_to_fit();
        }
        self.settle(budget);
    }

    /// Lays the table out anew with room for `missing` more slots, without what has expired; false when the budget
    /// forbids the size.
    fn resize(&mut self, missing: usize, now: u64, budget: &Budget) -> bool {
        let roomy = |live: usize| ((live + missing) * ROOMY.1).div_ceil(ROOMY.0).max(MIN_POSITIONS);
        let bytes = slot_bytes(roomy(self.live) + OVERHANG);
        let more = bytes.saturating_sub(self.slot_bytes().max(RESERVED_BYTES));
        if !budget.reserve(more) {
            return false;
        }
        self.reserved += more;
        self.drop_expired(0, self.slots.len(), now);
        let positions = roomy(self.live);
        let old = std::mem::replace(&mut self.slots, Vec::with_capacity(positions + OVERHANG));
        self.positions = positions;
        for slot in old.iter().filter(|slot| !slot.is_empty()) {
            let target = self.position(slot.home()).max(self.slots.len());
            self.slots.resize(target, Slot::EMPTY);
            self.slots.push(*slot);
        }
        let len = (positions + OVERHANG).max(self.slots.len() + 1);
        self.slots.resize(len, Slot::EMPTY);
        self.hand = 0;
        self.settle(budget);
        true
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

    #[inline]
    fn put(&mut self, tag: Tag, mut state: State, mark: u8, now: u64, budget: &Budget) {
        if let State::Sliding(log) = &mut state {
            self.fit(log, now, budget);
        }
        let found = self.find(tag);
        match (found, Slot::new(tag, state, mark, &mut self.logs)) {
            (Ok(index), Some(slot)) => self.slots[index] = slot,
            (Err(index), Some(slot)) => self.insert(index, slot),
            (Ok(index), None) => self.close_gap(index),
            (Err(_), None) => {}
        }
    }

    /// Reserves what a log needs. Where the budget has no more, other keys go; where that does not do, the log
    /// gives up its precision in time, which holds units longer, never shorter.
    #[inline]
    fn fit(&mut self, log: &mut Log, now: u64, budget: &Budget) {
        self.log_bytes += log.heap_bytes();
        if self.reserve_held(budget) {
            return;
        }
        if budget.when_full == WhenFull::Evict {
            self.evict(now, budget);
            if self.reserve_held(budget) {
                return;
            }
        }
        self.log_bytes -= log.heap_bytes();
        log.collapse();
        budget.coarsened.fetch_add(1, Relaxed);
        self.settle(budget);
    }

    /// The slot of `tag`, or where it would go.
    #[inline]
    fn find(&self, tag: Tag) -> Result<usize, usize> {
        let mut index = self.position(tag.home);
        // The last slot is empty, so this ends; `get` covers a table without slots.
        while let Some(slot) = self.slots.get(index).filter(|slot| !slot.is_empty()) {
            match slot.tag().cmp(&tag) {
                std::cmp::Ordering::Less => index += 1,
                std::cmp::Ordering::Equal => return Ok(index),
                std::cmp::Ordering::Greater => break,
            }
        }
        Err(index)
    }

    #[inline]
    pub(super) fn position(&self, home: u32) -> usize {
        ((u64::from(home) * self.positions as u64) >> 32) as usize
    }

    fn insert(&mut self, index: usize, slot: Slot) {
        // Behind any index that `find` gives lies an empty slot: the last one at the latest.
        let run = self.slots[index..].iter().take_while(|slot| !slot.is_empty()).count();
        let gap = index + run;
        self.slots.copy_within(index..gap, index + 1);
        self.slots[index] = slot;
        self.live += 1;
        if gap + 1 == self.slots.len() {
            self.slots.reserve_exact(OVERHANG);
            self.slots.resize(gap + 1 + OVERHANG, Slot::EMPTY);
        }
    }

    /// Empties a slot and moves those behind it that are away from home one closer.
    fn close_gap(&mut self, index: usize) {
        let behind = &self.slots[index + 1..];
        let away = |(offset, slot): &(usize, &Slot)| !slot.is_empty() && self.position(slot.home()) <= index + offset;
        let run = behind.iter().enumerate().take_while(away).count();
        self.slots.copy_within(index + 1..=index + run, index);
        self.slots[index + run] = Slot::EMPTY;
        self.live -= 1;
    }

    /// Drops the counters among the slots `from..to` for which `goes` holds of the instant they are forgettable,
    /// and closes the gaps. The two parts of a counter with `after=` go together. Gives the number of counters.
    pub(super) fn drop_where(&mut self, from: usize, to: usize, mut goes: impl FnMut(u64) -> bool) -> usize {
        let mut index = from - usize::from(from > 0 && self.is_pair(from - 1));
        let mut free = index;
        let mut dropped = 0;
        while index < self.slots.len() {
            if self.slots[index].is_empty() {
                if index >= to {
                    break;
                }
                index += 1;
                continue;
            }
            let parts = 1 + usize::from(self.is_pair(index));
            if index < to && goes(self.forget_at(index)) {
                for part in index..index + parts {
                    self.take_at(part);
                    self.slots[part] = Slot::EMPTY;
                    self.live -= 1;
                }
                dropped += 1;
                index += parts;
                continue;
            }
            for part in index..index + parts {
                let target = self.position(self.slots[part].home()).max(free);
                if target < part {
                    self.slots[target] = self.slots[part];
                    self.slots[part] = Slot::EMPTY;
                } else if part >= to {
                    // Nothing moved here, so nothing moves behind it.
                    return dropped;
                }
                free = target + 1;
            }
            index += parts;
        }
        dropped
    }

    /// From when the counter at `index` is as if never used: the later of both parts of one with `after=`.
    pub(super) fn forget_at(&self, index: usize) -> u64 {
        let main = self.slots[index].forget_at();
        if self.is_pair(index) { main.max(self.slots[index + 1].forget_at()) } else { main }
    }

    /// Whether the slot at `index` is a limit's own counter and the next one its `after=` counter.
    fn is_pair(&self, index: usize) -> bool {
        let [main, seen] = [self.slots.get(index), self.slots.get(index + 1)];
        main.zip(seen).is_some_and(|(main, seen)| !seen.is_empty() && seen.tag().is_seen_of(main.tag()))
    }

    fn slot_bytes(&self) -> usize {
        slot_bytes(self.slots.capacity())
    }

    /// What the shard holds beyond what every shard may.
    fn held(&self) -> usize {
        let logs = self.logs.capacity() * size_of::<(usize, usize)>() + self.log_bytes;
        self.slot_bytes().saturating_sub(RESERVED_BYTES) + logs
    }

    /// Reserves what the shard holds; false when the budget has not that much.
    #[inline]
    fn reserve_held(&mut self, budget: &Budget) -> bool {
        let held = self.held();
        if held > self.reserved && !budget.reserve(held - self.reserved) {
            return false;
        }
        budget.release(self.reserved.saturating_sub(held));
        self.reserved = held;
        true
    }

    /// Squares the reserve with what is held, over budget if need be (by a log's index or an overhang).
    pub(super) fn settle(&mut self, budget: &Budget) {
        if !self.reserve_held(budget) {
            budget.overdraw(self.held() - self.reserved);
            self.reserved = self.held();
        }
    }
}
