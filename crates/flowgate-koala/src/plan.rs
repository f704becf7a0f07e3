//! Plans by Koala's rules: questions, feedback and the value of a counter.
//!
//! Rule       With write-through, and by an update, **every** matching rule counts one, also those below the one that
//!            decides, also if that one denies. Verdict and count are one atomic step.
//! Rule       A ban by hand of a field's value denies before any rule. Then only an update counts.
//! Invariant  A [`KoalaPlan`] holds one hit per matching rule that has a counter, in file order.

use flowgate::{Hit, Op, Time};
use flowgate_engine::front::Include;
use flowgate_engine::{Decider, Outcomes, Plan, Request, Store};
use smallvec::SmallVec;

use super::answer::{KoalaAnswer, KoalaAsk};
use super::rules::KoalaRules;

/// The units that feedback gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KoalaErase {
    /// `erase1` of each leak rule.
    Erase1,
    /// `erase2` of each leak rule.
    Erase2,
}

/// What a request asks of the store.
#[derive(Debug)]
pub struct KoalaPlan<'r> {
    /// The counters, for the store to apply.
    pub plan: Plan<'r>,
    /// The positions of the direct rules that match.
    /// The rules without limits that the request meets.
    pub direct: SmallVec<[u32; 2]>,
}

impl KoalaRules {
    /// The answer to a request that a ban by hand keeps out.
    pub fn ban(&self, decider: &Decider, ask: KoalaAsk, request: &Request<'_>, now: Time) -> Option<KoalaAnswer> {
        let banned = ask != KoalaAsk::Update && decider.is_banned(request, now);
        banned.then(|| KoalaAnswer { banned, ..KoalaAnswer::default() })
    }

    /// What a request asks of the store, once no [ban by hand](KoalaRules::ban) keeps it out.
    pub fn plan(&self, decider: &Decider, ask: KoalaAsk, request: &Request<'_>) -> KoalaPlan<'_> {
        let mut direct = SmallVec::new();
        let mut plan = Plan::new(&self.set, ask.op(), 1);
        plan.add_matching(request, decider.memory(), |rule, has_limits| {
            if has_limits {
                return Include::Yes;
            }
            direct.push(rule.position() as u32);
            let ends = ask == KoalaAsk::Browse && !self.is_paused(rule.position());
            if ends { Include::End } else { Include::No }
        });
        KoalaPlan { plan, direct }
    }

    /// The answer, once the store has filled in the outcomes.
    pub fn conclude(&self, ask: KoalaAsk, plan: &KoalaPlan<'_>) -> KoalaAnswer {
        KoalaAnswer::from_hits(self, ask, plan.plan.hits(), &plan.direct)
    }

    /// Decides a request by the counters in memory.
    pub fn decide(&self, decider: &Decider, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer {
        let mut plan = self.plan(decider, ask, request);
        decider.memory().apply_plan(&mut plan.plan, now);
        self.conclude(ask, &plan)
    }

    /// What feedback asks of the store: each leak rule that matches gets units back, each its own number of them.
    pub fn feedback_plans(
        &self,
        decider: &Decider,
        erase: KoalaErase,
        request: &Request<'_>,
    ) -> SmallVec<[Plan<'_>; 2]> {
        let mut erased: SmallVec<[(u32, u64); 2]> = SmallVec::new();
        Plan::new(&self.set, Op::Refund, 0).add_matching(request, decider.memory(), |rule, _| {
            let units = self.erased_units(rule.position(), erase);
            erased.extend(units.map(|units| (rule.position() as u32, units)));
            Include::No
        });
        let plan = |(rule, units)| {
            let mut plan = Plan::new(&self.set, Op::Refund, units);
            plan.add_rule(rule, request, decider.memory());
            plan
        };
        erased.into_iter().map(plan).collect()
    }

    /// Gives units back to the counters in memory.
    pub fn feedback(&self, decider: &Decider, erase: KoalaErase, request: &Request<'_>, now: Time) {
        for mut plan in self.feedback_plans(decider, erase, request) {
            decider.memory().apply_plan(&mut plan, now);
        }
    }

    /// The question how much the rule of a number has counted for a request; `None`: there is no such rule. A rule
    /// without a counter, or that does not match, gives a plan without hits.
    pub fn value_plan(&self, decider: &Decider, number: u32, request: &Request<'_>) -> Option<Plan<'_>> {
        let rule = self.position(number)?;
        let mut plan = Plan::new(&self.set, Op::Peek, 0);
        plan.add_rule(rule, request, decider.memory());
        Some(plan)
    }

    /// What the rule with this number has counted in memory for a request; `None`: no rule has this number.
    pub fn value(&self, decider: &Decider, number: u32, request: &Request<'_>, now: Time) -> Option<u64> {
        let mut plan = self.value_plan(decider, number, request)?;
        decider.memory().apply_plan(&mut plan, now);
        Some(KoalaRules::concluded_value(plan.outcomes()))
    }

    /// How much is in the counter, by the outcomes of [`KoalaRules::value_plan`].
    pub fn concluded_value(outcomes: Outcomes<'_, '_>) -> u64 {
        outcomes.hits().first().map_or(0, Hit::used)
    }
}
