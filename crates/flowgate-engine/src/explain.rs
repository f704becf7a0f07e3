//! Why a decision is what it is: every rule, whether it matched or what kept it from it, and how its limits stand.
//!
//! Invariant  Explaining asks what deciding asks, by the same functions, and changes nothing.

use std::sync::Arc;

use flowgate::{Limit, Op, Reading, Standing, Time};

use crate::bans::ManualBan;
use crate::decider::Decider;
use crate::decision::Decision;
use crate::plan::{Outcomes, Plan};
use crate::request::Request;
use crate::rules::{Mismatch, OnFailure, Rule, RuleSet, Values};
use crate::store::Store;

/// What would be decided, and how every rule sees it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What `peek` answers.
    pub decision: Decision,
    /// The ban by hand that decides before any rule.
    pub ban: Option<Arc<ManualBan>>,
    /// Every rule, top to bottom.
    pub rules: Vec<RuleReport>,
}

/// How one rule sees a request.
#[derive(Clone, Debug)]
pub struct RuleReport {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Whether it matches.
    pub matched: Matched,
    /// Whether the evaluation got as far as this rule; what stands below a rule without limits that matches, or any
    /// rule under a ban by hand, has no say.
    pub reached: bool,
    /// How its limits stand for the request's subject; empty where it has none, or no say.
    pub limits: Vec<LimitReport>,
    /// The end of a ban in force on the request's subject.
    pub banned_until: Option<Time>,
    /// What the rule does, where the store is away and its limits are not asked, or in shares.
    pub on_failure: Option<OnFailure>,
}

/// Whether a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matched {
    /// It does.
    Yes,
    /// It does not, and this is the first of its conditions that fails.
    Failed {
        /// The field.
        field: String,
        /// What it must be, as it is written.
        expected: String,
        /// What it is.
        found: Option<String>,
    },
    /// It does not, because the request lacks a field that the rule counts by.
    Lacks {
        /// The field.
        field: String,
    },
    /// It does not, because `limits_by` has no limits for the value.
    NoLimits {
        /// The field.
        field: String,
        /// What it is.
        found: Option<String>,
    },
}

/// How one limit stands.
#[derive(Clone, Debug)]
pub struct LimitReport {
    /// The limit.
    pub limit: Limit,
    /// What it alone would say.
    pub outcome: flowgate::Decision,
}

impl Decider {
    /// What would be decided, and why. Changes nothing.
    pub fn explain_by(&self, rules: &RuleSet, request: &Request<'_>, at: impl Into<Reading>) -> Explanation {
        let at = at.into();
        let mut plan = self.plan(rules, Op::Peek, request, at.now);
        self.memory().apply_plan(&mut plan, at.now);
        let mut explanation = Explanation::new(request, plan.outcomes(), at.now);
        explanation.make_real(at);
        explanation
    }
}

impl Plan<'_> {
    /// Why a plan for a `peek` is decided as it is, once the store has filled in the outcomes.
    pub fn explain(&self, request: &Request<'_>, now: Time) -> Explanation {
        Explanation::new(request, self.outcomes(), now)
    }
}

impl Explanation {
    /// By the outcomes of a plan for a `peek`.
    pub(crate) fn new(request: &Request<'_>, outcomes: Outcomes<'_, '_>, now: Time) -> Explanation {
        let rules = outcomes.rules;
        let values = rules.read(request);
        let reports = rules.rules().iter().map(|rule| report(rule, &values, outcomes)).collect();
        Explanation { rules: reports, ban: outcomes.ban_by_hand().cloned(), decision: outcomes.conclude(now) }
    }

    /// Makes the waits real time, and the ends of bans instants on the wall clock.
    pub(crate) fn make_real(&mut self, at: Reading) {
        self.decision.make_real(at);
        self.ban = self.ban.take().map(|ban| ban.on_the_wall(at));
        for report in &mut self.rules {
            report.limits.iter_mut().for_each(|limit| limit.outcome.make_real(at));
            report.banned_until = report.banned_until.map(|until| at.on_the_wall(until));
        }
    }
}

fn report(rule: &Arc<Rule>, values: &Values<'_>, outcomes: Outcomes<'_, '_>) -> RuleReport {
    let id = rule.id();
    let of_rule = outcomes.hits().iter().filter(|hit| hit.rule_id() == id);
    let limits = of_rule.map(|hit| LimitReport { limit: hit.limit().clone(), outcome: *hit.outcome() });
    let standing = outcomes.bans.iter().find(|ban| ban.rule_id() == id).map(|ban| ban.standing());
    let banned_until = match standing {
        Some(Standing::Banned { until }) => Some(until),
        _ => None,
    };
    RuleReport {
        rule: Arc::clone(rule),
        matched: matched(outcomes.rules, rule, values),
        reached: outcomes.reached(rule),
        limits: limits.collect(),
        banned_until,
        on_failure: None,
    }
}

fn matched(rules: &RuleSet, rule: &Rule, values: &Values<'_>) -> Matched {
    let found = |field| values.get(field).map(|value| value.text.to_owned());
    let name = |field| rules.field_name(field).to_owned();
    match rules.check(rule, values) {
        Ok(_) => Matched::Yes,
        Err(Mismatch::Condition(index)) => {
            let check = &rule.checks()[index];
            let expected = check.written.to_string();
            Matched::Failed { field: name(check.field), expected, found: found(check.field) }
        }
        Err(Mismatch::Lacks(field)) => Matched::Lacks { field: name(field) },
        Err(Mismatch::NoCase(field)) => Matched::NoLimits { field: name(field), found: found(field) },
    }
}
