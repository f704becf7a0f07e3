//! The same traffic under a second policy.

use serde::Serialize;

use super::outcome::{Hit, Outcome, RuleOutcome, SubjectCount, hits, rule_name};
use crate::compare::{ChangedRequests, Changes};
use crate::policy_result::PolicyResult;

/// The results of the second policy, compared with the first.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The name of the second policy.
    pub policy: String,
    /// The results of the second policy.
    pub outcome: Outcome,
    /// Requests that both policies allow.
    pub passed_by_both: u64,
    /// Requests that both policies deny.
    pub denied_by_both: u64,
    /// Requests that only the second policy denies.
    pub newly_denied: Change,
    /// Requests that only the first policy denies.
    pub newly_passed: Change,
}

/// The requests whose verdict changes in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The number of requests.
    pub requests: u64,
    /// The number of their subjects.
    pub subjects: SubjectCount,
    /// The rules of the denying policy that decided those requests.
    pub rules: Vec<RuleChange>,
    /// The subjects with the most of those requests.
    pub most: Vec<Hit>,
}

/// The requests whose verdict a rule changes.
#[derive(Clone, Debug, Serialize)]
pub struct RuleChange {
    /// The name of the rule.
    pub rule: String,
    /// The number of requests.
    pub requests: u64,
}

impl Comparison {
    pub(super) fn new(
        policy: String,
        second: &PolicyResult,
        first_rules: &[RuleOutcome],
        changes: &Changes,
    ) -> Comparison {
        Comparison {
            policy,
            outcome: Outcome::new(second),
            passed_by_both: changes.passed,
            denied_by_both: changes.denied,
            newly_denied: Change::new(&changes.newly_denied, &second.rules),
            newly_passed: Change::new(&changes.newly_passed, first_rules),
        }
    }
}

impl Change {
    fn new(changed: &ChangedRequests, rules: &[RuleOutcome]) -> Change {
        let rule_changes = changed.rules.iter().enumerate().filter(|(_, requests)| **requests > 0);
        let rule_changes = rule_changes.map(|(rule, &requests)| RuleChange { rule: rule_name(rules, rule), requests });
        Change {
            requests: changed.requests,
            subjects: SubjectCount::new(&changed.subjects),
            rules: rule_changes.collect(),
            most: hits(&changed.subjects, rules),
        }
    }
}
