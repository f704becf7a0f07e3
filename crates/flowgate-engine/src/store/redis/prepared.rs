//! A request on its way to Redis: what to send, and the decision that follows from the reply.
//!
//! Rule       Between [`Decider::prepare`] and [`Prepared::conclude`] a reply is awaited, for as long as that takes. What is
//!            prepared therefore owns all it needs, and the rules it was made with are those it is concluded with.
//! Rule       On a single server one call decides the whole request. In a cluster each *group*, the rules that count
//!            for one subject, is decided where that subject lives; if one of them denies, what the others have
//!            taken is rolled back by name ([`Prepared::rollbacks`]).
//!
//! [`Decider::prepare`]: crate::Decider::prepare

use std::sync::Arc;

use flowgate::portable;
use flowgate::{Algorithm, Op, Standing, Time};
use smallvec::SmallVec;

use super::decode::{Reply, ReplyError};
use super::encode::{self, Ask, RuleTerms, ScriptTime};
use super::keys;
use super::script::{DECIDE, ScriptCall};
use super::undo::UndoCall;
use crate::bans::ManualBan;
use crate::decision::Decision;
use crate::explain::Explanation;
use crate::plan::Plan;
use crate::request::Request;
use crate::rules::{Found, LimitListId, NamedLimit, Rule, RuleSet, Values};

/// A request that awaits its reply.
#[derive(Clone, Debug)]
pub struct Prepared {
    rules: Arc<RuleSet>,
    asked: Op,
    cost: u64,
    /// The hash tags of the groups.
    groups: SmallVec<[Box<[u8]>; 2]>,
    steps: SmallVec<[Step; 2]>,
    /// Shadow rules without limits.
    passed_by: SmallVec<[u32; 1]>,
    end: Ending,
    /// The conclusion is to tell what became of each limit.
    is_watched: bool,
}

/// A rule whose limits are to be applied.
#[derive(Clone, Debug)]
struct Step {
    rule: u32,
    limits: LimitListId,
    /// `None` where Redis has no say.
    group: Option<usize>,
    /// Whom a ban would name; empty where the rule does not ban.
    subject: Box<[(String, String)]>,
}

#[derive(Clone, Debug)]
enum Ending {
    Bottom,
    Rule(u32),
    Ban(Arc<ManualBan>),
}

/// A decision and the bans that it has started.
#[derive(Clone, Debug)]
pub struct Conclusion {
    /// The decision.
    pub decision: Decision,
    /// Redis's time.
    pub now: Time,
    /// What became of each limit, with the number of its rule; for those who [watch](Prepared::watched).
    pub(crate) outcomes: Vec<(u32, flowgate::Decision)>,
    pub(crate) new_bans: Vec<NewBan>,
}

/// A ban that a rule has imposed.
#[derive(Clone, Debug)]
pub(crate) struct NewBan {
    pub(crate) rule: Arc<Rule>,
    pub(crate) subject: Vec<(String, String)>,
    pub(crate) until: Time,
    /// What follows the prefix in the key of its record.
    pub(crate) key: Box<[u8]>,
}

/// Which groups a call is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Only(usize),
}

impl Which {
    fn has(self, step: &Step) -> bool {
        match self {
            Which::All => true,
            Which::Only(group) => step.group == Some(group),
        }
    }
}

impl Prepared {
    pub(crate) fn new(rules: &Arc<RuleSet>, op: Op, cost: u64) -> Prepared {
        Prepared {
            rules: Arc::clone(rules),
            asked: op,
            cost,
            groups: SmallVec::new(),
            steps: SmallVec::new(),
            passed_by: SmallVec::new(),
            end: Ending::Bottom,
            is_watched: false,
        }
    }

    /// The conclusion will tell what became of each limit.
    pub(crate) fn watched(self) -> Prepared {
        Prepared { is_watched: true, ..self }
    }

    /// Notes what the evaluation of the rules has found.
    pub(crate) fn note(&mut self, found: Found<'_>, values: &Values<'_>) {
        match found {
            Found::Limits(rule, list) => {
                let group = is_asked(rule, list.limits).then(|| {
                    let tag = tag(&self.rules, rule, values);
                    let known = self.groups.iter().position(|group| **group == *tag);
                    known.unwrap_or_else(|| {
                        self.groups.push(tag.into());
                        self.groups.len() - 1
                    })
                });
                let subject = match rule.ban() {
                    Some(_) => self.rules.subject_fields(rule, values).map(owned).collect(),
                    None => Box::default(),
                };
                self.steps.push(Step { rule: rule.id(), limits: list.id, group, subject });
            }
            Found::PassBy(rule) => self.passed_by.push(rule.id()),
            Found::End(rule) => self.end = Ending::Rule(rule.id()),
            Found::Ban(ban) => self.end = Ending::Ban(ban),
        }
    }

