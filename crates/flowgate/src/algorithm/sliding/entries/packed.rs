//! Entries in words.
//!
//! An entry of up to three units that leaves before the year 2116 is one word, as nearly all are: `leaves_at` above, and the
//! units in the lowest two bits. Any other is two words whose lowest two bits are zero: `leaves_at` without its upper two
//! bits, and these two bits with the units. So entries can be read from both ends.

use super::Entry;

const UNIT_BITS: u32 = 2;
const UNIT_MASK: u64 = (1 << UNIT_BITS) - 1;
/// Above it lie the bits of `leaves_at` that do not fit in the first word.
const TIME_BITS: u32 = u64::BITS - UNIT_BITS;

/// An entry as words.
pub(super) struct Packed {
    words: [u64; Packed::MAX_WORDS],
    len: usize,
}

impl Packed {
    pub(super) const MAX_WORDS: usize = 2;

    #[inline]
    pub(super) fn new(Entry { leaves_at, units }: Entry) -> Packed {
        // Units are at most 2^53 for each of two charges that join.
        debug_assert!(0 < units && units >> (TIME_BITS - UNIT_BITS) == 0);
        if let Some(word) = short_word(Entry { leaves_at, units }) {
            return Packed { words: [word, 0], len: 1 };
        }
        let second = leaves_at >> TIME_BITS << TIME_BITS | units << UNIT_BITS;
        Packed { words: [leaves_at << UNIT_BITS, second], len: 2 }
    }

    #[inline]
    pub(super) fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// The word of an entry that is one word.
#[inline]
pub(super) fn short_word(Entry { leaves_at, units }: Entry) -> Option<u64> {
    (units <= UNIT_MASK && leaves_at >> TIME_BITS == 0).then_some(leaves_at << UNIT_BITS | units)
}

/// The entry of two words.
#[inline]
fn long_entry(first: u64, second: u64) -> Entry {
    let leaves_at = second >> TIME_BITS << TIME_BITS | first >> UNIT_BITS;
    Entry { leaves_at, units: second << UNIT_BITS >> (2 * UNIT_BITS) }
}

/// Whether it is an entry by itself, not a half of one.
#[inline]
pub(super) fn is_short(word: u64) -> bool {
    word & UNIT_MASK > 0
}

#[inline]
pub(super) fn short_entry(word: u64) -> Entry {
    Entry { leaves_at: word >> UNIT_BITS, units: word & UNIT_MASK }
}

/// Entries that lie in a ring of words, oldest first.
#[derive(Clone, Copy)]
pub(super) struct PackedEntries<'a> {
    words: &'a [u64],
    first: usize,
    len: usize,
}

impl<'a> PackedEntries<'a> {
    #[inline]
    pub(super) fn new(words: &'a [u64], first: usize, len: usize) -> PackedEntries<'a> {
        PackedEntries { words, first, len }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The words that are taken.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The words that there are.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.words.len()
    }

    /// Where the word at `index` lies, counted from the oldest.
    #[inline]
    pub(super) fn place(&self, index: usize) -> usize {
        let place = self.first + index;
        if place < self.words.len() { place } else { place - self.words.len() }
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.words[self.place(index)]
    }

    /// The oldest entry, and how many words it takes.
    #[inline]
    pub(super) fn oldest(&self) -> Option<(Entry, usize)> {
        if self.is_empty() {
            return None;
        }
        let word = self.word(0);
        if is_short(word) { Some((short_entry(word), 1)) } else { Some((long_entry(word, self.word(1)), 2)) }
    }

    /// The newest entry, and at which word it begins.
    #[inline]
    pub(super) fn newest(&self) -> Option<(Entry, usize)> {
        let last = self.len.checked_sub(1)?;
        let word = self.word(last);
        if is_short(word) {
            Some((short_entry(word), last))
        } else {
            Some((long_entry(self.word(last - 1), word), last - 1))
        }
    }

    /// Those in the first `len` words.
    pub(super) fn up_to(self, len: usize) -> PackedEntries<'a> {
        PackedEntries { len, ..self }
    }

    /// Where the oldest word and the next one behind the newest lie. Reads neither.
    #[inline]
    pub(super) fn ends(&self) -> [*const u64; 2] {
        [0, self.len].map(|index| self.words.as_ptr().wrapping_add(self.place(index)))
    }

    /// Copies the words to the beginning of `target`.
    pub(super) fn copy_to(&self, target: &mut [u64]) {
        let before_end = self.len.min(self.words.len() - self.first);
        target[..before_end].copy_from_slice(&self.words[self.first..self.first + before_end]);
        target[before_end..self.len].copy_from_slice(&self.words[..self.len - before_end]);
    }
}

impl Iterator for PackedEntries<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let (entry, words) = self.oldest()?;
        (self.first, self.len) = (self.place(words), self.len - words);
        Some(entry)
    }
}
