//! A compiled policy: immutable, shared by all threads, replaced whole.

use std::sync::Arc;

use flowgate::CounterId;
use hashbrown::HashMap;

use super::BanScope;
use super::compile::next_generation;
use super::fields::{FieldId, FieldNames, Values};
use super::index::{Candidates, Index};
use super::rule::{LimitListId, NamedLimit, Rule, RuleLimits, SubjectId};
use super::subjects::SubjectFields;
use crate::http::PathSpelling;
use crate::request::Request;
use crate::rule_counters::RuleCounters;

/// The rules in force.
#[derive(Debug, Default)]
pub struct RuleSet {
    pub(crate) fields: FieldNames,
    /// The rules, top to bottom.
    pub rules: Box<[Arc<Rule>]>,
    pub(super) index: Index,
    /// The distinct `by` of all rules: fields in the order of their names.
    pub(super) subjects: Box<[SubjectFields]>,
    /// The lists of limits of all rules, by [`LimitListId`].
    pub(super) limits: Box<[Box<[NamedLimit]>]>,
    /// The positions of the rules whose bans deny everywhere.
    pub(super) banning_everywhere: Box<[u32]>,
    /// How the rules expect the field `path` to be spelled.
    pub path_spelling: PathSpelling,
    /// A number that no other compiled set of this process has.
    pub generation: u64,
}

/// Why a rule does not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// This condition, the first of the rule that fails.
    Condition(usize),
    /// The request lacks a field of `by`.
    Lacks(FieldId),
    /// `limits_by` has no limits for the value of this field.
    NoCase(FieldId),
}