    /// How many groups there are: how many calls a cluster needs.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// What is asked, as it was asked.
    pub fn op(&self) -> Op {
        self.asked
    }

    /// How much the request costs.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The rules whose limits are asked, in file order.
    pub fn limited_by(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.steps.iter().map(|step| self.rules.rule(step.rule))
    }

    /// The decision, where Redis has no say in it: no limit is asked.
    pub fn at_once(&self, now: Time) -> Option<Decision> {
        self.groups.is_empty().then(|| self.plan(Which::All).conclude(now))
    }

    /// The call that decides the whole request on a single server, where keys start with `prefix`. `around` is about
    /// what Redis's clock says: at first this node's time, then what [`ReplyError::Around`] says.
    pub fn call(&self, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        self.call_for(Which::All, prefix, time, around)
    }

    /// The call that decides one group of the request.
    pub fn group_call(&self, group: usize, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        self.call_for(Which::Only(group), prefix, time, around)
    }

    /// The decision that follows from the reply to [`Prepared::call`].
    ///
    /// # Errors
    /// When there is none in it.
    pub fn conclude(&self, reply: &[i64]) -> Result<Conclusion, ReplyError> {
        let (plan, now) = self.concluded(reply)?;
        Ok(self.conclusion(&plan, now))
    }

    /// The decision that follows from the replies to [`Prepared::group_call`], one for each group.
    ///
    /// # Errors
    /// When there is none in one of them.
    pub fn conclude_groups(&self, replies: &[&[i64]]) -> Result<Conclusion, ReplyError> {
        let (plan, now) = self.concluded_groups(replies)?;
        Ok(self.conclusion(&plan, now))
    }

    fn concluded_groups(&self, replies: &[&[i64]]) -> Result<(Plan<'_>, Time), ReplyError> {
        let decide = |(group, reply): (usize, &&[i64])| self.decide_part(Which::Only(group), reply);
        let decided: Vec<Decided<'_>> = replies.iter().enumerate().map(decide).collect::<Result<_, _>>()?;
        if decided.len() != self.groups.len() {
            return Err(ReplyError::Malformed);
        }
        let denied = decided.iter().any(|group| group.denied);
        let mut plan = self.plan(Which::All);
        let mut now = Time::EPOCH;
        for (group, decided) in decided.iter().enumerate() {
            now = now.max(decided.now);
            let mut part = self.plan(Which::Only(group));
            self.restore(&mut part, Which::Only(group), replies[group])?;
            // What passes by itself but is rolled back was denied by something else.
            let rolled_back = denied && !decided.denied && takes(part.op());
            let op = if rolled_back { Op::Deny } else { part.op() };
            let ask = flowgate::Ask::new(op, self.cost, decided.now);
            portable::decide(&mut flowgate::Plan::banning(ask, &mut part.hits, &mut part.bans));
            settle(&mut plan, &part);
        }
        Ok((plan, now))
    }

    /// What to take back in a cluster when the request is denied in one place, or there is no telling (`None`: no
    /// reply, or none that can be read): the groups that have charged it, and the call that undoes that.
    pub fn rollbacks(&self, prefix: &str, time: ScriptTime, replies: &[Option<&[i64]>]) -> Vec<(usize, ScriptCall)> {
        let decide = |group: usize| self.decide_part(Which::Only(group), replies.get(group).copied().flatten()?).ok();
        let decided: Vec<Option<Decided<'_>>> = (0..self.groups.len()).map(decide).collect();
        if decided.iter().all(|group| group.as_ref().is_some_and(|group| !group.denied)) {
            return Vec::new();
        }
        let undo = |(group, decided): (usize, &Option<Decided<'_>>)| {
            Some((group, self.undo(Which::Only(group), decided.as_ref()?, prefix, time)?))
        };
        decided.iter().enumerate().filter_map(undo).collect()
    }

