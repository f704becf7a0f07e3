//! A take that is planned ahead of its decision.
//!
//! Rule       Requests that follow each other mostly differ only in the subject that they count for. So a new plan replaces an
//!            older one, and keeps its evaluation if that holds for the new request, too. Then only the subjects are hashed.
//! Rule       An evaluation depends on the names of the request's fields, and on the values that conditions and `limits_by`
//!            read. All other values only make subjects. Bans by hand are looked up when the take is decided.
//! Invariant  The plan is the same as one that is made from nothing: `decider/planned/tests.rs` compares them for random rules
//!            and requests.

use flowgate::{CounterId, Key, Op};

use super::evaluation::Evaluation;
use crate::rules::{FieldId, RuleSet, Values};

/// The evaluation of a take that is not decided yet. It borrows nothing, and is valid only with the rules that it was
/// made by. A caller that plans again and again reuses old values: [`plan_ahead`](crate::Decider::plan_ahead)
/// overwrites one. A plan keeps a copy of the names of the request's fields, and of some values.
#[derive(Debug)]
pub struct PlannedTake {
    generation: Option<u64>,
    /// The fields of the request, in their order.
    fields: Vec<PlannedField>,
    pub(crate) evaluation: Evaluation,
}

/// A field of the request, with what the evaluation depends on.
#[derive(Debug, Default)]
struct PlannedField {
    /// As the caller wrote it.
    name: String,
    /// The number of the field; `None` if no rule uses it.
    id: Option<FieldId>,
    /// The value, if some rule reads it.
    value: String,
    /// True if a condition or `limits_by` of some rule reads the value.
    is_read: bool,
}

/// An empty plan, which is valid with no rules.
impl Default for PlannedTake {
    fn default() -> PlannedTake {
        PlannedTake { generation: None, fields: Vec::new(), evaluation: Evaluation::new(Op::Take, 0) }
    }
}

impl PlannedTake {
    /// Reads the fields of the next request into `values`. True if the evaluation of the request before holds for it, but for the
    /// subjects.
    #[inline]
    pub(crate) fn read_fields<'q>(
        &mut self,
        rules: &RuleSet,
        fields: impl Iterator<Item = (&'q str, &'q str)>,
        values: &mut Values<'q>,
    ) -> bool {
        let mut is_same = self.generation == Some(rules.generation);
        if !is_same {
            self.generation = Some(rules.generation);
            self.fields.clear();
        }
        let mut count = 0;
        for (name, text) in fields {
            if count == self.fields.len() {
                self.fields.push(PlannedField::default());
                is_same = false;
            }
            let field = &mut self.fields[count];
            if !field.is_same(name, text) {
                field.replace(rules, name, text);
                is_same = false;
            }
            if let Some(id) = field.id {
                values.put(id, text);
            }
            count += 1;
        }
        is_same &= count == self.fields.len();
        self.fields.truncate(count);
        is_same
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

impl PlannedField {
    /// True if an evaluation cannot differ because of this field of another request.
    #[inline]
    fn is_same(&self, name: &str, text: &str) -> bool {
        *self.name == *name && (!self.is_read || *self.value == *text)
    }

    #[inline(never)]
    fn replace(&mut self, rules: &RuleSet, name: &str, text: &str) {
        if *self.name != *name {
            self.name.replace_range(.., name);
            self.id = rules.fields.get(name);
            self.is_read = self.id.is_some_and(|id| rules.fields.is_read(id));
        }
        if self.is_read {
            self.value.replace_range(.., text);
        }
    }
}

#[cfg(test)]
mod tests {
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
        let mut plan = PlannedTake::default();
        let mut is_same = |set: usize, fields: &[(&str, &str)]| {
            plan.read_fields(&sets[set], fields.iter().copied(), &mut sets[set].fields.no_values())
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
