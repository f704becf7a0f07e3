//! Ad hoc keys: the caller brings the key and the limit, and no rule has a part in the decision.

use flowgate::{
    Database, Key, Limit, MemoryStore, Op, OtherAlgorithm, Reading, Span, Throttle, ThrottleError, ThrottleReply,
};
use flowgate_engine::{AdHoc, AdHocKey};

use super::{Answer, Operation, Pending, Reset, Service, StoreAway};
use crate::redis::{KeyQuestion, ThrottleQuestion};

/// An ad hoc key that was [hashed](Service::hash_key), so that the place of its counter is known.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey(Key);

impl HashedKey {
    pub(crate) fn key(self) -> Key {
        self.0
    }
}

/// The answer of a limit that the caller brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyDecision {
    /// Whether the request may happen, what is left, and when to retry.
    pub decision: flowgate::Decision,
    /// True if this node decided alone because the store was away; with `store.durable = "always"` also if the answer
    /// did not wait for the disk.
    pub degraded: bool,
}

impl KeyDecision {
    /// The answer with a decision of the store.
    fn certain(decision: flowgate::Decision) -> KeyDecision {
        KeyDecision { decision, degraded: false }
    }

    fn as_stopgap(self) -> KeyDecision {
        KeyDecision { degraded: true, ..self }
    }
}

impl Service {
    /// Applies a limit that the caller brings to an ad hoc key.
    ///
    /// # Errors
    /// When the key is in use by a limit of another algorithm. A reset has no such error: it frees the key.
    #[inline]
    pub fn limit(
        &self,
        operation: Operation,
        call: AdHoc<'_>,
        at: impl Into<Reading>,
    ) -> Answer<Result<KeyDecision, OtherAlgorithm>> {
        let at = at.into();
        let Some(op) = operation.op() else {
            return self.limit_reset(call, at).map(|reset| reset.decision);
        };
        let pending = match &self.shared {
            None => Pending::Now(self.decider.limit(op, call, at).map(KeyDecision::certain)),
            Some(shared) => shared.ask(&KeyQuestion { op, call }, at),
        };
        let is_noted = self.observer.begin(operation);
        match pending {
            Pending::Now(answer) => {
                if is_noted {
                    self.observer.note_key(call.key.bytes, &answer, at.now);
                }
                let passes = answer.as_ref().is_ok_and(|key| key.decision.allowed());
                self.kept(op.changes() && passes, answer, |answer| answer.map(KeyDecision::as_stopgap))
            }
            Pending::Later(sent) => self.observer.later(sent, is_noted, at, |observer, question, answer, now| {
                observer.note_key(question.limit.ad_hoc().key.bytes, answer, now);
            }),
        }
    }

    /// Takes one unit from a key that was hashed, where counters live in memory. The caller counts the answer, a batch at
    /// a time, by [`Observer::key_seen`](crate::observer::Observer::key_seen).
    ///
    /// # Errors
    /// As [`Service::limit`].
    #[inline]
    pub(crate) fn take_hashed(
        &self,
        HashedKey(key): HashedKey,
        limit: &Limit,
        at: Reading,
    ) -> Result<flowgate::Decision, OtherAlgorithm> {
        self.decider.limit_hashed(Op::Take, key, limit, 1, at)
    }

