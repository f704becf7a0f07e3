//! The same traffic under two policies: what changes for whom.
//!
//! Rule       Both see every request, each with counters of its own, so each decides as if it had been in force all
//!            the time. A request is *newly denied* when the first passes and the second denies it, *newly passed* when
//!            it is the other way round; it is put down to the rule that decided on the side that denies.

use flowgate::Time;
use flowgate_engine::{Decision, Request, RuleDef};

use super::top::Top;

/// What changes.
#[derive(Debug)]
pub struct Changes {
    /// Passed under both.
    pub passed: u64,
    /// Denied under both.
    pub denied: u64,
    /// Passed under the first, denied by the second.
    pub newly_denied: Side,
    /// Denied by the first, passed under the second.
    pub newly_passed: Side,
}

/// The changes in one direction, put down to the rules of the policy that denies.
#[derive(Debug)]
pub struct Side {
    /// So many requests.
    pub requests: u64,
    /// For each rule of that policy, in order.
    pub rules: Vec<u64>,
    /// The subjects of those rules.
    pub top: Top,
}

impl Changes {
    /// Nothing has happened yet.
    pub fn new(first: &[RuleDef], second: &[RuleDef]) -> Changes {
        let side = |rules: &[RuleDef]| Side { requests: 0, rules: vec![0; rules.len()], top: Top::default() };
        Changes { passed: 0, denied: 0, newly_denied: side(second), newly_passed: side(first) }
    }

    /// Counts what both decided.
    pub fn add(&mut self, decided: [(&Decision, &[RuleDef]); 2], request: &Request<'_>, now: Time) {
        let [(first, first_rules), (second, second_rules)] = decided;
        match (first.allowed(), second.allowed()) {
            (true, true) => self.passed += 1,
            (false, false) => self.denied += 1,
            (true, false) => self.newly_denied.add(second, second_rules, request, now),
            (false, true) => self.newly_passed.add(first, first_rules, request, now),
        }
    }

    /// All requests whose fate changes.
    pub fn changed(&self) -> u64 {
        self.newly_denied.requests + self.newly_passed.requests
    }
}

impl Side {
    fn add(&mut self, denial: &Decision, rules: &[RuleDef], request: &Request<'_>, now: Time) {
        self.requests += 1;
        let Some(rule) = denial.rule.as_ref().map(|rule| rule.position()) else { return };
        if let (Some(count), Some(def)) = (self.rules.get_mut(rule), rules.get(rule)) {
            *count += 1;
            self.top.add(rule, &def.by, request, now);
        }
    }
}
