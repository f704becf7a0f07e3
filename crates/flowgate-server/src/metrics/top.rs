//! The subjects with the most requests, in a list of fixed size.
//!
//! State      The [`Windows`] of [`SUBJECTS`] subjects. A list takes some hundred kilobytes.
//! Rule       A thread never waits for the list: if another thread holds it, the sample is dropped.

use flowgate::Time;
use flowgate_api::{Fields, Text, Top, TopSubject};

use crate::lock::Lock;
use crate::recent::{Subject, Windows};

/// The subjects of a list.
const SUBJECTS: usize = 256;

/// The subjects that are shown.
const SHOWN_SUBJECTS: usize = 20;

#[derive(Debug)]
pub(crate) struct TopList(Lock<Windows<Key>>);

/// The rule and the subject.
type Key = (Option<Box<str>>, Subject);

impl Default for TopList {
    fn default() -> TopList {
        TopList(Lock::new(Windows::new(SUBJECTS)))
    }
}

impl TopList {
    /// Notes a subject, once for `weight` requests.
    pub(crate) fn note(&self, rule: Option<&str>, subject: Subject, weight: u32, now: Time) {
        if let Some(mut windows) = self.0.try_lock() {
            windows.note((rule.map(Into::into), subject), weight, now);
        }
    }

    /// The most frequent subjects of both windows.
    pub(crate) fn read(&self, now: Time) -> Top<'static> {
        let (since, keys) = self.0.lock().read(now);
        let shown = keys.into_iter().take(SHOWN_SUBJECTS).map(|((rule, subject), seen)| {
            let text = |part: &str| Text(part.to_owned().into());
            let pairs = || Fields(subject.fields().map(|(name, value)| (text(name), text(value))).collect());
            TopSubject {
                subject: subject.shown().into(),
                fields: (rule.is_some() && subject.is_whole).then(pairs),
                rule: rule.map(|rule| String::from(rule).into()),
                banned: false,
                count: seen.count,
                error: seen.error,
                first: seen.first.into(),
                last: seen.last.into(),
            }
        });
        Top { since: since.into(), subjects: shown.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    #[test]
    fn the_most_frequent_first_rules_apart() {
        let list = TopList::default();
        let user = || Subject::of_fields(std::iter::once(("user", "1"))).unwrap();
        for (rule, subject, times) in [(Some("a"), user(), 3), (Some("b"), user(), 1), (None, Subject::of_key(b"k"), 2)]
        {
            (0..times).for_each(|_| list.note(rule, subject.clone(), 10, START));
        }
        let top = list.read(START);
        let seen: Vec<_> = top.subjects.iter().map(|entry| (entry.rule.as_deref(), entry.count)).collect();
        assert_eq!(seen, [(Some("a"), 30), (None, 20), (Some("b"), 10)]);
        assert_eq!(top.since, START.into());
        assert_eq!(top.subjects[0].fields, Some([("user", "1")].into_iter().collect()));
        assert_eq!((&*top.subjects[1].subject, &top.subjects[1].fields), ("k", &None));
    }

    #[test]
    fn so_many_are_shown() {
        let list = TopList::default();
        for number in 0..1_000 {
            list.note(Some("r"), Subject::of_key(number.to_string().as_bytes()), 1, START);
        }
        assert_eq!(list.read(START).subjects.len(), SHOWN_SUBJECTS);
    }
}
