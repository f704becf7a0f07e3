//! A plan on its way to Redis: what to send, and the outcomes that follow from the reply.
//!
//! Rule       A reply is awaited between the call and the conclusion, for as long as that takes. The plan therefore
//!            owns all that it needs, and is concluded by the rules it was made by.
//! Rule       On a single server one call decides the whole plan. In a cluster each *group*, the rules that count for
//!            one subject, is decided where that subject lives; if one of them denies, what the others have taken is
//!            rolled back by name ([`RedisQuestion::undo_calls`]).

mod joint;

use std::sync::Arc;

use flowgate::portable;
use flowgate::{Algorithm, BanHit, Hit, Limit, Op, Reading, Standing, Time};
use smallvec::SmallVec;

use super::decode::{Reply, ReplyError};
use super::encode::{Ask, Bans, Cells, ScriptTime};
use super::keys;
use super::question::{RedisQuestion, decide_groups, groups_to_undo};
use super::script::{DECIDE, Parts, ScriptCall};
use super::undo::UndoCall;
use crate::decision::Decision;
use crate::explain::Explanation;
use crate::plan::{BanHits, Evaluation, Hits, Outcomes, Plan, Step};
use crate::request::Request;
use crate::rules::{NamedLimit, Rule, RuleSet};

pub use joint::{JointConclusion, OwnedJointPlan};

/// A plan that waits for its reply.
#[derive(Clone, Debug)]
pub struct OwnedPlan {
    rules: Arc<RuleSet>,
    evaluation: Evaluation,
    /// What the store is to do.
    op: Op,
    /// The hash tag of each group.
    tags: Parts,
    /// The group of each step; `None` if Redis decides nothing in the step.
    groups: SmallVec<[Option<u32>; 2]>,
}

/// A decision and the bans that it has started.
#[derive(Clone, Debug)]
pub struct Conclusion {
    /// The decision.
    pub decision: Decision,
    pub(crate) new_bans: Vec<NewBan>,
}

impl From<Decision> for Conclusion {
    /// A decision that starts no ban.
    fn from(decision: Decision) -> Conclusion {
        Conclusion { decision, new_bans: Vec::new() }
    }
}

/// A ban that a rule has imposed.
#[derive(Clone, Debug)]
pub(crate) struct NewBan {
    pub(crate) rule: Arc<Rule>,
    pub(crate) until: Time,
    /// The hash tag of its subject.
    pub(crate) tag: Box<[u8]>,
}

/// Which groups a call is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Only(usize),
    None,
}

impl From<Option<usize>> for Which {
    /// One group, or all.
    fn from(group: Option<usize>) -> Which {
        group.map_or(Which::All, Which::Only)
    }
}

impl Plan<'_> {
    /// Whether Redis is needed to decide the plan: a limit has a counter, or a rule bans.
    pub fn asks_redis(&self) -> bool {
        let rules = self.rules;
        self.evaluation.steps.iter().any(|step| is_asked(rules.rule(step.rule), rules.limits(step.limits)))
    }
}

impl OwnedPlan {
    /// The owned form of a plan that was made by `rules` for `request`.
    pub fn new(rules: &Arc<RuleSet>, plan: &Plan<'_>, request: &Request<'_>) -> OwnedPlan {
        debug_assert!(std::ptr::eq(&**rules, plan.rules), "a plan belongs to its rules");
        let op = plan.op();
        let evaluation = plan.evaluation.clone();
        let mut tags = Parts::default();
        let mut groups: SmallVec<[Option<u32>; 2]> = SmallVec::new();
        for (index, step) in evaluation.steps.iter().enumerate() {
            let rule = rules.rule(step.rule);
            if !is_asked(rule, rules.limits(step.limits)) {
                groups.push(None);
                continue;
            }
            // Two steps have the same subject exactly if their hashes are equal.
            let mut before = evaluation.steps[..index].iter().zip(&groups);
            let same = before.find_map(|(before, group)| group.filter(|_| before.subject == step.subject));
            let group = same.unwrap_or_else(|| {
                tags.write(|tag| write_tag(tag, rules, rule, request));
                tags.len() as u32 - 1
            });
            groups.push(Some(group));
        }
        OwnedPlan { rules: Arc::clone(rules), evaluation, op, tags, groups }
    }

