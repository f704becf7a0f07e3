//! The subjects of each rule: those that ask, those that are denied, and those that a shadow rule would deny.
//!
//! State      For each of at most [`MAX_RULES`] rules and each [kind](SubjectKind), the [`Windows`] of [`SUBJECTS`]
//!            subjects.
//! Rule       A thread never waits for the lists: if another thread holds them, the sample is dropped.
//! Rule       A rule gets lists when its first sample arrives. If all lists are taken, it takes those of the rule whose
//!            last sample is oldest and older than two minutes, when that rule's lists are empty anyway.

use flowgate::{Span, Time};
use hashbrown::HashMap;

use super::subject::Subject;
use super::windows::{SeenCount, Windows};
use crate::lock::Lock;
use crate::metrics::Counter;

/// The number of subjects in a list.
pub(crate) const SUBJECTS: usize = 32;

/// The number of rules that can have lists.
const MAX_RULES: usize = 64;

/// The age at which every entry of a list has left both windows.
const PAST: Span = Span::from_secs(120);

/// What happened to a subject's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    Asked,
    Denied,
    /// A shadow rule would have denied the request.
    Shadow,
}

#[derive(Debug, Default)]
pub(crate) struct RuleSubjects {
    rules: Lock<HashMap<Box<str>, Lists>>,
    /// Samples that were dropped because another thread held the lists.
    pub(super) in_use: Counter,
    /// Samples that were dropped because all lists were taken.
    pub(super) full: Counter,
}

#[derive(Debug)]
struct Lists {
    /// The lists of the rule, by [`SubjectKind`].
    kinds: [Windows<Subject>; 3],
    /// The time of the last sample.
    noted: Time,
}

/// The subjects of one rule, the most frequent first.
#[derive(Debug)]
pub(crate) struct SubjectsOfRule {
    /// When counting began; `None`: nothing was counted.
    pub(crate) since: Option<Time>,
    /// The subjects, by [`SubjectKind`].
    pub(crate) kinds: [Vec<(Subject, SeenCount)>; 3],
}

impl RuleSubjects {
    /// Notes a subject of a rule, once for `weight` requests.
    pub(crate) fn note(&self, rule: &str, kind: SubjectKind, subject: Subject, weight: u32, now: Time) {
        let Some(mut rules) = self.rules.try_lock() else { return self.in_use.add(1) };
        if let Some(lists) = rules.get_mut(rule) {
            lists.note(kind, subject, weight, now);
        } else if make_room(&mut rules, now) {
            let mut lists = Lists { kinds: std::array::from_fn(|_| Windows::new(SUBJECTS)), noted: now };
            lists.note(kind, subject, weight, now);
            rules.insert(rule.into(), lists);
        } else {
            self.full.add(1);
        }
    }

    /// The subjects of a rule.
    pub(crate) fn read(&self, rule: &str, now: Time) -> SubjectsOfRule {
        let mut rules = self.rules.lock();
        let Some(lists) = rules.get_mut(rule) else {
            return SubjectsOfRule { since: None, kinds: Default::default() };
        };
        let read = lists.kinds.each_mut().map(|windows| windows.read(now));
        let begun = read.iter().filter(|(_, subjects)| !subjects.is_empty());
        let since = begun.map(|(since, _)| *since).min();
        SubjectsOfRule { since, kinds: read.map(|(_, subjects)| subjects) }
    }
}

impl Lists {
    fn note(&mut self, kind: SubjectKind, subject: Subject, weight: u32, now: Time) {
        self.noted = now;
        self.kinds[kind as usize].note(subject, weight, now);
    }
}

/// Whether there is room for one more rule.
fn make_room(rules: &mut HashMap<Box<str>, Lists>, now: Time) -> bool {
    if rules.len() < MAX_RULES {
        return true;
    }
    let oldest = rules.iter().min_by_key(|(_, lists)| lists.noted);
    let past = oldest.filter(|(_, lists)| now.since(lists.noted) >= PAST).map(|(rule, _)| rule.clone());
    past.is_some_and(|rule| rules.remove(&rule).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_secs(1_700_000_000);

    fn user(number: usize) -> Subject {
        Subject::of_fields(std::iter::once(("user", number.to_string().as_str()))).unwrap()
    }

    #[test]
    fn kinds_and_rules_are_apart() {
        let subjects = RuleSubjects::default();
        subjects.note("a", SubjectKind::Asked, user(1), 8, START);
        subjects.note("a", SubjectKind::Denied, user(2), 1, START);
        subjects.note("b", SubjectKind::Shadow, user(3), 1, START);
        let of = |rule| {
            subjects
                .read(rule, START)
                .kinds
                .map(|kind| kind.iter().map(|(subject, count)| (subject.shown(), count.count)).collect::<Vec<_>>())
        };
        assert_eq!(of("a"), [vec![("user=1".to_owned(), 8)], vec![("user=2".to_owned(), 1)], vec![]]);
        assert_eq!(of("b"), [vec![], vec![], vec![("user=3".to_owned(), 1)]]);
        assert_eq!(subjects.read("c", START).since, None);
    }

    #[test]
    fn rules_and_subjects_are_bounded() {
        let subjects = RuleSubjects::default();
        for rule in 0..100 {
            for number in 0..100 {
                subjects.note(&rule.to_string(), SubjectKind::Denied, user(number), 1, START);
            }
        }
        assert_eq!(subjects.rules.lock().len(), MAX_RULES);
        assert_eq!((subjects.full.get(), subjects.in_use.get()), (36 * 100, 0));
        assert_eq!(subjects.read("0", START).kinds[SubjectKind::Denied as usize].len(), SUBJECTS);
        assert_eq!(subjects.read("99", START).since, None, "the lists of busy rules stay");
        let later = START + PAST;
        subjects.note("99", SubjectKind::Denied, user(1), 1, later);
        assert_eq!(subjects.read("99", later).since, Some(later));
        let held = subjects.rules.lock();
        assert_eq!(held.len(), MAX_RULES);
        subjects.note("99", SubjectKind::Denied, user(1), 1, later);
        assert_eq!(subjects.in_use.get(), 1, "a thread does not wait for the lists");
    }
}
