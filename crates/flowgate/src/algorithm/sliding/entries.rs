//! The entries of a log of more than one, oldest first, and the sum of their units.
//!
//! Up to [`INLINE_ENTRIES`] lie where the log itself lies: most logs never have more, so they need no memory of their own and are
//! one cache line to look at. More lie in a ring.
//!
//! Invariant  Every entry has units; the times of no two are in the wrong order.

use std::collections::VecDeque;

use super::{Entry, MAX_ENTRIES};

const INLINE_ENTRIES: usize = 3;

/// What an allocation costs on top of its size, which is a multiple of 16: a header of 8 bytes, rounded up to 16, in glibc
/// and others.
const ALLOCATION_OVERHEAD_BYTES: usize = 16;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// Those without units are places for more.
    Few([Entry; INLINE_ENTRIES]),
    Ring {
        ring: VecDeque<Entry>,
        total: u64,
        /// Whether a journal must write an entry.
        changed: ChangedFrom,
    },
}

/// Entries that leave at this instant or later were written or removed since the last visit. Logs of the same entries are
/// equal whether or not they were visited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangedFrom(u64);

impl ChangedFrom {
    const EVERYTHING: ChangedFrom = ChangedFrom(0);
    const NOTHING: ChangedFrom = ChangedFrom(u64::MAX);

    #[inline]
    fn note(&mut self, leaves_at: u64) {
        self.0 = self.0.min(leaves_at);
    }
}

impl PartialEq for ChangedFrom {
    fn eq(&self, _: &ChangedFrom) -> bool {
        true
    }
}

impl Eq for ChangedFrom {}

impl Default for Entries {
    #[inline]
    fn default() -> Entries {
        Entries::Few([Entry::default(); INLINE_ENTRIES])
    }
}

impl Entries {
    /// The first instant of the entries that changed since the last visit; 0 where all are to be written.
    pub(crate) fn changed_from(&self) -> u64 {
        match self {
            Entries::Few(_) => 0,
            Entries::Ring { changed, .. } => changed.0,
        }
    }

    /// Notes that the entries were visited.
    pub(crate) fn clear_changed(&mut self) {
        if let Entries::Ring { changed, .. } = self {
            *changed = ChangedFrom::NOTHING;
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Entries::Few(few) => few.iter().take_while(|entry| entry.units > 0).count(),
            Entries::Ring { ring, .. } => ring.len(),
        }
    }