impl RuleSet {
    /// The names of the fields that some rule looks at. Other fields of a request make no difference to rules.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.ids().map(|id| self.fields.name(id))
    }

    /// Lets rules continue the counts of the rules of the same name in `old`.
    pub fn inherit_counters(&mut self, old: &RuleSet) {
        let counters: HashMap<&str, &Arc<RuleCounters>> =
            old.rules.iter().map(|rule| (rule.name(), &rule.counters)).collect();
        for rule in &mut self.rules {
            // A set that is not in force yet shares its rules with no other owner.
            if let (Some(counters), Some(rule)) = (counters.get(rule.name()), Arc::get_mut(rule)) {
                rule.counters = Arc::clone(counters);
            }
        }
    }

    /// A copy whose rules never deny: every rule is a shadow rule, except those that let requests pass at once. The
    /// copy uses the same counters, and its decisions add to the counts of the same rules.
    #[must_use]
    pub fn shadowed(&self) -> RuleSet {
        let shadowed = |rule: &Arc<Rule>| {
            let mut rule = Rule::clone(rule);
            rule.flags.shadow |= !rule.allows_at_once();
            Arc::new(rule)
        };
        RuleSet {
            fields: self.fields.clone(),
            rules: self.rules.iter().map(shadowed).collect(),
            index: self.index.clone(),
            subjects: self.subjects.clone(),
            limits: self.limits.clone(),
            banning_everywhere: Box::default(),
            path_spelling: self.path_spelling,
            generation: next_generation(),
        }
    }

    pub(crate) fn rule(&self, id: u32) -> &Arc<Rule> {
        &self.rules[id as usize]
    }

    /// The values that the request gives to the fields that some rule uses.
    pub(crate) fn read<'q>(&self, request: &Request<'q>) -> Values<'q> {
        self.fields.read(request)
    }

    /// The rules that match, top to bottom, each with the limits that apply. `candidates` holds the rules that may match while
    /// they are checked.
    pub(crate) fn matching<'s>(
        &'s self,
        values: &Values<'_>,
        candidates: &mut Candidates<'s>,
    ) -> impl Iterator<Item = (&'s Arc<Rule>, LimitListId)> {
        self.find_candidates(values, candidates);
        candidates.rules().iter().filter_map(|id| {
            let rule = self.rule(*id);
            Some((rule, self.check_candidate(rule, values).ok()?))
        })
    }

    /// Finds the rules that may match, top to bottom.
    #[inline]
    pub(crate) fn find_candidates<'s>(&'s self, values: &Values<'_>, candidates: &mut Candidates<'s>) {
        #[cfg(feature = "count-work")]
        crate::work::Work::count_evaluation();
        self.index.find(values, candidates);
    }

    /// Like [`RuleSet::check`], for a rule that is among the candidates.
    // Inlined into the loop over the candidates.
    #[inline(always)]
    pub(crate) fn check_candidate(&self, rule: &Rule, values: &Values<'_>) -> Result<LimitListId, Mismatch> {
        self.check_conditions(rule.unproven.iter().copied(), rule, values)
    }

    /// The limits that a rule applies to a request; an empty list if the rule decides at once.
    pub(crate) fn check(&self, rule: &Rule, values: &Values<'_>) -> Result<LimitListId, Mismatch> {
        self.check_conditions(0..rule.checks.len(), rule, values)
    }

    /// Like [`RuleSet::check`], but checks only these conditions: the others are known to hold.
    #[inline(always)]
    fn check_conditions(
        &self,
        numbers: impl Iterator<Item = usize>,
        rule: &Rule,
        values: &Values<'_>,
    ) -> Result<LimitListId, Mismatch> {
        for number in numbers {
            let check = &rule.checks[number];
            if !check.predicate.holds(values.get(check.field)) {
                return Err(Mismatch::Condition(number));
            }
        }
        if let Some(lacking) = self.by(rule).find(|field| values.get(*field).is_none()) {
            return Err(Mismatch::Lacks(lacking));
        }
        match &rule.limits {
            RuleLimits::None => Ok(LimitListId::NONE),
            RuleLimits::Fixed(id) => Ok(*id),
            RuleLimits::ByField { field, cases, default } => {
                let case = values.get(*field).and_then(|value| cases.get(value.text));
                case.or(default.as_ref()).copied().ok_or(Mismatch::NoCase(*field))
            }
        }
    }

    pub(crate) fn limits(&self, id: LimitListId) -> &[NamedLimit] {
        &self.limits[id.0 as usize]
    }

    /// Every limit that a rule may apply.
    pub(crate) fn all_limits(&self, rule: &Rule) -> impl Iterator<Item = &NamedLimit> {
        let lists: Vec<LimitListId> = match &rule.limits {
            RuleLimits::None => Vec::new(),
            RuleLimits::Fixed(list) => vec![*list],
            RuleLimits::ByField { cases, default, .. } => cases.values().chain(default).copied().collect(),
        };
        lists.into_iter().flat_map(|list| self.limits(list))
    }

    /// Every counter that a rule may keep for a subject.
    pub(crate) fn counter_ids(&self, rule: &Rule) -> impl Iterator<Item = CounterId> {
        self.all_limits(rule).map(|limit| limit.id).chain(rule.ban.as_ref().map(|ban| ban.counter))
    }

    /// Whether the bans of some rule deny everywhere.
    #[inline]
    pub(crate) fn bans_everywhere(&self) -> bool {
        !self.banning_everywhere.is_empty()
    }

    /// The rules whose bans deny everywhere.
    pub(crate) fn banning_everywhere(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.banning_everywhere.iter().map(|id| self.rule(*id))
    }

    /// The rules whose bans deny everywhere, shadows included, and of which a request has a subject, each with the
    /// counter of its ban: a reset of the request lifts these bans.
    pub(crate) fn bans_to_lift<'a>(
        &'a self,
        values: &'a Values<'_>,
    ) -> impl Iterator<Item = (&'a Arc<Rule>, CounterId)> {
        self.rules.iter().filter_map(move |rule| {
            let ban = rule.ban.as_ref().filter(|ban| ban.scope == BanScope::Subject)?;
            self.has_subject(rule, values).then_some((rule, ban.counter))
        })
    }

    /// Whether a request has all fields that the rule counts by.
    pub(crate) fn has_subject(&self, rule: &Rule, values: &Values<'_>) -> bool {
        self.by(rule).all(|field| values.get(field).is_some())
    }

    pub(crate) fn field_name(&self, id: FieldId) -> &str {
        self.fields.name(id)
    }

    /// The fields that a rule counts by.
    #[inline]
    pub(crate) fn by(&self, rule: &Rule) -> impl ExactSizeIterator<Item = FieldId> {
        self.subject_fields(rule.subject).iter()
    }

    #[inline]
    pub(super) fn subject_fields(&self, id: SubjectId) -> &SubjectFields {
        &self.subjects[id.0 as usize]
    }
}
