//! Failover, a layer over Redis: what Redis does not answer in time, or with an error, this node decides by each rule's
//! `on_failure`, and marks as degraded.
//!
//! Rule       A request that meets several rules: one that denies (`deny`) denies it; otherwise those that let pass
//!            (`allow`) have no say, and the rest (`local`) decide on counters of this node, all or nothing, each with
//!            its share of the limit. Shadow rules never deny. Bans by rules are imposed locally, and hold
//!            only while Redis is away; bans by hand hold as this node last knew them.
//! Rule       A limit that the caller brings follows the store's `on_failure`.
//! Rule       If this node denies a request that Redis did not answer, what Redis has charged is taken back.
//! Bound      A node grants at most its share of a limit by itself, as that limit bounds it, however often
//!            Redis comes and goes: the counters outlive an outage, and age by their own periods.

use std::sync::Arc;

use flowgate::{
    Hit, Limit, MemoryConfig, MemoryStore, Op, OtherAlgorithm, Reading, Retry, Span, Throttle, ThrottleError,
    ThrottleReply, Verdict,
};
use flowgate_engine::config::Share;
use flowgate_engine::redis::{OwnedJointPlan, OwnedPlan};
use flowgate_engine::{
    AdHoc, AdHocKey, Decider, Decision, Explanation, JointDecision, Limits, OnFailure, Policy, PolicyError, Request,
    Rule, RuleDef, RuleSet, explain::LimitReport,
};

use super::health::Health;
use super::question::{InFlightQuestion, LocalQuestion, OwnedQuestion, Question, Store, StoreReply};
use super::store::{Ending, InFlight, RedisStore};
use crate::answer::Pending;
use crate::service::Snapshot;

/// The wait that a client is told while the store is away. When the store is back is unknown.
const RETRY_AFTER: Span = Span::from_secs(1);

/// Redis, and what this node does without it.
#[derive(Debug)]
pub(crate) struct Failover {
    redis: Arc<RedisStore>,
    pub(crate) local: Local,
    health: Arc<Health>,
}

/// A question that was sent to Redis.
pub(crate) struct SentToRedis<Q> {
    question: Arc<Q>,
    in_flight: InFlight,
}

impl<Q: LocalQuestion> InFlightQuestion<Q> for SentToRedis<Q> {
    fn question(&self) -> &Arc<Q> {
        &self.question
    }
}

/// This node's own counters, and the rules for their use.
#[derive(Debug)]
pub(crate) struct Local {
    /// Decides by this node's counters.
    pub(crate) decider: Decider,
    pub(crate) settings: Settings,
}

/// How to decide without the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) memory: MemoryConfig,
    /// The `on_failure` of rules that set none.
    pub(crate) on_failure: OnFailure,
    pub(crate) share: Share,
}

impl Failover {
    pub(crate) fn new(redis: Arc<RedisStore>, settings: Settings, health: Arc<Health>) -> Failover {
        Failover { redis, local: Local::new(settings), health }
    }

    fn decide<Q: LocalQuestion>(&self, question: &Q, at: Reading) -> Q::Reply {
        self.health.degraded.add(1);
        question.decide(&self.local, at)
    }
}

impl Store for Failover {
    type Sent<Q: LocalQuestion> = SentToRedis<Q>;

    fn send<Q: Question>(
        &self,
        question: &Q,
        at: Reading,
    ) -> Pending<<Q::Owned as OwnedQuestion>::Reply, Self::Sent<Q::Owned>> {
        let question = Arc::new(question.to_owned());
        match self.redis.send(&question, at.now) {
            Ok(in_flight) => Pending::Later(SentToRedis { question, in_flight }),
            Err(_) => Pending::Now(self.decide(&*question, at)),
        }
    }

    async fn receive<Q: LocalQuestion>(&self, sent: &mut SentToRedis<Q>, at: Reading) -> StoreReply<Q::Reply> {
        let SentToRedis { question, in_flight } = sent;
        match self.redis.receive(&**question, in_flight, at.now).await {
            Ok(reply) => StoreReply { reply, degraded: false },
            Err(undecided) => {
                self.redis.note_failure(undecided.why);
                let reply = self.decide(&**question, at);
                self.redis.settle(undecided, question, Ending::new(Q::keeps_charge(&reply)));
                StoreReply { reply, degraded: true }
            }
        }
    }
}

