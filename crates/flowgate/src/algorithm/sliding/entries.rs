//! The entries of a log of more than one, oldest first, and the sum of their units.
//!
//! State      Words, one or two for each entry: see [`packed`]. Up to [`INLINE_WORDS`] lie where the log itself lies: most
//!            logs never have more, so they need no memory of their own. More lie in a ring.
//! Invariant  Every entry has units, and leaves later than the one before it.
//!
//! A log takes 32 bytes beside its ring, so that it never lies across two cache lines.

mod packed;
#[cfg(test)]
mod tests;

use super::{Entry, MAX_ENTRIES};
use packed::{Packed, PackedEntries};

const INLINE_WORDS: usize = 3;

/// The smallest ring in words. All sizes of rings are odd: glibc and other allocators add 8 bytes to an allocation and
/// round it up to 16, so an even number of words would leave eight bytes unused.
const FEWEST_RING_WORDS: usize = 7;

/// The largest number of words of a log, and so of entries: twice the largest number of entries of a log that one limit
/// charges. Only a log that several limits with different numbers have charged could need more.
pub(crate) const MAX_WORDS: usize = Packed::MAX_WORDS * MAX_ENTRIES;

/// What an allocation of an odd number of words costs on top of its size.
const ALLOCATION_OVERHEAD_BYTES: usize = 8;

/// See above.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    Few {
        words: [u64; INLINE_WORDS],
        len: u8,
    },
    Ring {
        words: Box<[u64]>,
        /// Where the oldest entry begins.
        first: u16,
        /// The words that are taken.
        len: u16,
        /// The number of words, from the oldest on, that are the same as at the last visit. (The oldest entry may have
        /// other units.) A journal writes the other words.
        unchanged: u16,
        total: u64,
    },
}

const _: () = assert!(size_of::<Entries>() <= 32);

/// The result of a usual charge, and what is needed to undo it. Entries that left are still in the ring, except the word
/// that the new entry has overwritten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualCharge {
    /// The units in the window, those of the charge included.
    pub(crate) used: u64,
    word: u64,
    first: u16,
    len: u16,
    unchanged: u16,
    total: u64,
}

impl Default for Entries {
    #[inline]
    fn default() -> Entries {
        Entries::Few { words: [0; INLINE_WORDS], len: 0 }
    }
}

/// Logs of the same entries are equal, wherever they lie and whether or not they were visited.
impl PartialEq for Entries {
    fn eq(&self, other: &Entries) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Entries {}

impl Entries {
    /// Whether a log of these two needs no memory beside itself.
    #[inline]
    pub(crate) fn lie_inline(old: Entry, new: Entry) -> bool {
        Packed::new(old).len() + Packed::new(new).len() <= INLINE_WORDS
    }

    #[inline]
    fn packed(&self) -> PackedEntries<'_> {
        match self {
            Entries::Few { words, len } => PackedEntries::new(words, 0, usize::from(*len)),
            Entries::Ring { words, first, len, .. } => {
                PackedEntries::new(words, usize::from(*first), usize::from(*len))
            }
        }
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.packed()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.packed().is_empty()
    }

