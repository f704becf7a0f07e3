//! The same traffic under two policies: which requests change their verdict, and whose they are.
//!
//! Rule       Each policy decides every request with counters of its own, as if it had been in force all the time. A
//!            request is *newly denied* if the first policy allows it and the second denies it, and *newly passed* in
//!            the opposite case. The request is charged to the deciding rule of the policy that denies.

use flowgate::Time;
use flowgate_engine::{Decision, Request, RuleDef};

use super::subject_counts::SubjectCounts;

/// The requests by their two verdicts.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Requests that both policies allow.
    pub passed: u64,
    /// Requests that both policies deny.
    pub denied: u64,
    /// Requests that only the second policy denies.
    pub newly_denied: ChangedRequests,
    /// Requests that only the first policy denies.
    pub newly_passed: ChangedRequests,
}

/// The changes in one direction, by the rules of the policy that denies.
#[derive(Debug)]
pub(crate) struct ChangedRequests {
    /// The number of requests.
    pub requests: u64,
    /// The number of requests for each rule of that policy, in the order of the rules.
    pub rules: Vec<u64>,
    /// The subjects of those rules.
    pub subjects: SubjectCounts,
}

impl Changes {
    /// Counts of no requests yet.
    pub(crate) fn new(first: &[RuleDef], second: &[RuleDef]) -> Changes {
        Changes {
            passed: 0,
            denied: 0,
            newly_denied: ChangedRequests::new(second),
            newly_passed: ChangedRequests::new(first),
        }
    }

    /// Counts the two decisions on a request, each with the rules of its policy.
    pub(crate) fn add(&mut self, decisions: [(&Decision, &[RuleDef]); 2], request: &Request<'_>, now: Time) {
        let [(first, first_rules), (second, second_rules)] = decisions;
        match (first.allowed(), second.allowed()) {
            (true, true) => self.passed += 1,
            (false, false) => self.denied += 1,
            (true, false) => self.newly_denied.add(second, second_rules, request, now),
            (false, true) => self.newly_passed.add(first, first_rules, request, now),
        }
    }
}

impl ChangedRequests {
    fn new(rules: &[RuleDef]) -> ChangedRequests {
        ChangedRequests { requests: 0, rules: vec![0; rules.len()], subjects: SubjectCounts::default() }
    }

    fn add(&mut self, denial: &Decision, rules: &[RuleDef], request: &Request<'_>, now: Time) {
        self.requests += 1;
        let Some(rule) = denial.rule().map(|rule| rule.position()) else { return };
        if let (Some(count), Some(def)) = (self.rules.get_mut(rule), rules.get(rule)) {
            *count += 1;
            self.subjects.add(rule, &def.by, request, now);
        }
    }
}
