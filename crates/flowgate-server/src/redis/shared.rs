//! The store that several nodes share, complete: `DenyCache(Failover(Redis, local memory))`, and the bans by hand.

mod bans;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use flowgate::{Clock, MemoryConfig, Op, Reading, Span, Time};
use flowgate_engine::config::{self, RedisServers};
use flowgate_engine::redis::{BanCopy, OwnedPlan, ScriptCall, ScriptTime};
use flowgate_engine::{Decider, Decision, Explanation, Request};
use tokio::time::{sleep, timeout};

use super::clock::RedisClock;
use super::deny_cache::{DenyCache, DenyQuestion};
use super::failover::{Failover, Local, Settings};
use super::health::{Health, SharedStats};
use super::link::Failure;
use super::question::{
    ExplainQuestion, InFlightQuestion, JointQuestion, LocalQuestion, OwnedJointQuestion, OwnedQuestion,
    OwnedRuleQuestion, Question, RuleQuestion, Store, StoreReply,
};
use super::redirect::{Command, Plain, SentCommand, WithScript};
use super::sentinel::Sentinels;
use super::servers::{Common, Servers};
use super::store::RedisStore;
use super::target::Target;
use super::wire::Reply;
use crate::answer::{Answer, Pending};
use crate::lock::Lock;
use crate::service::{JointRequest, Reset, Snapshot, StoreAway, plan_joint};

/// Counters that several nodes share.
#[derive(Debug)]
pub(crate) struct SharedStore {
    /// Keeps the bans. The counters of this decider are not used.
    decider: Arc<Decider>,
    store: DenyCache<Failover>,
    pub(crate) redis: Arc<RedisStore>,
    /// This node's copy of the bans by hand.
    bans: Lock<BanCopy>,
    /// Redis's clock, by which bans end.
    redis_clock: RedisClock,
}

/// A question that all layers have sent, with the store that answers it.
pub(crate) struct SentQuestion<Q: LocalQuestion> {
    store: Arc<SharedStore>,
    sent: <DenyCache<Failover> as Store>::Sent<Q>,
    at: Reading,
}

impl<Q: LocalQuestion> SentQuestion<Q> {
    /// The question.
    pub(crate) fn question(&self) -> &Q {
        self.sent.question()
    }

    /// Awaits the reply.
    pub(crate) fn receive(&mut self) -> impl Future<Output = StoreReply<Q::Reply>> + Send {
        self.store.store.receive(&mut self.sent, self.at)
    }
}

/// A reply that is known, or the question that was sent for it.
pub(crate) type PendingReply<Q> = Pending<<Q as OwnedQuestion>::Reply, SentQuestion<Q>>;

/// The time between two reads of bans by hand that other nodes have imposed.
const BAN_REFRESH_PERIOD: Duration = Duration::from_secs(1);
/// The time between two questions to sentinels where the master is.
const SENTINEL_PERIOD: Duration = Duration::from_secs(1);
/// The time between two looks for a server that took over from one that is away.
const TAKEOVER_CHECK_PERIOD: Duration = Duration::from_millis(250);

impl SharedStore {
    /// A store of these servers. `decider` keeps the bans; its counters are not used.
    pub(crate) fn new(redis: &config::Redis, memory: MemoryConfig, decider: Arc<Decider>, clock: Clock) -> SharedStore {
        let health = Arc::new(Health::default());
        let common = Common { timeout: span(redis.timeout), prefix: &redis.prefix, health: Arc::clone(&health) };
        let servers = match &redis.servers {
            RedisServers::One(url) => Servers::one(Target::new(url), common),
            RedisServers::Cluster(urls) => Servers::cluster(urls.iter().map(Target::new).collect(), common),
            RedisServers::Sentinel(sentinel) => Servers::behind(Sentinels::new(sentinel), common),
        };
        let settings = Settings { memory, on_failure: redis.on_failure, share: redis.local_share };
        let longest_denial = redis.deny_cache.then(|| span(redis.deny_cache_max));
        let redis_clock = RedisClock::new(clock.clone());
        let redis = Arc::new(RedisStore {
            servers,
            prefix: redis.prefix.clone(),
            health: Arc::clone(&health),
            decider: Arc::clone(&decider),
        });
        let failover = Failover::new(Arc::clone(&redis), settings, Arc::clone(&health));
        let store = DenyCache::new(failover, longest_denial, clock, health);
        SharedStore { decider, store, redis, bans: Lock::default(), redis_clock }
    }

