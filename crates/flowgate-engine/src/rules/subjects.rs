//! The subjects of a request: whom its rules count.

use flowgate::{MemoryStore, Subject};
use smallvec::SmallVec;

use super::fields::{FieldId, FieldNames, Values};
use super::rule::{Rule, SubjectId};
use super::set::RuleSet;
use crate::key::{self, KeyBytes, NameInKey};

/// The fields of a `by`, in the order of their names.
#[derive(Clone, Debug)]
pub(crate) struct SubjectFields(Box<[(FieldId, NameInKey)]>);

impl SubjectFields {
    pub(super) fn new(fields: &[FieldId], names: &FieldNames) -> SubjectFields {
        SubjectFields(fields.iter().map(|field| (*field, NameInKey::new(names.name(*field)))).collect())
    }

    #[inline]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = FieldId> {
        self.0.iter().map(|(field, _)| *field)
    }

    /// Adds the fields to the key of a subject.
    #[inline]
    fn push_to(&self, key: &mut KeyBytes, values: &Values<'_>) {
        for (field, name) in &self.0 {
            key.push_field(name, values.counted(*field));
        }
    }
}

/// The subjects of a request. Each is hashed once, even if several rules count by it.
pub(crate) struct Subjects<'a, 'q> {
    rules: &'a RuleSet,
    values: &'a Values<'q>,
    memory: &'a MemoryStore,
    known: SmallVec<[(SubjectId, Subject); 4]>,
}

impl<'a, 'q> Subjects<'a, 'q> {
    #[inline]
    pub(crate) fn new(rules: &'a RuleSet, values: &'a Values<'q>, memory: &'a MemoryStore) -> Subjects<'a, 'q> {
        Subjects { rules, values, memory, known: SmallVec::new() }
    }

    /// The subject that a matching rule counts. Each rule without `by` has a subject of its own, so that such rules
    /// spread over the store.
    #[inline]
    pub(crate) fn counted_by(&mut self, rule: &Rule) -> Subject {
        if let Some((_, subject)) = self.known.iter().find(|(id, _)| *id == rule.subject) {
            return *subject;
        }
        let by = self.rules.subject_fields(rule.subject);
        if by.0.is_empty() {
            return self.memory.subject(&key::all(rule.name()));
        }
        let mut key = key::subject();
        by.push_to(&mut key, self.values);
        let subject = self.memory.subject(&key);
        self.known.push((rule.subject, subject));
        subject
    }
}
