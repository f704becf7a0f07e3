//! The subjects with the most requests, in a list of fixed size.
//!
//! State      For the current minute and the one before, a [`TopK`] of [`SUBJECTS`] subjects, which forgets one at a time.
//! Bound      A subject with more than 1/[`SUBJECTS`] of all requests is in the list. A list takes some hundred kilobytes.
//! Rule       A thread never waits for the list: if another thread holds it, the sample is dropped.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use flowgate::{Span, Time};
use flowgate_engine::TopK;

/// The subjects of a list.
const SUBJECTS: usize = 256;

/// The subjects that are shown.
const SHOWN_SUBJECTS: usize = 20;

/// The length of a window.
const WINDOW: Span = Span::from_secs(60);

/// The age at which a window is dropped.
const TWO_WINDOWS: Span = Span::from_secs(120);

/// The length of a subject's text.
pub(crate) const MAX_SUBJECT_BYTES: usize = 128;

/// The most frequent subjects since `since`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// When counting began: one to two minutes ago, or at the first request.
    pub since: Time,
    /// The most frequent first.
    pub subjects: Vec<TopSubject>,
}

/// A subject and its number of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopSubject {
    /// The rule that decided; `None`: the subject is an ad hoc key.
    pub rule: Option<String>,
    /// The values that the rule counts by, such as `user=42`, or the key. Shortened if it is long.
    pub subject: String,
    /// The number of requests; too high by at most `error`.
    pub count: u64,
    /// The largest possible error of the count.
    pub error: u64,
}

#[derive(Debug, Default)]
pub(crate) struct TopList(Mutex<Windows>);

#[derive(Debug, Default)]
struct Windows {
    began: Time,
    current: Window,
    before: Window,
}

#[derive(Debug)]
struct Window(TopK<Key, ()>);

/// The rule and the subject.
type Key = (Option<String>, String);

impl TopList {
    /// Notes a subject, once for `weight` requests.
    pub(crate) fn note(&self, rule: Option<&str>, subject: String, weight: u32, now: Time) {
        let mut windows = match self.0.try_lock() {
            Ok(windows) => windows,
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        windows.turn(now);
        windows.current.0.add((rule.map(str::to_owned), subject), weight.into(), || ());
    }

    /// The most frequent subjects of both windows.
    pub(crate) fn read(&self, now: Time) -> Top {
        // No call panics while it holds the list.
        let mut windows: MutexGuard<'_, Windows> = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        windows.turn(now);
        let Windows { began, current, before } = &*windows;
        let mut counts: HashMap<&Key, (u64, u64)> = HashMap::new();
        for (key, entry) in current.0.iter().chain(before.0.iter()) {
            let (count, error) = counts.entry(key).or_default();
            *count += entry.count;
            *error += entry.error;
        }
        let since = if before.0.is_empty() { *began } else { Time::from_nanos(began.as_nanos() - WINDOW.as_nanos()) };
        let subject = |((rule, subject), (count, error)): (&Key, (u64, u64))| TopSubject {
            rule: rule.clone(),
            subject: subject.clone(),
            count,
            error,
        };
        let mut subjects: Vec<TopSubject> = counts.into_iter().map(subject).collect();
        subjects.sort_by(|a, b| (Reverse(a.count), &a.subject, &a.rule).cmp(&(Reverse(b.count), &b.subject, &b.rule)));
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
        let ended = std::mem::take(&mut self.current);
        self.before = if age < TWO_WINDOWS { ended } else { Window::default() };
        // Windows follow each other without a gap while requests arrive.
        self.began = if age < TWO_WINDOWS { self.began + WINDOW } else { now };
    }
}

impl Default for Window {
    fn default() -> Window {
        Window(TopK::new(SUBJECTS, 1))
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
        for n in 0..10_000u64 {
            let subject = if n % 10 == 0 { format!("hot {}", n / 10 % 10) } else { format!("cold {n}") };
            list.note(Some("r"), subject, 1, START);
        }
        let top = list.read(START).subjects;
        assert_eq!(top.len(), SHOWN_SUBJECTS);
        for entry in &top[..10] {
            assert!(entry.subject.starts_with("hot"), "{entry:?}");
            assert!(entry.count >= 100 && entry.count - entry.error <= 100, "{entry:?}");
        }
        assert_eq!(list.0.lock().unwrap().current.0.len(), SUBJECTS);
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