    /// The operation that the caller asked for.
    pub fn op(&self) -> Op {
        self.evaluation.asked
    }

    /// The rules whose limits are asked, in file order.
    pub fn limited_by(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.evaluation.steps.iter().filter(|step| step.has_limits()).map(|step| self.rules.rule(step.rule))
    }

    /// The same plan for another store and its clock, under the limits of `rules`: a copy of the rules that differs in
    /// limits alone.
    pub fn under<'r>(&'r self, rules: &'r RuleSet, at: Reading) -> Plan<'r> {
        let mut evaluation = self.evaluation.clone();
        evaluation.asked = evaluation.asked.on_clock(at);
        Plan::from_evaluation(&self.rules, rules, evaluation)
    }

    /// The hits of the plan, before a store has decided them.
    pub fn hits(&self) -> Hits<'_> {
        let (mut hits, mut bans) = (Hits::new(), BanHits::new());
        self.evaluation.steps.iter().for_each(|step| Evaluation::hit(step, &self.rules, &mut hits, &mut bans));
        hits
    }

    /// The decision, if Redis is not needed.
    pub fn at_once(&self, now: Time) -> Option<Decision> {
        (self.groups() == 0).then(|| self.under(&self.rules, now.into()).conclude(now))
    }

    /// Reads the replies (one to the call of the whole plan, or one to the call of each group) and gives their outcomes and Redis's
    /// time to `conclude`.
    ///
    /// # Errors
    /// When one of the replies has no decision in it.
    pub fn read<T>(
        &self,
        replies: &[&[i64]],
        conclude: impl FnOnce(Outcomes<'_, '_>, Time) -> T,
    ) -> Result<T, ReplyError> {
        let mut decided = PartOutcomes::default();
        match replies {
            [reply] => self.decide_into(&mut decided, Which::All, self.op, reply)?,
            replies => decided = self.decide_groups(replies)?,
        }
        let PartOutcomes { hits, bans, now, .. } = &decided;
        Ok(conclude(Outcomes { rules: &self.rules, evaluation: &self.evaluation, hits, bans }, *now))
    }

    /// The decision that follows from the reply to the call of the whole plan, or from those to the calls of all groups.
    ///
    /// # Errors
    /// The same as for [`OwnedPlan::read`].
    pub fn conclude(&self, replies: &[&[i64]]) -> Result<Conclusion, ReplyError> {
        self.read(replies, |outcomes, now| self.conclusion(outcomes, now))
    }

    /// What [`Decider::explain_by`](crate::Decider::explain_by) answers, from the replies for a `peek`.
    ///
    /// # Errors
    /// The same as for [`OwnedPlan::read`].
    pub fn explain(&self, request: &Request<'_>, replies: &[&[i64]]) -> Result<Explanation, ReplyError> {
        self.read(replies, |outcomes, now| Explanation::new(request, outcomes, now))
    }

    /// The call that undoes the charges to those hits of a part of the plan that `is_undone` names.
    fn undo_charges(
        &self,
        which: Which,
        decided: &PartOutcomes<'_>,
        prefix: &str,
        time: ScriptTime,
        is_undone: impl Fn(&Hit<'_>) -> bool,
    ) -> Option<ScriptCall> {
        let cost = self.evaluation.cost;
        let mut hits = decided.hits.iter();
        let mut undo = UndoCall::new(prefix, time, cost, decided.now);
        for (group, step) in self.steps(which) {
            for (named, hit) in self.rules.limits(step.limits).iter().zip(hits.by_ref()) {
                if let Some(group) = group.filter(|_| is_undone(hit)) {
                    undo.add(hit, self.tags.get(group as usize), &named.name);
                }
            }
        }
        undo.finish()
    }

    fn conclusion(&self, outcomes: Outcomes<'_, '_>, now: Time) -> Conclusion {
        let new_ban = |(rule, until): (&Arc<Rule>, Time)| {
            let (group, _) = self.steps(Which::All).find(|(_, step)| step.rule == rule.id)?;
            Some(NewBan { rule: Arc::clone(rule), until, tag: self.tags.get(group? as usize).into() })
        };
        let new_bans = outcomes.new_bans().filter_map(|(rule, _, until)| new_ban((rule, until))).collect();
        Conclusion { decision: outcomes.conclude(now.into()), new_bans }
    }

    /// The steps of a part of the plan that Redis decides, each with its group.
    fn asked_steps(&self, which: Which) -> impl Iterator<Item = (u32, &Step)> {
        self.steps(which).filter_map(|(group, step)| Some((group?, step)))
    }

    /// Writes the keys of the subjects of a part of the plan, and returns their number.
    fn write_keys(&self, call: &mut ScriptCall, which: Which, prefix: &str) -> usize {
        let groups = match which {
            Which::All => 0..self.groups(),
            Which::Only(group) => group..group + 1,
            Which::None => 0..0,
        };
        for group in groups.clone() {
            call.keys.write(|key| keys::write_subject(key, prefix, self.tags.get(group)));
        }
        groups.len()
    }

    /// Writes the rules of a part of the plan, with their limits and bans.
    fn write_rules(&self, cells: &mut Cells<'_>, which: Which, ask: Ask, around: Time) {
        for (group, step) in self.asked_steps(which) {
            let rule = self.rules.rule(step.rule);
            let kept = || self.rules.limits(step.limits).iter().filter(|named| is_kept(&named.limit));
            let ban = rule.ban().filter(|_| ask.op.asks());
            let bans = match ban {
                None => Bans::No,
                Some(_) if step.has_limits() => Bans::Yes,
                Some(_) => Bans::Watched,
            };
            let key = if which == Which::All { group as usize + 1 } else { 1 };
            cells.rule(rule.flags, kept().count(), bans, key);
            kept().for_each(|named| cells.limit(&named.name, &named.limit, ask, around));
            if let (Some((ban, _)), Some(name)) = (ban, rule.ban_name()) {
                cells.name(name);
                if bans == Bans::Yes {
                    ban.write_terms(cells);
                }
            }
        }
    }

    /// The steps of a part of the plan, each with its group.
    fn steps(&self, which: Which) -> impl Iterator<Item = (Option<u32>, &Step)> {
        let steps = self.groups.iter().copied().zip(&self.evaluation.steps);
        steps.filter(move |(group, _)| match which {
            Which::All => true,
            Which::Only(only) => *group == Some(only as u32),
            Which::None => false,
        })
    }

    /// Decides a part of the plan as its script did, by the states that the script found.
    fn decide(&self, which: Which, op: Op, reply: &[i64]) -> Result<PartOutcomes<'_>, ReplyError> {
        let mut decided = PartOutcomes::default();
        self.decide_into(&mut decided, which, op, reply)?;
        Ok(decided)
    }

    /// Like [`OwnedPlan::decide`], but writes the outcomes in place, because hits are large.
    fn decide_into<'r>(
        &'r self,
        decided: &mut PartOutcomes<'r>,
        which: Which,
        op: Op,
        reply: &[i64],
    ) -> Result<(), ReplyError> {
        let (mut reply, now) = Reply::open(reply)?;
        decided.now = now;
        self.restore(decided, which, &mut reply)?;
        reply.close()?;
        let PartOutcomes { hits, bans, .. } = decided;
        let ask = flowgate::Ask::new(op, self.evaluation.cost, now);
        portable::decide(&mut flowgate::Plan::banning(ask, hits, bans));
        let exceeded = hits.iter().any(|hit| !hit.flags().shadow && !hit.outcome().allowed());
        let banned = bans.iter().any(|ban| ban.standing() != Standing::Clear);
        decided.denied = exceeded || banned;
        Ok(())
    }

    /// Reads the states that the script found for a part of the plan, at `decided.now`.
    fn restore<'r>(
        &'r self,
        decided: &mut PartOutcomes<'r>,
        which: Which,
        reply: &mut Reply<'_>,
    ) -> Result<(), ReplyError> {
        let PartOutcomes { hits, bans, now, .. } = decided;
        for (_, step) in self.steps(which) {
            let (first_hit, first_ban) = (hits.len(), bans.len());
            Evaluation::hit(step, &self.rules, hits, bans);
            for hit in &mut hits[first_hit..] {
                reply.restore(hit)?;
            }
            for ban in bans[first_ban..].iter_mut().filter(|_| self.op().asks()) {
                reply.restore_ban(ban, *now)?;
            }
        }
        Ok(())
    }

    /// Decides each group, and joins the outcomes.
    fn decide_groups(&self, replies: &[&[i64]]) -> Result<PartOutcomes<'_>, ReplyError> {
        let decide = |group: usize, denied: bool, reply: &[i64]| {
            let op = if denied && takes(self.op) { Op::Deny } else { self.op };
            self.decide(Which::Only(group), op, reply)
        };
        let (groups, denied) = decide_groups(self.groups(), replies, decide, |group| group.denied)?;
        let now = groups.iter().map(|group| group.now).max().unwrap_or(Time::EPOCH);
        let (mut hits, mut bans) = (Hits::new(), BanHits::new());
        for (group, step) in self.steps(Which::All) {
            let (first_hit, first_ban) = (hits.len(), bans.len());
            Evaluation::hit(step, &self.rules, &mut hits, &mut bans);
            // Steps that Redis does not decide pass.
            let Some(decided) = group.map(|group| &groups[group as usize]) else { continue };
            decided.settle(step, &mut hits[first_hit..], &mut bans[first_ban..]);
        }
        Ok(PartOutcomes { denied, now, hits, bans })
    }
}