impl Local {
    fn new(settings: Settings) -> Local {
        Local { decider: Decider::new(MemoryStore::new(settings.memory)), settings }
    }

    /// Compiles the rules of a policy with limits in this node's shares.
    pub(crate) fn compile(&self, policy: &Policy) -> Result<RuleSet, PolicyError> {
        self.decider.compile(&self.settings.in_shares(policy), None)
    }

    /// Decides a plan.
    pub(crate) fn decide(&self, snapshot: &Snapshot, plan: &OwnedPlan, request: &Request<'_>, at: Reading) -> Decision {
        match self.denying_rule(plan) {
            Some(rule) => Decision::denied_without_store(rule, RETRY_AFTER),
            None => self.decider.decide_owned(plan, local(snapshot), request, at).as_stopgap(),
        }
    }

    /// Decides several requests that pass together or not at all, each by a snapshot.
    pub(crate) fn decide_joint<'r>(
        &self,
        snapshots: impl Iterator<Item = &'r Snapshot>,
        plan: &'r OwnedJointPlan,
        requests: &[Request<'_>],
        at: Reading,
    ) -> JointDecision {
        let denied: Vec<Option<&Arc<Rule>>> = plan.parts.iter().map(|part| self.denying_rule(part)).collect();
        let is_denied = denied.iter().any(Option::is_some);
        let mut joint = self.decider.decide_joint_owned(plan, snapshots.map(local), requests, is_denied, at);
        for (part, denied) in joint.parts_mut().iter_mut().zip(denied) {
            part.decision = match denied {
                Some(rule) => Decision::denied_without_store(rule, RETRY_AFTER),
                None => part.decision.clone().as_stopgap(),
            };
            part.charged &= !is_denied;
        }
        joint
    }

    /// The rule that denies a request while the store is away, by its `on_failure`.
    fn denying_rule<'p>(&self, plan: &'p OwnedPlan) -> Option<&'p Arc<Rule>> {
        let denies = |rule: &&Arc<Rule>| !rule.is_shadow() && self.settings.on_failure(rule) == OnFailure::Deny;
        plan.limited_by().find(denies).filter(|_| plan.op().asks())
    }

    /// Why this node alone decides as it does: by each rule's `on_failure` and, where that is `local`, by this node's
    /// counters, with each limit in its share.
    pub(crate) fn explain(
        &self,
        snapshot: &Snapshot,
        plan: &OwnedPlan,
        request: &Request<'_>,
        at: Reading,
    ) -> Explanation {
        let decision = self.decide(snapshot, plan, request, at);
        let mut explanation = self.decider.explain_owned(plan, local(snapshot), request, at);
        for report in &mut explanation.rules {
            let on_failure = self.settings.on_failure(&report.rule);
            report.on_failure = Some(on_failure);
            if on_failure != OnFailure::Local {
                let unasked = |hit: &Hit<'_>| LimitReport { limit: hit.limit().clone(), outcome: unasked(on_failure) };
                let hits = plan.hits();
                let configured = hits.iter().filter(|hit| hit.rule_id() as usize == report.rule.position());
                report.limits = configured.map(unasked).collect();
            }
        }
        Explanation { decision, ..explanation }
    }

    /// Applies a limit that the caller brings.
    pub(crate) fn limit(&self, op: Op, call: AdHoc<'_>, at: Reading) -> Result<flowgate::Decision, OtherAlgorithm> {
        let asks = !matches!(op, Op::Record | Op::Refund);
        match self.settings.on_failure {
            OnFailure::Local => {
                let limit = call.limit.share(self.settings.share);
                self.decider.limit(op, AdHoc { limit: &limit, ..call }, at)
            }
            OnFailure::Deny if asks => Ok(unasked(OnFailure::Deny)),
            OnFailure::Allow | OnFailure::Deny => Ok(unasked(OnFailure::Allow)),
        }
    }

    /// Answers a call of `CL.THROTTLE`.
    pub(crate) fn throttle(
        &self,
        key: AdHocKey<'_>,
        throttle: Throttle,
        at: Reading,
    ) -> Result<ThrottleReply, ThrottleError> {
        match self.settings.on_failure {
            OnFailure::Local => {
                let throttle = throttle.share(self.settings.share)?;
                self.decider.throttle(self.decider.ad_hoc_key(key), &throttle, at)
            }
            OnFailure::Deny => Ok(throttle.denied(RETRY_AFTER)),
            OnFailure::Allow => Ok(throttle.allowed()),
        }
    }
}