    /// Resets a key, then answers as a peek of cost 0.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn limit_reset_at(
        &self,
        call: AdHoc<'_>,
        at: impl Into<Reading>,
    ) -> Answer<Result<Result<KeyDecision, OtherAlgorithm>, StoreAway>> {
        self.limit_reset(call, at.into()).map(Reset::into_result)
    }

    fn limit_reset(&self, call: AdHoc<'_>, at: Reading) -> Answer<Reset<Result<KeyDecision, OtherAlgorithm>>> {
        self.observer.begin(Operation::Reset);
        if let Some(shared) = &self.shared {
            return shared.limit_reset(call, at);
        }
        self.decider.limit_reset(call.key);
        let peek = self.decider.limit(Op::Peek, AdHoc { cost: 0, ..call }, at);
        let reset = Reset { decision: peek.map(KeyDecision::certain), is_done: true };
        self.kept(true, reset, |reset| reset.map(|peek| peek.map(KeyDecision::as_stopgap)))
    }

    /// As [`Service::take_hashed`], for a call of `CL.THROTTLE`.
    ///
    /// # Errors
    /// As [`Service::throttle_at`].
    #[inline]
    pub(crate) fn throttle_hashed(
        &self,
        HashedKey(key): HashedKey,
        throttle: &Throttle,
        at: Reading,
    ) -> Result<ThrottleReply, ThrottleError> {
        self.decider.throttle(key, throttle, at)
    }

    /// Answers a call of `CL.THROTTLE` on an ad hoc key, at a time that was read for a batch. This function counts pending
    /// answers when they arrive. The caller counts immediate answers, a batch at a time. Memory answers by a direct call,
    /// without a plan.
    ///
    /// # Errors
    /// When the key is in use by a limit, or the numbers do not fit.
    #[inline]
    pub fn throttle_at<'k>(
        &self,
        key: impl Into<AdHocKey<'k>>,
        throttle: &Throttle,
        at: impl Into<Reading>,
    ) -> Answer<Result<ThrottleReply, ThrottleError>> {
        let at = at.into();
        match &self.shared {
            None => {
                let name = key.into();
                let reply = self.decider.throttle(self.decider.ad_hoc_key(name), throttle, at);
                // The reply of `CL.THROTTLE` cannot carry a mark for a degraded answer.
                let answer = self.kept(reply.as_ref().is_ok_and(|reply| !reply.limited), reply, |reply| reply);
                if let (Answer::Later(_), Ok(reply)) = (&answer, &reply) {
                    self.observer.key_decision(name.bytes, !reply.limited, at.now);
                }
                answer
            }
            Some(shared) => match shared.ask(&ThrottleQuestion { key: key.into(), throttle: *throttle }, at) {
                Pending::Now(reply) => Answer::Now(reply),
                Pending::Later(sent) => self.observer.later(sent, true, at, |observer, question, reply, now| {
                    if let Ok(reply) = reply {
                        observer.key_decision(question.prepared.key().bytes, !reply.limited, now);
                    }
                }),
            },
        }
    }

    /// Finds the place of an ad hoc key's counter, for a later call. `None` if counters are not in memory.
    #[inline]
    pub fn hash_key<'k>(&self, key: impl Into<AdHocKey<'k>>) -> Option<HashedKey> {
        self.shared.is_none().then(|| HashedKey(self.decider.ad_hoc_key(key)))
    }

    /// The counters in memory, for a caller that prefetches some of them.
    pub(crate) fn counters(&self) -> &MemoryStore {
        self.decider.memory()
    }

    /// The time until an ad hoc key is as if it had never been used; `None` if it already is.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn key_lifetime<'k>(
        &self,
        key: impl Into<AdHocKey<'k>>,
        at: impl Into<Reading>,
    ) -> Answer<Result<Option<Span>, StoreAway>> {
        match &self.shared {
            None => Answer::Now(Ok(self.decider.limit_lifetime(key, at))),
            Some(shared) => shared.key_lifetime(key.into()),
        }
    }

    /// Resets an ad hoc key; true if it differed from a key that was never used.
    ///
    /// # Errors
    /// When the shared store does not answer.
    pub fn key_reset<'k>(
        &self,
        key: impl Into<AdHocKey<'k>>,
        at: impl Into<Reading>,
    ) -> Answer<Result<bool, StoreAway>> {
        let key = key.into();
        if let Some(shared) = &self.shared {
            return shared.key_reset(key);
        }
        // An expired counter may still be in the table; callers must not see it.
        let lived = self.decider.limit_lifetime(key, at).is_some();
        self.kept(true, Ok(self.decider.limit_reset(key) && lived), |done| done)
    }
}

impl Service {
    /// The database of a number; `None` if there is no such database. Its counters are counted from now on.
    pub fn database(&self, number: u8) -> Option<Database> {
        let database = Database::new(number)?;
        if database != Database::default() {
            self.local_memory().count_databases();
        }
        Some(database)
    }

    /// The counters of a database in this server's memory. The first database has those of rules, too.
    pub fn counters_in(&self, database: Database) -> usize {
        self.local_memory().counters_in(database)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{now, service};
    use super::*;

    #[test]
    fn a_key_with_a_limit_of_the_callers() {
        let (service, clock) = service("");
        let (sliding, bucket): (Limit, Limit) = ("2/60s".parse().unwrap(), "bucket 2/60s".parse().unwrap());
        let call = |limit| AdHoc { key: b"k".into(), limit, cost: 1 };
        assert_eq!(now(service.key_lifetime(b"k", service.read())), Ok(None));
        assert_eq!(
            now(service.limit(Operation::Take, call(&sliding), service.read())).unwrap().decision.remaining,
            Some(1)
        );
        assert_eq!(now(service.limit(Operation::Take, call(&bucket), service.read())), Err(OtherAlgorithm));
        assert_eq!(now(service.key_lifetime(b"k", service.read())), Ok(Some(Span::from_secs(60))));
        assert_eq!(
            now(service.limit(Operation::Reset, call(&bucket), service.read())).unwrap().decision.remaining,
            Some(2),
            "a reset frees the key"
        );
        assert_eq!(
            now(service.limit(Operation::Take, call(&bucket), service.read())).unwrap().decision.remaining,
            Some(1)
        );
        assert_eq!(now(service.key_reset(b"k", service.read())), Ok(true));
        assert_eq!(now(service.key_reset(b"k", service.read())), Ok(false));
        now(service.limit(Operation::Take, call(&sliding), service.read())).unwrap();
        clock.advance(Span::from_secs(60));
        assert_eq!(now(service.key_reset(b"k", service.read())), Ok(false), "it has run out by itself");
    }
}
