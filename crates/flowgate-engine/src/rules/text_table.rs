//! A table of texts that is built once and looked up for each field of a request: the names of fields, and the values that
//! rules ask for.
//!
//! Bound      The texts come from the policy, so a client chooses only what is looked up. A lookup hashes the text and
//!            compares it with the few entries of its place.

use hashbrown::HashTable;

/// Texts with a value each.
#[derive(Clone, Debug)]
pub(crate) struct TextTable<T>(HashTable<Entry<T>>);

#[derive(Clone, Debug)]
struct Entry<T> {
    /// The last bytes of the text, which are all of most texts.
    end: u64,
    text: Box<str>,
    value: T,
}

impl<T> Default for TextTable<T> {
    fn default() -> TextTable<T> {
        TextTable(HashTable::new())
    }
}

impl<T> TextTable<T> {
    /// The value of a text.
    // Inlined: it is called for every field of a request.
    #[inline(always)]
    pub(crate) fn get(&self, text: &str) -> Option<&T> {
        let end = last_bytes(text.as_bytes());
        let is_same = |entry: &Entry<T>| {
            entry.end == end && entry.text.len() == text.len() && (text.len() <= 8 || *entry.text == *text)
        };
        self.0.find(hash(text.as_bytes(), end), is_same).map(|entry| &entry.value)
    }

    /// Adds a text that is not in the table.
    pub(crate) fn insert(&mut self, text: Box<str>, value: T) {
        let end = last_bytes(text.as_bytes());
        let again = |entry: &Entry<T>| hash(entry.text.as_bytes(), entry.end);
        self.0.insert_unique(hash(text.as_bytes(), end), Entry { end, text, value }, again);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
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
        _ => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
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
        let upper: HashSet<u64> = (0..256).map(|n| hash(format!("rule{n}")) >> 57).collect();
        assert!(upper.len() > 100, "the table tells entries of a place apart by seven bits: {}", upper.len());
    }
}
