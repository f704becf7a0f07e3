//! The results of one policy.

use flowgate::Time;
use flowgate_engine::{RuleDef, TopEntry};
use serde::Serialize;

use super::whole_seconds;
use crate::format;
use crate::policy_result::PolicyResult;
use crate::subject_counts::{Subject, SubjectCounts};
use crate::timeline::{Slot, WorstPeriod};

/// The most subjects in a list.
const MAX_SUBJECTS_LISTED: usize = 20;
/// The most periods of the timeline. Each is one bar of the chart.
const MAX_TIMELINE_PERIODS: usize = 180;

/// The results of one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Requests.
    pub requests: u64,
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that no rule matched.
    pub unmatched: u64,
    /// The results of the rules, in order.
    pub rules: Vec<RuleOutcome>,
    /// Subjects with at least one denial.
    pub subjects_denied: SubjectCount,
    /// The subjects with the most denials.
    pub hardest_hit: Vec<Hit>,
    /// The subjects that shadow rules would deny most.
    pub shadow_hits: Vec<Hit>,
    /// The minute with the most denials.
    pub worst_minute: Option<Period>,
    /// The hour with the most denials.
    pub worst_hour: Option<Period>,
    /// The width of a period of the timeline in seconds.
    pub period_seconds: u64,
    /// Passed and denied requests over time.
    pub timeline: Vec<Period>,
}

/// The results of a rule.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RuleOutcome {
    /// The name of the rule.
    pub name: String,
    /// The fields whose values are the rule's subject.
    #[serde(skip)]
    pub(crate) by: Vec<String>,
    /// Whether the rule runs in shadow mode: it denies nothing.
    pub shadow: bool,
    /// Requests that the rule matched before the evaluation ended.
    pub seen: u64,
    /// Requests that the rule let pass.
    pub passed: u64,
    /// Requests that the rule denied, alone or together with other rules.
    pub denied: u64,
    /// Denied requests that the rule's own ban denied.
    pub banned: u64,
    /// Requests that the rule would deny if it were not in shadow mode.
    pub would_deny: u64,
}

/// A number of subjects.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SubjectCount {
    /// The number.
    pub count: u64,
    /// Whether the number is a lower bound, since some subjects were forgotten.
    pub at_least: bool,
}

/// A subject and its count of requests.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// The rule that counts the subject.
    pub rule: String,
    /// The subject's values of the rule's `by`.
    pub subject: String,
    /// The number of requests.
    pub count: u64,
    /// The largest possible error of `count`, which is never too low.
    pub too_high_by: u64,
    /// The time of the first request.
    pub first: String,
    /// The time of the latest request.
    pub last: String,
}

/// The counts of a period of time.
#[derive(Clone, Debug, Serialize)]
pub struct Period {
    /// The start of the period.
    pub start: String,
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
}

impl Outcome {
    pub(super) fn new(result: &PolicyResult) -> Outcome {
        let (width, slots) = result.timeline.slots(MAX_TIMELINE_PERIODS);
        Outcome {
            requests: result.requests(),
            passed: result.passed,
            denied: result.denied,
            unmatched: result.unmatched,
            rules: result.rules.iter().map(RuleOutcome::with_passed).collect(),
            subjects_denied: SubjectCount::new(&result.subjects),
            hardest_hit: hits(&result.subjects, &result.rules),
            shadow_hits: hits(&result.shadow_subjects, &result.rules),
            worst_minute: Period::worst(&result.minute),
            worst_hour: Period::worst(&result.hour),
            period_seconds: whole_seconds(width),
            timeline: slots.iter().map(|(start, slot)| Period::new(*start, slot)).collect(),
        }
    }
}

impl RuleOutcome {
    /// The results of a rule before the first request.
    pub(crate) fn new(rule: &RuleDef) -> RuleOutcome {
        let (name, by) = (rule.name.clone(), rule.by.clone());
        RuleOutcome { name, by, shadow: rule.shadow, ..RuleOutcome::default() }
    }

    /// The results with the number of requests that the rule let pass. Every denied request is also counted as seen.
    fn with_passed(&self) -> RuleOutcome {
        RuleOutcome { passed: self.seen.saturating_sub(self.denied), ..self.clone() }
    }
}

impl SubjectCount {
    pub(super) fn new(subjects: &SubjectCounts) -> SubjectCount {
        let (count, at_least) = subjects.subjects();
        SubjectCount { count: count as u64, at_least }
    }
}

impl Period {
    fn new(start: Time, slot: &Slot) -> Period {
        Period { start: format::instant(start), passed: slot.passed, denied: slot.denied }
    }

    fn worst(worst: &WorstPeriod) -> Option<Period> {
        worst.slot().map(|(start, slot)| Period::new(start, &slot))
    }
}

/// The subjects with the largest counts.
pub(super) fn hits(subjects: &SubjectCounts, rules: &[RuleOutcome]) -> Vec<Hit> {
    let hit = |TopEntry { count, error, value: subject }: &TopEntry<Subject>| Hit {
        rule: rule_name(rules, subject.rule),
        subject: subject.text.clone(),
        count: *count,
        too_high_by: *error,
        first: format::instant(subject.first),
        last: format::instant(subject.last),
    };
    subjects.largest(MAX_SUBJECTS_LISTED).into_iter().map(hit).collect()
}

pub(super) fn rule_name(rules: &[RuleOutcome], position: usize) -> String {
    rules.get(position).map(|rule| rule.name.clone()).unwrap_or_default()
}
