//! The most frequent keys of the last minute or two, in bounded memory.
//!
//! State      For the current minute and the one before, a [`TopK`] of `capacity` keys, which forgets one at a time.
//! Bound      A key with more than `1 / capacity` of all counts is in the list.
//! Rule       A key is told since when it is seen: a key that is seen in each minute keeps its first instant.

use std::cmp::Reverse;
use std::hash::Hash;

use flowgate::{Span, Time};
use flowgate_engine::TopK;
use hashbrown::HashMap;

/// The length of a window.
const WINDOW: Span = Span::from_secs(60);

/// The age at which a window is dropped.
const TWO_WINDOWS: Span = Span::from_secs(120);

/// How often a key was counted, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenCount {
    /// The count, which is too high by at most `error`.
    pub(crate) count: u64,
    pub(crate) error: u64,
    pub(crate) first: Time,
    pub(crate) last: Time,
}

#[derive(Debug)]
pub(crate) struct Windows<K> {
    capacity: usize,
    began: Time,
    current: TopK<K, SeenPeriod>,
    before: TopK<K, SeenPeriod>,
}

#[derive(Clone, Copy, Debug)]
struct SeenPeriod {
    first: Time,
    last: Time,
}

impl<K: Hash + Eq + Clone + Ord> Windows<K> {
    pub(crate) fn new(capacity: usize) -> Windows<K> {
        let window = || TopK::new(capacity, 1);
        Windows { capacity, began: Time::EPOCH, current: window(), before: window() }
    }

    /// Counts a key, once for `weight` requests.
    pub(crate) fn note(&mut self, key: K, weight: u32, now: Time) {
        self.turn(now);
        let first = self.before.get(&key).map_or(now, |entry| entry.value.first);
        self.current.add(key, weight.into(), || SeenPeriod { first, last: now }).last = now;
    }

    /// When counting began, and the keys of both windows, the most frequent first.
    pub(crate) fn read(&mut self, now: Time) -> (Time, Vec<(K, SeenCount)>) {
        self.turn(now);
        let mut counts: HashMap<&K, SeenCount> = HashMap::new();
        for (key, entry) in self.before.iter().chain(self.current.iter()) {
            let SeenPeriod { first, last } = entry.value;
            let sum = counts.entry(key).or_insert(SeenCount { count: 0, error: 0, first, last });
            sum.count += entry.count;
            sum.error += entry.error;
            (sum.first, sum.last) = (sum.first.min(first), sum.last.max(last));
        }
        let since = match self.before.is_empty() {
            true => self.began,
            false => Time::from_nanos(self.began.as_nanos().saturating_sub(WINDOW.as_nanos())),
        };
        let mut keys: Vec<(K, SeenCount)> = counts.into_iter().map(|(key, count)| (key.clone(), count)).collect();
        keys.sort_by(|(a, of_a), (b, of_b)| (Reverse(of_a.count), a).cmp(&(Reverse(of_b.count), b)));
        (since, keys)
    }

    /// Begins the window that holds `now`.
    fn turn(&mut self, now: Time) {
        let age = now.since(self.began);
        if age < WINDOW {
            return;
        }
        let ended = std::mem::replace(&mut self.current, TopK::new(self.capacity, 1));
        self.before = if age < TWO_WINDOWS { ended } else { TopK::new(self.capacity, 1) };
        // Windows follow each other without a gap while requests arrive.
        self.began = if age < TWO_WINDOWS { self.began + WINDOW } else { now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    fn after(secs: u64) -> Time {
        START + Span::from_secs(secs)
    }

    #[test]
    fn what_is_past_is_forgotten() {
        let mut windows = Windows::new(4);
        windows.note("old", 1, START);
        windows.note("new", 1, after(61));
        let (since, keys) = windows.read(after(62));
        assert_eq!((since, keys.len()), (START, 2));
        let names =
            |windows: &mut Windows<_>, now| -> Vec<_> { windows.read(now).1.into_iter().map(|(key, _)| key).collect() };
        assert_eq!(names(&mut windows, after(121)), ["new"]);
        assert_eq!(names(&mut windows, after(500)), [""; 0]);
    }

    #[test]
    fn a_key_that_is_seen_each_minute_keeps_its_first_instant() {
        let mut windows = Windows::new(4);
        for minute in 0..10 {
            windows.note("steady", 2, after(60 * minute));
            if minute % 3 == 0 {
                windows.note("rare", 1, after(60 * minute));
            }
        }
        let (_, keys) = windows.read(after(545));
        let steady = SeenCount { count: 4, error: 0, first: START, last: after(540) };
        let rare = SeenCount { count: 1, error: 0, first: after(540), last: after(540) };
        assert_eq!(keys, [("steady", steady), ("rare", rare)]);
    }

    #[test]
    fn the_frequent_stand_out_of_any_crowd() {
        let mut windows = Windows::new(256);
        // Ten keys make one percent of the requests each. Every other key is seen once.
        for n in 0..10_000u64 {
            let key = if n % 10 == 0 { format!("hot {}", n / 10 % 10) } else { format!("cold {n}") };
            windows.note(key, 1, START);
        }
        let (_, keys) = windows.read(START);
        assert_eq!(keys.len(), 256);
        for (key, entry) in keys.iter().filter(|(key, _)| key.starts_with("hot")) {
            assert!(entry.count >= 100 && entry.count - entry.error <= 100, "{key} {entry:?}");
        }
        assert_eq!(keys.iter().filter(|(key, _)| key.starts_with("hot")).count(), 10);
    }
}
