//! The shared store: what is asked of it, what is answered while it is away, and what need not be asked.
//!
//! Rule       One call of a script decides a request, at Redis's time. What it does not answer in time, or with an error,
//!            is decided without it, and marked as degraded.
//! Rule       In a cluster each subject of a request is decided where it lives, in parallel; if one denies, or there is
//!            no telling, what the others took is taken back.
//! Invariant  Everything has been sent when an answer is handed out; see [`Answer`].

mod bans;
mod keys;
mod koala;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flowgate::{Clock, MemoryConfig, MemoryStats, Op, Span, Time};
use flowgate_engine::config::{self, RedisServers};
use flowgate_engine::redis::{Conclusion, Prepared, ReplyError, ScriptCall, ScriptTime};
use flowgate_engine::{Decision, Engine, Explanation, Policy, PolicyError, Request};

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::calls::{Plain, Sent};
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
use crate::service::StoreAway;

/// Counters that several nodes share.
#[derive(Debug)]
pub(crate) struct SharedStore {
    engine: Arc<Engine>,
    clock: Clock,
    servers: Servers,
    prefix: String,
    memo: Option<Memo>,
    fallback: Arc<Fallback>,
    health: Arc<Health>,
    /// The version of the bans by hand that this node has.
    bans: Mutex<String>,
}

/// How often a node looks for bans by hand that others have imposed.
const REFRESH: Duration = Duration::from_secs(1);
/// ...and for servers of a cluster that took over from one that is away.
const LOOK_AROUND: Duration = Duration::from_millis(250);

impl SharedStore {
    /// A store of these servers, for the rules of `engine`.
    ///
    /// # Errors
    /// When the rules do not fit together.
    pub(crate) fn new(
        redis: &config::Redis,
        memory: MemoryConfig,
        policy: &Policy,
        engine: Arc<Engine>,
        clock: Clock,
    ) -> Result<SharedStore, PolicyError> {
        let settings = Settings { memory, on_failure: redis.on_failure, share: redis.local_share };
        let fallback = Arc::new(Fallback::new(policy, settings)?);
        let health = Arc::new(Health::default());
        let common = Common { timeout: span(redis.timeout), prefix: &redis.prefix, health: Arc::clone(&health) };
        let servers = match &redis.servers {
            RedisServers::One(url) => Servers::one(Target::new(url), common),
            RedisServers::Cluster(urls) => Servers::cluster(urls.iter().map(Target::new).collect(), common),
        };
        let memo = redis.deny_cache.then(|| Memo::new(span(redis.deny_cache_max)));
        let (prefix, bans) = (redis.prefix.clone(), Mutex::default());
        Ok(SharedStore { engine, clock, servers, prefix, memo, fallback, health, bans })
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
                    store.refresh_bans().await;
                }
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

    /// Takes note that other rules are in force.
    pub(crate) fn replace(&self, policy: &Policy) -> Result<(), PolicyError> {
        self.fallback.replace(policy)?;
        if let Some(memo) = &self.memo {
            memo.clear();
        }
        Ok(())
    }

    /// Decides a request by the rules.
    pub(crate) fn decide(self: &Arc<Self>, op: Op, request: &Request<'_>, now: Time) -> Answer<Decision> {
        let asked = match &self.memo {
            None => None,
            Some(memo) => {
                let rules = self.engine.rules();
                let asked = memo.ask(&self.engine.plan(&rules, op, request, now));
                if let Some(denied) = asked.as_ref().and_then(|asked| memo.denied(asked, now)) {
                    self.health.deny_cache_hit();
                    return Answer::Now(denied);
                }
                asked.iter().for_each(|asked| memo.begin(asked));
                asked
            }
        };
        let prepared = self.engine.prepare(op, request, now);
        if let Some(decision) = prepared.at_once(now) {
            return Answer::Now(decision);
        }
        let Ok(sent) = self.send(&prepared, now) else {
            return Answer::Now(self.without(&prepared, request, now));
        };
        let (store, request) = (Arc::clone(self), OwnedRequest::new(request));
        Answer::later(async move {
            let concluded = store.conclude(&prepared, sent, now).await;
            if let (Some(memo), Some(asked)) = (&store.memo, &asked) {
                memo.note(asked, concluded.as_ref().ok().map(|conclusion| &conclusion.decision), store.clock.now());
            }
            match concluded {
                Ok(conclusion) => {
                    store.engine.note_conclusion(&conclusion);
                    conclusion.decision
                }
                Err(failure) => {
                    store.note_failure(failure);
                    store.without(&prepared, &request.get(), now)
                }
            }
        })
    }

