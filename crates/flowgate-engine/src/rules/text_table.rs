//! A table of texts that is built once and looked up for each field of a request: the names of fields, and the values that
//! rules ask for.
//!
//! Bound      The texts come from the policy, so a client chooses only what is looked up. A lookup hashes the text and
//!            compares it with the few entries from its place on.

/// Texts with a value each. A text is at the place that its hash names, or at the next place that was free.
#[derive(Clone, Debug)]
pub(crate) struct TextTable<T> {
    /// The number of places is a power of two, or 0. After the table has grown, half to three quarters of the places
    /// are free, so that a search is short.
    places: Box<[Option<Entry<T>>]>,
    length: usize,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    /// The last eight bytes of the text. Most texts have no more.
    end: u64,
    text: Box<str>,
    value: T,
}

impl<T> Default for TextTable<T> {
    fn default() -> TextTable<T> {
        TextTable { places: Box::default(), length: 0 }
    }
}

impl<T> TextTable<T> {
    /// The value of a text.
    // Inlined: it is called for every field of a request.
    #[inline(always)]
    pub(crate) fn get(&self, text: &str) -> Option<&T> {
        let end = last_bytes(text.as_bytes());
        let last = self.places.len().wrapping_sub(1);
        let mut place = first_place(text.as_bytes(), end) & last;
        // `get` covers a table without places.
        while let Some(Some(entry)) = self.places.get(place) {
            if entry.end == end && entry.text.len() == text.len() && (text.len() <= 8 || *entry.text == *text) {
                return Some(&entry.value);
            }
            place = (place + 1) & last;
        }
        None
    }

    /// Adds a text that is not in the table.
    pub(crate) fn insert(&mut self, text: Box<str>, value: T) {
        self.length += 1;
        if 2 * self.length > self.places.len() {
            let places = (0..2 * self.length.next_power_of_two()).map(|_| None).collect();
            let before = std::mem::replace(&mut self.places, places);
            before.into_iter().flatten().for_each(|entry| self.put(entry));
        }
        self.put(Entry { end: last_bytes(text.as_bytes()), text, value });
    }

    /// Puts an entry at the next free place. The table always has one.
    fn put(&mut self, entry: Entry<T>) {
        let last = self.places.len() - 1;
        let mut place = first_place(entry.text.as_bytes(), entry.end) & last;
        while self.places[place].is_some() {
            place = (place + 1) & last;
        }
        self.places[place] = Some(entry);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The place of a text if that place was free. Uses the upper half of the hash, which is spread more evenly than the
/// lower half.
#[inline(always)]
fn first_place(bytes: &[u8], end: u64) -> usize {
    (hash(bytes, end) >> 32) as usize
}

/// A hash that takes a few instructions for a short text, of which `end` are the last bytes. It needs no secret: see the
/// bound above.
#[inline(always)]
fn hash(bytes: &[u8], end: u64) -> u64 {
    let mut hash = mix(bytes.len() as u64 ^ end);
    if bytes.len() > 8 {
        for word in bytes.as_chunks().0 {
            hash = mix(hash ^ u64::from_le_bytes(*word));
        }
    }
    hash
}

/// Every bit of the result depends on all bits of `word`.
#[inline(always)]
fn mix(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

/// The last eight bytes, or all bytes of a shorter text, as the low bytes of a word.
#[inline(always)]
fn last_bytes(bytes: &[u8]) -> u64 {
    let word = |half: [u8; 4]| u64::from(u32::from_le_bytes(half));
    match (bytes.last_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
        (Some(last), ..) => u64::from_le_bytes(*last),
        (_, Some(first), Some(last)) => word(*first) | word(*last) << (8 * (bytes.len() - 4)),
        _ => match *bytes {
            [one] => word([one, 0, 0, 0]),
            [one, two] => word([one, two, 0, 0]),
            [one, two, three] => word([one, two, three, 0]),
            _ => 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_map_finds(
            entries in prop::collection::btree_map("[ab\0]{0,20}", any::<u32>(), 0..40),
            texts in prop::collection::vec("[ab\0]{0,20}", 20)
        ) {
            let mut table = TextTable::default();
            entries.iter().for_each(|(text, value)| table.insert(text.as_str().into(), *value));
            let entries: BTreeMap<String, u32> = entries;
            for text in entries.keys().chain(&texts) {
                prop_assert_eq!(table.get(text), entries.get(text));
            }
            prop_assert_eq!(table.is_empty(), entries.is_empty());
        }
    }

    #[test]
    fn similar_texts_have_different_hashes() {
        let hash = |text: String| hash(text.as_bytes(), last_bytes(text.as_bytes()));
        let texts = (0..100_000).flat_map(|n| [format!("{n}"), format!("act{n}"), format!("/api/v1/part{n}/x")]);
        let hashes: HashSet<u64> = texts.map(hash).collect();
        assert_eq!(hashes.len(), 300_000);
        let place = |text: String| first_place(text.as_bytes(), last_bytes(text.as_bytes())) % 512;
        let places: HashSet<usize> = (0..256).map(|n| place(format!("rule{n}"))).collect();
        assert!(places.len() > 180, "of 256 texts most have a place of their own: {}", places.len());
    }
}