impl Settings {
    fn on_failure(&self, rule: &Rule) -> OnFailure {
        rule.on_failure.unwrap_or(self.on_failure)
    }

    /// The policy by which this node decides: limits in shares, or no limits for rules that let everything pass.
    fn in_shares(&self, policy: &Policy) -> Policy {
        let rules = policy.rules.iter().map(|rule| self.rule_in_shares(rule)).collect();
        Policy { rules, lists: policy.lists.clone(), path_spelling: policy.path_spelling }
    }

    /// A limit in this node's share; `unlimited` where this node counts nothing.
    pub(crate) fn share_of(&self, limit: &Limit, on_failure: OnFailure) -> Limit {
        match on_failure {
            OnFailure::Local => limit.share(self.share),
            OnFailure::Allow | OnFailure::Deny => Limit::unlimited(),
        }
    }

    fn rule_in_shares(&self, rule: &RuleDef) -> RuleDef {
        let on_failure = rule.on_failure.unwrap_or(self.on_failure);
        let shares =
            |limits: &Vec<Limit>| limits.iter().map(|limit| self.share_of(limit, on_failure)).collect::<Vec<_>>();
        let limits = match &rule.limits {
            Limits::None => Limits::None,
            Limits::Fixed(limits) => Limits::Fixed(shares(limits)),
            Limits::ByField { field, cases, default } => Limits::ByField {
                field: field.clone(),
                cases: cases.iter().map(|(value, limits)| (value.clone(), shares(limits))).collect(),
                default: default.as_ref().map(shares),
            },
        };
        RuleDef { limits, ban: rule.ban.clone().filter(|_| on_failure == OnFailure::Local), ..rule.clone() }
    }
}

/// The rules in this node's shares. A snapshot has them if it was compiled with a shared store.
fn local(snapshot: &Snapshot) -> &RuleSet {
    snapshot.local_rules.as_ref().unwrap_or(&snapshot.rules)
}

/// The decision of a limit whose counter is not asked.
fn unasked(on_failure: OnFailure) -> flowgate::Decision {
    match on_failure {
        OnFailure::Deny => {
            let verdict = Verdict::Deny(Retry::After(RETRY_AFTER));
            flowgate::Decision { verdict, limit: None, remaining: Some(0), reset_after: RETRY_AFTER }
        }
        OnFailure::Allow | OnFailure::Local => {
            let verdict = Verdict::Allow { delay: Span::ZERO };
            flowgate::Decision { verdict, limit: None, remaining: None, reset_after: Span::ZERO }
        }
    }
}

#[cfg(test)]
mod tests {
    use flowgate::{Seed, Time, WhenFull};
    use flowgate_engine::config::Config;

    use super::*;

    const NOW: Time = Time::from_secs(1_700_000_000);

    struct Away {
        decider: Decider,
        local: Local,
        snapshot: Snapshot,
    }

    fn away(share: &str, toml: &str) -> Away {
        let policy = Config::from_toml(toml).unwrap().policy;
        let memory = MemoryConfig { max_bytes: 1 << 20, when_full: WhenFull::Evict, seed: Seed::random() };
        let settings = Settings { memory, on_failure: OnFailure::Local, share: share.parse().unwrap() };
        let decider = Decider::new(MemoryStore::default());
        let local = Local::new(settings);
        let snapshot = snapshot(&decider, &local, &policy);
        Away { decider, local, snapshot }
    }

    fn snapshot(decider: &Decider, local: &Local, policy: &Policy) -> Snapshot {
        let rules = decider.compile(policy, None).unwrap();
        Snapshot::of_rules(rules.into(), Some(local.compile(policy).unwrap().into()))
    }

    impl Away {
        fn take(&self, fields: &[(&str, &str)]) -> Decision {
            let request = fields.iter().copied().collect();
            self.decide(&request, NOW.into())
        }

        fn decide(&self, request: &Request<'_>, at: Reading) -> Decision {
            let rules = &self.snapshot.rules;
            let plan = OwnedPlan::new(rules, &self.decider.plan(rules, Op::Take, request, NOW), request);
            self.local.decide(&self.snapshot, &plan, request, at)
        }

