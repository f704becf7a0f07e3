//! Koala's plans for counters in Redis.

use flowgate::Time;
use flowgate_engine::redis::{OwnedPlan, ReplyError};
use flowgate_engine::{Decider, Outcomes, Request, Store};
use smallvec::SmallVec;

use super::answer::{KoalaAnswer, KoalaAsk};
use super::plan::{KoalaErase, KoalaPlan};
use super::rules::KoalaRules;

/// A plan that waits for Redis's reply.
#[derive(Clone, Debug)]
pub struct OwnedKoalaPlan {
    /// The questions about counters.
    pub plan: OwnedPlan,
    /// What the caller asks for.
    pub ask: KoalaAsk,
    /// The positions of the direct rules that match.
    direct: SmallVec<[u32; 2]>,
}

impl OwnedKoalaPlan {
    /// The owned form of a plan that was made by `rules` for `request`.
    pub fn new(rules: &KoalaRules, ask: KoalaAsk, plan: &KoalaPlan<'_>, request: &Request<'_>) -> OwnedKoalaPlan {
        let KoalaPlan { plan, direct } = plan;
        OwnedKoalaPlan { plan: OwnedPlan::new(&rules.set, plan, request), ask, direct: direct.clone() }
    }

    /// The answer that follows from the replies.
    ///
    /// # Errors
    /// The same as for [`OwnedPlan::read`].
    pub fn conclude(&self, rules: &KoalaRules, replies: &[&[i64]]) -> Result<KoalaAnswer, ReplyError> {
        self.plan.read(replies, |outcomes, _| self.answer(rules, outcomes))
    }

    /// The answer of this node's counters, under the limits of `local`: a copy of `rules` that differs in limits alone.
    pub fn decide(&self, decider: &Decider, rules: &KoalaRules, local: &KoalaRules, now: Time) -> KoalaAnswer {
        let mut plan = self.plan.under(&local.set, now.into());
        decider.memory().apply_plan(&mut plan, now);
        self.answer(rules, plan.outcomes())
    }

    /// The answer as if every limit were exceeded: the store is away, and `on_failure` denies.
    pub fn denied(&self, rules: &KoalaRules) -> KoalaAnswer {
        let limited = self.plan.limited_by().map(|rule| (rule.position() as u32, true));
        KoalaAnswer::new(rules, self.ask, limited, &self.direct)
    }

    fn answer(&self, rules: &KoalaRules, outcomes: Outcomes<'_, '_>) -> KoalaAnswer {
        KoalaAnswer::from_hits(rules, self.ask, outcomes.hits(), &self.direct)
    }
}

impl KoalaRules {
    /// The plans of feedback for Redis, one for each rule.
    pub fn owned_feedback(&self, erase: KoalaErase, request: &Request<'_>) -> Vec<OwnedPlan> {
        let plans = self.feedback_plans(erase, request).into_iter();
        plans.map(|plan| OwnedPlan::new(&self.set, &plan, request)).collect()
    }

    /// Plans the question to Redis how much the rule with this number has counted for a request; `None`: no rule has
    /// this number.
    pub fn owned_value(&self, number: u32, request: &Request<'_>) -> Option<OwnedPlan> {
        Some(OwnedPlan::new(&self.set, &self.value_plan(number, request)?, request))
    }
}