    /// The only entry, where there is just one.
    pub(crate) fn only(&self) -> Option<Entry> {
        let mut entries = self.iter();
        entries.next().filter(|_| entries.next().is_none())
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<Entry> {
        self.packed().oldest().map(|(first, _)| first)
    }

    #[inline]
    pub(crate) fn last_leaves_at(&self) -> u64 {
        self.packed().newest().map_or(0, |(last, _)| last.leaves_at)
    }

    /// All units.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        match self {
            Entries::Few { .. } => self.iter().map(|entry| entry.units).sum(),
            Entries::Ring { total, .. } => *total,
        }
    }

    /// The units that have left at `now`.
    #[inline]
    pub(super) fn left(&self, now: u64) -> u64 {
        self.iter().take_while(|entry| entry.leaves_at <= now).map(|entry| entry.units).sum()
    }

    /// The first instant of the entries that changed since the last visit; 0 where all are to be written.
    pub(crate) fn changed_from(&self) -> u64 {
        match self {
            Entries::Ring { unchanged, .. } => {
                let unchanged = self.packed().up_to(usize::from(*unchanged));
                unchanged.newest().map_or(0, |(last, _)| last.leaves_at.saturating_add(1))
            }
            Entries::Few { .. } => 0,
        }
    }

    /// Notes that the entries were visited.
    pub(crate) fn clear_changed(&mut self) {
        if let Entries::Ring { len, unchanged, .. } = self {
            *unchanged = *len;
        }
    }

    /// Where the oldest entry and the place behind the newest one lie in a ring, for a prefetch. Reads neither.
    #[inline]
    pub(super) fn ends(&self) -> [Option<*const u64>; 2] {
        match self {
            Entries::Few { .. } => [None; 2],
            Entries::Ring { .. } => self.packed().ends().map(Some),
        }
    }

    /// The bytes it holds beside itself, those that the allocator needs for it included.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Entries::Few { .. } => 0,
            Entries::Ring { words, .. } => ring_bytes(words.len()),
        }
    }

    /// The bytes that it holds more, beside itself, once what has left at `now` is dropped and `new` appended to a log of `most`
    /// units.
    #[inline]
    pub(super) fn lacking_bytes(&self, new: Entry, now: u64, most: u64) -> usize {
        // An entry that joins the newest makes it a word longer at most.
        let packed = self.packed();
        if packed.len() + Packed::new(new).len() <= packed.capacity() {
            return 0;
        }
        let mut inside = packed;
        while inside.oldest().is_some_and(|(first, _)| first.leaves_at <= now) {
            inside.next();
        }
        let added = match inside.newest() {
            Some((last, _)) if new.leaves_at <= last.leaves_at => {
                Packed::new(last.joined_by(new)).len() - Packed::new(last).len()
            }
            _ => Packed::new(new).len(),
        };
        if inside.len() + added <= packed.capacity() { 0 } else { ring_bytes(self.grown(most)) - self.heap_bytes() }
    }

    /// The words of the next larger ring: twice as many, and not more than a log of `most` units can need, unless it has them
    /// already. An entry of two words has more than two units. With its overhead a ring is a power of two bytes, so that logs use
    /// each other's former rings.
    fn grown(&self, most: u64) -> usize {
        let words = self.packed().capacity();
        let enough = usize::try_from(most).unwrap_or(usize::MAX).min(MAX_WORDS) + Packed::MAX_WORDS;
        let doubled = if words < enough { (2 * words).min(enough) } else { 2 * words };
        doubled.max(words + Packed::MAX_WORDS).max(FEWEST_RING_WORDS) | 1
    }

    /// Moves the entries to a ring of `size` words, in which they have room.
    fn resize(&mut self, size: usize) {
        let (packed, total, mut words) = (self.packed(), self.total(), vec![0; size].into_boxed_slice());
        packed.copy_to(&mut words);
        let len = packed.len() as u16;
        let unchanged = match self {
            Entries::Few { .. } => 0,
            Entries::Ring { unchanged, .. } => *unchanged,
        };
        *self = Entries::Ring { words, first: 0, len, unchanged, total };
    }

    /// The usual charge, in one pass: entries of one word leave a ring, and one entry is added after the newest.
    /// Returns `None` and changes nothing if the charge is not of this kind: the new entry or one that leaves has two words,
    /// the new entry joins the newest, the ring must grow or shrink, or it would have more than `most` units.
    ///
    /// The caller knows when the newest entry leaves. To read that entry would mean to wait for a cache line that nothing else
    /// of the charge needs.
    #[inline]
    pub(super) fn charge_usual(&mut self, new: Entry, now: u64, most: u64, last_leaves_at: u64) -> Option<UsualCharge> {
        debug_assert_eq!(last_leaves_at, self.last_leaves_at());
        let word = packed::short_word(new)?;
        let Entries::Ring { words, first, len, unchanged, total } = self else { return None };
        if new.leaves_at <= last_leaves_at || last_leaves_at <= now {
            return None;
        }
        let (mut oldest, mut dropped, mut left) = (usize::from(*first), 0, 0);
        // The loop ends at the newest entry at the latest, which has not left.
        loop {
            let Entry { leaves_at, units } = match words.get(oldest) {
                Some(&word) if dropped < usize::from(*len) && packed::is_short(word) => packed::short_entry(word),
                _ => return None,
            };
            if leaves_at > now {
                break;
            }
            (dropped, left) = (dropped + 1, left + units);
            oldest = if oldest + 1 < words.len() { oldest + 1 } else { 0 };
        }
        let (kept, used) = (usize::from(*len) - dropped, *total - left + new.units);
        if kept == words.len() || kept >= MAX_WORDS || used > most || is_idle(kept, words.len()) {
            return None;
        }
        let place = if oldest + kept < words.len() { oldest + kept } else { oldest + kept - words.len() };
        let word = std::mem::replace(&mut words[place], word);
        let charge = UsualCharge { used, word, first: *first, len: *len, unchanged: *unchanged, total: *total };
        (*first, *len, *total) = (oldest as u16, kept as u16 + 1, used);
        *unchanged = unchanged.saturating_sub(dropped as u16);
        Some(charge)
    }

    /// Undoes the last change, which was this charge.
    pub(super) fn undo_usual(&mut self, charge: &UsualCharge) {
        let newest = self.packed().place(self.packed().len().saturating_sub(1));
        if let Entries::Ring { words, first, len, unchanged, total } = self {
            words[newest] = charge.word;
            (*first, *len, *unchanged, *total) = (charge.first, charge.len, charge.unchanged, charge.total);
        }
    }

    /// Appends `new` to a log of `most` units.
    #[inline(never)]
    pub(crate) fn push_back(&mut self, new: Entry, most: u64) {
        let new = match self.packed().newest() {
            Some((last, begin)) if new.leaves_at <= last.leaves_at => {
                self.truncate(begin, last.units);
                last.joined_by(new)
            }
            _ => new,
        };
        let packed = Packed::new(new);
        if self.packed().len() + packed.len() > self.packed().capacity() {
            self.resize(self.grown(most));
        }
        let end = self.packed().len();
        for (offset, word) in packed.words().iter().enumerate() {
            let place = self.packed().place(end + offset);
            self.places()[place] = *word;
        }
        match self {
            Entries::Few { len, .. } => *len += packed.len() as u8,
            Entries::Ring { len, total, .. } => {
                *len += packed.len() as u16;
                *total += new.units;
            }
        }
    }

    /// Drops what has left at `now`.
    #[inline]
    pub(super) fn drop_left(&mut self, now: u64) {
        while let Some((first, words)) = self.packed().oldest().filter(|(first, _)| first.leaves_at <= now) {
            self.drop_front(words, first.units);
        }
        // A log that was long and is short now gives its memory back.
        if let Entries::Ring { words, len, .. } = self
            && is_idle(usize::from(*len), words.len())
        {
            let size = (usize::from(*len) * 2).max(FEWEST_RING_WORDS) | 1;
            self.resize(size);
        }
    }

    /// Drops the newest `units`.
    pub(super) fn drop_newest(&mut self, units: u64) {
        let mut rest = units;
        while rest > 0 {
            let Some((last, begin)) = self.packed().newest() else { return };
            self.truncate(begin, last.units);
            if last.units > rest {
                // In no more words than before.
                self.push_back(Entry { units: last.units - rest, ..last }, 0);
            }
            rest = rest.saturating_sub(last.units);
        }
    }

    /// Drops all but the newest `most` units.
    #[inline]
    pub(super) fn keep_newest(&mut self, most: u64) {
        if self.total() > most {
            self.drop_oldest(most);
        }
    }

    #[inline(never)]
    fn drop_oldest(&mut self, most: u64) {
        while let Some(surplus) = self.total().checked_sub(most).filter(|&surplus| surplus > 0) {
            let Some((first, words)) = self.packed().oldest() else { return };
            if first.units <= surplus {
                self.drop_front(words, first.units);
            } else {
                self.shorten_front(first, words, surplus);
            }
        }
    }

    /// Joins the oldest entries until the log has no more than [`MAX_WORDS`]. Their units leave later than they had to, never
    /// earlier.
    #[inline]
    pub(super) fn keep_bounded(&mut self) {
        while self.packed().len() > MAX_WORDS {
            self.join_oldest();
        }
    }

    /// Lets the units of the oldest entry leave with those of the next one.
    #[cold]
    fn join_oldest(&mut self) {
        let mut entries = self.packed();
        let (words, Some(first), Some(second)) = (entries.len(), entries.next(), entries.next()) else { return };
        let (both, joined) = (words - entries.len(), Packed::new(second.joined_by(first)));
        if let Entries::Ring { unchanged, .. } = self
            && usize::from(*unchanged) < both
        {
            // The reader of a journal does not have the second one.
            *unchanged = 0;
        }
        self.drop_front(both - joined.len(), 0);
        self.write_front(&joined);
    }

    /// Drops `units` units of the oldest entry, which has more and takes this many words.
    fn shorten_front(&mut self, first: Entry, words: usize, units: u64) {
        let rest = Packed::new(Entry { units: first.units - units, ..first });
        // A part of two words may fit in one.
        self.drop_front(words - rest.len(), units);
        self.write_front(&rest);
    }

    /// Writes an entry over the oldest words.
    fn write_front(&mut self, entry: &Packed) {
        for (offset, word) in entry.words().iter().enumerate() {
            let place = self.packed().place(offset);
            self.places()[place] = *word;
        }
    }

    /// Drops the oldest `dropped` words, and the `units` that they hold.
    #[inline]
    fn drop_front(&mut self, dropped: usize, units: u64) {
        match self {
            Entries::Few { words, len } => {
                words.copy_within(dropped.., 0);
                *len -= dropped as u8;
            }
            Entries::Ring { words, first, len, unchanged, total } => {
                let next = usize::from(*first) + dropped;
                *first = if next < words.len() { next } else { next - words.len() } as u16;
                *len -= dropped as u16;
                *unchanged = unchanged.saturating_sub(dropped as u16);
                *total -= units;
            }
        }
    }

    /// Drops the newest entry, which begins at this word and has this many units.
    fn truncate(&mut self, begin: usize, units: u64) {
        match self {
            Entries::Few { len, .. } => *len = begin as u8,
            Entries::Ring { len, unchanged, total, .. } => {
                *len = begin as u16;
                *unchanged = (*unchanged).min(begin as u16);
                *total -= units;
            }
        }
    }

    #[inline]
    fn places(&mut self) -> &mut [u64] {
        match self {
            Entries::Few { words, .. } => words,
            Entries::Ring { words, .. } => words,
        }
    }
}

/// A ring of no more words than this keeps them.
const MAX_IDLE_WORDS: usize = 17;

/// Whether a ring of `size` words of which `taken` are taken is to shrink.
#[inline]
const fn is_idle(taken: usize, size: usize) -> bool {
    size > MAX_IDLE_WORDS && taken < size / 4
}

const fn ring_bytes(words: usize) -> usize {
    words * size_of::<u64>() + ALLOCATION_OVERHEAD_BYTES
}
