//! The decider: counters and bans, which outlive every change of the rules. The caller passes the rules with each request.
//!
//! ```text
//! request -> plan      which rules match, whom they count, what is asked of each counter       (pure)
//!         -> apply     the store decides all of it in one atomic step
//!         -> conclude  what decided, what is left, when to come back                            (pure)
//! ```
//!
//! Rule       Bans by hand come first, then those of rules that ban everywhere. Then rules top to bottom: a rule without
//!            limits decides at once; the limits of all rules that matched above it are applied together, all or nothing,
//!            with their bans.
//! Rule       Calls that take a [`Reading`] of a clock return waits and the ends of bans in real time. Calls that take a plain
//!            [`Time`] return them on the clock of that time (a replay's, or Redis's).

mod planned;

use std::sync::Arc;

use flowgate::{
    Ask, CounterId, Database, Key, Limit, MemoryStore, Op, OtherAlgorithm, Reading, Throttle, ThrottleError,
    ThrottleReply, Time,
};

use crate::bans::{
    BanId, BanIds, BanKind, BanOrder, BanOrderError, ImposedBans, ManualBan, ManualBans, RuleBan, RuleBanPlace,
};
use crate::decision::Decision;
use crate::key;
use crate::plan::{End, Evaluation, HitBuffer, JointDecision, JointPlan, Outcomes, Plan, Step};
use crate::request::Request;
use crate::rules::{Candidates, Policy, PolicyError, Rule, RuleSet, Subjects, Values};
use crate::store::Store;

/// Counters and bans. The caller passes the rules with each request.
#[derive(Debug)]
pub struct Decider {
    pub(crate) bans: ManualBans,
    pub(crate) imposed: ImposedBans,
    ban_ids: BanIds,
    memory: MemoryStore,
    /// The one counter of every ad hoc key.
    ad_hoc: CounterId,
}

impl AsRef<MemoryStore> for Decider {
    fn as_ref(&self) -> &MemoryStore {
        &self.memory
    }
}

impl Decider {
    /// A decider with the counters of `memory` and without bans.
    pub fn new(memory: MemoryStore) -> Decider {
        let (bans, imposed, ban_ids) = (ManualBans::default(), ImposedBans::default(), BanIds::default());
        let ad_hoc = memory.counter(key::AD_HOC_COUNTER);
        Decider { bans, imposed, ban_ids, memory, ad_hoc }
    }

    /// Compiles a policy for these counters. Each rule continues the counts of the rule of the same name in `before`.
    ///
    /// # Errors
    /// When the rules do not fit together; the error names the rule and the part.
    pub fn compile(&self, policy: &Policy, before: Option<&RuleSet>) -> Result<RuleSet, PolicyError> {
        let mut rules = RuleSet::compile(policy, &self.memory)?;
        if let Some(before) = before {
            rules.inherit_counters(before);
        }
        Ok(rules)
    }

    /// Decides a request: may it happen now?
    #[inline]
    pub fn decide_by(&self, rules: &RuleSet, op: Op, request: &Request<'_>, at: impl Into<Reading>) -> Decision {
        self.decide_read(rules, op, request, at.into())
    }

    /// One function for all types of time, so that it is compiled once.
    fn decide_read(&self, rules: &RuleSet, op: Op, request: &Request<'_>, at: Reading) -> Decision {
        let mut evaluation = Evaluation::new(op.on_clock(at), request.cost);
        self.evaluate(rules, request, at.now, &mut evaluation, Evaluation::push);
        let mut buffer = HitBuffer::default();
        self.apply_evaluation(rules, &evaluation, &mut buffer, || request.clone(), at).conclude(at)
    }

