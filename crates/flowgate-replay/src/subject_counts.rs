//! The subjects with the most requests of a kind, in bounded memory.
//!
//! Bound      At most [`MAX_SUBJECTS`] subjects. [`TopK`] states the error of their counts.

use std::cmp::Reverse;
use std::hash::{BuildHasher, RandomState};

use flowgate::Time;
use flowgate_engine::{Request, TopEntry, TopK};

/// A thousand times the subjects of a list, so that the counts in a list are exact or nearly exact.
const MAX_SUBJECTS: usize = 32_768;
/// The most characters of a subject in a list.
const MAX_SUBJECT_CHARS: usize = 120;

/// The number of requests of each subject, for the subjects with the most requests.
#[derive(Debug)]
pub(crate) struct SubjectCounts {
    hasher: RandomState,
    top: TopK<u64, Subject>,
}

/// A subject and the times of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The position of the rule that counts the subject.
    pub(crate) rule: usize,
    /// The subject's values of the rule's `by`.
    pub(crate) text: String,
    /// The time of the first request since the subject was last forgotten.
    pub(crate) first: Time,
    /// The time of the latest request.
    pub(crate) last: Time,
}

impl Default for SubjectCounts {
    fn default() -> SubjectCounts {
        SubjectCounts { hasher: RandomState::new(), top: TopK::new(MAX_SUBJECTS, MAX_SUBJECTS / 2) }
    }
}

impl SubjectCounts {
    /// Counts the subject of a request under a rule.
    pub(crate) fn add(&mut self, rule: usize, by: &[String], request: &Request<'_>, now: Time) {
        let values = by.iter().map(|field| request.get(field));
        let hash = self.hasher.hash_one((rule, Values(values)));
        let subject = || Subject { rule, text: subject_text(by, request), first: now, last: now };
        self.top.add(hash, 1, subject).last = now;
    }

    /// The subjects with the largest counts, the largest first.
    pub(crate) fn largest(&self, number: usize) -> Vec<&TopEntry<Subject>> {
        let mut entries: Vec<_> = self.top.iter().map(|(_, entry)| entry).collect();
        entries.sort_by_key(|entry| (Reverse(entry.count), entry.value.rule, &entry.value.text));
        entries.truncate(number);
        entries
    }

    /// The number of subjects, and whether it is a lower bound.
    pub(crate) fn subjects(&self) -> (usize, bool) {
        (self.top.len(), self.top.has_forgotten())
    }
}

/// The values of a request's fields, hashed one after the other without a buffer.
struct Values<I>(I);

impl<'a, I: Iterator<Item = Option<&'a str>> + Clone> std::hash::Hash for Values<I> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.clone().for_each(|value| value.hash(state));
    }
}

/// A subject for people: the value of a single field, or names and values of several.
fn subject_text(by: &[String], request: &Request<'_>) -> String {
    let value = |field: &String| request.get(field).unwrap_or_default();
    let text = match by {
        [] => "everyone".to_owned(),
        [field] => value(field).to_owned(),
        fields => fields.iter().map(|field| format!("{field}={}", value(field))).collect::<Vec<_>>().join(" "),
    };
    match text.char_indices().nth(MAX_SUBJECT_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(counts: &mut SubjectCounts, user: &str) {
        counts.add(0, &["user".to_owned()], &Request::new().field("user", user), Time::from_secs(1));
    }

    #[test]
    fn few_subjects_are_counted_exactly() {
        let mut counts = SubjectCounts::default();
        for number in 0..1000 {
            for _ in 0..number % 7 {
                add(&mut counts, &number.to_string());
            }
        }
        let largest = counts.largest(3);
        assert_eq!(largest.len(), 3);
        assert!(largest.iter().all(|entry| entry.count == 6 && entry.error == 0));
        assert_eq!(counts.subjects(), (1000 - 143, false));
    }

    #[test]
    fn of_many_subjects_the_hardest_hit_stay() {
        let mut counts = SubjectCounts::default();
        for round in 0..10_u64 {
            for number in 0..10_000 {
                add(&mut counts, &format!("{round}/{number}"));
                if number % 100 == 0 {
                    add(&mut counts, "often");
                }
            }
        }
        assert!(counts.subjects().0 <= MAX_SUBJECTS && counts.subjects().1);
        let TopEntry { count, error, value } = counts.largest(2)[0];
        assert_eq!(value.text, "often");
        assert!((1000..=1000 + error).contains(count), "{count} {error}");
        assert!(*error <= 2 * 100_000 / MAX_SUBJECTS as u64);
    }

    #[test]
    fn text_of_a_subject() {
        let request = Request::new().field("ip", "::1").field("user", "7");
        let by = |fields: &[&str]| fields.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(subject_text(&by(&[]), &request), "everyone");
        assert_eq!(subject_text(&by(&["ip"]), &request), "::1");
        assert_eq!(subject_text(&by(&["ip", "user"]), &request), "ip=::1 user=7");
        let long = "é".repeat(500);
        let text = subject_text(&by(&["x"]), &Request::new().field("x", &long));
        assert_eq!(text.chars().count(), MAX_SUBJECT_CHARS + 1);
    }
}
