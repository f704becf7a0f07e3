//! Changes: which counters were written since the last visit, so that a journal writes those and no others.
//!
//! State      A slot has a changed bit. A shard has a bit for each group of its slots. The homes of a group share their
//!            upper eight bits, so its slots are neighbours, and the layout of the table does not change the group.
//!            Where changes are followed, the shard also lists the counters that vanished before their time, and the
//!            store has a bit for each shard, so that a visit after a few changes locks a few shards.
//! Invariant  A slot that is changed lies in a group whose bit is set, and a shard in which the bit of a group is set has
//!            its own bit set.
//! Rule       Every write of a state sets both bits, whether or not changes are followed, because that is cheaper than
//!            a check. A counter that expires or is evicted needs no note. Expired, it is as if never used; evicted, it
//!            may come back, which is stricter.
//! Rule       Visits come at least once per [`GRACE_NANOS`](super::expiry::GRACE_NANOS). So a refund, after which a counter
//!            expires earlier than its last record says, is visited before the counter is dropped. After a longer pause
//!            refunded units may come back, which is stricter.
//! Rule       A visit holds the lock of a shard for [`VISIT_SLOTS`] slots or [`VISIT_GONE`] vanished counters at a time. It
//!            goes on after the last tag that it has seen: inserts, gaps and a new layout move slots, but tags stay in
//!            order.
//! Bound      A shard lists [`MAX_GONE`] counters. Beyond that it notes only that it lost track, and all states must be
//!            written anew.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::MemoryStore;
use super::key::Tag;
use super::record::{write_gone, write_log, write_slot};
use super::shard::Shard;
use super::shards::prefetch;
use super::slot::Slot;
use crate::algorithm::Log;
use crate::clock::Clock;
use crate::time::Span;

/// The groups of a shard.
pub(super) const CHANGED_GROUPS: usize = 256;

/// The slots that a visit looks at, the bytes that it writes, and the vanished counters that it searches, before it lets go of the
/// lock.
const VISIT_SLOTS: usize = 192;
const VISIT_BYTES: usize = 4 << 10;
const VISIT_GONE: usize = 64;

/// A visit of changes reads up to this many slots without changes between two groups that changed. To begin anew behind them takes
/// as long as a few slots do, and counts as [`RUN_SLOTS`].
const GAP_SLOTS: usize = 32;
const RUN_SLOTS: usize = 4;

/// The groups that a step of a visit of changes fetches ahead: a processor has room for a dozen or so of such requests.
const PREFETCHED_GROUPS: usize = 16;

/// The most counters in the list of those that vanished.
const MAX_GONE: usize = 1024;

/// The notes of a shard about its changes, if changes are followed.
#[derive(Debug)]
pub(super) struct Followed {
    /// The counters that vanished before they expired: by a reset, a lifted ban, or a refund of all units.
    gone: Vec<Tag>,
    /// True if more counters vanished than the list can hold.
    lost_track: bool,
    /// The bits of all shards, and which of them this one has.
    shards: Arc<ChangedShards>,
    index: usize,
}

impl Followed {
    /// Notes that the shard has a change. The caller holds the lock of the shard.
    fn note_change(&self) {
        self.shards.set(self.index);
    }
}

/// A bit for each shard. Bits change while the shard is locked and are read without its lock.
///
/// A caller sets the bit, then reads the epoch of the journal that its change belongs to. The journal ends an epoch, then
/// reads the bits. All four are in one order (`SeqCst`), so a bit that the journal does not see belongs to the next epoch.
#[derive(Debug)]
pub(super) struct ChangedShards(Box<[AtomicU64]>);

impl ChangedShards {
    /// Sets all bits: before changes are followed, any shard may have some.
    pub(super) fn new(shards: usize) -> ChangedShards {
        ChangedShards((0..shards.div_ceil(64)).map(|_| AtomicU64::new(u64::MAX)).collect())
    }

    fn set(&self, index: usize) {
        let (word, bit) = (&self.0[index / 64], 1 << (index % 64));
        // The caller holds the lock of the shard, so the bit does not change meanwhile.
        if word.load(SeqCst) & bit == 0 {
            word.fetch_or(bit, SeqCst);
        }
    }

