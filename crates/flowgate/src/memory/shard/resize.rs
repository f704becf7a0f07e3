//! Room for new counters: a table that grows, shrinks and stays within the budget.

use super::super::budget::{Budget, WhenFull};
use super::super::logs::Logs;
use super::super::slot::Slot;
use super::{Shard, place_bytes, position};

/// A table is laid out anew when more than 56/64 of its positions would be taken, or 55/64 where one 64th is kept for
/// the records of bans.
const FULL_FRACTION: (usize, usize) = (56, 64);
/// A table laid out anew has as many positions as leave 4/5 of them taken.
const ROOMY_FRACTION: (usize, usize) = (4, 5);
/// A table shrinks when fewer than 3/8 of its positions are taken.
const SPARSE_FRACTION: (usize, usize) = (3, 8);

/// A table that was read is laid out anew when fewer than 3/4 of its positions are taken.
const TRIMMED_FRACTION: (usize, usize) = (3, 4);

/// While a journal is read, a table makes room at once for up to this many times its counters beside them, if as many are
/// expected.
const MAX_AHEAD_FACTOR: usize = 7;

/// The places of its logs are as sparse, but packed only when that frees one place for every this many slots of the table: fewer
/// places are a small part of what the slots take.
const SLOTS_PER_PLACE: usize = 16;

/// The fewest positions of a table that has any, and the slots behind the last one for what is displaced there. One
/// table in ten needs more of them when it is full, and gets them.
const MIN_POSITIONS: usize = 8;
const OVERHANG_SLOTS: usize = 8;

/// The bytes that every shard may use whatever the others do, so that each can hold a few keys.
pub(in crate::memory) const RESERVED_BYTES: usize = slot_bytes(MIN_POSITIONS + OVERHANG_SLOTS);

const fn slot_bytes(slots: usize) -> usize {
    slots * size_of::<Slot>()
}

/// The room that a plan must leave free in a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::memory) enum SpareRoom {
    #[default]
    Nothing,
    /// A 64th of the positions, and the slots of one record behind the last position. Bytes of the budget would not
    /// do, as a table grows by a tenth at a time.
    ForBans,
}

impl SpareRoom {
    /// The most 64ths of the positions that may be taken.
    #[inline]
    fn full(self) -> usize {
        match self {
            SpareRoom::Nothing => FULL_FRACTION.0,
            SpareRoom::ForBans => FULL_FRACTION.0 - 1,
        }
    }

    #[inline]
    fn behind(self) -> usize {
        match self {
            SpareRoom::Nothing => 0,
            SpareRoom::ForBans => Shard::SLOTS_OF_BAN,
        }
    }
}

/// The room that a plan needs in a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::memory) struct Room {
    /// Slots that are not there yet.
    pub(in crate::memory) missing: usize,
    /// Slots that may have to be inserted: those, and any that go to make room and come back.
    pub(in crate::memory) inserts: usize,
    pub(in crate::memory) spare: SpareRoom,
}

impl Room {
    /// The room of a plan that has bans: it may take all that there is.
    pub(in crate::memory) fn for_bans(missing: usize, inserts: usize) -> Room {
        Room { missing, inserts, spare: SpareRoom::Nothing }
    }

    /// The slots behind the last position that must be free, but for the last one.
    #[inline]
    fn behind(self) -> usize {
        self.inserts + self.spare.behind()
    }
}

impl Shard {
    /// Whether all inserts find a slot wherever they go, be it that they all belong to the last position, and leave
    /// the last slot empty.
    #[inline]
    pub(in crate::memory) fn has_room(&self, room: Room) -> bool {
        !self.is_full(room) && self.end.max(self.positions) + room.behind() < self.slots.len()
    }

    /// Whether the table would be too full with the missing slots.
    #[inline]
    pub(in crate::memory) fn is_full(&self, room: Room) -> bool {
        (self.live + room.missing) * FULL_FRACTION.1 > self.positions * room.spare.full()
    }

    /// Whether the table would have the room if it were empty.
    pub(in crate::memory) fn could_hold(&self, room: Room) -> bool {
        room.missing * FULL_FRACTION.1 <= self.narrowed(room) * room.spare.full()
    }

    /// The number of positions to which the table must shrink so that enough slots are left after the last position.
    pub(in crate::memory) fn narrowed(&self, room: Room) -> usize {
        self.positions.min(self.slots.len().saturating_sub(room.behind() + 1))
    }

    /// Makes room for a slot that is read, and where half of the budget is free for some that will come.
    #[inline]
    pub(in crate::memory) fn make_room_to_load(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        self.has_room(room) || self.grow_ahead(room, now, budget) || self.grow(room, now, budget)
    }