impl RedisQuestion for OwnedPlan {
    fn groups(&self) -> usize {
        self.tags.len()
    }

    fn call(&self, group: Option<usize>, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        let which = Which::from(group);
        let ask = Ask { op: self.op, cost: self.evaluation.cost, time };
        let mut call = ScriptCall::new(&DECIDE);
        self.write_keys(&mut call, which, prefix);
        Cells::write(&mut call.args, |cells| {
            cells.head(ask, self.asked_steps(which).count());
            self.write_rules(cells, which, ask, around);
            cells.padding();
        });
        call
    }

    fn undo_calls(&self, prefix: &str, time: ScriptTime, replies: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        if !takes(self.op) || self.evaluation.cost == 0 {
            return Vec::new();
        }
        let decide = |group: Option<usize>, reply: &[i64]| self.decide(group.into(), self.op, reply);
        let groups = groups_to_undo(self.groups(), replies, decide, |group| group.denied);
        let undo = |(group, decided): &(Option<usize>, PartOutcomes<'_>)| {
            self.undo_charges((*group).into(), decided, prefix, time, |_| true)
        };
        groups.iter().filter_map(undo).collect()
    }
}

/// The outcomes of one part of a plan.
#[derive(Default)]
struct PartOutcomes<'r> {
    denied: bool,
    now: Time,
    hits: Hits<'r>,
    bans: BanHits<'r>,
}