    /// Lets the counters in memory decide an evaluation.
    #[inline]
    fn apply_evaluation<'b, 'r, 'q>(
        &self,
        rules: &'r RuleSet,
        evaluation: &'b Evaluation,
        buffer: &'b mut HitBuffer<'r>,
        request: impl FnOnce() -> Request<'q>,
        at: Reading,
    ) -> Outcomes<'b, 'r> {
        buffer.fill(rules, evaluation);
        let (hits, bans) = (&mut buffer.hits[..], &mut buffer.bans[..]);
        let ask = Ask::new(evaluation.store_op(rules, hits), evaluation.cost, at.now);
        self.memory.apply(&mut flowgate::Plan::banning(ask, hits, bans));
        let outcomes = Outcomes { rules, evaluation, hits, bans };
        self.note_bans(outcomes, request);
        outcomes
    }

    /// The plan of a request: what it asks of the store.
    #[inline]
    pub fn plan<'r>(&self, rules: &'r RuleSet, op: Op, request: &Request<'_>, now: Time) -> Plan<'r> {
        let mut plan = Plan::empty(rules);
        self.plan_into(&mut plan, op, request, now);
        plan
    }

    /// Like [`Decider::plan`], but reuses the memory of an older plan by the same rules. A caller with several requests
    /// plans them all, calls [`Decider::prefetch_plan`] for each, and then applies one after the other. The answers are
    /// the same, and the cache misses overlap.
    pub fn plan_into(&self, plan: &mut Plan<'_>, op: Op, request: &Request<'_>, now: Time) {
        self.plan_rules(plan, op, request, now, Evaluation::push);
    }

    /// The plan of a request that brings a limit of its own. The limits of rules do not apply; bans and rules without
    /// limits do.
    pub fn plan_without_limits<'r>(&self, rules: &'r RuleSet, op: Op, request: &Request<'_>, now: Time) -> Plan<'r> {
        let mut plan = Plan::empty(rules);
        self.plan_rules(&mut plan, op, request, now, Evaluation::skip_limits);
        plan
    }

    /// Plans a request. `add` gets each rule with limits that matches.
    #[inline]
    fn plan_rules(
        &self,
        plan: &mut Plan<'_>,
        op: Op,
        request: &Request<'_>,
        now: Time,
        add: impl Fn(&mut Evaluation, &Rule, Step),
    ) {
        plan.begin(op, request.cost);
        self.evaluate(plan.rules, request, now, &mut plan.evaluation, add);
        plan.add_hits(plan.rules, 0);
    }

    /// Asks bans by hand, then the rules.
    #[inline]
    fn evaluate(
        &self,
        rules: &RuleSet,
        request: &Request<'_>,
        now: Time,
        evaluation: &mut Evaluation,
        add: impl Fn(&mut Evaluation, &Rule, Step),
    ) {
        match self.bans.find(request, now) {
            Some(ban) => evaluation.end = End::Ban(ban),
            None => {
                let mut values = rules.fields.no_values();
                rules.fields.read_into(&mut values, request);
                self.evaluate_rules(rules, &values, evaluation, add);
            }
        }
    }

    /// Evaluates the rules top to bottom, until one ends the evaluation.
    #[inline]
    fn evaluate_rules(
        &self,
        rules: &RuleSet,
        values: &Values<'_>,
        evaluation: &mut Evaluation,
        add: impl Fn(&mut Evaluation, &Rule, Step),
    ) {
        let mut subjects = Subjects::new(rules, values);
        let mut candidates = Candidates::default();
        rules.find_candidates(values, &mut candidates);
        for id in candidates.rules() {
            let rule = rules.rule(*id);
            let Ok(limits) = rules.check_candidate(rule, values) else { continue };
            if !limits.is_none() {
                let subject = subjects.counted_by(rule);
                add(evaluation, rule, Step { rule: rule.id, limits, subject });
            } else if rule.is_shadow() {
                evaluation.passed_by.push(rule.id);
            } else {
                evaluation.end = End::Rule(rule.id);
                break;
            }
        }
        if rules.bans_everywhere() && evaluation.asked.asks() {
            evaluation.watch(rules, rules.banning_everywhere(), values, &mut subjects);
        }
    }

    /// Prefetches the counters of a plan into the processor's cache. Changes no state.
    #[inline]
    pub fn prefetch_plan(&self, plan: &Plan<'_>) {
        plan.hits.iter().for_each(|hit| self.memory.prefetch(hit.key()));
    }

    /// Lets the store decide the plan of a request; [`Plan::conclude`] tells what follows. The request is asked for only
    /// if it starts a ban, which is listed with the names of its subject.
    #[inline]
    pub fn apply<'q>(&self, plan: &mut Plan<'_>, request: impl FnOnce() -> Request<'q>, now: Time) {
        self.memory.apply_plan(plan, now);
        self.note_bans(plan.outcomes(), request);
    }

    /// Decides several requests in one atomic step: they pass together or not at all.
    pub fn decide_joint_by(&self, rules: &RuleSet, requests: &[(Op, Request<'_>)], at: Reading) -> JointDecision {
        let plan = self.plan_joint(rules, requests, at);
        self.decide_joint_plan(plan, requests.iter().map(|(_, request)| request), at)
    }

    /// Decides a joint plan of these requests.
    pub fn decide_joint_plan<'q, 'a: 'q>(
        &self,
        mut plan: JointPlan<'_>,
        requests: impl Iterator<Item = &'q Request<'a>>,
        at: Reading,
    ) -> JointDecision {
        self.memory.apply_joint(&mut plan, at.now);
        plan.parts.iter().zip(requests).for_each(|(part, request)| self.note_bans(part.outcomes(), || request.clone()));
        let mut joint = plan.conclude(at.now);
        joint.make_real(at);
        joint
    }

    /// The joint plan of several requests: what they ask of the store in one step.
    pub fn plan_joint<'r>(&self, rules: &'r RuleSet, requests: &[(Op, Request<'_>)], at: Reading) -> JointPlan<'r> {
        let plan = |(op, request): &(Op, Request<'_>)| self.plan(rules, op.on_clock(at), request, at.now);
        JointPlan::new(requests.iter().map(plan).collect())
    }

    /// Forgets what all matching rules have counted for the request's subjects, including bans. Also lifts bans of
    /// other rules that deny the request because they hold everywhere. Returns the decision of a peek of cost 0 after
    /// that.
    pub fn reset_by(&self, rules: &RuleSet, request: &Request<'_>, at: impl Into<Reading>) -> Decision {
        let values = rules.read(request);
        let mut subjects = Subjects::new(rules, &values);
        for (rule, _) in rules.matching(&values, &mut Candidates::default()) {
            let subject = subjects.counted_by(rule);
            for counter in rules.counter_ids(rule) {
                self.memory.reset(subject.counter(counter));
            }
        }
        for (rule, ban) in rules.bans_to_lift(&values) {
            self.memory.reset(subjects.counted_by(rule).counter(ban));
        }
        self.decide_by(rules, Op::Peek, &request.clone().cost(0), at)
    }

    /// Applies a limit that is in no rule to an ad hoc key.
    ///
    /// # Errors
    /// When the key is in use by a limit of another algorithm.
    pub fn limit(&self, op: Op, call: AdHoc<'_>, at: impl Into<Reading>) -> Result<flowgate::Decision, OtherAlgorithm> {
        self.limit_hashed(op, self.ad_hoc_key(call.key), call.limit, call.cost, at)
    }

    /// Like [`Decider::limit`], for a caller that has hashed the key with [`Decider::ad_hoc_key`].
    ///
    /// # Errors
    /// As [`Decider::limit`].
    #[inline]
    pub fn limit_hashed(
        &self,
        op: Op,
        key: Key,
        limit: &Limit,
        cost: u64,
        at: impl Into<Reading>,
    ) -> Result<flowgate::Decision, OtherAlgorithm> {
        let at = at.into();
        let ask = Ask::new(op.on_clock(at), cost, at.now);
        let mut decision = self.memory.apply_same(ask, key, limit)?;
        decision.make_real(at);
        Ok(decision)
    }

    /// Answers a call of `CL.THROTTLE` on an ad hoc key, which [`Decider::ad_hoc_key`] gives.
    ///
    /// # Errors
    /// When the key is in use by a limit, or the numbers do not fit.
    #[inline]
    pub fn throttle(
        &self,
        key: Key,
        throttle: &Throttle,
        at: impl Into<Reading>,
    ) -> Result<ThrottleReply, ThrottleError> {
        let at = at.into();
        let mut reply = self.memory.throttle(key, throttle, at.now)?;
        reply.make_real(at);
        Ok(reply)
    }

    /// The time until an ad hoc key is as if never used; `None` if it already is.
    pub fn limit_lifetime<'k>(&self, key: impl Into<AdHocKey<'k>>, at: impl Into<Reading>) -> Option<flowgate::Span> {
        let at = at.into();
        self.memory.lifetime(self.ad_hoc_key(key), at.now).map(|left| at.real_wait(left))
    }

    /// Forgets an ad hoc key; true when there was one.
    pub fn limit_reset<'k>(&self, key: impl Into<AdHocKey<'k>>) -> bool {
        self.memory.reset(self.ad_hoc_key(key))
    }

    /// Bans a value of a field. Replaces an earlier ban of the same field and value.
    ///
    /// # Errors
    /// When the value is neither a text nor addresses, a text is too long, or there are too many bans.
    pub fn ban(&self, order: BanOrder<'_>, at: impl Into<Reading>) -> Result<Arc<ManualBan>, BanOrderError> {
        let at = at.into();
        Ok(self.bans.impose(order, self.next_ban_id(BanKind::Hand), at.now)?.on_the_wall(at))
    }

    /// Lifts the ban with an id, whether imposed by hand or by a rule. Returns false if there is none.
    pub fn unban(&self, id: BanId, now: Time) -> bool {
        match id.kind() {
            BanKind::Hand => self.bans.lift(id, now),
            BanKind::Rule => self.imposed.lift(id, &self.memory, now),
        }
    }

    /// Lifts the ban of a field's value, however an address in it is written; false when there is none.
    pub fn unban_value(&self, field: &str, value: &str, now: Time) -> bool {
        self.bans.lift_value(field, value, None, now)
    }

    /// Whether a ban by hand keeps a request out.
    pub fn is_banned(&self, request: &Request<'_>, now: Time) -> bool {
        self.bans.find(request, now).is_some()
    }

    /// The bans by hand that are in force, oldest first.
    pub fn bans(&self, at: impl Into<Reading>) -> Vec<Arc<ManualBan>> {
        let at = at.into();
        self.bans.list(at.now).into_iter().map(|ban| ban.on_the_wall(at)).collect()
    }

    /// The ban by hand of an id, if it is in force.
    pub fn manual_ban(&self, id: BanId, now: Time) -> Option<Arc<ManualBan>> {
        self.bans.with_id(id, now)
    }

    /// The number of bans by hand that are in force.
    pub fn number_of_bans(&self, now: Time) -> usize {
        self.bans.number(now)
    }

    /// The fields that have a value banned by hand. Allocates nothing without bans.
    pub fn ban_fields(&self) -> Vec<Arc<str>> {
        self.bans.fields()
    }

    /// The newest 10,000 bans by rules that are in force, oldest first.
    pub fn rule_bans(&self, at: impl Into<Reading>) -> Vec<RuleBan> {
        let at = at.into();
        let mut bans = self.imposed.list(&self.memory, at.now);
        bans.iter_mut().for_each(|ban| ban.until = at.on_the_wall(ban.until));
        bans
    }

    /// The number of bans by rules that are in force, 10,000 at most.
    pub fn number_of_rule_bans(&self, now: Time) -> usize {
        self.imposed.number(&self.memory, now)
    }

    /// The counters.
    pub fn memory(&self) -> &MemoryStore {
        &self.memory
    }

    /// Lists the bans that a request has started, with the names of their subjects. The request is asked for only then.
    #[inline]
    fn note_bans<'q>(&self, outcomes: Outcomes<'_, '_>, request: impl FnOnce() -> Request<'q>) {
        if !outcomes.bans.is_empty() && outcomes.new_bans().next().is_some() {
            self.list_bans(outcomes, &request());
        }
    }

    #[cold]
    fn list_bans(&self, outcomes: Outcomes<'_, '_>, request: &Request<'_>) {
        for (rule, key, until) in outcomes.new_bans() {
            let value = |field: &str| (field.to_owned(), request.counted(field).unwrap_or_default().to_owned());
            let subject = outcomes.by(rule).map(value).collect();
            let (rule, place) = (Arc::clone(rule), RuleBanPlace::Memory(key));
            self.note_ban(|id| RuleBan { id, rule, subject, until, place });
        }
    }

    /// Lists a ban that a rule has started.
    pub(crate) fn note_ban(&self, ban: impl FnOnce(BanId) -> RuleBan) {
        self.imposed.note(&self.ban_ids, ban);
    }

    pub(crate) fn next_ban_id(&self, kind: BanKind) -> BanId {
        self.ban_ids.next(kind)
    }

    /// The counter of an ad hoc key.
    #[inline]
    pub fn ad_hoc_key<'k>(&self, key: impl Into<AdHocKey<'k>>) -> Key {
        let AdHocKey { bytes, database } = key.into();
        self.memory.subject_in(key::AD_HOC_SPACE, bytes).counter(self.ad_hoc).in_database(database)
    }
}

/// An ad hoc key: any bytes, in a database. The same bytes in another database are another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdHocKey<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The database.
    pub database: Database,
}

/// A key in the first database.
impl<'a> From<&'a [u8]> for AdHocKey<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> AdHocKey<'a> {
        AdHocKey { bytes, database: Database::default() }
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for AdHocKey<'a> {
    fn from(bytes: &'a [u8; N]) -> AdHocKey<'a> {
        AdHocKey::from(bytes.as_slice())
    }
}

/// A question about a limit that belongs to no rule: a key, the limit and a cost.
#[derive(Clone, Copy, Debug)]
pub struct AdHoc<'a> {
    /// The key.
    pub key: AdHocKey<'a>,
    /// The limit. Another count or burst than before applies from now on.
    pub limit: &'a Limit,
    /// The number of units.
    pub cost: u64,
}