    /// Every shard gets about the same part of the counters that are expected. A table of a few counters does not trust that: they
    /// may be records of a few counters that change often. No table takes more than its part of half of the budget ahead, as the
    /// tables that are read later need theirs.
    #[cold]
    fn grow_ahead(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        let ahead = match budget.expected_per_shard() {
            0 => self.live / 4,
            expected => {
                let most = budget.share() / 2 / slot_bytes(1) * ROOMY_FRACTION.0 / ROOMY_FRACTION.1;
                expected.min(most).saturating_sub(self.live).min(MAX_AHEAD_FACTOR * self.live)
            }
        };
        let room = Room { missing: ahead.max(room.missing), ..room };
        budget.used() < budget.max_bytes() / 2 && self.resize(room, now, budget)
    }

    /// Gives room back after a journal was read: the table may then be larger than one that grew counter by counter.
    pub(in crate::memory) fn trim(&mut self, now: u64, budget: &Budget) {
        if self.live * TRIMMED_FRACTION.1 < self.positions * TRIMMED_FRACTION.0 && self.positions > MIN_POSITIONS {
            let positions = roomy(self.live);
            let len = (positions + OVERHANG_SLOTS).max(self.end_with(positions).max(positions) + 1);
            if len < self.slots.len() {
                self.lay_out(positions, len, budget);
            }
        }
        self.shrink(now, budget);
    }

    #[cold]
    pub(in crate::memory) fn grow(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        if self.resize(room, now, budget) {
            return true;
        }
        let held = self.held();
        self.drop_all_expired(now, budget);
        self.pack_logs(room.inserts, budget);
        self.settle(budget);
        if self.held() < held && self.resize(room, now, budget) {
            return true;
        }
        // Evicts only if that can make enough room: otherwise counters would be lost for nothing.
        let evicts = budget.when_full == WhenFull::Evict && self.could_hold(room);
        if evicts && self.narrowed(room) < self.positions {
            self.narrow(room, now, budget);
        }
        while evicts && !self.has_room(room) && self.live > 0 {
            if self.is_full(room) {
                self.evict(now, budget);
            } else {
                self.evict_last(self.positions, now, budget);
            }
        }
        self.has_room(room)
    }

    /// Lays the same slots out for fewer positions, as a plan of many counters needs more of them behind the last one.
    pub(in crate::memory) fn narrow(&mut self, room: Room, now: u64, budget: &Budget) {
        let (positions, len) = (self.narrowed(room), self.slots.len());
        while self.end_with(positions) + room.behind() >= len && self.live > 0 {
            self.evict_last(positions, now, budget);
        }
        self.lay_out(positions, len, budget);
    }

    /// Gives memory back when a sweep has left the table sparse.
    pub(in crate::memory) fn shrink(&mut self, now: u64, budget: &Budget) {
        // A large plan leaves even the smallest table with more slots behind the last position.
        let is_least = self.slots.len() <= MIN_POSITIONS + OVERHANG_SLOTS;
        if !is_least && self.live * SPARSE_FRACTION.1 < self.positions * SPARSE_FRACTION.0 {
            self.resize(Room::default(), now, budget);
        }
        self.pack_logs(0, budget);
        self.settle(budget);
    }

    /// Moves the logs close together where most of their places are vacant, but for those of the `lent`, which come back.
    ///
    /// Only the slots know their logs, so this reads all slots. It is worth that only if it frees many places, so it
    /// runs again after as many logs have been removed.
    pub(in crate::memory) fn pack_logs(&mut self, lent: usize, budget: &Budget) {
        let (taken, places) = (self.logs.len() + lent, self.places);
        let packed = (taken * ROOMY_FRACTION.1).div_ceil(ROOMY_FRACTION.0);
        let looked_at = if self.logs.is_empty() { 0 } else { self.slots.len() };
        if taken * SPARSE_FRACTION.1 >= places * SPARSE_FRACTION.0 || (places - packed) * SLOTS_PER_PLACE < looked_at {
            return;
        }
        #[cfg(test)]
        {
            self.touched += looked_at;
        }
        budget.note_freed(place_bytes(self.logs.capacity()));
        self.places = packed;
        let capacity = budget.capacity_for(place_bytes(packed)) / place_bytes(1);
        let mut logs = std::mem::replace(&mut self.logs, Logs::with_capacity(capacity));
        for slot in self.slots.iter_mut().filter(|slot| slot.holds_log()).take(logs.len()) {
            slot.move_log(&mut logs, &mut self.logs);
        }
    }

    /// Whether the table has the right size: enough free positions that the next resize is not near, and not more than
    /// [`SPARSE_FRACTION`] allows.
    fn is_right(&self, room: Room) -> bool {
        let (taken, positions) = (self.live + room.missing, self.positions);
        let within = taken * ROOMY_FRACTION.1 <= positions * ROOMY_FRACTION.0
            && taken * SPARSE_FRACTION.1 >= positions * SPARSE_FRACTION.0;
        within && self.has_room(room)
    }

