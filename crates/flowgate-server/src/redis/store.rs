//! The shared store: what is asked of it, what is answered while it is away, and what need not be asked.
//!
//! Rule       One call of a script decides a request, at Redis's time. What it does not answer in time, or with an error,
//!            is decided without it, and marked as degraded.
//! Rule       What a request has taken that is denied in the end is taken back; see [`asking`].
//! Invariant  Everything has been sent when an answer is handed out; see [`Answer`].

mod asking;
mod bans;
mod keys;
mod koala;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flowgate::{Clock, MemoryConfig, MemoryStats, Op, Reading, Span, Time};
use flowgate_engine::config::{self, RedisServers};
use flowgate_engine::redis::{BanCopy, Prepared};
use flowgate_engine::{Decider, Decision, Explanation, Policy, PolicyError, Request, RuleSet};

use tokio::time::timeout;

use super::calls::{Plain, Sent};
use super::clock::RedisClock;
use super::fallback::{Fallback, Settings};
use super::health::{Health, SharedStats};
use super::link::Failure;
use super::memo::Memo;
use super::servers::{Common, Servers};
use super::target::Target;
use super::wire::Reply;
use crate::answer::Answer;
use crate::owned_request::OwnedRequest;
use crate::readiness::Readiness;
use crate::service::{Snapshot, StoreAway};
use asking::Ending;

/// Counters that several nodes share.
#[derive(Debug)]
pub(crate) struct SharedStore {
    decider: Arc<Decider>,
    clock: Clock,
    servers: Servers,
    prefix: String,
    memo: Option<Memo>,
    fallback: Arc<Fallback>,
    health: Arc<Health>,
    /// What this node has read of the bans by hand.
    bans: Mutex<BanCopy>,
    /// By which bans end.
    redis_clock: RedisClock,
}

/// How often a node looks for bans by hand that others have imposed.
const REFRESH: Duration = Duration::from_secs(1);
/// ...and for servers of a cluster that took over from one that is away.
const LOOK_AROUND: Duration = Duration::from_millis(250);

impl SharedStore {
    /// A store of these servers. `decider` keeps the bans; its counters are not used.
    pub(crate) fn new(redis: &config::Redis, memory: MemoryConfig, decider: Arc<Decider>, clock: Clock) -> SharedStore {
        let settings = Settings { memory, on_failure: redis.on_failure, share: redis.local_share };
        let fallback = Arc::new(Fallback::new(settings));
        let health = Arc::new(Health::default());
        let common = Common { timeout: span(redis.timeout), prefix: &redis.prefix, health: Arc::clone(&health) };
        let servers = match &redis.servers {
            RedisServers::One(url) => Servers::one(Target::new(url), common),
            RedisServers::Cluster(urls) => Servers::cluster(urls.iter().map(Target::new).collect(), common),
        };
        let memo = redis.deny_cache.then(|| Memo::new(span(redis.deny_cache_max)));
        let (prefix, bans) = (redis.prefix.clone(), Mutex::default());
        let redis_clock = RedisClock::new(clock.clone());
        SharedStore { decider, clock, servers, prefix, memo, fallback, health, bans, redis_clock }
    }

