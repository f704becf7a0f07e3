//! The subjects of a request: whom its rules count.

use flowgate::{MemoryStore, Subject};
use smallvec::SmallVec;

use super::fields::Values;
use super::rule::{Rule, SubjectId};
use super::set::RuleSet;
use crate::key;

/// The subjects of a request. Each is hashed once, even if several rules count by it.
pub(crate) struct Subjects<'a, 'q> {
    rules: &'a RuleSet,
    values: &'a Values<'q>,
    memory: &'a MemoryStore,
    known: SmallVec<[(SubjectId, Subject); 4]>,
}

impl<'a, 'q> Subjects<'a, 'q> {
    pub(crate) fn new(rules: &'a RuleSet, values: &'a Values<'q>, memory: &'a MemoryStore) -> Subjects<'a, 'q> {
        Subjects { rules, values, memory, known: SmallVec::new() }
    }

    /// The subject that a matching rule counts. Each rule without `by` has a subject of its own, so that such rules
    /// spread over the store.
    pub(crate) fn counted_by(&mut self, rule: &Rule) -> Subject {
        if self.rules.by(rule).is_empty() {
            return self.memory.subject(&key::all(&rule.name));
        }
        if let Some((_, subject)) = self.known.iter().find(|(id, _)| *id == rule.subject) {
            return *subject;
        }
        let subject = self.memory.subject(&key::subject(self.rules.subject_fields(rule, self.values)));
        self.known.push((rule.subject, subject));
        subject
    }
}
