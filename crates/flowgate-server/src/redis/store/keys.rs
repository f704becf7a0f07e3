//! Keys of the caller's own in the shared store: a limit that is in no rule, `CL.THROTTLE`, `DEL`, `PTTL`.

use std::sync::Arc;

use flowgate::{Op, OtherAlgorithm, Reading, Span, Throttle, ThrottleError, ThrottleReply};
use flowgate_engine::AdHoc;
use flowgate_engine::redis::{PreparedLimit, PreparedThrottle, ScriptTime, ad_hoc_key, lifetime};

use super::SharedStore;
use super::asking::{Ending, not_understood};
use crate::answer::Answer;
use crate::redis::calls::Plain;
use crate::redis::wire::Reply;
use crate::service::{KeyDecision, StoreAway};

impl SharedStore {
    /// Applies a limit that the caller brings to a key of the caller's.
    pub(crate) fn limit(
        self: &Arc<Self>,
        op: Op,
        call: AdHoc<'_>,
        at: Reading,
    ) -> Answer<Result<KeyDecision, OtherAlgorithm>> {
        let asked = self.memo.as_ref().map(|memo| memo.ask_key(op, &call));
        if let (Some(memo), Some(asked)) = (&self.memo, &asked)
            && let Some(decision) = memo.key_denied(asked, self.clock.monotonic())
        {
            self.health.deny_cache_hit();
            return Answer::Now(Ok(KeyDecision { decision, degraded: false }));
        }
        self.memo.iter().zip(&asked).for_each(|(memo, asked)| memo.begin(asked));
        let prepared = PreparedLimit::new(op, call);
        let script_call = prepared.call(&self.prefix, ScriptTime::Redis, at.now);
        let Ok(sent) = self.send_script(&script_call) else {
            return Answer::Now(self.limit_without(op, call, at));
        };
        let (store, key, limit, cost) = (Arc::clone(self), call.key.to_vec(), call.limit.clone(), call.cost);
        Answer::later(async move {
            let call = |around| prepared.call(&store.prefix, ScriptTime::Redis, around);
            let concluded = store.concluded(sent, at.now, call, |reply| prepared.conclude(reply)).await;
            if let (Some(memo), Some(asked)) = (&store.memo, &asked) {
                let decision = concluded.as_ref().ok().and_then(|decision| decision.as_ref().ok());
                memo.note_key(asked, decision, store.clock.monotonic());
            }
            match concluded {
                Ok(decision) => decision.map(|decision| KeyDecision { decision, degraded: false }),
                Err(unanswered) => {
                    store.note_failure(unanswered.why);
                    let decided = store.limit_without(op, AdHoc { key: &key, limit: &limit, cost }, at);
                    if let Some(late) = unanswered.late {
                        let allowed = decided.as_ref().is_ok_and(|decided| decided.decision.allowed());
                        let prepared = prepared.clone();
                        store.settle_late(late, Ending::of(allowed), move |prefix, reply| {
                            prepared.rollback(prefix, ScriptTime::Redis, reply)
                        });
                    }
                    decided
                }
            }
        })
    }

    /// Forgets a key, then applies a limit to what is left: nothing.
    pub(crate) fn limit_reset(
        self: &Arc<Self>,
        call: AdHoc<'_>,
        at: Reading,
    ) -> Answer<Result<KeyDecision, OtherAlgorithm>> {
        let reset = self.key_reset(call.key);
        let peek = self.limit(Op::Peek, AdHoc { cost: 0, ..call }, at);
        reset.with(peek, |reset, peek| {
            peek.map(|peek| KeyDecision { degraded: peek.degraded || reset.is_err(), ..peek })
        })
    }

    /// Answers a call of `CL.THROTTLE`.
    pub(crate) fn throttle(
        self: &Arc<Self>,
        key: &[u8],
        throttle: &Throttle,
        at: Reading,
    ) -> Answer<Result<ThrottleReply, ThrottleError>> {
        let asked = self.memo.as_ref().map(|memo| memo.ask_throttle(key, throttle));
        if let (Some(memo), Some(asked)) = (&self.memo, &asked)
            && let Some(reply) = memo.throttle_denied(asked, throttle, self.clock.monotonic())
        {
            self.health.deny_cache_hit();
            return Answer::Now(Ok(reply));
        }
        self.memo.iter().zip(&asked).for_each(|(memo, asked)| memo.begin(asked));
        let prepared = PreparedThrottle::new(key, *throttle);
        let Ok(sent) = self.send_script(&prepared.call(&self.prefix, ScriptTime::Redis)) else {
            self.health.degraded();
            return Answer::Now(self.fallback.throttle(key, *throttle, at));
        };
        let (store, key, throttle) = (Arc::clone(self), key.to_vec(), *throttle);
        Answer::later(async move {
            let reply = store.numbers(sent, || prepared.call(&store.prefix, ScriptTime::Redis)).await;
            let concluded = match reply.map(|reply| prepared.conclude(&reply)) {
                Ok(Ok(reply)) => Ok(reply),
                Ok(Err(error)) => Err(not_understood(error).into()),
                Err(unanswered) => Err(unanswered),
            };
            if let (Some(memo), Some(asked)) = (&store.memo, &asked) {
                let reply = concluded.as_ref().ok().and_then(|reply| reply.as_ref().ok());
                memo.note_throttle(asked, &throttle, reply, store.clock.monotonic());
            }
            match concluded {
                Ok(reply) => reply,
                Err(unanswered) => {
                    store.note_failure(unanswered.why);
                    store.health.degraded();
                    let decided = store.fallback.throttle(&key, throttle, at);
                    if let Some(late) = unanswered.late {
                        let allowed = decided.as_ref().is_ok_and(|reply| !reply.limited);
                        let prepared = prepared.clone();
                        store.settle_late(late, Ending::of(allowed), move |prefix, reply| {
                            prepared.rollback(prefix, ScriptTime::Redis, reply)
                        });
                    }
                    decided
                }
            }
        })
    }

    /// How long a key of the caller's lives on.
    pub(crate) fn key_lifetime(self: &Arc<Self>, key: &[u8]) -> Answer<Result<Option<Span>, StoreAway>> {
        let key = ad_hoc_key(&self.prefix, key);
        let command = move || Plain(vec![b"PTTL".to_vec(), key.clone()]);
        self.plain(command).map(|reply| match reply? {
            Reply::Integer(pttl) => Ok(lifetime(pttl)),
            _ => Err(StoreAway),
        })
    }

    /// Forgets a key of the caller's; true when there was one.
    pub(crate) fn key_reset(self: &Arc<Self>, key: &[u8]) -> Answer<Result<bool, StoreAway>> {
        let counter = self.memo.as_ref().map(|memo| memo.key_counter(key));
        self.memo.iter().zip(counter).for_each(|(memo, counter)| memo.end(&[counter]));
        let key = ad_hoc_key(&self.prefix, key);
        let command = move || Plain(vec![b"DEL".to_vec(), key.clone()]);
        let store = Arc::clone(self);
        self.plain(command).map(move |reply| {
            if let (Some(memo), Some(counter)) = (&store.memo, counter) {
                memo.end(&[counter]);
            }
            Ok(reply? == Reply::Integer(1))
        })
    }

    fn limit_without(&self, op: Op, call: AdHoc<'_>, at: Reading) -> Result<KeyDecision, OtherAlgorithm> {
        self.health.degraded();
        self.fallback.limit(op, call, at).map(|decision| KeyDecision { decision, degraded: true })
    }
}
