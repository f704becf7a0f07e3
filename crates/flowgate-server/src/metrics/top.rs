//! The subjects that are seen most, in a list of fixed size.
//!
//! State      For the running minute and the one before, at most [`SUBJECTS`] subjects with their counts (Space-Saving): one
//!            that is not in a full list takes the place of the least, and its count with it.
//! Bound      A count is at most too high by what its entry was taken over with, which the entry says; a subject with
//!            more than 1/[`SUBJECTS`] of all requests is in the list for certain. A list takes some hundred kilobytes.
//! Rule       Nobody waits for the list: a thread that finds it in use leaves its sample out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use flowgate::{Span, Time};

/// The entries of a list.
const SUBJECTS: usize = 256;

/// How many of them are shown.
const SHOWN_SUBJECTS: usize = 20;

/// The length of a window.
const WINDOW: Span = Span::from_secs(60);

/// After which nothing of a window is of interest.
const TWO_WINDOWS: Span = Span::from_secs(120);

/// What is kept of a subject's text.
pub(crate) const MAX_SUBJECT_BYTES: usize = 128;

/// The subjects seen most since `since`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// When counting began: one to two minutes ago, or when the first was seen.
    pub since: Time,
    /// The most frequent first.
    pub subjects: Vec<TopSubject>,
}

/// A subject and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopSubject {
    /// The rule that decided; `None`: the subject is a key of the caller's.
    pub rule: Option<String>,
    /// The values that the rule counts by, such as `user=42`, or the key. Shortened if it is long.
    pub subject: String,
    /// About how many requests; at most so many.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

#[derive(Debug, Default)]
pub(crate) struct TopList(Mutex<Windows>);

#[derive(Debug, Default)]
struct Windows {
    began: Time,
    running: List,
    before: List,
}

#[derive(Debug, Default)]
struct List {
    entries: Vec<TopSubject>,
    places: HashMap<(Option<String>, String), usize>,
}

impl TopList {
    /// Notes a subject, once for `weight` requests.
    pub(crate) fn note(&self, rule: Option<&str>, subject: String, weight: u32, now: Time) {
        let mut windows = match self.0.try_lock() {
            Ok(windows) => windows,
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        windows.turn(now);
        windows.running.note(rule.map(str::to_owned), subject, weight.into());
    }

    /// The list as it is.
    pub(crate) fn read(&self, now: Time) -> Top {
        // No call panics while it holds the list.
        let mut windows: MutexGuard<'_, Windows> = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.turn(now);
        let Windows { began, running, before } = &*windows;
        let mut all = List::default();
        for entry in running.entries.iter().chain(&before.entries) {
            all.add(entry.clone());
        }
        let since =
            if before.entries.is_empty() { *began } else { Time::from_nanos(began.as_nanos() - WINDOW.as_nanos()) };
        let mut subjects = all.entries;
        subjects.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.subject.cmp(&b.subject)));
        subjects.truncate(SHOWN_SUBJECTS);
        Top { since, subjects }
    }
}

impl Windows {
    /// Begins the window that holds `now`.
    fn turn(&mut self, now: Time) {
        let age = now.since(self.began);
        if age < WINDOW {
            return;
        }
        let ended = std::mem::take(&mut self.running);
        self.before = if age < TWO_WINDOWS { ended } else { List::default() };
        // Windows follow each other without a gap while anybody asks.
        self.began = if age < TWO_WINDOWS { self.began + WINDOW } else { now };
    }
}

impl List {
    fn note(&mut self, rule: Option<String>, subject: String, weight: u64) {
        let key = (rule, subject);
        if let Some(&place) = self.places.get(&key) {
            self.entries[place].count += weight;
            return;
        }
        let (rule, subject) = key.clone();
        if self.entries.len() < SUBJECTS {
            self.places.insert(key, self.entries.len());
            self.entries.push(TopSubject { rule, subject, count: weight, error: 0 });
            return;
        }
        let least = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.count);
        let Some((place, least)) = least.map(|(place, entry)| (place, entry.count)) else { return };
        let taken = TopSubject { rule, subject, count: least + weight, error: least };
        let old = std::mem::replace(&mut self.entries[place], taken);
        self.places.remove(&(old.rule, old.subject));
        self.places.insert(key, place);
    }

    /// Adds an entry of another window.
    fn add(&mut self, other: TopSubject) {
        let key = (other.rule.clone(), other.subject.clone());
        match self.places.get(&key) {
            Some(&place) => {
                let entry = &mut self.entries[place];
                (entry.count, entry.error) = (entry.count + other.count, entry.error + other.error);
            }
            None => {
                self.places.insert(key, self.entries.len());
                self.entries.push(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    fn shown(list: &TopList, now: Time) -> Vec<(String, u64)> {
        list.read(now).subjects.into_iter().map(|entry| (entry.subject, entry.count)).collect()
    }

    #[test]
    fn the_most_frequent_first_rules_apart() {
        let list = TopList::default();
        for (rule, subject, times) in [(Some("a"), "user=1", 3), (Some("b"), "user=1", 1), (None, "key", 2)] {
            (0..times).for_each(|_| list.note(rule, subject.to_owned(), 10, START));
        }
        let top = list.read(START);
        let seen: Vec<_> = top.subjects.iter().map(|entry| (entry.rule.as_deref(), entry.count)).collect();
        assert_eq!(seen, [(Some("a"), 30), (None, 20), (Some("b"), 10)]);
        assert_eq!(top.since, START);
    }

    #[test]
    fn the_frequent_stand_out_of_any_crowd() {
        let list = TopList::default();
        // Ten subjects have a percent each, the rest is seen once.
        for n in 0..100_000u64 {
            let subject = if n % 10 == 0 { format!("hot {}", n / 10 % 10) } else { format!("cold {n}") };
            list.note(Some("r"), subject, 1, START);
        }
        let top = list.read(START).subjects;
        assert_eq!(top.len(), SHOWN_SUBJECTS);
        for entry in &top[..10] {
            assert!(entry.subject.starts_with("hot"), "{entry:?}");
            assert!(entry.count >= 1000 && entry.count - entry.error <= 1000, "{entry:?}");
        }
        assert_eq!(list.0.lock().unwrap().running.entries.len(), SUBJECTS);
        assert_eq!(list.0.lock().unwrap().running.places.len(), SUBJECTS);
    }

    #[test]
    fn what_is_past_is_forgotten() {
        let list = TopList::default();
        let after = |secs| START + Span::from_secs(secs);
        list.note(None, "old".to_owned(), 1, START);
        list.note(None, "new".to_owned(), 1, after(61));
        assert_eq!(shown(&list, after(62)).len(), 2);
        assert_eq!(list.read(after(62)).since, START);
        assert_eq!(shown(&list, after(121)), [("new".to_owned(), 1)]);
        assert_eq!(shown(&list, after(500)), []);
    }
}
