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

/// The questions of one request to the store.
#[derive(Debug)]
pub struct KoalaPlan<'r> {
    /// The counters, for the store to apply.
    pub plan: Plan<'r>,
    /// The positions of the direct rules, which have no counters, that match.
    pub direct: SmallVec<[u32; 2]>,
}

impl KoalaRules {
    /// The answer to a request that a ban by hand denies; `None`: no ban does.
    pub fn ban(&self, decider: &Decider, ask: KoalaAsk, request: &Request<'_>, now: Time) -> Option<KoalaAnswer> {
        let banned = ask != KoalaAsk::Update && decider.is_banned(request, now);
        banned.then(|| KoalaAnswer { banned, ..KoalaAnswer::default() })
    }

    /// Plans the questions of a request to the store. The caller has checked [bans by hand](KoalaRules::ban) before.
    pub fn plan(&self, ask: KoalaAsk, request: &Request<'_>) -> KoalaPlan<'_> {
        let mut direct = SmallVec::new();
        let mut plan = Plan::new(&self.set, ask.op(), 1);
        plan.add_matching(request, |rule, has_limits| {
            if has_limits {
                return Include::Yes;
            }
            direct.push(rule.position() as u32);
            let ends = ask == KoalaAsk::Browse && !self.is_paused(rule.position());
            if ends { Include::End } else { Include::No }
        });
        KoalaPlan { plan, direct }
    }

    /// The answer, after the store has filled in the outcomes.
    pub fn conclude(&self, ask: KoalaAsk, plan: &KoalaPlan<'_>) -> KoalaAnswer {
        KoalaAnswer::from_hits(self, ask, plan.plan.hits(), &plan.direct)
    }

    /// Decides a request by the counters in memory.
    pub fn decide(&self, decider: &Decider, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer {
        let mut plan = self.plan(ask, request);
        decider.memory().apply_plan(&mut plan.plan, now);
        self.conclude(ask, &plan)
    }

    /// Plans feedback: each leak rule that matches gets its own number of units back.
    pub fn feedback_plans(&self, erase: KoalaErase, request: &Request<'_>) -> SmallVec<[Plan<'_>; 2]> {
        let mut erased: SmallVec<[(u32, u64); 2]> = SmallVec::new();
        Plan::new(&self.set, Op::Refund, 0).add_matching(request, |rule, _| {
            let units = self.erased_units(rule.position(), erase);
            erased.extend(units.map(|units| (rule.position() as u32, units)));
            Include::No
        });
        let plan = |(rule, units)| {
            let mut plan = Plan::new(&self.set, Op::Refund, units);
            plan.add_rule(rule, request);
            plan
        };
        erased.into_iter().map(plan).collect()
    }

    /// Gives units back to the counters in memory.
    pub fn feedback(&self, decider: &Decider, erase: KoalaErase, request: &Request<'_>, now: Time) {
        for mut plan in self.feedback_plans(erase, request) {
            decider.memory().apply_plan(&mut plan, now);
        }
    }

    /// Plans the question how much the rule with this number has counted for a request; `None`: no rule has this
    /// number. If the rule has no counter, or does not match, the plan has no hits.
    pub fn value_plan(&self, number: u32, request: &Request<'_>) -> Option<Plan<'_>> {
        let rule = self.position(number)?;
        let mut plan = Plan::new(&self.set, Op::Peek, 0);
        plan.add_rule(rule, request);
        Some(plan)
    }

    /// How much the rule with this number has counted in memory for a request; `None`: no rule has this number.
    pub fn value(&self, decider: &Decider, number: u32, request: &Request<'_>, now: Time) -> Option<u64> {
        let mut plan = self.value_plan(number, request)?;
        decider.memory().apply_plan(&mut plan, now);
        Some(KoalaRules::concluded_value(plan.outcomes()))
    }

    /// The value of the counter, from the outcomes of [`KoalaRules::value_plan`].
    pub fn concluded_value(outcomes: Outcomes<'_, '_>) -> u64 {
        outcomes.hits().first().map_or(0, Hit::used)
    }
}
