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

use std::sync::atomic::Ordering::Relaxed;

use super::OtherAlgorithm;
use super::budget::{Budget, WhenFull};
use super::expiry::SAMPLE;
use super::key::Tag;
use super::slot::{CELL_MARK, Kind, Logs, Slot};
use crate::algorithm::{Counter, Kept, Log, State};
use crate::ban::{BanHit, Record};
use crate::cell::{Throttle, ThrottleError, ThrottleReply};
use crate::decision::Decision;
use crate::limit::{Law, Limit};
use crate::plan::{self, Hit, Op};
use crate::time::Time;

/// A table is laid out anew when more than 7/8 of its positions would be taken...
const FULL: (usize, usize) = (7, 8);
/// ...with so many positions that 4/5 are.
const ROOMY: (usize, usize) = (4, 5);
/// It shrinks when fewer than 3/8 are.
const SPARSE: (usize, usize) = (3, 8);

/// The fewest positions of a table that has any, and the slots behind the last one for what is displaced there. One
/// table in ten needs more of them when it is full, and gets them.
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
    /// Behind the last slot that is taken.
    end: usize,
    live: usize,
    logs: Logs,
    /// What the logs hold beside their slots.
    log_bytes: usize,
    /// What was taken of the budget.
    reserved: usize,
    /// Where the next sweep starts, and how many calls from now.
    pub(super) hand: usize,
    pub(super) calls_to_sweep: u32,
    /// When it was last swept whole because it was full.
    pub(super) swept_at: u64,
    /// No time is decided for before this: what was dropped as expired no longer mattered then.
    pub(super) floor: u64,
    /// How many slots were looked at in order to drop them.
    #[cfg(test)]
    touched: usize,
}

/// An operation, its cost and its time.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub(super) op: Op,
    pub(super) cost: u64,
    pub(super) now: Time,
}

