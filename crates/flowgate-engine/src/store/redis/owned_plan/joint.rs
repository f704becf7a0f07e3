//! Several requests on their way to Redis: they pass together or not at all.
//!
//! Rule       On a single server one call decides all parts. In a cluster each *group*, the rules of all parts that
//!            count for one subject, is decided where that subject lives; if one group denies, what the others have
//!            charged is rolled back by name, part by part, the newest charge first.

use std::sync::Arc;

use flowgate::{Algorithm, Hit, Op, PlanPart, Reading, Standing, Time, portable};

use super::{NewBan, OwnedPlan, PartOutcomes, Which};
use crate::plan::{BanHits, Evaluation, Hits, JointDecision, JointPlan, Outcomes, PartDecision, Plan};
use crate::request::Request;
use crate::rules::RuleSet;
use crate::store::redis::decode::{Reply, ReplyError};
use crate::store::redis::encode::{Ask, Cells, ScriptTime};
use crate::store::redis::question::{RedisQuestion, decide_groups, groups_to_undo};
use crate::store::redis::script::{JOINT, ScriptCall};

/// A joint plan that waits for its reply.
#[derive(Clone, Debug)]
pub struct OwnedJointPlan {
    /// The plans of the requests, in order.
    pub parts: Vec<OwnedPlan>,
    /// Whether something other than a limit denies: a rule without limits, or a ban by hand.
    is_denied: bool,
    /// For each group its number within each part.
    groups: Vec<Vec<Option<usize>>>,
}

/// The decision of a step and the bans that it has started.
#[derive(Clone, Debug)]
pub struct JointConclusion {
    /// The decision.
    pub decision: JointDecision,
    /// The bans of each part.
    pub(crate) new_bans: Vec<Vec<NewBan>>,
}

/// The outcomes of a step, or of one group of it.
struct DecidedStep<'r> {
    denied: bool,
    now: Time,
    parts: Vec<PartOutcomes<'r>>,
}

impl JointPlan<'_> {
    /// Whether Redis is needed to decide a part.
    pub fn asks_redis(&self) -> bool {
        self.parts.iter().any(Plan::asks_redis)
    }
}