    /// What to take back where the request was denied without Redis, and the reply to [`Prepared::call`] came too late.
    pub fn rollback(&self, prefix: &str, time: ScriptTime, reply: &[i64]) -> Option<ScriptCall> {
        self.undo(Which::All, &self.decide_part(Which::All, reply).ok()?, prefix, time)
    }

    /// The call that undoes what a part has charged, if it has.
    fn undo(&self, which: Which, decided: &Decided<'_>, prefix: &str, time: ScriptTime) -> Option<ScriptCall> {
        if decided.denied || !takes(self.plan(Which::All).op()) || self.cost == 0 {
            return None;
        }
        let steps = self.steps.iter().filter(|step| which.has(step));
        let counters = steps.flat_map(|step| self.limits(step).iter().map(|named| (step.group, named)));
        let mut undo = UndoCall::new(time, self.cost, decided.now);
        for (hit, (group, named)) in decided.plan.hits.iter().zip(counters) {
            if let Some(group) = group {
                undo.add(hit, |key| self.write_key(key, prefix, group, &named.tail));
            }
        }
        undo.finish()
    }

    /// What [`Engine::explain`](crate::Engine::explain) answers, from the reply to the call for a `peek`.
    ///
    /// # Errors
    /// When there is no decision in it.
    pub fn explain(&self, request: &Request<'_>, reply: &[i64]) -> Result<Explanation, ReplyError> {
        let (plan, now) = self.concluded(reply)?;
        Ok(Explanation::of(&self.rules, request, &plan, now))
    }

    /// As [`Prepared::explain`], from the replies to [`Prepared::group_call`].
    ///
    /// # Errors
    /// When there is none in one of them.
    pub fn explain_groups(&self, request: &Request<'_>, replies: &[&[i64]]) -> Result<Explanation, ReplyError> {
        let (plan, now) = self.concluded_groups(replies)?;
        Ok(Explanation::of(&self.rules, request, &plan, now))
    }

    /// As [`Prepared::explain`], where Redis has no say: no limit is asked.
    pub fn explain_at_once(&self, request: &Request<'_>, now: Time) -> Explanation {
        Explanation::of(&self.rules, request, &self.plan(Which::All), now)
    }

    /// The key of one of a group's counters.
    pub(super) fn write_key(&self, key: &mut Vec<u8>, prefix: &str, group: usize, counter: &str) {
        keys::write(key, prefix, &self.groups[group], counter);
    }

    fn concluded(&self, reply: &[i64]) -> Result<(Plan<'_>, Time), ReplyError> {
        let decided = self.decide_part(Which::All, reply)?;
        Ok((decided.plan, decided.now))
    }

    fn conclusion(&self, plan: &Plan<'_>, now: Time) -> Conclusion {
        let new_ban = |(rule, until): (&Arc<Rule>, Time)| {
            let step = self.steps.iter().find(|step| step.rule == rule.id())?;
            let mut key = Vec::new();
            self.write_key(&mut key, "", step.group?, &keys::ban_counter(rule.name()));
            Some(NewBan { rule: Arc::clone(rule), subject: step.subject.to_vec(), until, key: key.into() })
        };
        let new_bans = plan.new_bans().filter_map(|(rule, _, until)| new_ban((rule, until))).collect();
        let watched = plan.hits.iter().filter(|_| self.is_watched);
        let outcomes = watched.map(|hit| (hit.rule_id(), *hit.outcome())).collect();
        Conclusion { decision: plan.conclude(now), now, outcomes, new_bans }
    }

    fn call_for(&self, which: Which, prefix: &str, time: ScriptTime, around: Time) -> ScriptCall {
        let mut call = ScriptCall::new(&DECIDE);
        let op = self.plan(which).op();
        let mut rules: SmallVec<[RuleTerms; 2]> = SmallVec::new();
        for step in self.steps.iter().filter(|step| which.has(step)) {
            let Some(group) = step.group else { continue };
            let rule = self.rules.rule(step.rule);
            let mut limits = Vec::new();
            for named in self.limits(step).iter().filter(|named| is_kept(&named.limit)) {
                call.keys.write(|key| self.write_key(key, prefix, group, &named.tail));
                limits.push((named.limit.algorithm(), named.limit.terms(op, self.cost, around)));
            }
            let ban = rule.ban().filter(|_| asks(op)).map(|(ban, _)| {
                call.keys.write(|key| self.write_key(key, prefix, group, &keys::ban_counter(rule.name())));
                ban.terms()
            });
            rules.push(RuleTerms { flags: rule.flags(), limits, ban });
        }
        encode::call(&mut call.args, Ask { op, cost: self.cost, time }, &rules);
        call
    }

