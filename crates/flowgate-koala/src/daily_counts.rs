//! Requests that each rule allowed and denied today: the numbers of `/admin/counters`.
//!
//! State      Two counts per rule number, and the end of the day in the file's zone. The counts belong to this process.
//! Rule       The first note after the end of the day resets all counts to zero. An edited rule keeps its counts.
//! Rule       The rules own their counts, so a file that is compiled and never put in force changes nothing.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use flowgate::{Time, TimeZone, Unit};

/// The counts of all rules.
#[derive(Debug, Default)]
pub(crate) struct DailyCounts {
    /// The end of the day, in nanoseconds since the epoch.
    day_ends: AtomicU64,
    rules: Mutex<BTreeMap<u32, Weak<Counts>>>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    allowed: AtomicU64,
    denied: AtomicU64,
}

/// The counts of one rule today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleCounts {
    /// The number of the rule.
    pub rule: u32,
    /// Requests that matched and did not exceed the rule.
    pub allowed: u64,
    /// Requests that exceeded the rule, or that a direct rule decided.
    pub denied: u64,
}

impl DailyCounts {
    /// The counts of the rules with these numbers. A number that the file in use has keeps its counts; any other number
    /// begins at zero.
    pub(super) fn share(&self, numbers: impl Iterator<Item = u32>) -> Vec<Arc<Counts>> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.retain(|_, counts| counts.strong_count() > 0);
        let mut share = |number| {
            let counts = rules.get(&number).and_then(Weak::upgrade).unwrap_or_default();
            rules.insert(number, Arc::downgrade(&counts));
            counts
        };
        numbers.map(&mut share).collect()
    }

    /// Resets the counts if the day is over.
    pub(super) fn turn(&self, zone: &TimeZone, now: Time) {
        if now.as_nanos() < self.day_ends.load(Relaxed) {
            return;
        }
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if now.as_nanos() < self.day_ends.load(Relaxed) {
            return;
        }
        for counts in rules.values().filter_map(Weak::upgrade) {
            counts.allowed.store(0, Relaxed);
            counts.denied.store(0, Relaxed);
        }
        self.day_ends.store(zone.window_end(Unit::Day, now).as_nanos(), Relaxed);
    }
}

impl Counts {
    pub(super) fn note(&self, exceeded: bool) {
        let count = if exceeded { &self.denied } else { &self.allowed };
        count.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self, rule: u32) -> RuleCounts {
        RuleCounts { rule, allowed: self.allowed.load(Relaxed), denied: self.denied.load(Relaxed) }
    }
}
