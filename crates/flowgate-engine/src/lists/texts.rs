//! A set of millions of texts: one buffer for all of them, and a table of four bytes each.
//!
//! Invariant  Text `i` is `buffer[ends[i - 1]..ends[i]]`. The table holds each index once.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

#[derive(Clone, Debug, Default)]
pub(super) struct TextSet {
    buffer: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// The texts are too long in total: an index into the buffer has 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) expected: &'static str,
}

impl TextSet {
    pub(super) fn insert(&mut self, text: &str) -> Result<(), Full> {
        let TextSet { buffer, ends, table, hasher } = self;
        let hash = hasher.hash_one(text);
        if table.find(hash, |&index| nth(buffer, ends, index) == text).is_some() {
            return Ok(());
        }
        let error = Full { expected: "at most 4 GB of text in a list" };
        let end = u32::try_from(buffer.len() + text.len()).map_err(|_| error)?;
        let index = u32::try_from(ends.len()).map_err(|_| error)?;
        buffer.push_str(text);
        ends.push(end);
        table.insert_unique(hash, index, |&index| hasher.hash_one(nth(buffer, ends, index)));
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| nth(&self.buffer, &self.ends, index as u32))
    }

    pub(super) fn contains(&self, text: &str) -> bool {
        if self.ends.is_empty() {
            return false;
        }
        let found = |&index: &u32| nth(&self.buffer, &self.ends, index) == text;
        self.table.find(self.hasher.hash_one(text), found).is_some()
    }
}

fn nth<'a>(buffer: &'a str, ends: &[u32], index: u32) -> &'a str {
    let index = index as usize;
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    &buffer[start as usize..ends[index] as usize]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_of_texts_is_a_set(texts in proptest::collection::vec("[a-c]{0,3}|日本", 0..60), probes in proptest::collection::vec("[a-c]{0,3}", 20)) {
            let mut set = TextSet::default();
            for text in &texts {
                set.insert(text).unwrap();
            }
            let naive: HashSet<&String> = texts.iter().collect();
            prop_assert_eq!(set.ends.len(), naive.len());
            for probe in texts.iter().chain(&probes) {
                prop_assert_eq!(set.contains(probe), naive.contains(probe));
            }
        }
    }
}
