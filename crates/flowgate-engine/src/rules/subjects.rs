//! The subjects of a request: whom its rules count.

use flowgate::{MemoryStore, Subject, SubjectHasher};
use smallvec::SmallVec;

use super::fields::{FieldId, FieldNames, Values};
use super::rule::{Rule, SubjectId};
use super::set::RuleSet;
use crate::key;

/// The fields of a `by`, in the order of their names.
#[derive(Clone, Debug)]
pub(crate) struct SubjectFields {
    /// The hash of the bytes that every subject begins with, up to the name of the first field.
    start: SubjectHasher,
    fields: Box<[FieldId]>,
}

impl SubjectFields {
    pub(super) fn new(fields: &[FieldId], names: &FieldNames, memory: &MemoryStore) -> SubjectFields {
        let start = match fields.first() {
            Some(first) => {
                let mut start = key::subject(memory);
                key::push_text(&mut start, names.name(*first));
                start
            }
            None => key::all(memory),
        };
        SubjectFields { start, fields: fields.into() }
    }

    #[inline]
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = FieldId> {
        self.fields.iter().copied()
    }

    /// The subject with these values. Each rule without `by` has a subject of its own, so that such rules spread over
    /// the store.
    #[inline]
    fn subject(&self, rule: &Rule, rules: &RuleSet, values: &Values<'_>) -> Subject {
        let mut subject = self.start;
        match self.fields.split_first() {
            None => subject.push(rule.name().as_bytes()),
            Some((first, others)) => {
                key::push_text(&mut subject, values.counted(*first));
                if !others.is_empty() {
                    subject = with_fields(subject, others, rules, values);
                }
            }
        }
        subject.subject()
    }
}

/// Adds further fields to the hash. A function of its own, because most subjects have one field.
#[inline(never)]
fn with_fields(mut subject: SubjectHasher, fields: &[FieldId], rules: &RuleSet, values: &Values<'_>) -> SubjectHasher {
    for field in fields {
        key::push_text(&mut subject, rules.field_name(*field));
        key::push_text(&mut subject, values.counted(*field));
    }
    subject
}

/// The subjects of a request. Each is hashed once, even if several rules count by it.
pub(crate) struct Subjects<'a, 'q> {
    rules: &'a RuleSet,
    values: &'a Values<'q>,
    /// The first subject that was asked for. Mostly it is the only one.
    first: Option<(SubjectId, Subject)>,
    others: SmallVec<[(SubjectId, Subject); 3]>,
}

impl<'a, 'q> Subjects<'a, 'q> {
    #[inline]
    pub(crate) fn new(rules: &'a RuleSet, values: &'a Values<'q>) -> Subjects<'a, 'q> {
        Subjects { rules, values, first: None, others: SmallVec::new() }
    }

    /// The subject that a matching rule counts.
    #[inline(always)]
    pub(crate) fn counted_by(&mut self, rule: &Rule) -> Subject {
        if let Some((id, subject)) = self.first {
            if id == rule.subject {
                return subject;
            }
            if let Some((_, subject)) = self.others.iter().find(|(id, _)| *id == rule.subject) {
                return *subject;
            }
        }
        let by = self.rules.subject_fields(rule.subject);
        let subject = by.subject(rule, self.rules, self.values);
        match self.first {
            _ if by.fields.is_empty() => {}
            None => self.first = Some((rule.subject, subject)),
            Some(_) => self.others.push((rule.subject, subject)),
        }
        subject
    }
}
