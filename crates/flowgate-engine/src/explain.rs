//! Explains a decision: for every rule, whether it matched or why it did not, and the state of its limits.
//!
//! Invariant An explanation uses the functions that decide, and changes nothing.

use std::sync::Arc;

use flowgate::{Limit, Op, Reading, Time};

use crate::bans::ManualBan;
use crate::decider::Decider;
use crate::decision::Decision;
use crate::plan::{Outcomes, Plan};
use crate::request::Request;
use crate::rules::{Mismatch, OnFailure, Rule, RuleSet, Subjects, Values};
use crate::store::Store;

/// An explanation reads the bans of at most this many rules that do not match. Each one is a key in the store.
const MAX_BANNING_RULES: usize = 1000;

/// The decision that would be made, and the view of every rule.
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
    pub matched: RuleMatch,
    /// Whether the evaluation reached this rule. It ends at a rule without limits that matches. Under a ban by hand it
    /// reaches no rule.
    pub reached: bool,
    /// The state of its limits for the request's subject; empty if it has none or was not reached.
    pub limits: Vec<LimitReport>,
    /// The end of a ban in force on the request's subject, also where the rule does not match.
    pub banned_until: Option<Time>,
    /// What the rule does while the store is away: its limits are then not asked, or only in shares.
    pub on_failure: Option<OnFailure>,
}

/// Whether a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleMatch {
    /// It does.
    Yes,
    /// It does not, and this is the first of its conditions that fails.
    Failed {
        /// The field.
        field: String,
        /// What its value must be, as the rule writes it.
        expected: String,
        /// The request's value.
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
        /// The request's value.
        found: Option<String>,
    },
}

/// How one limit stands.
#[derive(Clone, Debug)]
pub struct LimitReport {
    /// The limit.
    pub limit: Limit,
    /// The decision that this limit alone would make.
    pub outcome: flowgate::Decision,
}

impl Decider {
    /// Explains what would be decided. Changes nothing.
    pub fn explain_by(&self, rules: &RuleSet, request: &Request<'_>, at: impl Into<Reading>) -> Explanation {
        let at = at.into();
        self.explain_plan(self.plan_to_explain(rules, request, at.now), request, at)
    }

    /// Explains the decision of a plan, with the counters in memory.
    pub(crate) fn explain_plan(&self, mut plan: Plan<'_>, request: &Request<'_>, at: Reading) -> Explanation {
        self.memory().apply_plan(&mut plan, at.now);
        let mut explanation = plan.explain(request, at.now);
        explanation.make_real(at);
        explanation
    }

    /// The plan of a `peek`, and the bans of the request's subjects by rules that this plan leaves out, such as those that do
    /// not match the request.
    pub fn plan_to_explain<'r>(&self, rules: &'r RuleSet, request: &Request<'_>, now: Time) -> Plan<'r> {
        let mut plan = self.plan(rules, Op::Peek, request, now);
        let values = rules.read(request);
        let banning = rules.rules.iter().filter(|rule| rule.ban_scope().is_some()).take(MAX_BANNING_RULES);
        plan.watch(banning, &values, &mut Subjects::new(rules, &values));
        plan
    }
}

impl Plan<'_> {
    /// Why a plan for a `peek` is decided as it is, once the store has filled in the outcomes.
    pub fn explain(&self, request: &Request<'_>, now: Time) -> Explanation {
        Explanation::new(request, self.outcomes(), now)
    }
}

impl Explanation {
    /// Explains by the outcomes of a plan for a `peek`.
    pub(crate) fn new(request: &Request<'_>, outcomes: Outcomes<'_, '_>, now: Time) -> Explanation {
        let rules = outcomes.rules;
        let values = rules.read(request);
        let reports = rules.rules.iter().map(|rule| report(rule, &values, outcomes)).collect();
        Explanation { rules: reports, ban: outcomes.ban_by_hand().cloned(), decision: outcomes.conclude(now.into()) }
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
    let id = rule.id;
    let of_rule = outcomes.hits().iter().filter(|hit| hit.rule_id() == id);
    let limits = of_rule.map(|hit| LimitReport { limit: hit.limit().clone(), outcome: *hit.outcome() });
    let banned_until = outcomes.bans_in_force().find(|(ban, _)| ban.rule_id() == id).map(|(_, until)| until);
    RuleReport {
        rule: Arc::clone(rule),
        matched: matched(outcomes.rules, rule, values),
        reached: outcomes.reached(rule),
        limits: limits.collect(),
        banned_until,
        on_failure: None,
    }
}

fn matched(rules: &RuleSet, rule: &Rule, values: &Values<'_>) -> RuleMatch {
    let found = |field| values.get(field).map(|value| value.text.to_owned());
    let name = |field| rules.field_name(field).to_owned();
    match rules.check(rule, values) {
        Ok(_) => RuleMatch::Yes,
        Err(Mismatch::Condition(index)) => {
            let check = &rule.checks[index];
            RuleMatch::Failed { field: name(check.field), expected: check.expected(), found: found(check.field) }
        }
        Err(Mismatch::Lacks(field)) => RuleMatch::Lacks { field: name(field) },
        Err(Mismatch::NoCase(field)) => RuleMatch::NoLimits { field: name(field), found: found(field) },
    }
}

#[cfg(test)]
mod tests {
    use flowgate::MemoryStore;

    use super::*;
    use crate::config::Config;

    #[test]
    fn an_explanation_asks_for_so_many_bans() {
        let ban = "ban = { after = 1, within = '1m', for = ['1m'] }";
        let rule = |number| {
            format!("{{ name = 'r{number}', when = {{ act = 'x' }}, by = ['ip'], limits = ['1/s'], {ban} }},\n")
        };
        let rules: String = (0..=MAX_BANNING_RULES).map(rule).collect();
        let decider = Decider::new(MemoryStore::default());
        let policy = Config::from_toml(&format!("rule = [{rules}]")).unwrap().policy;
        let rules = decider.compile(&policy, None).unwrap();
        let (request, now) = (Request::new().field("ip", "::1"), Time::from_secs(1));
        assert_eq!(decider.plan_to_explain(&rules, &request, now).bans.len(), MAX_BANNING_RULES);
        assert_eq!(decider.plan(&rules, Op::Peek, &request, now).bans.len(), 0);
    }
}