impl OwnedJointPlan {
    /// The owned form of a joint plan. `requests` are its requests, each with the rules that its part was made by.
    pub fn new<'q, 'a: 'q>(
        plan: &JointPlan<'_>,
        requests: impl Iterator<Item = (&'q Arc<RuleSet>, &'q Request<'a>)>,
    ) -> OwnedJointPlan {
        let own = |(part, (rules, request))| OwnedPlan::new(rules, part, request);
        let parts: Vec<OwnedPlan> = plan.parts.iter().zip(requests).map(own).collect();
        let mut tags: Vec<&[u8]> = Vec::new();
        let mut groups: Vec<Vec<Option<usize>>> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            for local in 0..part.tags.len() {
                let tag = part.tags.get(local);
                let group = tags.iter().position(|known| *known == tag).unwrap_or_else(|| {
                    tags.push(tag);
                    groups.push(vec![None; parts.len()]);
                    groups.len() - 1
                });
                groups[group][number] = Some(local);
            }
        }
        OwnedJointPlan { is_denied: plan.is_denied(), groups, parts }
    }

    /// Like [`OwnedPlan::under`], with the rules of each part.
    pub fn under<'r>(&'r self, rules: impl Iterator<Item = &'r RuleSet>, at: Reading) -> JointPlan<'r> {
        JointPlan::new(self.parts.iter().zip(rules).map(|(part, rules)| part.under(rules, at)).collect())
    }

    /// The decision that follows from the reply to the call of the whole step, or from those to the calls of all
    /// groups.
    ///
    /// # Errors
    /// When one of the replies has no decision in it.
    pub fn conclude(&self, replies: &[&[i64]]) -> Result<JointConclusion, ReplyError> {
        let decided = match replies {
            [reply] => self.decide(None, self.is_denied, reply)?,
            replies => self.decide_groups(replies)?,
        };
        let (mut parts, mut new_bans) = (Vec::with_capacity(self.parts.len()), Vec::with_capacity(self.parts.len()));
        for (part, PartOutcomes { hits, bans, .. }) in self.parts.iter().zip(&decided.parts) {
            let outcomes = Outcomes { rules: &part.rules, evaluation: &part.evaluation, hits, bans };
            let conclusion = part.conclusion(outcomes, decided.now);
            parts.push(PartDecision { decision: conclusion.decision, charged: outcomes.is_charged() });
            new_bans.push(conclusion.new_bans);
        }
        if decided.denied {
            parts.iter_mut().for_each(|part| part.charged = false);
        }
        Ok(JointConclusion { decision: JointDecision::from(parts), new_bans })
    }

    /// Undoes the charges of a group, the newest first.
    fn undo(
        &self,
        group: Option<usize>,
        decided: &DecidedStep<'_>,
        prefix: &str,
        time: ScriptTime,
    ) -> impl Iterator<Item = ScriptCall> {
        let parts = self.parts.iter().enumerate().zip(&decided.parts);
        let undo = |((number, part), decided): ((usize, &OwnedPlan), &PartOutcomes<'_>)| {
            let counts = !matches!(part.op(), Op::Peek | Op::Refund) && part.evaluation.cost > 0;
            if !counts {
                return None;
            }
            // A record may have pushed older units out of a full log. They cannot come back, so its own units stay.
            let stays = |hit: &Hit<'_>| {
                part.op() == Op::Record
                    && hit.limit().algorithm() == Algorithm::Sliding
                    && hit.outcome().remaining == Some(0)
            };
            part.undo_charges(self.which(group, number), decided, prefix, time, |hit| !stays(hit))
        };
        let calls: Vec<ScriptCall> = parts.filter_map(undo).collect();
        calls.into_iter().rev()
    }

    /// The steps of a part that a call is about.
    fn which(&self, group: Option<usize>, part: usize) -> Which {
        match group {
            None => Which::All,
            Some(group) => self.groups[group][part].map_or(Which::None, Which::Only),
        }
    }

    /// Decides as the script did, by the states that it found. `denied`: something outside the group denies the step.
    fn decide(&self, group: Option<usize>, denied: bool, reply: &[i64]) -> Result<DecidedStep<'_>, ReplyError> {
        let (mut reply, now) = Reply::open(reply)?;
        let mut parts: Vec<PartOutcomes<'_>> = Vec::with_capacity(self.parts.len());
        for (number, part) in self.parts.iter().enumerate() {
            let mut decided = PartOutcomes { now, ..PartOutcomes::default() };
            part.restore(&mut decided, self.which(group, number), &mut reply)?;
            parts.push(decided);
        }
        reply.close()?;
        let mut plan = flowgate::Plan::new(now);
        for (part, PartOutcomes { hits, bans, .. }) in self.parts.iter().zip(&mut parts) {
            // The script reports bans only for parts that ask.
            let bans = if part.op().asks() { &mut bans[..] } else { &mut [] };
            plan.push(PlanPart { op: part.op(), cost: part.evaluation.cost, hits, bans });
        }
        if denied {
            plan.push(PlanPart::new(Op::Deny, 0, &mut []));
        }
        portable::decide(&mut plan);
        drop(plan);
        let exceeds = |(part, PartOutcomes { hits, bans, .. }): (&OwnedPlan, &PartOutcomes<'_>)| {
            let exceeded = hits.iter().any(|hit| !hit.flags().shadow && !hit.outcome().allowed());
            let banned = bans.iter().any(|ban| ban.standing() != Standing::Clear);
            part.op().asks() && (exceeded || banned)
        };
        let denied = denied || self.parts.iter().zip(&parts).any(exceeds);
        Ok(DecidedStep { denied, now, parts })
    }

    /// Decides each group, and joins the outcomes.
    fn decide_groups(&self, replies: &[&[i64]]) -> Result<DecidedStep<'_>, ReplyError> {
        let decide =
            |group: usize, denied: bool, reply: &[i64]| self.decide(Some(group), denied || self.is_denied, reply);
        let (groups, denied) = decide_groups(self.groups(), replies, decide, |group| group.denied)?;
        let now = groups.iter().map(|group| group.now).max().unwrap_or(Time::EPOCH);
        let mut parts = Vec::with_capacity(self.parts.len());
        for (number, part) in self.parts.iter().enumerate() {
            let (mut hits, mut bans) = (Hits::new(), BanHits::new());
            for (local, step) in part.steps(Which::All) {
                let (first_hit, first_ban) = (hits.len(), bans.len());
                Evaluation::hit(step, &part.rules, &mut hits, &mut bans);
                let of_group = |locals: &Vec<Option<usize>>| locals[number] == local.map(|local| local as usize);
                // Steps that Redis does not decide pass.
                let Some(group) = local.and_then(|_| self.groups.iter().position(of_group)) else { continue };
                let decided = &groups[group].parts[number];
                decided.settle(step, &mut hits[first_hit..], &mut bans[first_ban..]);
            }
            parts.push(PartOutcomes { denied, now, hits, bans });
        }
        Ok(DecidedStep { denied, now, parts })
    }
}

impl RedisQuestion for OwnedJointPlan {
    fn groups(&self) -> usize {
        self.groups.len()
    }

    fn call(&self, group: Option<usize>, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        let mut call = ScriptCall::new(&JOINT);
        let parts = || self.parts.iter().enumerate().map(|(number, part)| (part, self.which(group, number)));
        let keys: Vec<usize> = parts().map(|(part, which)| part.write_keys(&mut call, which, prefix)).collect();
        Cells::write(&mut call.args, |cells| {
            cells.joint_head(time, self.is_denied, self.parts.len());
            for ((part, which), keys) in parts().zip(keys) {
                let ask = Ask { op: part.evaluation.asked, cost: part.evaluation.cost, time };
                cells.part_head(ask, part.asked_steps(which).count(), keys);
                part.write_rules(cells, which, ask, around);
            }
        });
        call
    }

    fn undo_calls(&self, prefix: &str, time: ScriptTime, replies: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        let decide = |group: Option<usize>, reply: &[i64]| self.decide(group, self.is_denied, reply);
        let groups = groups_to_undo(self.groups(), replies, decide, |step| step.denied);
        groups.iter().flat_map(|(group, step)| self.undo(*group, step, prefix, time)).collect()
    }
}