    /// Connects, and maintains the store while it has an owner. Must be called on a runtime, which does the work.
    pub(crate) fn watch(self: &Arc<SharedStore>) {
        self.watch_sentinels();
        let store = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut since_refresh = BAN_REFRESH_PERIOD;
            while let Some(store) = store.upgrade() {
                store.redis.servers.look_around().await;
                if since_refresh >= BAN_REFRESH_PERIOD {
                    since_refresh = Duration::ZERO;
                    // Bans that cannot be read now are read a second later. The breaker reports that Redis is away.
                    let _ = store.refresh_bans().await;
                }
                store.redis.servers.inspect().await;
                // A store without another owner ends at the next look.
                let pause = if store.needs_looking_after() { TAKEOVER_CHECK_PERIOD } else { BAN_REFRESH_PERIOD };
                let _ = timeout(pause, store.redis.servers.is_outdated()).await;
                drop(store);
                since_refresh += pause;
            }
        });
    }

    /// Asks the sentinels, if there are any, while the store has an owner.
    fn watch_sentinels(self: &Arc<SharedStore>) {
        if !self.redis.servers.has_sentinels() {
            return;
        }
        let store = Arc::downgrade(self);
        tokio::spawn(async move {
            while let Some(store) = store.upgrade() {
                store.redis.servers.ask_sentinels().await;
                if store.needs_looking_after() {
                    sleep(TAKEOVER_CHECK_PERIOD).await;
                } else {
                    let _ = timeout(SENTINEL_PERIOD, store.redis.health.outage()).await;
                }
            }
        });
    }

    /// True if a server is away, and a cluster or the sentinels may name another one in its place.
    fn needs_looking_after(&self) -> bool {
        !self.redis.servers.is_known() || self.stats().away > 0
    }

    pub(crate) fn stats(&self) -> SharedStats {
        self.redis.health.stats()
    }

    /// How this node decides while Redis is away.
    pub(crate) fn local(&self) -> &Local {
        &self.store.store.local
    }

    /// The time by Redis's clock, by which bans end.
    pub(crate) fn redis_time(&self) -> Time {
        self.redis_clock.now()
    }

    /// Decides a request by the rules.
    pub(crate) fn decide(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        op: Op,
        request: &Request<'_>,
        at: Reading,
    ) -> PendingReply<OwnedRuleQuestion> {
        let redis_time = self.redis_time();
        let plan = self.decider.plan(&snapshot.rules, op, request, redis_time);
        match plan.asks_redis() {
            true => self.ask(&RuleQuestion { snapshot, plan: &plan, request }, at),
            false => Pending::Now(plan.conclude(redis_time)),
        }
    }

    /// Gives back units that this node alone has granted.
    pub(crate) fn give_back_alone(&self, snapshot: &Snapshot, request: &Request<'_>, at: Reading) {
        let plan = self.decider.plan(&snapshot.rules, Op::Refund, request, self.redis_time());
        self.local().decide(snapshot, &OwnedPlan::new(&snapshot.rules, &plan, request), request, at);
    }

    /// Decides several requests that pass together or not at all.
    pub(crate) fn decide_together(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        requests: &[JointRequest<'_>],
        at: Reading,
    ) -> PendingReply<OwnedJointQuestion> {
        let redis_time = self.redis_time();
        let plan = plan_joint(&self.decider, snapshot, requests, redis_time.into());
        match plan.asks_redis() {
            true => self.ask(&JointQuestion { snapshot, plan: &plan, requests }, at),
            false => Pending::Now(plan.conclude(redis_time)),
        }
    }

    /// What would be decided for a request, and why.
    pub(crate) fn explain(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Explanation> {
        let redis_time = self.redis_time();
        let plan = self.decider.plan_to_explain(&snapshot.rules, request, redis_time);
        if !plan.asks_redis() {
            return Answer::Now(plan.explain(request, redis_time));
        }
        let question = ExplainQuestion(RuleQuestion { snapshot, plan: &plan, request });
        answer(self.ask(&question, at))
    }

    /// Resets what matching rules have counted for the request's subjects, and answers as a peek of cost 0 after it.
    pub(crate) fn reset(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Reset<Decision>> {
        let calls = self.decider.reset_calls_by(&snapshot.rules, &self.redis.prefix, ScriptTime::Redis, request);
        // The reset brings its script along: a reset that had to be sent again would come after the peek.
        let send = |call: ScriptCall| Ok((self.redis.send_with_script(&call)?, call));
        let resets: Result<Vec<_>, Failure> = calls.into_iter().map(send).collect();
        let plan = self.decider.plan(&snapshot.rules, Op::Refund, request, at.now);
        let deny = DenyQuestion::giving_back(plan.hits().iter().map(|hit| hit.key().bits()));
        self.store.forget(&deny);
        // The peek is sent after the resets, over the same links.
        let peek = answer(self.decide(snapshot, Op::Peek, &request.clone().cost(0), at));
        let store = Arc::clone(self);
        Answer::later(async move {
            let mut is_done = resets.is_ok();
            for (mut sent, call) in resets.into_iter().flatten() {
                is_done &= store.redis.servers.reply(&mut sent, || WithScript(call.clone())).await.is_ok();
            }
            let mut decision = peek.await;
            store.store.forget(&deny);
            if !is_done {
                decision = decision.as_stopgap();
            }
            Reset { decision, is_done }
        })
    }

    /// Asks all layers.
    pub(crate) fn ask<Q: Question>(self: &Arc<Self>, question: &Q, at: Reading) -> PendingReply<Q::Owned> {
        match self.store.send(question, at) {
            Pending::Now(reply) => Pending::Now(reply),
            Pending::Later(sent) => Pending::Later(SentQuestion { store: Arc::clone(self), sent, at }),
        }
    }

    /// Asks a question that only Redis can answer.
    pub(crate) fn ask_redis<Q: OwnedQuestion>(
        self: &Arc<Self>,
        question: Q,
        now: Time,
    ) -> Answer<Result<Q::Reply, StoreAway>> {
        let question = Arc::new(question);
        let Ok(mut sent) = self.redis.send(&question, now) else { return Answer::Now(Err(StoreAway)) };
        let redis = Arc::clone(&self.redis);
        Answer::later(async move {
            redis.receive(&*question, &mut sent, now).await.map_err(|undecided| {
                redis.note_failure(undecided.why);
                StoreAway
            })
        })
    }

    /// Sends a command whose last word is its only key.
    fn plain(
        self: &Arc<Self>,
        command: impl Fn() -> Plain + Send + Sync + 'static,
    ) -> Answer<Result<Reply, StoreAway>> {
        let words = command();
        let key = words.0.last().map(Vec::as_slice).unwrap_or_default();
        let sent = self.redis.servers.send(key, &words);
        self.reply_to(sent, command)
    }

    /// The reply to a command that was sent.
    fn reply_to<C: Command + Send + Sync>(
        self: &Arc<Self>,
        sent: Result<SentCommand, Failure>,
        command: impl Fn() -> C + Send + Sync + 'static,
    ) -> Answer<Result<Reply, StoreAway>> {
        let Ok(mut sent) = sent else { return Answer::Now(Err(StoreAway)) };
        let redis = Arc::clone(&self.redis);
        Answer::later(async move {
            let reply = redis.servers.reply(&mut sent, command).await;
            reply.map_err(|unanswered| {
                redis.note_failure(unanswered.why);
                StoreAway
            })
        })
    }
}

/// The reply, for a caller that does not count it.
fn answer<Q: LocalQuestion>(pending: PendingReply<Q>) -> Answer<Q::Reply> {
    match pending {
        Pending::Now(reply) => Answer::Now(reply),
        Pending::Later(mut sent) => Answer::later(async move { sent.receive().await.reply }),
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
