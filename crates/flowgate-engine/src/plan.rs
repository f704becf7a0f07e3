//! A plan: what a request asks of the store, worked out before the store is touched, and what follows from the
//! store's answers. Both steps are pure; a store fills in the outcomes in between.

mod evaluation;
mod joint;
mod outcomes;
mod planned_take;

use std::sync::Arc;

use flowgate::{BanHit, Hit, Op, Reading, Subject};
use smallvec::SmallVec;

use crate::decision::Decision;
use crate::request::Request;
use crate::rules::{Candidates, LimitListId, Rule, RuleSet, Subjects, Values};
pub(crate) use evaluation::{BanHits, End, Evaluation, Hits, Step};
pub use joint::{JointDecision, JointPlan, PartDecision};
pub use outcomes::{Denied, Outcomes, Pass, TakeAnswer};
pub use planned_take::{PlannedTake, RequestNames};

/// What a request asks of the store, and how its evaluation ended.
#[derive(Debug)]
pub struct Plan<'r> {
    /// The rules that it is made by.
    pub(crate) rules: &'r RuleSet,
    pub(crate) evaluation: Evaluation,
    pub(crate) hits: Hits<'r>,
    pub(crate) bans: BanHits<'r>,
}

/// The memory for the hits of a decision. A caller that decides several requests by the same rules uses one buffer for
/// all of them.
#[derive(Debug, Default)]
pub struct HitBuffer<'r> {
    pub(crate) hits: Hits<'r>,
    pub(crate) bans: BanHits<'r>,
}

impl<'r> HitBuffer<'r> {
    /// Replaces the hits by those of an evaluation.
    #[inline]
    pub(crate) fn fill(&mut self, rules: &'r RuleSet, evaluation: &Evaluation) {
        #[cfg(feature = "count-work")]
        crate::work::Work::count_plan();
        self.hits.clear();
        self.bans.clear();
        evaluation.add_hits(rules, &mut self.hits, &mut self.bans);
    }
}

/// Whether a plan includes the limits of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Apply its limits.
    Yes,
    /// Leave it out.
    No,
    /// Leave it out, and all rules below it.
    End,
}

impl<'r> Plan<'r> {
    /// A plan of this operation, without any limit.
    pub fn new(rules: &'r RuleSet, op: Op, cost: u64) -> Plan<'r> {
        #[cfg(feature = "count-work")]
        crate::work::Work::count_plan();
        Plan { rules, evaluation: Evaluation::new(op, cost), hits: SmallVec::new(), bans: SmallVec::new() }
    }

    /// An empty plan, which [`Decider::plan_into`](crate::Decider::plan_into) overwrites.
    pub fn empty(rules: &'r RuleSet) -> Plan<'r> {
        Plan::new(rules, Op::Peek, 0)
    }

    /// The plan of an evaluation by `rules`, with the limits of the rule set `limits` in place of theirs.
    #[cfg(feature = "redis")]
    pub(crate) fn from_evaluation(rules: &'r RuleSet, limits: &'r RuleSet, evaluation: Evaluation) -> Plan<'r> {
        #[cfg(feature = "count-work")]
        crate::work::Work::count_plan();
        let mut plan = Plan { rules, evaluation, hits: SmallVec::new(), bans: SmallVec::new() };
        plan.add_hits(limits, 0);
        plan
    }

    /// Begins anew, for another request.
    #[inline]
    pub(crate) fn begin(&mut self, op: Op, cost: u64) {
        self.evaluation.begin(op, cost);
        self.hits.clear();
        self.bans.clear();
    }

    /// Applies the limits of a rule to a subject.
    #[inline]
    pub(crate) fn limit(&mut self, rule: &'r Rule, subject: Subject, limits: LimitListId) {
        let step = Step { rule: rule.id, limits, subject };
        Evaluation::hit(&step, self.rules, &mut self.hits, &mut self.bans);
        self.evaluation.steps.push(step);
    }

    /// Adds the hits of the step at `from` and all later ones, with the limits of the rule set `limits`.
    #[inline]
    pub(crate) fn add_hits(&mut self, limits: &'r RuleSet, from: usize) {
        for step in &self.evaluation.steps[from..] {
            Evaluation::hit(step, limits, &mut self.hits, &mut self.bans);
        }
    }

    /// As [`Evaluation::watch`].
    pub(crate) fn watch<'a>(
        &mut self,
        rules: impl Iterator<Item = &'a Arc<Rule>>,
        values: &Values<'_>,
        subjects: &mut Subjects<'_, '_>,
    ) {
        let before = self.evaluation.steps.len();
        self.evaluation.watch(self.rules, rules, values, subjects);
        self.add_hits(self.rules, before);
    }