impl Shard {
    /// Decides about one counter that is two words: the short way for the many requests that meet one limit.
    #[inline(always)]
    pub(super) fn apply_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        let Ask { op, cost, now } = ask;
        let at = self.begin(now, budget);
        let mut decision = self.decide_words(Ask { op, cost, now: at }, tag, limit, budget);
        decision.count_from(now, at);
        decision
    }

    /// Takes from counters that are all two words, all or nothing: a look at each, and if all pass, the deed. False
    /// when nothing was done: where there is no room for the new counters, the long way knows what to do.
    #[inline(always)]
    pub(super) fn take_words(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let (mut passes, mut missing) = (true, 0);
        for hit in hits.iter_mut() {
            let (found, kind) = (self.find(hit.key.tag()), Kind::of_words(hit.limit.algorithm()));
            let mut words = found.ok().and_then(|index| self.slots[index].words(kind));
            hit.outcome = hit.limit.apply_words(Op::Peek, &mut words, at, cost);
            passes &= hit.outcome.allowed();
            missing += usize::from(found.is_err());
        }
        if passes {
            if missing > 0 && !self.has_room(Room { missing, inserts: missing }) {
                return false;
            }
            for hit in hits.iter_mut() {
                hit.outcome = self.decide_words(Ask { op: Op::Take, cost, now: at }, hit.key.tag(), hit.limit, budget);
            }
        }
        hits.iter_mut().for_each(|hit| hit.outcome.count_from(now, at));
        true
    }

    /// A step of the sweep, and the instant to decide for.
    #[inline(always)]
    fn begin(&mut self, now: Time, budget: &Budget) -> Time {
        self.tick(now.as_nanos(), budget);
        now.max(Time::from_nanos(self.floor))
    }

    #[inline(always)]
    fn decide_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        let Ask { op, cost, now: at } = ask;
        let kind = Kind::of_words(limit.algorithm());
        let found = self.find(tag);
        let mut words = found.ok().and_then(|index| self.slots[index].words(kind));
        let mut decision = limit.apply_words(op, &mut words, at, cost);
        match (found, words) {
            (Ok(index), words) if self.slots[index].kind() != kind => {
                self.change_kind(index, kind, limit.algorithm() as u8, words, budget);
            }
            (Ok(index), Some(words)) => self.slots[index].set_words(words),
            (Ok(index), None) => self.close_gap(index),
            (Err(index), Some(words)) => {
                let slot = Slot::of_words(tag, kind, limit.algorithm() as u8, words);
                if !self.insert_new(index, slot, at.as_nanos(), budget) {
                    decision = plan::refused(limit, at, decision.verdict);
                }
            }
            (Err(_), None) => {}
        }
        decision
    }

    /// Answers a call of `CL.THROTTLE`.
    #[inline]
    pub(super) fn throttle(
        &mut self,
        tag: Tag,
        throttle: &Throttle,
        now: Time,
        budget: &Budget,
    ) -> Result<ThrottleReply, ThrottleError> {
        self.tick(now.as_nanos(), budget);
        let at = now.max(Time::from_nanos(self.floor));
        let mut found = self.find(tag);
        let mut tat = found.ok().and_then(|index| self.slots[index].words(Kind::Cell)).map(|[tat, _]| tat);
        if tat.is_none() {
            self.give_up_to_cell(tag, now, budget)?;
            found = self.find(tag);
        }
        let mut reply = throttle.decide(&mut tat, at)?;
        match (found, tat) {
            (Ok(index), Some(tat)) => self.slots[index].set_words([tat, 0]),
            (Ok(index), None) => self.close_gap(index),
            (Err(index), Some(tat)) => {
                let slot = Slot::of_words(tag, Kind::Cell, CELL_MARK, [tat, 0]);
                if !self.insert_new(index, slot, at.as_nanos(), budget) {
                    reply = throttle.refused();
                }
            }
            (Err(_), None) => {}
        }
        reply.count_from(now, at);
        Ok(reply)
    }

    /// Makes way where a limit's counter has been and is as if never used.
    fn give_up_to_cell(&mut self, tag: Tag, now: Time, budget: &Budget) -> Result<(), OtherAlgorithm> {
        match self.owner(tag) {
            None => Ok(()),
            Some((forget_at, _)) if now.as_nanos() < forget_at => Err(OtherAlgorithm),
            Some(_) => {
                self.forget(tag, budget);
                Ok(())
            }
        }
    }

    /// Inserts a slot where `find` says, making room for it; false when there is none.
    #[inline]
    fn insert_new(&mut self, index: usize, slot: Slot, now: u64, budget: &Budget) -> bool {
        if self.has_room(Room::ONE) {
            self.insert(index, slot);
        } else if self.grow(Room::ONE, now, budget) {
            let (Ok(index) | Err(index)) = self.find(slot.tag());
            self.insert(index, slot);
        } else {
            budget.refused.fetch_add(1, Relaxed);
            return false;
        }
        true
    }

    /// Puts the state of another algorithm in the place of the one at `index`, if there is any.
    #[cold]
    fn change_kind(&mut self, index: usize, kind: Kind, mark: u8, words: Option<[u64; 2]>, budget: &Budget) {
        let Some(words) = words else { return };
        self.take_at(index);
        self.slots[index] = Slot::of_words(self.slots[index].tag(), kind, mark, words);
        self.settle(budget);
    }

    /// Loads the counter of a hit. A log moves out of the shard until [`Shard::keep`] brings it back.
    #[inline]
    pub(super) fn load(&mut self, hit: &mut Hit<'_>) {
        let tag = hit.key.tag();
        hit.homeless = false;
        hit.missing = 0;
        hit.counter = Counter::default();
        if Shard::slots_of(hit) == 0 {
            return;
        }
        match self.find(tag) {
            Ok(index) => hit.counter.state = self.take_at(index),
            Err(_) => hit.missing += 1,
        }
        if hit.limit.after_window().is_some() {
            match self.find(tag.seen()) {
                Ok(index) => hit.counter.seen = Kept::take(self.take_at(index)),
                Err(_) => hit.missing += 1,
            }
        }
    }

    /// How many slots the counter of a hit needs, if it needs any: none where nothing is counted.
    #[inline]
    pub(super) fn slots_of(hit: &Hit<'_>) -> usize {
        if matches!(hit.limit.law(), Law::Unlimited) { 0 } else { 1 + usize::from(hit.limit.after_window().is_some()) }
    }

    /// Makes room for a plan of so many counters; false when there is none and nothing may be forgotten for it.
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
        let Counter { state, seen } = std::mem::take(&mut hit.counter);
        let mut main = self.slot(tag, state, mark, now, budget);
        let mut second = seen.and_then(|seen| self.slot(tag.seen(), seen.into_state(), mark, now, budget));
        if hit.limit.after_window().is_some() && hit.missing == 0 {
            // Both or none: who has the one will need the other, and must not be refused for want of it.
            main = main.or(second.map(|second| Slot::unused(tag, mark, second.forget_at())));
            second = second.or(main.map(|main| Slot::unused(tag.seen(), mark, main.forget_at())));
        }
        self.put(tag, main);
        if hit.limit.after_window().is_some() {
            self.put(tag.seen(), second);
        }
        self.settle(budget);
    }

    /// The last ban and the strikes.
    pub(super) const SLOTS_OF_BAN: usize = 2;

    /// Loads what is remembered of the subject of a ban.
    pub(super) fn load_ban(&mut self, hit: &mut BanHit<'_>) {
        let tag = hit.key.tag();
        hit.homeless = false;
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
        // Without room, only what has a slot already is kept.
        if !hit.homeless || self.find(tag).is_ok() {
            let slot = last.and_then(|last| self.slot(tag, State::Banned(last), last.level, now, budget));
            self.put(tag, slot);
        }
        if !hit.homeless || self.find(tag.seen()).is_ok() {
            let slot = strikes.and_then(|strikes| self.slot(tag.seen(), State::Sliding(strikes), 0, now, budget));
            self.put(tag.seen(), slot);
        }
        self.settle(budget);
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

    /// Whether all inserts find a slot wherever they go, be it that they all belong to the last position, and leave
    /// the last slot empty.
    #[inline]
    fn has_room(&self, room: Room) -> bool {
        !self.is_full(room.missing) && self.end.max(self.positions) + room.inserts < self.slots.len()
    }

    /// Whether it would be too full with so many more.
    #[inline]
    fn is_full(&self, missing: usize) -> bool {
        (self.live + missing) * FULL.1 > self.positions * FULL.0
    }

    /// Whether it would have the room if it were empty.
    fn could_hold(&self, room: Room) -> bool {
        room.missing * FULL.1 <= self.narrowed(room) * FULL.0
    }

    /// The positions to which it is to be narrowed so that enough slots lie behind the last one.
    fn narrowed(&self, room: Room) -> usize {
        self.positions.min(self.slots.len().saturating_sub(room.inserts + 1))
    }

    #[cold]
    fn grow(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        if self.resize(room, now, budget) {
            return true;
        }
        self.drop_all_expired(now, budget);
        // Nobody goes where all of them would not make enough room.
        let evicts = budget.when_full == WhenFull::Evict && self.could_hold(room);
        if evicts && self.narrowed(room) < self.positions {
            self.narrow(room, now, budget);
        }
        while evicts && !self.has_room(room) && self.live > 0 {
            if self.is_full(room.missing) {
                self.evict(now, budget);
            } else {
                self.evict_last(now, budget);
            }
        }
        self.has_room(room)
    }

    /// Where slots behind the end lack, only who goes there makes any.
    fn evict_last(&mut self, now: u64, budget: &Budget) {
        self.hand = self.slots.len().saturating_sub(SAMPLE);
        self.evict(now, budget);
    }

    /// Lays the same slots out for fewer positions, as a plan of many counters needs more of them behind the last one.
    fn narrow(&mut self, room: Room, now: u64, budget: &Budget) {
        let (positions, len) = (self.narrowed(room), self.slots.len());
        while self.end_with(positions) + room.inserts >= len && self.live > 0 {
            self.evict_last(now, budget);
        }
        self.lay_out(positions, len);
    }

    /// Gives memory back when a sweep has left the table sparse.
    pub(super) fn shrink(&mut self, now: u64, budget: &Budget) {
        if self.positions > MIN_POSITIONS && self.live * SPARSE.1 < self.positions * SPARSE.0 {
            self.resize(Room::default(), now, budget);
        }
        if self.logs.is_empty() {
            self.logs.shrink_to_fit();
        }
        self.settle(budget);
    }

    /// Lays the table out anew with room for more, without what has expired; false when the budget forbids the size.
    fn resize(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        // Where the least it can come to is too much, there is no need to look further.
        if !self.reserve_slots(roomy(self.live + room.missing) + OVERHANG, budget) {
            return false;
        }
        self.drop_expired(0, self.slots.len(), now);
        let positions = roomy(self.live + room.missing);
        let len = (positions + OVERHANG).max(self.end_with(positions).max(positions) + room.inserts + 1);
        let fits = self.reserve_slots(len, budget);
        if fits {
            self.lay_out(positions, len);
        }
        self.settle(budget);
        fits
    }

    /// Behind the last slot that would be taken if there were so many positions.
    fn end_with(&self, positions: usize) -> usize {
        let homes = self.slots.iter().filter(|slot| !slot.is_empty()).map(Slot::home);
        homes.fold(0, |end, home| position(home, positions).max(end) + 1)
    }

    /// Lays the table out anew with so many positions in `len` slots, which suffice.
    fn lay_out(&mut self, positions: usize, len: usize) {
        let old = std::mem::replace(&mut self.slots, Vec::with_capacity(len));
        self.positions = positions;
        for slot in old.iter().filter(|slot| !slot.is_empty()) {
            let target = self.position(slot.home()).max(self.slots.len());
            self.slots.resize(target, Slot::EMPTY);
            self.slots.push(*slot);
        }
        self.end = self.slots.len();
        self.slots.resize(len, Slot::EMPTY);
        self.hand = 0;
    }

    /// Takes of the budget what a table of so many slots needs beyond this one, if it is there.
    fn reserve_slots(&mut self, slots: usize, budget: &Budget) -> bool {
        let logs = self.held() - self.slots_held();
        let needed = slot_bytes(slots).saturating_sub(RESERVED_BYTES) + logs;
        self.reserve(needed, budget)
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
    fn slot(&mut self, tag: Tag, mut state: State, mark: u8, now: u64, budget: &Budget) -> Option<Slot> {
        if let State::Sliding(log) = &mut state {
            self.fit(log, now, budget);
        }
        Slot::new(tag, state, mark, &mut self.logs)
    }

    #[inline]
    fn put(&mut self, tag: Tag, slot: Option<Slot>) {
        match (self.find(tag), slot) {
            // A log that is there has already come back: the plan names its counter twice, and the first time counts.
            (Ok(index), slot) if self.slots[index].holds_log() => self.discard(slot),
            (Ok(index), Some(slot)) => self.slots[index] = slot,
            (Err(index), Some(slot)) => self.insert(index, slot),
            (Ok(index), None) => self.close_gap(index),
            (Err(_), None) => {}
        }
    }

    #[cold]
    fn discard(&mut self, slot: Option<Slot>) {
        if let Some(State::Sliding(log)) = slot.map(|mut slot| slot.take(&mut self.logs)) {
            self.log_bytes -= log.heap_bytes();
        }
    }

    /// Reserves what a log needs. Where the budget has no more, another log goes; where that does not do, this one
    /// gives up its precision in time, which holds units longer, never shorter.
    #[inline]
    fn fit(&mut self, log: &mut Log, now: u64, budget: &Budget) {
        if log.heap_bytes() == 0 || self.reserve_log(log, budget) {
            return;
        }
        if budget.when_full == WhenFull::Evict {
            self.evict_log(now, budget);
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
        let places = self.logs.capacity();
        let grown = if self.logs.len() == places { (places + places / 2).max(4) } else { places };
        let needed = self.held() + log.heap_bytes() + place_bytes(grown - places);
        let fits = self.reserve(needed, budget);
        if fits {
            self.logs.reserve_exact(grown - self.logs.len());
            self.log_bytes += log.heap_bytes();
        }
        fits
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
        position(home, self.positions)
    }

    /// Inserts a slot where `find` says. There is room for it: either it was made, or the slot was there before and
    /// went to make room, and the slots of a table lie the same however they came.
    fn insert(&mut self, index: usize, slot: Slot) {
        let run = self.slots[index..].iter().take_while(|slot| !slot.is_empty()).count();
        let gap = index + run;
        self.slots.copy_within(index..gap, index + 1);
        self.slots[index] = slot;
        self.live += 1;
        self.end = self.end.max(gap + 1);
    }

    /// Empties a slot and moves those behind it that are away from home one closer.
    fn close_gap(&mut self, index: usize) {
        let behind = &self.slots[index + 1..];
        let away = |(offset, slot): &(usize, &Slot)| !slot.is_empty() && self.position(slot.home()) <= index + offset;
        let run = behind.iter().enumerate().take_while(away).count();
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
    pub(super) fn is_pair(&self, index: usize) -> bool {
        let [main, seen] = [self.slots.get(index), self.slots.get(index + 1)];
        main.zip(seen).is_some_and(|(main, seen)| !seen.is_empty() && seen.tag().is_seen_of(main.tag()))
    }

    /// What the shard holds beyond what every shard may.
    fn held(&self) -> usize {
        self.slots_held() + place_bytes(self.logs.capacity()) + self.log_bytes
    }

    fn slots_held(&self) -> usize {
        slot_bytes(self.slots.capacity()).saturating_sub(RESERVED_BYTES)
    }

    /// Has `bytes` reserved, if the budget has what lacks.
    #[inline]
    fn reserve(&mut self, bytes: usize, budget: &Budget) -> bool {
        let lacking = bytes.saturating_sub(self.reserved);
        let fits = budget.reserve(lacking);
        if fits {
            self.reserved += lacking;
        }
        fits
    }

    /// Gives back what is reserved and no longer held.
    #[inline]
    pub(super) fn settle(&mut self, budget: &Budget) {
        let held = self.held();
        debug_assert!(held <= self.reserved, "what is held was reserved");
        budget.release(self.reserved.saturating_sub(held));
        self.reserved = held;
    }
}

/// The room that a plan needs in a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// Slots that are not there yet.
    pub(super) missing: usize,
    /// Slots that may have to be inserted: those, and any that go to make room and come back.
    pub(super) inserts: usize,
}

impl Room {
    const ONE: Room = Room { missing: 1, inserts: 1 };
}

/// The positions of a table that `live` slots leave roomy.
fn roomy(live: usize) -> usize {
    (live * ROOMY.1).div_ceil(ROOMY.0).max(MIN_POSITIONS)
}

#[inline]
fn position(home: u32, positions: usize) -> usize {
    ((u64::from(home) * positions as u64) >> 32) as usize
}

/// What the places for so many logs take.
fn place_bytes(places: usize) -> usize {
    places * size_of::<(usize, usize)>()
}

#[cfg(test)]
mod tests;
