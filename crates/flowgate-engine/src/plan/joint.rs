//! A joint plan: several requests that pass together or not at all.
//!
//! Rule       Each part has its own operation, cost, rules and decision. All parts are decided at one instant;
//!            [`flowgate::Plan`] says how parts that share a counter see each other.
//! Rule       A rule without limits that denies one part, and a ban by hand on one part, deny the step.

use flowgate::{Algorithm, Hit, Op, PlanPart, Reading, Retry, Span, Time, Verdict};

use super::Plan;
use super::outcomes::Outcomes;
use crate::decision::Decision;

/// What several requests ask of the store in one atomic step.
#[derive(Debug)]
pub struct JointPlan<'r> {
    /// The plans of the requests, in order.
    pub parts: Vec<Plan<'r>>,
    /// True if something outside the plan denies the step.
    denied: bool,
}

/// The answer to several requests that pass together or not at all.
#[derive(Clone, Debug)]
pub struct JointDecision {
    parts: Vec<PartDecision>,
}

/// The answer to one request of a joint step.
#[derive(Clone, Debug)]
pub struct PartDecision {
    /// The request's own decision. In a denied step a part may be allowed by itself.
    pub decision: Decision,
    /// Whether the step has passed and has counted the cost of this part.
    pub charged: bool,
}

impl<'r> JointPlan<'r> {
    /// A joint plan of these plans. Different rule sets may have made them.
    pub fn new(parts: Vec<Plan<'r>>) -> JointPlan<'r> {
        JointPlan { parts, denied: false }
    }

    /// The same plan, denied by something outside it.
    #[cfg(feature = "redis")]
    pub(crate) fn denied(self) -> JointPlan<'r> {
        JointPlan { denied: true, ..self }
    }

    /// Whether something other than a limit denies the step: a rule without limits, or a ban by hand.
    pub(crate) fn is_denied(&self) -> bool {
        self.denied || self.parts.iter().any(|part| part.evaluation.is_denied(part.rules))
    }

    /// The plan for a store. If something other than a limit has denied, the plan gets a part without hits that denies.
    pub(crate) fn for_store(&mut self, now: Time) -> flowgate::Plan<'_, 'r> {
        let is_denied = self.is_denied();
        let mut plan = flowgate::Plan::new(now);
        for Plan { evaluation, hits, bans, .. } in &mut self.parts {
            plan.push(PlanPart { op: evaluation.asked, cost: evaluation.cost, hits, bans });
        }
        if is_denied {
            plan.push(PlanPart::new(Op::Deny, 0, &mut []));
        }
        plan
    }

    /// The decision, once the store has filled in the outcomes.
    pub fn conclude(&self, now: Time) -> JointDecision {
        JointDecision::new(self.parts.iter().map(Plan::outcomes), now)
    }
}

impl JointDecision {
    pub(crate) fn new<'p, 'r: 'p>(parts: impl Iterator<Item = Outcomes<'p, 'r>> + Clone, now: Time) -> JointDecision {
        let decisions: Vec<Decision> = parts.clone().map(|part| part.conclude(now.into())).collect();
        let passes = decisions.iter().all(Decision::allowed);
        let charged = parts.map(|part| passes && part.is_charged());
        let part = |(decision, charged)| PartDecision { decision, charged };
        JointDecision { parts: decisions.into_iter().zip(charged).map(part).collect() }
    }

    /// The decisions of the requests, in order.
    pub fn parts(&self) -> &[PartDecision] {
        &self.parts
    }

    /// The decisions of the requests, in order, to be changed by the caller.
    pub fn parts_mut(&mut self) -> &mut [PartDecision] {
        &mut self.parts
    }

    /// Marks all answers as stopgaps.
    #[must_use]
    pub fn as_stopgap(self) -> JointDecision {
        let marked = |part: PartDecision| PartDecision { decision: part.decision.as_stopgap(), ..part };
        JointDecision { parts: self.parts.into_iter().map(marked).collect() }
    }

    /// Whether the step passes: no part is denied.
    pub fn allowed(&self) -> bool {
        self.first_denied().is_none()
    }

    /// The first decision that denies. Its rule and its action are those of the step.
    pub fn first_denied(&self) -> Option<&Decision> {
        self.decisions().find(|decision| !decision.allowed())
    }

    /// The longest wait of all parts, or the longest delay if the step passes. No wait helps if none helps one part.
    pub fn verdict(&self) -> Verdict {
        let delay = self.decisions().map(Decision::delay).max().unwrap_or(Span::ZERO);
        let denials = self.decisions().filter(|decision| !decision.allowed());
        let retries = denials.map(|denied| denied.retry_after().map_or(Retry::Never, Retry::After));
        retries.max().map_or(Verdict::Allow { delay }, Verdict::Deny)
    }

    /// Makes the waits real time, and the ends of bans instants on the wall clock.
    pub(crate) fn make_real(&mut self, at: Reading) {
        self.parts.iter_mut().for_each(|part| part.decision.make_real(at));
    }

    fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.parts.iter().map(|part| &part.decision)
    }
}

impl From<Vec<PartDecision>> for JointDecision {
    fn from(parts: Vec<PartDecision>) -> JointDecision {
        JointDecision { parts }
    }
}

impl Outcomes<'_, '_> {
    /// Whether a step that passes has counted the cost: a limit that is not a shadow rule's has counted a take or a
    /// record.
    pub(crate) fn is_charged(self) -> bool {
        let counts = |hit: &Hit<'_>| {
            !hit.flags().shadow && hit.limit().algorithm() != Algorithm::Unlimited && hit.outcome().allowed()
        };
        let is_charge = !matches!(self.evaluation.asked, Op::Peek | Op::Refund) && self.evaluation.cost > 0;
        is_charge && self.hits.iter().any(counts)
    }
}
