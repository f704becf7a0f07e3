//! A compiled policy: immutable, shared by all threads, replaced whole.

use std::sync::Arc;

use flowgate::{Ban, CounterId, Limit, MemoryStore, RuleFlags, Subject};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::fields::{FieldId, FieldNames, Values};
use super::index::Index;
use super::test::Test;
use super::{Action, OnFailure};
use crate::bans::ManualBan;
use crate::key;
use crate::path::PathSpelling;
use crate::request::Request;
use crate::rule_counters::RuleCounters;

/// The rules in force.
#[derive(Debug, Default)]
pub struct RuleSet {
    pub(super) fields: FieldNames,
    pub(super) rules: Box<[Arc<Rule>]>,
    pub(super) index: Index,
    /// The distinct `by` of all rules: fields in the order of their names.
    pub(super) subjects: Box<[Box<[FieldId]>]>,
    pub(super) path_spelling: PathSpelling,
}

/// A compiled rule.
#[derive(Debug)]
pub struct Rule {
    pub(super) name: Box<str>,
    pub(super) title: Option<Box<str>>,
    pub(super) action: Action,
    pub(super) code: Option<i64>,
    pub(super) message: Option<Arc<str>>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) id: u32,
    pub(super) flags: RuleFlags,
    pub(super) checks: Box<[Check]>,
    pub(super) subject: SubjectId,
    pub(super) limits: RuleLimits,
    pub(super) ban: Option<(Ban, CounterId)>,
    /// The names of the fields it counts by, in the order in which they are written.
    pub(super) by: Box<[Box<str>]>,
    pub(super) counters: Arc<RuleCounters>,
}

/// One condition of a rule.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) field: FieldId,
    pub(crate) test: Test,
    /// As it was written, for those who ask why a rule does not match.
    pub(crate) written: Box<str>,
}

/// Which of the set's `by` a rule counts by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubjectId(pub(super) u32);

/// A limit and the name of its counter.
#[derive(Debug)]
pub(crate) struct NamedLimit {
    pub(crate) limit: Limit,
    pub(crate) id: CounterId,
    /// What follows the subject in its key in Redis.
    #[cfg(feature = "redis")]
    pub(crate) tail: Box<str>,
}

#[derive(Debug)]
pub(crate) enum RuleLimits {
    /// The rule decides at once.
    None,
    Fixed(Box<[NamedLimit]>),
    ByField {
        field: FieldId,
        cases: HashMap<Box<str>, Box<[NamedLimit]>>,
        default: Option<Box<[NamedLimit]>>,
    },
}

/// What the evaluation of the rules has come to.
pub(crate) enum Found<'r> {
    /// A ban by hand, before any rule: the end.
    Ban(Arc<ManualBan>),
    /// A rule that matches, with the limits that apply.
    Limits(&'r Arc<Rule>, &'r [NamedLimit]),
    /// A shadow rule without limits.
    PassBy(&'r Arc<Rule>),
    /// A rule without limits: the end.
    End(&'r Arc<Rule>),
}

/// Why a rule does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// This condition, the first of the rule that does not hold.
    Condition(usize),
    /// The request lacks a field of `by`.
    Lacks(FieldId),
    /// `limits_by` knows nothing for the value of this field.
    NoCase(FieldId),
}

