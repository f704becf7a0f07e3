//! A take that is planned ahead of its decision.
//!
//! Rule       Requests that follow each other mostly differ only in the subject that they count for. So a new plan replaces an
//!            older one, and keeps its evaluation if that holds for the new request, too. Then only the subjects are hashed.
//! Rule       An evaluation depends on the names of the request's fields, and on the values that conditions and `limits_by`
//!            read. All other values only make subjects. Bans by hand are looked up when the take is decided.
//! Invariant  The plan is the same as one that is made from nothing: `decider/planned/tests.rs` compares them for random rules
//!            and requests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::{CounterId, Key, Op};

use super::evaluation::Evaluation;
use crate::rules::{FieldId, RuleSet, Values};

/// The names of the fields of requests that follow each other. Each list has a number of its own, so that requests with the same
/// list are known to have the same names.
#[derive(Debug)]
pub struct RequestNames {
    number: u64,
    names: Box<[Box<str>]>,
}

impl RequestNames {
    /// A list of names, in the order of the fields.
    pub fn new<N: Into<Box<str>>>(names: impl IntoIterator<Item = N>) -> RequestNames {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        RequestNames { number: NEXT.fetch_add(1, Relaxed), names: names.into_iter().map(Into::into).collect() }
    }

    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}

/// The evaluation of a take that is not decided yet. It borrows nothing, and is valid only with the rules that it was
/// made by. A caller that plans again and again reuses old values: [`plan_ahead`](crate::Decider::plan_ahead)
/// overwrites one. A plan keeps a copy of some values of the request.
#[derive(Debug)]
pub struct PlannedTake {
    generation: Option<u64>,
    /// The number of the list of names; 0: none yet.
    names: u64,
    /// The fields of the request, in their order.
    fields: Vec<PlannedField>,
    pub(crate) evaluation: Evaluation,
}

/// A field of the request, with what the evaluation depends on.
#[derive(Debug)]
struct PlannedField {
    /// The number of the field; `None` if no rule uses it.
    id: Option<FieldId>,
    /// True if a condition or `limits_by` of some rule reads the value.
    is_read: bool,
    /// The value, if some rule reads it.
    value: String,
}

/// An empty plan, which is valid with no rules.
impl Default for PlannedTake {
    fn default() -> PlannedTake {
        PlannedTake { generation: None, names: 0, fields: Vec::new(), evaluation: Evaluation::new(Op::Take, 0) }
    }
}

impl PlannedTake {
    /// Reads the fields of the next request into `values`: a text for each of the names. True if the evaluation of the request
    /// before holds for it, but for the subjects.
    #[inline]
    pub(crate) fn read_fields<'q>(
        &mut self,
        rules: &RuleSet,
        names: &RequestNames,
        texts: &[&'q str],
        values: &mut Values<'q>,
    ) -> bool {
        debug_assert_eq!(names.names.len(), texts.len());
        let mut is_same = self.generation == Some(rules.generation) && self.names == names.number;
        if !is_same {
            self.find_fields(rules, names);
        }
        for (field, text) in self.fields.iter_mut().zip(texts) {
            if field.is_read && *field.value != **text {
                field.value.replace_range(.., text);
                is_same = false;
            }
            if let Some(id) = field.id {
                values.put(id, text);
            }
        }
        is_same
    }

    /// Finds the fields of these names among those that the rules use.
    #[inline(never)]
    fn find_fields(&mut self, rules: &RuleSet, names: &RequestNames) {
        (self.generation, self.names) = (Some(rules.generation), names.number);
        self.fields.clear();
        self.fields.extend(names.iter().map(|name| {
            let id = rules.fields.get(name);
            PlannedField { id, is_read: id.is_some_and(|id| rules.fields.is_read(id)), value: String::new() }
        }));
    }

    /// A key of each subject that the take counts, with the number of rules that count it, for [a
    /// prefetch](flowgate::MemoryStore::prefetch_several).
    #[inline]
    pub fn subjects(&self) -> impl Iterator<Item = (Key, usize)> {
        let rules = self.evaluation.steps.chunk_by(|one, next| one.subject == next.subject);
        rules.map(|rules| (rules[0].subject.counter(CounterId::default()), rules.len()))
    }

    /// The evaluation; `None` if it was made by other rules.
    #[inline]
    pub(crate) fn evaluation(&self, rules: &RuleSet) -> Option<&Evaluation> {
        (self.generation == Some(rules.generation)).then_some(&self.evaluation)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use flowgate::MemoryStore;

    use super::*;
    use crate::Limits;
    use crate::rules::{Condition, Matcher, Policy, RuleDef};

    #[test]
    fn an_evaluation_holds_until_a_name_or_a_value_that_is_read_changes() {
        let rule = RuleDef {
            when: vec![Condition::new("act", Matcher::equal("reply"))],
            by: vec!["user".into()],
            limits: Limits::Fixed(vec!["5/60s".parse().unwrap()]),
            ..RuleDef::named("reply")
        };
        let policy = Policy { rules: vec![rule], ..Policy::default() };
        let sets = [(); 2].map(|()| RuleSet::compile(&policy, &MemoryStore::default()).unwrap());
        let (mut plan, mut lists) = (PlannedTake::default(), HashMap::new());
        let mut is_same = |set: usize, fields: &[(&'static str, &str)]| {
            let (names, texts): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
            let list = lists.entry(names.clone()).or_insert_with(|| RequestNames::new(names));
            plan.read_fields(&sets[set], list, &texts, &mut sets[set].fields.no_values())
        };
        assert!(!is_same(0, &[("act", "reply"), ("user", "1")]), "the first request");
        assert!(is_same(0, &[("act", "reply"), ("user", "1")]));
        assert!(is_same(0, &[("act", "reply"), ("user", "2")]), "another subject");
        assert!(!is_same(0, &[("act", "post"), ("user", "2")]), "another value");
        assert!(is_same(0, &[("act", "post"), ("user", "")]));
        assert!(!is_same(0, &[("act", "post")]), "a field less");
        assert!(!is_same(0, &[("act", "post"), ("user", "2")]), "a field more");
        assert!(!is_same(0, &[("user", "2"), ("act", "post")]), "another order");
        assert!(!is_same(0, &[("user", "2"), ("act", "post"), ("x", "1")]), "a field that no rule uses");
        assert!(is_same(0, &[("user", "2"), ("act", "post"), ("x", "2")]));
        assert!(!is_same(1, &[("user", "2"), ("act", "post"), ("x", "2")]), "other rules");
        assert!(is_same(1, &[("user", "3"), ("act", "post"), ("x", "3")]));
    }
}