        fn admits(&self, fields: &[(&str, &str)]) -> usize {
            (0..100).filter(|_| self.take(fields).allowed()).count()
        }
    }

    const RULES: &str = r#"
        rule = [
            { name = "local", when = { a = "*" }, by = ["user"], limits = ["10/60s"] },
            { name = "open", when = { b = "*" }, by = ["user"], limits = ["1/60s"], on_failure = "allow" },
            { name = "shut", when = { c = "*" }, by = ["user"], limits = ["10/60s"], on_failure = "deny", code = 7 },
            { name = "shade", when = { d = "*" }, by = ["user"], limits = ["1/60s"], on_failure = "deny", shadow = true },
        ]"#;

    #[test]
    fn deny_wins_then_local_then_allow() {
        let away = away("1/2", RULES);
        let user = ("user", "42");
        assert_eq!(away.admits(&[("a", "1"), user]), 5, "its share");
        assert_eq!(away.admits(&[("b", "1"), user]), 100);
        let denied = away.take(&[("c", "1"), user]);
        assert_eq!((denied.retry_after(), denied.code(), denied.degraded), (Some(RETRY_AFTER), Some(7), true));
        assert_eq!(away.admits(&[("d", "1"), user]), 100, "a shadow rule never denies");
        let other = ("user", "43");
        assert_eq!(away.admits(&[("a", "1"), ("b", "1"), ("c", "1"), other]), 0);
        assert_eq!(away.admits(&[("a", "1"), ("b", "1"), ("d", "1"), other]), 5);
        assert!(away.take(&[("a", "1"), other]).degraded);
    }

    #[test]
    fn waits_by_this_nodes_counters_are_real_time_and_others_stay() {
        let mut away = away("1/1", "rule = [{ name = 'api', limits = ['1/60s'] }]");
        let at = Reading { now: NOW, ahead: Span::from_secs(3600) };
        let limit = "1/60s".parse().unwrap();
        let call = AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
        let throttle = Throttle::new(0, 1, 60).unwrap();
        let waits = |away: &Away| {
            let decide = || away.decide(&Request::new(), at);
            let limit = || away.local.limit(Op::Take, call, at).unwrap();
            let throttled = || away.local.throttle(b"t".into(), throttle, at).unwrap();
            decide();
            limit();
            throttled();
            [decide().retry_after(), limit().retry_after(), throttled().retry_after].map(Option::unwrap)
        };
        assert_eq!(waits(&away), [Span::from_secs(120); 3]);
        away.local.settings.on_failure = OnFailure::Deny;
        assert_eq!(waits(&away)[1..], [RETRY_AFTER; 2], "a pause before the next attempt is real already");
    }

    #[test]
    fn other_rules_keep_what_was_counted() {
        let mut away = away("1/1", RULES);
        assert_eq!(away.admits(&[("a", "1"), ("user", "42")]), 10);
        let policy = Config::from_toml(&RULES.replace("10/60s", "11/60s")).unwrap().policy;
        away.snapshot = snapshot(&away.decider, &away.local, &policy);
        assert_eq!(away.admits(&[("a", "1"), ("user", "42")]), 1);
    }

    #[test]
    fn limits_of_the_callers_follow_the_store() {
        let limit = "4/60s".parse().unwrap();
        let call = AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
        let mut away = away("1/2", "");
        let admits =
            |away: &Away| (0..10).filter(|_| away.local.limit(Op::Take, call, NOW.into()).unwrap().allowed()).count();
        let throttle = Throttle::new(3, 4, 60).unwrap();
        let passes = |away: &Away| {
            (0..10).filter(|_| !away.local.throttle(b"t".into(), throttle, NOW.into()).unwrap().limited).count()
        };
        assert_eq!((admits(&away), passes(&away)), (2, 2));
        away.local.settings.on_failure = OnFailure::Deny;
        assert_eq!((admits(&away), passes(&away)), (0, 0));
        assert!(away.local.limit(Op::Refund, call, NOW.into()).unwrap().allowed());
        away.local.settings.on_failure = OnFailure::Allow;
        assert_eq!((admits(&away), passes(&away)), (10, 10));
    }
}