    /// The plan anew, as it was when the request was prepared.
    fn plan(&self, which: Which) -> Plan<'_> {
        let mut plan = Plan::new(&self.rules, self.asked, self.cost);
        for step in self.steps.iter().filter(|step| which.has(step)) {
            plan.limit_elsewhere(self.rules.rule(step.rule), self.limits(step));
        }
        self.passed_by.iter().for_each(|rule| plan.pass_by(self.rules.rule(*rule)));
        match &self.end {
            Ending::Bottom => {}
            Ending::Rule(rule) => plan.end_with(self.rules.rule(*rule)),
            Ending::Ban(ban) => plan.end_with_ban(Arc::clone(ban)),
        }
        plan
    }

    fn limits(&self, step: &Step) -> &[NamedLimit] {
        self.rules.limits(step.limits)
    }

    /// Puts what the script has found into a plan.
    fn restore(&self, plan: &mut Plan<'_>, which: Which, reply: &[i64]) -> Result<Time, ReplyError> {
        let asks = asks(plan.op());
        let (mut reply, now) = Reply::open(reply)?;
        let (mut hits, mut bans) = (plan.hits.iter_mut(), plan.bans.iter_mut());
        for step in self.steps.iter().filter(|step| which.has(step)) {
            for _ in self.limits(step) {
                let Some(hit) = hits.next() else { return Err(ReplyError::Malformed) };
                let (own, seen) = reply.counter(hit.limit())?;
                hit.restore(own, seen);
            }
            if self.rules.rule(step.rule).ban().is_some()
                && let Some(ban) = bans.next()
                && asks
            {
                ban.restore(reply.ban()?, now);
            }
        }
        reply.close()?;
        Ok(now)
    }

    /// What a part has decided by itself, as its script did.
    fn decide_part(&self, which: Which, reply: &[i64]) -> Result<Decided<'_>, ReplyError> {
        let mut plan = self.plan(which);
        let now = self.restore(&mut plan, which, reply)?;
        let ask = flowgate::Ask::new(plan.op(), self.cost, now);
        portable::decide(&mut flowgate::Plan::banning(ask, &mut plan.hits, &mut plan.bans));
        let exceeded = plan.hits.iter().any(|hit| !hit.flags().shadow && !hit.outcome().allowed());
        let banned = plan.bans.iter().any(|ban| ban.standing() != Standing::Clear);
        Ok(Decided { denied: exceeded || banned, now, plan })
    }
}

/// What a part has decided by itself.
struct Decided<'r> {
    denied: bool,
    now: Time,
    plan: Plan<'r>,
}

/// Puts the outcomes of a part into the whole.
fn settle(plan: &mut Plan<'_>, part: &Plan<'_>) {
    let mut decided = part.hits.iter().peekable();
    for hit in plan.hits.iter_mut() {
        // Both are in file order, and a rule is in one part with all its limits.
        if let Some(decided) = decided.next_if(|decided| decided.rule_id() == hit.rule_id()) {
            hit.settle(*decided.outcome());
        }
    }
    for ban in plan.bans.iter_mut() {
        if let Some(decided) = part.bans.iter().find(|decided| decided.rule_id() == ban.rule_id()) {
            ban.settle(decided.standing());
        }
    }
}

/// The hash tag of a rule's subject.
pub(super) fn tag(rules: &RuleSet, rule: &Rule, values: &Values<'_>) -> Vec<u8> {
    if rules.by(rule).is_empty() {
        return keys::all(rule.name());
    }
    keys::subject(rules.subject_fields(rule, values))
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Whether Redis has a say in what a rule decides. A rule that bans may have banned under limits that it had before.
fn is_asked(rule: &Rule, limits: &[NamedLimit]) -> bool {
    rule.ban().is_some() || limits.iter().any(|named| is_kept(&named.limit))
}

/// Whether a limit has a counter.
fn is_kept(limit: &flowgate::Limit) -> bool {
    limit.algorithm() != Algorithm::Unlimited
}

/// Whether an operation asks to pass, so that bans have a say.
fn asks(op: Op) -> bool {
    !matches!(op, Op::Record | Op::Refund)
}

pub(super) fn takes(op: Op) -> bool {
    matches!(op, Op::Take | Op::TakeWithin(_))
}