    /// All units.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        match self {
            Entries::Few(few) => few.iter().map(|entry| entry.units).sum(),
            Entries::Ring { total, .. } => *total,
        }
    }

    /// The units that have left at `now`.
    #[inline]
    pub(super) fn left(&self, now: u64) -> u64 {
        match self {
            // Mostly nothing has, since a charge drops it.
            Entries::Ring { ring, .. } if ring.front().is_none_or(|first| now < first.leaves_at) => 0,
            _ => self.iter().take_while(|entry| entry.leaves_at <= now).map(|entry| entry.units).sum(),
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let (first, second) = match self {
            Entries::Few(few) => (&few[..self.len()], &[][..]),
            Entries::Ring { ring, .. } => ring.as_slices(),
        };
        first.iter().chain(second)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Entry> {
        match self {
            Entries::Few(few) => few.first().filter(|first| first.units > 0),
            Entries::Ring { ring, .. } => ring.front(),
        }
    }

    #[inline]
    fn back_mut(&mut self) -> Option<&mut Entry> {
        match self {
            Entries::Few(few) => few.iter_mut().rfind(|entry| entry.units > 0),
            Entries::Ring { ring, .. } => ring.back_mut(),
        }
    }

    #[inline]
    pub(crate) fn last_leaves_at(&self) -> u64 {
        let last = match self {
            Entries::Few(few) => few.iter().rfind(|entry| entry.units > 0),
            Entries::Ring { ring, .. } => ring.back(),
        };
        last.map_or(0, |entry| entry.leaves_at)
    }

    /// Where the oldest and the newest entry of a ring lie. Reads neither.
    #[inline]
    pub(super) fn ends(&self) -> [Option<*const Entry>; 2] {
        match self {
            Entries::Few(_) => [None; 2],
            Entries::Ring { ring, .. } => [ring.front(), ring.back()].map(|end| end.map(|entry| &raw const *entry)),
        }
    }

    /// The bytes it holds beside itself, those that the allocator needs for it included.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Entries::Few(_) => 0,
            Entries::Ring { ring, .. } => ring.capacity() * size_of::<Entry>() + ALLOCATION_OVERHEAD_BYTES,
        }
    }

    /// Whether [`drop_left`](Entries::drop_left) at `now` and then an entry that leaves at `leaves_at` need neither more memory
    /// nor less. False where that takes a closer look.
    #[inline]
    pub(super) fn keeps_bytes(&self, leaves_at: u64, now: u64) -> bool {
        match self {
            Entries::Few([first, .., last]) => last.units == 0 || first.leaves_at <= now || leaves_at <= last.leaves_at,
            Entries::Ring { ring, .. } => {
                let (len, fewest) = (ring.len(), fewest_entries(ring));
                let (Some(first), Some(last)) = (ring.front(), ring.back()) else { return false };
                if now < first.leaves_at {
                    return len >= fewest && (len < ring.capacity() || leaves_at <= last.leaves_at);
                }
                let stays = len.checked_sub(fewest).and_then(|index| ring.get(index));
                stays.is_some_and(|entry| now < entry.leaves_at)
            }
        }
    }

    /// Appends `new` to a log of `most` units.
    #[inline]
    pub(crate) fn push_back(&mut self, new: Entry, most: u64) {
        let mut written_at = new.leaves_at;
        match self.back_mut() {
            Some(last) if new.leaves_at <= last.leaves_at => {
                last.units += new.units;
                written_at = last.leaves_at;
            }
            _ => self.append(new, most),
        }
        if let Entries::Ring { total, changed, .. } = self {
            *total += new.units;
            changed.note(written_at);
        }
    }

    /// As an entry of its own; its units are yet to be added to the total.
    #[inline]
    fn append(&mut self, new: Entry, most: u64) {
        match self {
            Entries::Few(few) => match few.iter_mut().find(|entry| entry.units == 0) {
                Some(place) => *place = new,
                None => {
                    let (few, total) = (*few, self.total());
                    *self = Entries::Ring { ring: VecDeque::new(), total, changed: ChangedFrom::EVERYTHING };
                    few.into_iter().chain([new]).for_each(|entry| self.append(entry, most));
                }
            },
            Entries::Ring { ring, .. } => {
                make_room(ring, most);
                ring.push_back(new);
            }
        }
    }

    /// Drops what has left at `now`.
    #[inline]
    pub(super) fn drop_left(&mut self, now: u64) {
        while let Some(first) = self.front().filter(|first| first.leaves_at <= now) {
            self.drop_from_front(first.units);
        }
        // A log that was long and is short again gives its memory back.
        if let Entries::Ring { ring, .. } = self
            && ring.capacity() > MAX_IDLE_CAPACITY
            && ring.len() < fewest_entries(ring)
        {
            ring.shrink_to(ring.len() * 2);
        }
    }

    /// Drops the newest `units`.
    pub(super) fn drop_newest(&mut self, units: u64) {
        let mut rest = units;
        while let Some(last) = self.back_mut().filter(|_| rest > 0) {
            let (taken, leaves_at) = (last.units.min(rest), last.leaves_at);
            last.units -= taken;
            let is_gone = last.units == 0;
            rest -= taken;
            if let Entries::Ring { ring, total, changed } = self {
                *total -= taken;
                changed.note(leaves_at);
                if is_gone {
                    ring.pop_back();
                }
            }
        }
    }

    /// Drops all but the newest `most` units.
    #[inline]
    pub(super) fn keep_newest(&mut self, most: u64) {
        while let Some(surplus) = self.total().checked_sub(most).filter(|&surplus| surplus > 0) {
            let Some(first) = self.front() else { return };
            self.drop_from_front(surplus.min(first.units));
        }
    }

    /// Drops `units` units of the oldest entry, which has at least that many.
    #[inline]
    fn drop_from_front(&mut self, units: u64) {
        match self {
            Entries::Few(few) => {
                few[0].units -= units;
                if few[0].units == 0 {
                    few.copy_within(1.., 0);
                    few[INLINE_ENTRIES - 1] = Entry::default();
                }
            }
            Entries::Ring { ring, total, .. } => {
                *total -= units;
                if let Some(first) = ring.front_mut() {
                    first.units -= units;
                    if first.units == 0 {
                        ring.pop_front();
                    }
                }
            }
        }
    }
}

/// A ring of no more places than this keeps them.
const MAX_IDLE_CAPACITY: usize = 16;

/// With fewer entries than this a ring gives memory back.
fn fewest_entries(ring: &VecDeque<Entry>) -> usize {
    if ring.capacity() > MAX_IDLE_CAPACITY { ring.capacity() / 4 } else { 1 }
}

/// Grows by half, not by doubling, and not beyond what a log of `most` units can need.
fn make_room(ring: &mut VecDeque<Entry>, most: u64) {
    let len = ring.len();
    if len == ring.capacity() {
        // One more than `most`: the newest entry comes in before the oldest goes.
        let enough = MAX_ENTRIES.min(usize::try_from(most).unwrap_or(usize::MAX)) + 1;
        let target = (len + len / 2).max(2 * INLINE_ENTRIES).min(enough).max(len + 1);
        ring.reserve_exact(target - len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_need_no_memory_of_their_own() {
        let mut entries = Entries::default();
        for number in 1..=10 {
            entries.push_back(Entry { leaves_at: number, units: 2 }, 100);
            assert_eq!((entries.len() as u64, entries.total()), (number, 2 * number));
            assert_eq!(entries.heap_bytes() > 0, number > INLINE_ENTRIES as u64);
        }
        entries.drop_left(4);
        entries.drop_newest(3);
        entries.keep_newest(8);
        let kept: Vec<(u64, u64)> = entries.iter().map(|entry| (entry.leaves_at, entry.units)).collect();
        assert_eq!(kept, [(5, 1), (6, 2), (7, 2), (8, 2), (9, 1)]);
    }
}