    #[cfg(test)]
    pub(super) fn is_set(&self, index: usize) -> bool {
        self.next(index) == Some(index)
    }

    fn clear(&self, index: usize) {
        self.0[index / 64].fetch_and(!(1 << (index % 64)), SeqCst);
    }

    /// The first shard from `first` on whose bit is set.
    fn next(&self, first: usize) -> Option<usize> {
        let mut word = first / 64;
        let mut bits = self.0.get(word)?.load(SeqCst) >> (first % 64) << (first % 64);
        while bits == 0 {
            word += 1;
            bits = self.0.get(word)?.load(SeqCst);
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// The position of a visit through all shards. A new cursor is at the first shard.
#[derive(Debug, Default)]
pub struct VisitCursor {
    shard: usize,
    /// The tag at which the visit of the shard goes on; `None`: it has not begun.
    next: Option<Tag>,
    /// The counters that vanished from the shard and are not written yet.
    gone: Vec<Tag>,
    lost_track: bool,
    /// Whether to measure the steps.
    clock: Option<Clock>,
    held: Span,
}

impl VisitCursor {
    /// A visit whose steps are [measured](VisitCursor::held).
    pub fn timed_by(clock: Clock) -> VisitCursor {
        VisitCursor { clock: Some(clock), ..VisitCursor::default() }
    }

    /// The time for which the last step of a timed visit held the lock of a shard.
    pub fn held(&self) -> Span {
        self.held
    }

    /// Whether more counters vanished than a shard can list. All states must then be written anew: those in older
    /// records may be of counters that are gone.
    pub fn lost_track(&self) -> bool {
        self.lost_track
    }

    fn next_shard(&mut self) {
        self.shard += 1;
        self.next = None;
    }
}

/// Which slots a visit writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    Changed,
    All,
}

/// What a step of a visit may still look at, and the length of the records at which it ends.
struct Room {
    slots: usize,
    out_len: usize,
}

#[doc(hidden)]
impl MemoryStore {
    /// Lists counters that vanish before their time from now on, for [`MemoryStore::changed`].
    pub fn follow_changes(&self) {
        for index in 0..self.shards.len() {
            self.lock(index).followed.get_or_insert_with(|| {
                let shards = Arc::clone(&self.shards.changed);
                Box::new(Followed { gone: Vec::new(), lost_track: false, shards, index })
            });
        }
    }

    /// Appends the [records](crate::durable::Record) of some counters that changed since they were last visited, and of those
    /// that vanished. To be called until it gives false: the visit is then over. A counter that changes during the
    /// visit may be visited twice or not at all, and is visited by the next one in any case.
    pub fn changed(&self, cursor: &mut VisitCursor, out: &mut Vec<u8>) -> bool {
        self.visit(Visit::Changed, cursor, out)
    }

    /// The number of shards that a visit is done with, and the number of all shards.
    pub fn visited(&self, cursor: &VisitCursor) -> (usize, usize) {
        (cursor.shard.min(self.shards.len()), self.shards.len())
    }

    /// As [`MemoryStore::changed`], of all counters. It leaves the marks of changes alone, for the next visit of changes.
    pub fn all(&self, cursor: &mut VisitCursor, out: &mut Vec<u8>) -> bool {
        self.visit(Visit::All, cursor, out)
    }

    fn visit(&self, visit: Visit, cursor: &mut VisitCursor, out: &mut Vec<u8>) -> bool {
        if cursor.next.is_none() {
            let changed = |first| self.shards.changed.next(first);
            if visit == Visit::Changed {
                cursor.shard = changed(cursor.shard).unwrap_or(usize::MAX);
            }
            let following =
                if visit == Visit::Changed { changed(cursor.shard.saturating_add(1)) } else { Some(cursor.shard + 1) };
            following.inspect(|shard| self.shards.prefetch_shard(*shard));
        }
        if cursor.shard >= self.shards.len() {
            return false;
        }
        let mut shard = self.lock(cursor.shard);
        let began = cursor.clock.as_ref().map(Clock::monotonic);
        shard.visit_step(visit, cursor, out);
        drop(shard);
        if let (Some(clock), Some(began)) = (&cursor.clock, began) {
            cursor.held = clock.monotonic().since(began);
        }
        true
    }
}

impl Shard {
    /// Notes that the slot at `index` was written.
    #[inline(always)]
    pub(super) fn mark(&mut self, index: usize) {
        self.mark_group(self.slots[index].group());
    }

    #[inline(always)]
    pub(super) fn mark_group(&mut self, group: u8) {
        // Mostly the bit is set already. Writing it again would take the cache line away from other processors.
        if self.changed_groups[usize::from(group / 64)] & 1 << (group % 64) == 0 {
            self.mark_first(group);
        }
    }

    /// The first change of a group since the last visit.
    #[cold]
    fn mark_first(&mut self, group: u8) {
        self.changed_groups[usize::from(group / 64)] |= 1 << (group % 64);
        if let Some(followed) = &self.followed {
            followed.note_change();
        }
    }

    /// Notes that a counter vanishes before its time.
    pub(super) fn note_gone(&mut self, tag: Tag) {
        let Some(followed) = &mut self.followed else { return };
        if followed.gone.len() < MAX_GONE {
            followed.gone.push(tag);
        } else {
            followed.lost_track = true;
        }
        followed.note_change();
    }

    /// Writes counters that vanished and did not come back; once there are none, slots.
    fn visit_step(&mut self, visit: Visit, cursor: &mut VisitCursor, out: &mut Vec<u8>) {
        let next = match cursor.next {
            Some(next) => next,
            None => {
                if let (Visit::Changed, Some(followed)) = (visit, &mut self.followed) {
                    // A counter that comes back before it is written marks its group. The visit reaches it after this
                    // list.
                    cursor.gone = std::mem::take(&mut followed.gone);
                    cursor.lost_track |= std::mem::take(&mut followed.lost_track);
                }
                Tag::first_of_group(0)
            }
        };
        if cursor.gone.is_empty() {
            match self.visit(visit, next, out) {
                Some(next) => cursor.next = Some(next),
                None => {
                    self.note_visited();
                    cursor.next_shard();
                }
            }
            return;
        }
        cursor.next = Some(next);
        let first = cursor.gone.len().saturating_sub(VISIT_GONE);
        cursor.gone.drain(first..).filter(|tag| self.find(*tag).is_err()).for_each(|tag| write_gone(tag, out));
    }

    /// Clears the bit of the shard if it has no changes. Between the steps of a visit there may have been some.
    fn note_visited(&self) {
        if let Some(followed) = &self.followed
            && self.changed_groups == [0; CHANGED_GROUPS / 64]
            && followed.gone.is_empty()
            && !followed.lost_track
        {
            followed.shards.clear(followed.index);
        }
    }

    /// The first group from `first` on whose bit is set.
    #[inline]
    fn changed_group(&self, first: u8) -> Option<u8> {
        let mut word = first / 64;
        let mut bits = self.changed_groups[usize::from(word)] >> (first % 64) << (first % 64);
        while bits == 0 {
            word += 1;
            bits = *self.changed_groups.get(usize::from(word))?;
        }
        Some(word * 64 + bits.trailing_zeros() as u8)
    }

    /// Clears the bits of groups.
    fn clear_groups(&mut self, groups: Range<usize>) {
        for (word, bits) in self.changed_groups.iter_mut().enumerate() {
            let from = |group: usize| u64::MAX.checked_shl(group.saturating_sub(64 * word) as u32).unwrap_or(0);
            *bits &= !(from(groups.start) & !from(groups.end));
        }
    }

    /// A run of groups whose changes lie close together, from the tag `next` on, which may lie within a group whose visit has begun.
    fn next_run(&self, next: Tag) -> Option<RangeInclusive<u8>> {
        let groups = |slots: usize| slots * CHANGED_GROUPS / self.positions().max(1);
        let (most, gap) = (groups(VISIT_SLOTS), groups(GAP_SLOTS).max(1));
        let first = if next.is_first_of_group() { self.changed_group(next.group())? } else { next.group() };
        let mut last = first;
        while let Some(group) = last.checked_add(1).and_then(|group| self.changed_group(group))
            && usize::from(group - last) <= gap
            && usize::from(group - first) <= most
        {
            last = group;
        }
        Some(first..=last)
    }

    /// The index of a tag, or of the first slot behind it.
    fn index_of(&self, tag: Tag) -> usize {
        let (Ok(index) | Err(index)) = self.find(tag);
        index
    }

    /// Prefetches the slots of changed groups, from group `first` on.
    fn prefetch_changed(&self, first: u8) {
        let mut next = self.changed_group(first);
        for _ in 0..PREFETCHED_GROUPS {
            let Some(group) = next else { return };
            let slots = self.slots.as_ptr().wrapping_add(self.position(Tag::first_of_group(group).place()));
            prefetch(slots.cast());
            prefetch(slots.wrapping_add(2).cast());
            next = group.checked_add(1).and_then(|group| self.changed_group(group));
        }
    }

    /// Writes the next slots from the tag `next` on. Gives the tag to go on with; `None` if it was the last.
    fn visit(&mut self, visit: Visit, mut next: Tag, out: &mut Vec<u8>) -> Option<Tag> {
        let mut room = Room { slots: VISIT_SLOTS, out_len: out.len() + VISIT_BYTES };
        if visit == Visit::Changed {
            self.prefetch_changed(next.group());
        }
        while room.slots > 0 && out.len() < room.out_len {
            next = self.visit_run(visit, next, &mut room, out)?;
        }
        Some(next)
    }

    /// As [`Shard::visit`], of the slots of one run of groups.
    fn visit_run(&mut self, visit: Visit, next: Tag, room: &mut Room, out: &mut Vec<u8>) -> Option<Tag> {
        let groups = if visit == Visit::All { next.group()..=u8::MAX } else { self.next_run(next)? };
        let next = next.max(Tag::first_of_group(*groups.start()));
        let behind = groups.end().checked_add(1).map(Tag::first_of_group);
        let (start, end) = (self.index_of(next), behind.map_or(self.slots.len(), |behind| self.index_of(behind)));
        let until = end.min(start + room.slots);
        room.slots = room.slots.saturating_sub(until - start + RUN_SLOTS);
        // Which slots have changed cannot be predicted, so they are found without a branch for each.
        let (mut found, mut count) = ([0_u8; VISIT_SLOTS], 0);
        for (offset, slot) in self.slots[start..until].iter().enumerate() {
            found[count] = offset as u8;
            count += usize::from(if visit == Visit::All { !slot.is_empty() } else { slot.is_changed() });
        }
        let mut stop = until;
        for &offset in &found[..count] {
            let index = start + usize::from(offset);
            if out.len() >= room.out_len {
                stop = index;
                break;
            }
            self.write(index, visit, out);
        }
        // A slot that is inserted between the two tags later marks its group, so no change is missed.
        let rest = self.slots[stop..end].iter().find(|slot| !slot.is_empty()).map(Slot::tag);
        if visit == Visit::Changed {
            // The bit of a group is cleared when its visit begins: its slots that are visited already may change before it ends.
            let first = usize::from(*groups.start()) + usize::from(!next.is_first_of_group());
            let begun = rest.map_or(*groups.end(), Tag::group);
            self.clear_groups(first..usize::from(begun) + 1);
        }
        rest.or(behind)
    }

    #[inline]
    fn write(&mut self, index: usize, visit: Visit, out: &mut Vec<u8>) {
        let slot = &mut self.slots[index];
        if visit == Visit::Changed {
            slot.clear_changed();
        }
        match slot.log_index().and_then(|place| self.logs.get_mut(place)) {
            Some(Log::Many(entries)) => {
                write_log(slot, entries, if visit == Visit::All { 0 } else { entries.changed_from() }, out);
                if visit == Visit::Changed {
                    entries.clear_changed();
                }
            }
            // A log of one entry lies in its slot.
            Some(Log::One(_)) => {}
            None => write_slot(slot, out),
        }
    }
}