    /// Forgets what matching rules have counted for the request's subjects. Answers how things stand then.
    pub(crate) fn reset(self: &Arc<Self>, request: &Request<'_>, now: Time) -> Answer<Decision> {
        let keys = self.engine.reset_keys(&self.prefix, request);
        let sent: Result<Vec<_>, Failure> = keys.into_iter().map(|keys| self.send_delete(keys)).collect();
        let asked = self.memo.as_ref().map(|memo| {
            let rules = self.engine.rules();
            let counters = memo.counters(&self.engine.plan(&rules, Op::Refund, request, now));
            memo.end(&counters);
            counters
        });
        // Sent after the deletions, over the same links.
        let peek = self.decide(Op::Peek, &request.clone().cost(0), now);
        let (store, request) = (Arc::clone(self), OwnedRequest::new(request));
        Answer::later(async move {
            let mut deleted = sent.is_ok();
            for (sent, command) in sent.into_iter().flatten() {
                deleted &= store.servers.reply(sent, command).await.is_ok();
            }
            let decision = peek.await;
            if let (Some(memo), Some(counters)) = (&store.memo, asked) {
                memo.end(&counters);
            }
            if deleted { decision } else { store.fallback.reset(&request.get(), &store.engine.rules(), now) }
        })
    }

    /// Why a request would be decided as it would be.
    pub(crate) fn explain(self: &Arc<Self>, request: &Request<'_>, now: Time) -> Answer<Explanation> {
        let prepared = self.engine.prepare(Op::Peek, request, now);
        if prepared.at_once(now).is_some() {
            return Answer::Now(prepared.explain_at_once(request, now));
        }
        let sent = self.send(&prepared, now);
        let (store, request) = (Arc::clone(self), OwnedRequest::new(request));
        Answer::later(async move {
            let request = request.get();
            let explained = match sent {
                Ok(sent) => store.explained(&prepared, &request, sent, now).await,
                Err(failure) => Err(failure),
            };
            explained.unwrap_or_else(|failure| {
                store.note_failure(failure);
                let decision = store.without(&prepared, &request, now);
                let rules = store.engine.rules();
                let plan = store.engine.plan(&rules, Op::Peek, &request, now);
                store.fallback.explain(decision, &request, &rules, &plan, now)
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
            reply.map_err(|failure| {
                store.note_failure(failure);
                StoreAway
            })
        })
    }

    fn send_delete(&self, keys: Vec<Vec<u8>>) -> Result<(Sent, impl Fn() -> Plain + Send + Sync + use<>), Failure> {
        let first = keys.first().cloned().unwrap_or_default();
        let command = move || Plain(std::iter::once(b"DEL".to_vec()).chain(keys.iter().cloned()).collect());
        Ok((self.servers.send(&first, &command())?, command))
    }

    fn send_script(&self, call: &ScriptCall) -> Result<Sent, Failure> {
        self.servers.send(first_key(call), call)
    }

    /// Sends the one call that decides a request, or in a cluster one for each of its subjects.
    fn send(self: &Arc<Self>, prepared: &Prepared, around: Time) -> Result<Asked, Failure> {
        if !self.servers.is_cluster() || prepared.groups() == 1 {
            let call = prepared.call(&self.prefix, ScriptTime::Redis, around);
            return Ok(Asked::Whole(self.send_script(&call)?));
        }
        let calls: Vec<ScriptCall> = (0..prepared.groups())
            .map(|group| prepared.group_call(group, &self.prefix, ScriptTime::Redis, around))
            .collect();
        // Where one of the servers is known to be away nothing is sent, and nothing has to be taken back.
        for call in &calls {
            self.servers.pool_of(first_key(call))?.link()?;
        }
        let sent = calls.iter().map(|call| self.send_script(call)).collect();
        let (store, prepared) = (Arc::clone(self), prepared.clone());
        // On its own, since what was taken is to be taken back whether or not anybody still waits for the answer.
        let replies = tokio::spawn(async move { store.replies_of_groups(&prepared, sent, around).await });
        Ok(Asked::Groups(replies))
    }

    /// What follows from the replies.
    async fn conclude(self: &Arc<Self>, prepared: &Prepared, asked: Asked, now: Time) -> Result<Conclusion, Failure> {
        match asked {
            Asked::Whole(sent) => {
                let call = |around| prepared.call(&self.prefix, ScriptTime::Redis, around);
                let read = |reply: &[i64]| prepared.conclude(reply);
                self.concluded(sent, now, call, read).await
            }
            Asked::Groups(replies) => {
                let replies = replies.await.map_err(|_| Failure::Lost)??;
                let replies: Vec<&[i64]> = replies.iter().map(Vec::as_slice).collect();
                prepared.conclude_groups(&replies).map_err(|error| self.not_understood(error))
            }
        }
    }

    /// The replies of all subjects. What they have charged is taken back where one has denied or not answered.
    async fn replies_of_groups(
        self: &Arc<Self>,
        prepared: &Prepared,
        sent: Vec<Result<Sent, Failure>>,
        now: Time,
    ) -> Result<Vec<Vec<i64>>, Failure> {
        let mut replies: Vec<Result<Vec<i64>, Failure>> = Vec::new();
        for (group, sent) in sent.into_iter().enumerate() {
            let call = |around| prepared.group_call(group, &self.prefix, ScriptTime::Redis, around);
            // A reply that says nothing but "elsewhen" is no decision; any other is read when all are there.
            let read = |reply: &[i64]| match reply {
                [-1, micros, ..] => Err(ReplyError::Around(Time::from_micros(micros.unsigned_abs()))),
                _ => Ok(reply.to_vec()),
            };
            replies.push(match sent {
                Ok(sent) => self.concluded(sent, now, call, read).await,
                Err(failure) => Err(failure),
            });
        }
        let known: Vec<Option<&[i64]>> = replies.iter().map(|reply| reply.as_deref().ok()).collect();
        let rollbacks = prepared.rollbacks(&self.prefix, ScriptTime::Redis, &known);
        for (_, call) in rollbacks.map_err(|error| self.not_understood(error))? {
            self.send_and_forget(call);
        }
        replies.into_iter().collect()
    }

    /// Awaits a reply and reads it; where Redis's clock is far from ours, asks once more around its time.
    async fn concluded<T>(
        &self,
        sent: Sent,
        now: Time,
        call: impl Fn(Time) -> ScriptCall,
        read: impl Fn(&[i64]) -> Result<T, ReplyError>,
    ) -> Result<T, Failure> {
        let reply = self.numbers(sent, || call(now)).await?;
        let around = match read(&reply) {
            Ok(concluded) => return Ok(concluded),
            Err(ReplyError::Around(around)) => around,
            Err(error) => return Err(self.not_understood(error)),
        };
        let reply = self.numbers(self.send_script(&call(around))?, || call(around)).await?;
        read(&reply).map_err(|error| self.not_understood(error))
    }

    /// Sends a call whose answer nobody waits for. Where it is not carried out, more stays counted than was taken.
    fn send_and_forget(self: &Arc<Self>, call: ScriptCall) {
        if let Ok(sent) = self.send_script(&call) {
            let store = Arc::clone(self);
            tokio::spawn(async move { store.servers.reply(sent, || call.clone()).await.is_ok() });
        }
    }

    async fn explained(
        self: &Arc<Self>,
        prepared: &Prepared,
        request: &Request<'_>,
        asked: Asked,
        now: Time,
    ) -> Result<Explanation, Failure> {
        match asked {
            Asked::Whole(sent) => {
                let call = |around| prepared.call(&self.prefix, ScriptTime::Redis, around);
                self.concluded(sent, now, call, |reply| prepared.explain(request, reply)).await
            }
            Asked::Groups(replies) => {
                let replies = replies.await.map_err(|_| Failure::Lost)??;
                let replies: Vec<&[i64]> = replies.iter().map(Vec::as_slice).collect();
                prepared.explain_groups(request, &replies).map_err(|error| self.not_understood(error))
            }
        }
    }

    /// The numbers that a script answers.
    async fn numbers(&self, sent: Sent, again: impl Fn() -> ScriptCall) -> Result<Vec<i64>, Failure> {
        let reply = self.servers.reply(sent, again).await?;
        numbers(reply).ok_or_else(|| self.not_understood(ReplyError::Malformed))
    }

    /// Decides without Redis.
    fn without(&self, prepared: &Prepared, request: &Request<'_>, now: Time) -> Decision {
        self.health.degraded();
        self.fallback.decide(prepared.op(), request, &self.engine.rules(), prepared.limited_by(), now)
    }

    fn note_failure(&self, failure: Failure) {
        if matches!(failure, Failure::Timeout | Failure::Lost) {
            self.health.unanswered();
        }
    }

    /// Redis answered, but not what our script says: somebody else's key, or another clock.
    fn not_understood(&self, error: ReplyError) -> Failure {
        tracing::debug!(%error, "Redis's answer has no decision in it");
        Failure::Refused
    }
}

/// What was asked of Redis for one request.
enum Asked {
    /// All of it in one call.
    Whole(Sent),
    /// One call for each of its subjects; the replies of all.
    Groups(JoinHandle<Result<Vec<Vec<i64>>, Failure>>),
}

/// All keys of a call belong together, so the first tells where.
fn first_key(call: &ScriptCall) -> &[u8] {
    call.keys().next().unwrap_or_default()
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn numbers(reply: Reply) -> Option<Vec<i64>> {
    let Reply::List(list) = reply else { return None };
    let number = |reply| match reply {
        Reply::Integer(number) => Some(number),
        _ => None,
    };
    list.into_iter().map(number).collect()
}
