//! What decides where the counters live in Redis.

use std::sync::Arc;

use flowgate::{Op, Reading, Time};

use super::keys;
use super::owned_plan::{Conclusion, JointConclusion, NewBan, OwnedJointPlan, OwnedPlan, tag};
use crate::bans::{BanId, BanKind, RuleBan, RuleBanPlace};
use crate::decider::Decider;
use crate::decision::Decision;
use crate::engine::Engine;
use crate::explain::Explanation;
use crate::plan::JointDecision;
use crate::request::Request;
use crate::rules::RuleSet;
use crate::store::Store;

impl Decider {
    /// Decides a plan on these counters while Redis is away, under the limits of `limits`: a copy of the plan's rules that
    /// differs in limits alone.
    pub fn decide_owned(&self, plan: &OwnedPlan, limits: &RuleSet, request: &Request<'_>, at: Reading) -> Decision {
        let mut plan = plan.under(limits, at);
        self.apply(&mut plan, || request.clone(), at.now);
        let mut decision = plan.conclude(at.now);
        decision.make_real(at);
        decision
    }

    /// As [`Decider::decide_owned`], for several requests; `denied` if something else denies all of them.
    pub fn decide_joint_owned(
        &self,
        plan: &OwnedJointPlan,
        limits: &RuleSet,
        requests: &[Request<'_>],
        denied: bool,
        at: Reading,
    ) -> JointDecision {
        let mut plan = plan.under(limits, at);
        if denied {
            plan = plan.denied();
        }
        self.apply_joint(&mut plan, requests.iter(), at.now);
        let mut joint = plan.conclude(at.now);
        joint.make_real(at);
        joint
    }

    /// As [`Decider::decide_owned`], why a `peek` is decided as it is.
    pub fn explain_owned(&self, plan: &OwnedPlan, limits: &RuleSet, request: &Request<'_>, at: Reading) -> Explanation {
        let mut plan = plan.under(limits, at);
        self.memory().apply_plan(&mut plan, at.now);
        let mut explanation = Explanation::new(request, plan.outcomes(), at.now);
        explanation.make_real(at);
        explanation
    }

    /// The keys of all that matching rules have counted for the request's subjects, bans included, those of each
    /// subject together: what to delete for a `reset`. Afterwards, a `peek` of 0 tells how things stand.
    pub fn reset_keys_by(&self, rules: &RuleSet, prefix: &str, request: &Request<'_>) -> Vec<Vec<Vec<u8>>> {
        let values = rules.read(request);
        let mut groups: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
        for (rule, _) in rules.matching(&values) {
            let tag = tag(rules, rule, request);
            let mut found: Vec<Vec<u8>> = Vec::new();
            let mut name = |counter: &str| {
                let mut key = Vec::new();
                keys::write(&mut key, prefix, &tag, counter);
                if !found.contains(&key) {
                    found.push(key);
                }
            };
            rules.all_limits(rule).for_each(|named| name(&named.tail));
            if rule.records_bans() {
                name(&keys::ban_counter(rule.name()));
            }
            match groups.iter_mut().find(|(known, _)| *known == tag) {
                Some((_, keys)) => keys.append(&mut found),
                None => groups.push((tag, found)),
            }
        }
        groups.into_iter().map(|(_, keys)| keys).filter(|keys| !keys.is_empty()).collect()
    }

    /// Lists the bans that a request has started, with the names of their subjects. The request is asked for only if there
    /// is a new ban.
    pub fn note_conclusion<'q>(&self, conclusion: &Conclusion, request: impl Fn() -> Request<'q>) {
        self.note_new_bans(&conclusion.new_bans, request);
    }

    /// As [`Decider::note_conclusion`]; `request` gives the request of a part.
    pub fn note_joint_conclusion<'q>(&self, conclusion: &JointConclusion, request: impl Fn(usize) -> Request<'q>) {
        for (part, new_bans) in conclusion.new_bans.iter().enumerate() {
            self.note_new_bans(new_bans, || request(part));
        }
    }

    fn note_new_bans<'q>(&self, new_bans: &[NewBan], request: impl Fn() -> Request<'q>) {
        for ban in new_bans {
            let request = request();
            let (id, rule) = (self.next_ban_id(BanKind::Rule), Arc::clone(&ban.rule));
            let mut by: Vec<&str> = rule.by().collect();
            by.sort_unstable();
            let value = |field: &str| (field.to_owned(), request.counted(field).unwrap_or_default().to_owned());
            let subject = by.into_iter().map(value).collect();
            let place = RuleBanPlace::Redis(ban.key.clone());
            self.imposed().note(RuleBan { id, rule, subject, until: ban.until, place });
        }
    }

    /// What follows the prefix in the key that is to be deleted for a ban to be lifted that a rule has imposed. `None`
    /// when there is no such ban.
    pub fn rule_ban_key(&self, id: BanId, now: Time) -> Option<Box<[u8]>> {
        match self.imposed().find(id, now)?.place {
            RuleBanPlace::Redis(key) => Some(key),
            RuleBanPlace::Memory(_) => None,
        }
    }

    /// Strikes a ban that a rule has imposed from the list: its key was deleted.
    pub fn strike_rule_ban(&self, id: BanId, now: Time) {
        self.imposed().take(id, now);
    }

    /// The id of the next ban by hand that this node imposes in the shared store.
    pub fn next_manual_ban_id(&self) -> BanId {
        self.next_ban_id(BanKind::Hand)
    }
}

impl Engine {
    /// What a request asks of Redis by the rules in force.
    pub fn prepare(&self, op: Op, request: &Request<'_>, now: Time) -> OwnedPlan {
        let rules = self.rules();
        OwnedPlan::new(&rules, &self.plan(&rules, op, request, now), request)
    }

    /// As [`Engine::prepare`], for several requests.
    pub fn prepare_joint(&self, requests: &[(Op, Request<'_>)], at: Reading) -> OwnedJointPlan {
        let rules = self.rules();
        let plan = self.plan_joint(&rules, requests, at);
        OwnedJointPlan::new(&rules, &plan, requests.iter().map(|(_, request)| request))
    }

    /// As [`Decider::reset_keys_by`], by the rules in force.
    pub fn reset_keys(&self, prefix: &str, request: &Request<'_>) -> Vec<Vec<Vec<u8>>> {
        self.reset_keys_by(&self.rules(), prefix, request)
    }
}