    /// Calls `include` with every matching rule, top to bottom, and whether it has limits, and applies the limits of
    /// the included rules. For fronts whose rules do not end an evaluation as those of
    /// [`Decider::plan`](crate::Decider::plan) do.
    pub fn add_matching(&mut self, request: &Request<'_>, mut include: impl FnMut(&Rule, bool) -> Include) {
        let values = self.rules.read(request);
        let mut subjects = Subjects::new(self.rules, &values);
        for (rule, limits) in self.rules.matching(&values, &mut Candidates::default()) {
            match include(rule, !limits.is_none()) {
                Include::Yes => self.limit(rule, subjects.counted_by(rule), limits),
                Include::No => {}
                Include::End => return,
            }
        }
    }

    /// Applies the limits of the rule at a position, if it has some and matches the request.
    pub fn add_rule(&mut self, position: u32, request: &Request<'_>) {
        let (rule, values) = (self.rules.rule(position), self.rules.read(request));
        if let Ok(limits) = self.rules.check(rule, &values)
            && !limits.is_none()
        {
            self.limit(rule, Subjects::new(self.rules, &values).counted_by(rule), limits);
        }
    }

    /// What the store is to do.
    pub fn op(&self) -> Op {
        self.evaluation.store_op(self.rules, &self.hits)
    }

    /// The number of units that the request costs.
    pub fn cost(&self) -> u64 {
        self.evaluation.cost
    }

    /// The hits, for the store to apply and for callers to look at.
    pub fn hits(&self) -> &[Hit<'r>] {
        &self.hits
    }

    /// A number for the limits of the plan. Plans with different limits, or of different rule sets, have different
    /// numbers.
    pub fn limits_id(&self) -> u64 {
        let first = self.rules.generation.rotate_left(32);
        self.evaluation.steps.iter().fold(first, |id, step| id.rotate_left(9) ^ u64::from(step.limits.number()))
    }

    /// The positions of the rules that matched as far as the evaluation went, each once, in no particular order.
    pub fn rules(&self) -> impl Iterator<Item = usize> + '_ {
        let end = match self.evaluation.end {
            End::Rule(rule) => Some(rule),
            End::Bottom | End::Ban(_) => None,
        };
        let limited = self.evaluation.steps.iter().filter(|step| step.has_limits()).map(|step| step.rule);
        limited.chain(self.evaluation.passed_by.iter().copied()).chain(end).map(|rule| rule as usize)
    }

    /// Whether the request passes and there is nothing more to report, once the store has filled in the outcomes: every
    /// limit lets it pass, including those of shadow rules, and no ban and no rule without limits decides.
    #[inline]
    pub fn merely_passes(&self) -> bool {
        self.outcomes().merely_passes()
    }

    /// Whether any rule matched, or a ban by hand did.
    #[inline]
    pub fn matched(&self) -> bool {
        self.evaluation.matched()
    }

    /// Whether a denial by the limits changes no state and holds for every request with the same plan: no rule of the
    /// plan counts denied requests, bans or is a shadow rule, and nothing other than limits decides.
    pub fn is_idle_when_denied(&self) -> bool {
        let Evaluation { end, passed_by, .. } = &self.evaluation;
        let plain = |hit: &Hit<'_>| !hit.flags().count_denied && !hit.flags().shadow;
        let ends_idle = !matches!(end, End::Ban(_)) && !self.evaluation.ends_in_denial(self.rules);
        ends_idle && self.bans.iter().all(BanHit::watches) && passed_by.is_empty() && self.hits.iter().all(plain)
    }

    /// What the store has answered, once it has filled in the outcomes.
    #[inline]
    pub fn outcomes(&self) -> Outcomes<'_, 'r> {
        Outcomes { rules: self.rules, evaluation: &self.evaluation, hits: &self.hits, bans: &self.bans }
    }

    /// The decision, once the store has filled in the outcomes.
    pub fn conclude(&self, at: impl Into<Reading>) -> Decision {
        self.outcomes().conclude(at.into())
    }
}