    /// Drops expired counters. If that frees too little, lays the table out again with more positions. If subjects come and
    /// go, dropping is enough. False if the budget forbids the size.
    pub(in crate::memory) fn resize(&mut self, room: Room, now: u64, budget: &Budget) -> bool {
        // If the budget forbids the smallest table that fits, it forbids larger ones, too.
        if !self.reserve_slots(roomy(self.live + room.missing) + OVERHANG_SLOTS, budget) {
            return false;
        }
        self.drop_expired(0, self.slots.len(), now);
        self.pack_logs(room.inserts, budget);
        if self.is_right(room) {
            self.settle(budget);
            return true;
        }
        let positions = roomy(self.live + room.missing);
        let len = (positions + OVERHANG_SLOTS).max(self.end_with(positions).max(positions) + room.behind() + 1);
        let fits = self.reserve_slots(len, budget);
        if fits {
            self.lay_out(positions, len, budget);
        }
        self.settle(budget);
        fits
    }

    /// Behind the last slot that would be taken with this number of positions.
    pub(in crate::memory) fn end_with(&self, positions: usize) -> usize {
        let homes = self.slots.iter().filter(|slot| !slot.is_empty()).map(Slot::place);
        homes.fold(0, |end, home| position(home, positions).max(end) + 1)
    }

    /// Where the last run of taken slots begins that would lie without a gap with this number of positions, and where it
    /// ends.
    pub(in crate::memory) fn last_run(&self, positions: usize) -> (usize, usize) {
        let taken = self.slots[..self.end].iter().enumerate().filter(|(_, slot)| !slot.is_empty());
        let (begin, _) = taken.fold((0, 0), |(begin, end), (index, slot)| {
            let target = position(slot.place(), positions);
            (if target > end { index } else { begin }, target.max(end) + 1)
        });
        (begin, self.end)
    }

    /// Lays the table out anew with `positions` positions in `len` slots, which suffice: in place where the allocation has
    /// room for them, else in a new one.
    pub(in crate::memory) fn lay_out(&mut self, positions: usize, len: usize, budget: &Budget) {
        self.positions = positions;
        self.hand = 0;
        if len > self.slots.capacity() || len < self.slots.len() {
            budget.note_freed(slot_bytes(self.slots.capacity()));
            self.move_to(Vec::with_capacity(budget.capacity_for(slot_bytes(len)) / size_of::<Slot>()), len);
        } else {
            self.spread(len);
        }
    }

    fn move_to(&mut self, new: Vec<Slot>, len: usize) {
        let old = std::mem::replace(&mut self.slots, new);
        for slot in old.iter().filter(|slot| !slot.is_empty()) {
            let target = self.position(slot.place()).max(self.slots.len());
            self.slots.resize(target, Slot::EMPTY);
            self.slots.push(*slot);
        }
        self.end = self.slots.len();
        self.slots.resize(len, Slot::EMPTY);
    }

    /// Moves all slots to the end of the longer table, then each to its position, from the first on. As all of them fit,
    /// none moves to the right, or to where another one has yet to move from.
    fn spread(&mut self, len: usize) {
        let old = self.slots.len();
        self.slots.resize(len, Slot::EMPTY);
        let mut from = len;
        for index in (0..old).rev() {
            if !self.slots[index].is_empty() {
                from -= 1;
                self.slots.swap(index, from);
            }
        }
        self.end = 0;
        for index in from..len {
            let slot = std::mem::replace(&mut self.slots[index], Slot::EMPTY);
            let target = self.position(slot.place()).max(self.end);
            self.slots[target] = slot;
            self.end = target + 1;
        }
    }

    /// Takes of the budget what a table of `slots` slots needs beyond this one, if it is there.
    pub(in crate::memory) fn reserve_slots(&mut self, slots: usize, budget: &Budget) -> bool {
        let logs = self.held() - self.slots_held();
        let needed = slot_bytes(slots).saturating_sub(RESERVED_BYTES) + logs;
        self.reserve(needed, budget)
    }

    /// The bytes that the shard holds beyond those that every shard may use.
    pub(in crate::memory) fn held(&self) -> usize {
        self.slots_held() + place_bytes(self.places) + self.log_bytes
    }

    pub(in crate::memory) fn slots_held(&self) -> usize {
        slot_bytes(self.slots.len()).saturating_sub(RESERVED_BYTES)
    }

    /// Reserves `bytes` in all, if the budget has those that are missing.
    #[inline]
    pub(in crate::memory) fn reserve(&mut self, bytes: usize, budget: &Budget) -> bool {
        let lacking = bytes.saturating_sub(self.reserved);
        let fits = budget.reserve(lacking);
        if fits {
            self.reserved += lacking;
        }
        fits
    }

    /// Gives back what is reserved and no longer held.
    #[inline]
    pub(in crate::memory) fn settle(&mut self, budget: &Budget) {
        let held = self.held();
        debug_assert!(held <= self.reserved, "what is held was reserved");
        budget.release(self.reserved.saturating_sub(held));
        self.reserved = held;
    }
}

/// The positions of a table that `live` slots leave roomy.
fn roomy(live: usize) -> usize {
    (live * ROOMY_FRACTION.1).div_ceil(ROOMY_FRACTION.0).max(MIN_POSITIONS)
}