impl RuleSet {
    /// The rules, top to bottom.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// The names of the fields that some rule looks at: whatever else a request has makes no difference to rules.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.ids().map(|id| self.fields.name(id))
    }

    /// How the rules expect the field `path` to be spelled.
    pub fn path_spelling(&self) -> PathSpelling {
        self.path_spelling
    }

    /// Lets rules go on counting where those of the same name in `old` have got to.
    pub(crate) fn inherit_counters(&mut self, old: &RuleSet) {
        let counters: HashMap<&str, &Arc<RuleCounters>> =
            old.rules.iter().map(|rule| (rule.name(), &rule.counters)).collect();
        for rule in &mut self.rules {
            // A set that is not in force yet has its rules for itself.
            if let (Some(counters), Some(rule)) = (counters.get(rule.name()), Arc::get_mut(rule)) {
                rule.counters = Arc::clone(counters);
            }
        }
    }

    pub(crate) fn rule(&self, id: u32) -> &Arc<Rule> {
        &self.rules[id as usize]
    }

    /// What the request says to the fields that some rule uses.
    #[inline]
    pub(crate) fn read<'q>(&self, request: &Request<'q>) -> Values<'q> {
        self.fields.read(request)
    }

    /// The rules that match, top to bottom, each with the limits that apply.
    pub(crate) fn matching<'s>(
        &'s self,
        values: &Values<'_>,
    ) -> impl Iterator<Item = (&'s Arc<Rule>, &'s [NamedLimit])> {
        let candidates = self.index.candidates(values).into_iter().map(|id| self.rule(id));
        candidates.filter_map(|rule| Some((rule, self.check(rule, values).ok()?)))
    }

    /// The limits that a rule applies to a request; none where it decides at once.
    pub(crate) fn check<'s>(&'s self, rule: &'s Rule, values: &Values<'_>) -> Result<&'s [NamedLimit], Mismatch> {
        if let Some(failed) = rule.checks.iter().position(|check| !check.test.holds(values.get(check.field))) {
            return Err(Mismatch::Condition(failed));
        }
        if let Some(lacking) = self.by(rule).iter().find(|field| values.get(**field).is_none()) {
            return Err(Mismatch::Lacks(*lacking));
        }
        match &rule.limits {
            RuleLimits::None => Ok(&[]),
            RuleLimits::Fixed(limits) => Ok(limits),
            RuleLimits::ByField { field, cases, default } => {
                let case = values.get(*field).and_then(|value| cases.get(value.text));
                case.or(default.as_ref()).map(|limits| &**limits).ok_or(Mismatch::NoCase(*field))
            }
        }
    }

    /// The value that chooses among the limits of a rule; `None` where there is no choice, or the default is chosen.
    #[cfg(feature = "redis")]
    pub(crate) fn case<'q>(&self, rule: &Rule, values: &Values<'q>) -> Option<&'q str> {
        let RuleLimits::ByField { field, cases, .. } = &rule.limits else { return None };
        values.get(*field).map(|value| value.text).filter(|value| cases.contains_key(*value))
    }

    /// The limits that were chosen by [`RuleSet::case`].
    #[cfg(feature = "redis")]
    pub(crate) fn limits<'s>(&self, rule: &'s Rule, case: Option<&str>) -> &'s [NamedLimit] {
        match &rule.limits {
            RuleLimits::None => &[],
            RuleLimits::Fixed(limits) => limits,
            RuleLimits::ByField { cases, default, .. } => {
                case.and_then(|case| cases.get(case)).or(default.as_ref()).map_or(&[], |limits| limits)
            }
        }
    }

    pub(crate) fn field_name(&self, id: FieldId) -> &str {
        self.fields.name(id)
    }

    pub(crate) fn by(&self, rule: &Rule) -> &[FieldId] {
        &self.subjects[rule.subject.0 as usize]
    }

    /// The names and values of the `by` fields of a rule that matches.
    pub(crate) fn subject_fields<'a>(
        &'a self,
        rule: &Rule,
        values: &'a Values<'_>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.by(rule).iter().map(move |&field| (self.field_name(field), values.counted(field)))
    }

    /// The subject of a rule that matches: names and values of its `by` fields. A rule that counts everything
    /// together is a subject of its own, so that such rules spread over the store.
    fn subject(&self, rule: &Rule, values: &Values<'_>, memory: &MemoryStore) -> Subject {
        if self.by(rule).is_empty() {
            return memory.subject(&key::all(&rule.name));
        }
        memory.subject(&key::subject(self.subject_fields(rule, values)))
    }
}

/// The subjects of a request, each worked out once however many rules count by it.
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

    pub(crate) fn of(&mut self, rule: &Rule) -> Subject {
        if self.rules.by(rule).is_empty() {
            return self.rules.subject(rule, self.values, self.memory);
        }
        if let Some((_, subject)) = self.known.iter().find(|(id, _)| *id == rule.subject) {
            return *subject;
        }
        let subject = self.rules.subject(rule, self.values, self.memory);
        self.known.push((rule.subject, subject));
        subject
    }
}

impl Rule {
    /// The name: letters, digits, `_`, `.` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Any text.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// What is to happen when a limit is exceeded, or at once where there are no limits.
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// A number for the caller.
    pub fn code(&self) -> Option<i64> {
        self.code
    }

    /// A text for the caller.
    pub fn message(&self) -> Option<&Arc<str>> {
        self.message.as_ref()
    }

    /// What it does while the store is away, where it differs from the store's.
    pub fn on_failure(&self) -> Option<OnFailure> {
        self.on_failure
    }

    /// The fields whose values make the subject, as they are written; none: one counter for all.
    pub fn by(&self) -> impl Iterator<Item = &str> {
        self.by.iter().map(|field| &**field)
    }

    /// What it has decided, as far as somebody counts.
    #[inline]
    pub fn counters(&self) -> &RuleCounters {
        &self.counters
    }

    /// Its place in the policy, from 0 at the top.
    pub fn position(&self) -> usize {
        self.id as usize
    }

    /// Whether it is evaluated, counted and reported, but never denies.
    pub fn is_shadow(&self) -> bool {
        self.flags.shadow
    }

    /// The same as a number for the library.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// How its limits behave together.
    #[inline]
    pub(crate) fn flags(&self) -> RuleFlags {
        self.flags
    }

    /// Its ban and where the record of it is kept. A shadow rule never denies, so it never bans.
    pub(crate) fn ban(&self) -> Option<(&Ban, CounterId)> {
        self.ban.as_ref().filter(|_| !self.is_shadow()).map(|(ban, id)| (ban, *id))
    }

    pub(crate) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Every counter that the rule may keep for a subject.
    pub(crate) fn counter_ids(&self) -> impl Iterator<Item = CounterId> {
        self.all_limits().map(|limit| limit.id).chain(self.ban.as_ref().map(|(_, id)| *id))
    }

    /// Every limit that the rule may apply.
    pub(crate) fn all_limits(&self) -> impl Iterator<Item = &NamedLimit> {
        let limits: Vec<&NamedLimit> = match &self.limits {
            RuleLimits::None => Vec::new(),
            RuleLimits::Fixed(limits) => limits.iter().collect(),
            RuleLimits::ByField { cases, default, .. } => {
                cases.values().flatten().chain(default.iter().flatten()).collect()
            }
        };
        limits.into_iter()
    }
}
