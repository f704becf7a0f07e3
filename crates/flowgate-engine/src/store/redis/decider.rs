//! The decider's functions for counters in Redis.

use std::sync::Arc;

use flowgate::{Reading, Time};

use super::encode::{Cells, ScriptTime};
use super::keys::{self, CounterName};
use super::owned_plan::{Conclusion, JointConclusion, NewBan, OwnedJointPlan, OwnedPlan, write_tag};
use super::script::{FORGET, ScriptCall};
use crate::bans::{BanId, BanKind, RuleBan, RuleBanPlace};
use crate::decider::Decider;
use crate::decision::Decision;
use crate::explain::Explanation;
use crate::plan::JointDecision;
use crate::request::Request;
use crate::rules::{Candidates, RuleSet};

impl Decider {
    /// Decides a plan on these counters while Redis is away, under the limits of `limits`: a copy of the plan's rules
    /// that differs in limits alone.
    pub fn decide_owned(&self, plan: &OwnedPlan, limits: &RuleSet, request: &Request<'_>, at: Reading) -> Decision {
        let mut plan = plan.under(limits, at);
        self.apply(&mut plan, || request.clone(), at.now);
        plan.conclude(at)
    }

    /// Like [`Decider::decide_owned`], for several requests, each under its own limits. `denied`: something else denies
    /// all of them.
    pub fn decide_joint_owned<'r>(
        &self,
        plan: &'r OwnedJointPlan,
        limits: impl Iterator<Item = &'r RuleSet>,
        requests: &[Request<'_>],
        denied: bool,
        at: Reading,
    ) -> JointDecision {
        let mut plan = plan.under(limits, at);
        if denied {
            plan = plan.denied();
        }
        self.decide_joint_plan(plan, requests.iter(), at)
    }

    /// Like [`Decider::decide_owned`], but explains the decision of a `peek`.
    pub fn explain_owned(&self, plan: &OwnedPlan, limits: &RuleSet, request: &Request<'_>, at: Reading) -> Explanation {
        self.explain_plan(plan.under(limits, at), request, at)
    }

    /// The calls that forget everything that matching rules have counted for the request's subjects, including bans:
    /// one call for each subject. A `peek` of cost 0 afterwards gives the answer of the reset.
    pub fn reset_calls_by(
        &self,
        rules: &RuleSet,
        prefix: &str,
        time: ScriptTime,
        request: &Request<'_>,
    ) -> Vec<ScriptCall> {
        let values = rules.read(request);
        let mut candidates = Candidates::default();
        let mut groups: Vec<(Vec<u8>, Vec<CounterName>)> = Vec::new();
        let matching = rules.matching(&values, &mut candidates).map(|(rule, _)| (rule, true));
        for (rule, matches) in matching.chain(rules.bans_to_lift(&values).map(|(rule, _)| (rule, false))) {
            let mut tag = Vec::new();
            write_tag(&mut tag, rules, rule, request);
            let group = groups.iter().position(|(known, _)| *known == tag).unwrap_or_else(|| {
                groups.push((tag, Vec::new()));
                groups.len() - 1
            });
            let found = &mut groups[group].1;
            let limits = rules.all_limits(rule).filter(|_| matches);
            for name in limits.map(|named| &named.name).chain(rule.ban_name()) {
                if !found.contains(name) {
                    found.push(*name);
                }
            }
        }
        let calls = groups.into_iter().filter(|(_, names)| !names.is_empty());
        calls.map(|(tag, names)| forget_call(prefix, &tag, time, &names)).collect()
    }

    /// Lists the bans that a request has started, with the names of their subjects. The request is asked for only if
    /// there is a new ban.
    pub fn note_conclusion<'q>(&self, conclusion: &Conclusion, request: impl Fn() -> Request<'q>) {
        self.note_new_bans(&conclusion.new_bans, request);
    }

    /// Like [`Decider::note_conclusion`]; `request` gives the request of a part.
    pub fn note_joint_conclusion<'q>(&self, conclusion: &JointConclusion, request: impl Fn(usize) -> Request<'q>) {
        for (part, new_bans) in conclusion.new_bans.iter().enumerate() {
            self.note_new_bans(new_bans, || request(part));
        }
    }

    fn note_new_bans<'q>(&self, new_bans: &[NewBan], request: impl Fn() -> Request<'q>) {
        for ban in new_bans {
            let request = request();
            let rule = Arc::clone(&ban.rule);
            let mut by: Vec<&str> = rule.by().collect();
            by.sort_unstable();
            let value = |field: &str| (field.to_owned(), request.counted(field).unwrap_or_default().to_owned());
            let subject = by.into_iter().map(value).collect();
            let place = RuleBanPlace::Redis(ban.tag.clone());
            self.note_ban(|id| RuleBan { id, rule, subject, until: ban.until, place });
        }
    }

    /// The call that lifts a ban that a rule has imposed: the script answers 1 if it was on record. `None` when there
    /// is no such ban.
    pub fn rule_ban_call(&self, id: BanId, prefix: &str, time: ScriptTime, now: Time) -> Option<ScriptCall> {
        let ban = self.imposed.find(id, now)?;
        match ban.place {
            RuleBanPlace::Redis(tag) => Some(forget_call(prefix, &tag, time, &[*ban.rule.ban_name()?])),
            RuleBanPlace::Memory(_) => None,
        }
    }

    /// Removes a ban by a rule from the list after its record was deleted.
    pub fn strike_rule_ban(&self, id: BanId, now: Time) {
        self.imposed.take(id, now);
    }

    /// The id of the next ban by hand that this node imposes in the shared store.
    pub fn next_manual_ban_id(&self) -> BanId {
        self.next_ban_id(BanKind::Hand)
    }
}

/// The call that forgets counters of a subject.
fn forget_call(prefix: &str, tag: &[u8], time: ScriptTime, names: &[CounterName]) -> ScriptCall {
    let mut call = ScriptCall::new(&FORGET);
    call.keys.write(|key| keys::write_subject(key, prefix, tag));
    Cells::write(&mut call.args, |cells| {
        cells.time(time);
        names.iter().for_each(|name| cells.name(name));
    });
    call
}
