//! The keys with the largest counts, in bounded memory: Space-Saving.
//!
//! State      At most `capacity` keys with their counts, and the largest count that was forgotten.
//! Rule       A new key in a full table first forgets the `batch` smallest counts. The new key may be one that was forgotten
//!            earlier, so its count starts at the largest forgotten count, which is also its error.
//! Bound      A count is too high by at most its error, and never too low. Counts are exact while there are at most
//!            `capacity` keys. With a batch of one, a key with more than `1 / capacity` of all counts is in the table.

use std::cmp::Reverse;
use std::hash::Hash;

use hashbrown::HashMap;

/// The counts of the keys with the largest counts. The table keeps a value for each key beside its count.
#[derive(Clone, Debug)]
pub struct TopK<K, V> {
    capacity: usize,
    batch: usize,
    /// One row of memory, so that the search for the smallest count reads it in order.
    entries: Vec<(K, TopEntry<V>)>,
    /// The index of each key in `entries`.
    indexes: HashMap<K, usize>,
    forgotten: u64,
}

/// The count of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopEntry<V> {
    /// The count; too high by at most `error`.
    pub count: u64,
    /// The largest possible error of the count.
    pub error: u64,
    /// The value of the key.
    pub value: V,
}

impl<K: Hash + Eq + Clone, V> TopK<K, V> {
    /// An empty table of `capacity` keys, which forgets `batch` of them at once. A larger batch is faster and less exact.
    ///
    /// # Panics
    /// If `batch` is 0 or larger than `capacity`.
    pub fn new(capacity: usize, batch: usize) -> TopK<K, V> {
        assert!((1..=capacity).contains(&batch), "a batch of {batch} keys out of {capacity}");
        TopK { capacity, batch, entries: Vec::new(), indexes: HashMap::new(), forgotten: 0 }
    }

    /// Adds `weight` to the count of a key, and returns its value, which a new key gets from `value`.
    pub fn add(&mut self, key: K, weight: u64, value: impl FnOnce() -> V) -> &mut V {
        let index = match self.indexes.get(&key) {
            Some(&index) => index,
            None => self.insert(key, value()),
        };
        let entry = &mut self.entries[index].1;
        entry.count += weight;
        &mut entry.value
    }

    /// The count of a key.
    pub fn get(&self, key: &K) -> Option<&TopEntry<V>> {
        self.indexes.get(key).map(|&index| &self.entries[index].1)
    }

    /// The keys and their counts, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &TopEntry<V>)> {
        self.entries.iter().map(|(key, entry)| (key, entry))
    }

    /// The number of keys in the table.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether keys were forgotten, so that there are more keys than [`len`](TopK::len) tells.
    pub fn has_forgotten(&self) -> bool {
        self.forgotten > 0
    }

    /// Makes room for a key that is not in the table, and returns its index.
    fn insert(&mut self, key: K, value: V) -> usize {
        if self.entries.len() >= self.capacity {
            match self.batch {
                1 => self.forget_smallest(),
                _ => self.forget_batch(),
            }
        }
        let (index, error) = (self.entries.len(), self.forgotten);
        self.indexes.insert(key.clone(), index);
        self.entries.push((key, TopEntry { count: error, error, value }));
        index
    }

    fn forget_smallest(&mut self) {
        let counts = self.entries.iter().map(|(_, entry)| entry.count).enumerate();
        let Some((index, count)) = counts.min_by_key(|(_, count)| *count) else { return };
        let (key, _) = self.entries.swap_remove(index);
        self.indexes.remove(&key);
        if let Some((moved, _)) = self.entries.get(index) {
            self.indexes.insert(moved.clone(), index);
        }
        self.forgotten = self.forgotten.max(count);
    }

    fn forget_batch(&mut self) {
        let kept = self.capacity - self.batch;
        let (_, (_, largest), _) = self.entries.select_nth_unstable_by_key(kept, |(_, entry)| Reverse(entry.count));
        self.forgotten = self.forgotten.max(largest.count);
        self.entries.truncate(kept);
        self.indexes.clear();
        self.indexes.extend(self.entries.iter().enumerate().map(|(index, (key, _))| (key.clone(), index)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut top = TopK::new(100, 50);
        for number in 0..700_u64 {
            *top.add(number % 100, 2, || 0) += 1;
        }
        assert!(top.iter().all(|(_, entry)| *entry == TopEntry { count: 14, error: 0, value: 7 }));
        assert_eq!((top.len(), top.has_forgotten()), (100, false));
    }

    #[test]
    fn counts_are_never_too_low_and_frequent_keys_stay() {
        for (capacity, batch) in [(256, 1), (256, 128), (1, 1)] {
            let mut top = TopK::new(capacity, batch);
            for number in 0..6_000_u64 {
                let key = if number % 3 == 0 || capacity == 1 { 0 } else { number };
                top.add(key, 1 + number % 2, || ());
                assert!(top.len() <= capacity);
            }
            let (_, often) = top.iter().find(|(key, _)| **key == 0).unwrap();
            let exact = if capacity == 1 { 9_000 } else { 3_000 };
            assert!((exact..=exact + often.error).contains(&often.count), "{capacity} by {batch}: {often:?}");
            let largest_error = top.iter().map(|(_, entry)| entry.error).max().unwrap();
            assert!(batch > 1 || largest_error <= 9_000 / capacity as u64, "{capacity}: {largest_error}");
        }
    }
}