impl PartOutcomes<'_> {
    /// Puts the outcomes of a step into its hits and bans.
    fn settle(&self, step: &Step, hits: &mut [Hit<'_>], bans: &mut [BanHit<'_>]) {
        let outcomes = self.hits.iter().filter(|decided| decided.rule_id() == step.rule);
        hits.iter_mut().zip(outcomes).for_each(|(hit, decided)| hit.settle(*decided.outcome()));
        if let Some(decided) = self.bans.iter().find(|decided| decided.rule_id() == step.rule) {
            bans.iter_mut().for_each(|ban| ban.settle(decided.standing()));
        }
    }
}

/// Appends the hash tag of a rule's subject.
pub(super) fn write_tag(tag: &mut Vec<u8>, rules: &RuleSet, rule: &Rule, request: &Request<'_>) {
    let fields = rules.by(rule).map(|field| rules.field_name(field));
    if fields.len() == 0 {
        return keys::all(tag, rule.name());
    }
    keys::subject(tag, fields.map(|name| (name, request.counted(name).unwrap_or_default())));
}

/// Whether Redis is needed to decide a rule. A rule that bans needs Redis even without a counter, because it may have
/// banned under earlier limits.
fn is_asked(rule: &Rule, limits: &[NamedLimit]) -> bool {
    rule.ban().is_some() || limits.iter().any(|named| is_kept(&named.limit))
}

/// Whether a limit has a counter.
fn is_kept(limit: &Limit) -> bool {
    limit.algorithm() != Algorithm::Unlimited
}

pub(super) fn takes(op: Op) -> bool {
    matches!(op, Op::Take | Op::TakeWithin(_))
}