    /// Connects, and looks after the store for as long as it is there. Must be called on a runtime, which does that.
    pub(crate) fn watch(self: &Arc<SharedStore>) {
        let store = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut since_refresh = REFRESH;
            while let Some(store) = store.upgrade() {
                store.servers.look_around().await;
                if since_refresh >= REFRESH {
                    since_refresh = Duration::ZERO;
                    // What cannot be read now is read a second later; that Redis is away is reported elsewhere.
                    let _ = store.refresh_bans().await;
                }
                store.servers.inspect().await;
                // A store that nobody else has ends with the next look.
                let pause = if store.needs_looking_after() { LOOK_AROUND } else { REFRESH };
                let _ = timeout(pause, store.servers.is_outdated()).await;
                drop(store);
                since_refresh += pause;
            }
        });
    }

    /// Whether a cluster may have found a server to take over from one that is away.
    fn needs_looking_after(&self) -> bool {
        !self.servers.is_known() || self.health.stats().away > 0
    }

    /// Whom to tell whether the store is there.
    pub(crate) fn report_to(&self, readiness: Readiness) {
        self.health.report_to(readiness);
    }

    pub(crate) fn stats(&self) -> SharedStats {
        self.health.stats()
    }

    /// What this node holds itself, while Redis is away.
    pub(crate) fn local_stats(&self) -> MemoryStats {
        self.fallback.stats()
    }

    /// The rules by which this node decides while the store is away.
    pub(crate) fn local_rules(&self, policy: &Policy) -> Result<RuleSet, PolicyError> {
        self.fallback.compile(policy)
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
    ) -> Answer<Decision> {
        let (now, redis_time) = (at.now, self.redis_time());
        let asked = match &self.memo {
            None => None,
            Some(memo) => {
                let asked = memo.ask(&self.decider.plan(&snapshot.rules, op, request, redis_time));
                if let Some(denied) = asked.as_ref().and_then(|asked| memo.denied(asked, self.clock.monotonic())) {
                    self.health.deny_cache_hit();
                    return Answer::Now(denied);
                }
                asked.iter().for_each(|asked| memo.begin(asked));
                asked
            }
        };
        let prepared = self.decider.prepare_by(&snapshot.rules, op, request, redis_time);
        if let Some(decision) = prepared.at_once(redis_time) {
            return Answer::Now(decision);
        }
        let Ok(sent) = self.send(&prepared, now) else {
            return Answer::Now(self.without(snapshot, &prepared, request, at));
        };
        let (store, snapshot, request) = (Arc::clone(self), Arc::clone(snapshot), OwnedRequest::new(request));
        Answer::later(async move {
            let concluded = store.conclude(&prepared, sent, now).await;
            if let (Some(memo), Some(asked)) = (&store.memo, &asked) {
                let decision = concluded.as_ref().ok().map(|conclusion| &conclusion.decision);
                memo.note(asked, decision, store.clock.monotonic());
            }
            match concluded {
                Ok(conclusion) => {
                    store.decider.note_conclusion(&conclusion);
                    conclusion.decision
                }
                Err(failed) => {
                    store.note_failure(failed.why);
                    let decision = store.without(&snapshot, &prepared, &request.get(), at);
                    store.settle(failed, &prepared, Ending::of(decision.allowed()));
                    decision
                }
            }
        })
    }

    /// Forgets what matching rules have counted for the request's subjects. Answers how things stand then.
    pub(crate) fn reset(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Decision> {
        let keys = self.decider.reset_keys_by(&snapshot.rules, &self.prefix, request);
        let sent: Result<Vec<_>, Failure> = keys.into_iter().map(|keys| self.send_delete(keys)).collect();
        let asked = self.memo.as_ref().map(|memo| {
            let counters = memo.counters(&self.decider.plan(&snapshot.rules, Op::Refund, request, at.now));
            memo.end(&counters);
            counters
        });
        // Sent after the deletions, over the same links.
        let peek = self.decide(snapshot, Op::Peek, &request.clone().cost(0), at);
        let (store, snapshot, request) = (Arc::clone(self), Arc::clone(snapshot), OwnedRequest::new(request));
        Answer::later(async move {
            let mut deleted = sent.is_ok();
            for (sent, command) in sent.into_iter().flatten() {
                deleted &= store.servers.reply(sent, command).await.is_ok();
            }
            let decision = peek.await;
            if let (Some(memo), Some(counters)) = (&store.memo, asked) {
                memo.end(&counters);
            }
            if deleted { decision } else { store.fallback.reset(&snapshot, &request.get(), at) }
        })
    }

    /// Why a request would be decided as it would be.
    pub(crate) fn explain(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        request: &Request<'_>,
        at: Reading,
    ) -> Answer<Explanation> {
        let (now, redis_time) = (at.now, self.redis_time());
        let prepared = self.decider.prepare_by(&snapshot.rules, Op::Peek, request, redis_time);
        if prepared.at_once(redis_time).is_some() {
            return Answer::Now(prepared.explain_at_once(request, redis_time));
        }
        let sent = self.send(&prepared, now);
        let (store, snapshot, request) = (Arc::clone(self), Arc::clone(snapshot), OwnedRequest::new(request));
        Answer::later(async move {
            let request = request.get();
            let explained = match sent {
                Ok(sent) => store.explained(&prepared, &request, sent, now).await.map_err(|failed| failed.why),
                Err(failure) => Err(failure),
            };
            explained.unwrap_or_else(|failure| {
                store.note_failure(failure);
                let decision = store.without(&snapshot, &prepared, &request, at);
                let plan = store.decider.plan(&snapshot.rules, Op::Peek, &request, redis_time);
                store.fallback.explain(&snapshot, decision, &request, &plan, at)
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
        let Ok(sent) = self.servers.send(key, &words) else { return Answer::Now(Err(StoreAway)) };
        let store = Arc::clone(self);
        Answer::later(async move {
            let reply = store.servers.reply(sent, command).await;
            reply.map_err(|unanswered| {
                store.note_failure(unanswered.why);
                StoreAway
            })
        })
    }

    fn send_delete(&self, keys: Vec<Vec<u8>>) -> Result<(Sent, impl Fn() -> Plain + Send + Sync + use<>), Failure> {
        let first = keys.first().cloned().unwrap_or_default();
        let command = move || Plain(std::iter::once(b"DEL".to_vec()).chain(keys.iter().cloned()).collect());
        Ok((self.servers.send(&first, &command())?, command))
    }

    /// Decides without Redis.
    fn without(&self, snapshot: &Snapshot, prepared: &Prepared, request: &Request<'_>, at: Reading) -> Decision {
        self.health.degraded();
        self.fallback.decide(snapshot, prepared.op(), request, prepared.limited_by(), at)
    }

    fn note_failure(&self, failure: Failure) {
        if matches!(failure, Failure::Timeout | Failure::Lost) {
            self.health.unanswered();
        }
    }
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
