//! Koala's rules on the shared store.

use std::sync::Arc;

use flowgate::Time;
use flowgate_engine::redis::{Conclusion, Prepared, PreparedKoala};
use flowgate_engine::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaRules, PolicyError, Request};

use super::SharedStore;
use super::asking::Ending;
use crate::answer::Answer;
use crate::owned_request::OwnedRequest;
use crate::service::{KoalaInForce, StoreAway};

impl SharedStore {
    /// Koala's rules by which this node decides while the store is away.
    pub(crate) fn local_koala(&self, rules: &KoalaRules) -> Result<KoalaRules, PolicyError> {
        self.fallback.koala_rules(rules)
    }

    /// Decides a request by Koala's rules, in this node's shares while the store is away.
    pub(crate) fn koala(
        self: &Arc<Self>,
        koala: &Arc<KoalaInForce>,
        ask: KoalaAsk,
        request: &Request<'_>,
        now: Time,
    ) -> Answer<KoalaAnswer> {
        let prepared = koala.rules.prepare(ask, request);
        if let Some(answer) = prepared.at_once() {
            return Answer::Now(answer);
        }
        let Ok(sent) = self.send(&prepared.prepared, now) else {
            return Answer::Now(self.koala_without(&prepared, koala, request, now));
        };
        let (store, koala, request) = (Arc::clone(self), Arc::clone(koala), OwnedRequest::new(request));
        Answer::later(async move {
            match store.conclude(&prepared.prepared, sent, now).await {
                Ok(conclusion) => prepared.conclude(&conclusion),
                // Koala counts denied requests, too: what was charged stays.
                Err(undecided) => {
                    store.note_failure(undecided.why);
                    store.settle(undecided, &prepared.prepared, Ending::Allowed);
                    store.koala_without(&prepared, &koala, &request.get(), now)
                }
            }
        })
    }

    /// Gives back what feedback gives back.
    pub(crate) fn koala_feedback(
        self: &Arc<Self>,
        rules: &KoalaRules,
        erase: KoalaErase,
        request: &Request<'_>,
        now: Time,
    ) -> Answer<Result<(), StoreAway>> {
        let given = rules.prepare_feedback(erase, request).into_iter().map(|prepared| self.applied(prepared, now));
        Answer::fold(given, Ok(()), |all, one| all.and(one.map(|_| ())))
    }

    /// How much the rule of a number has counted for a request.
    pub(crate) fn koala_value(
        self: &Arc<Self>,
        rules: &KoalaRules,
        number: u32,
        request: &Request<'_>,
        now: Time,
    ) -> Answer<Result<Option<u64>, StoreAway>> {
        match rules.prepare_value(number, request) {
            None => Answer::Now(Ok(None)),
            Some(prepared) if prepared.groups() == 0 => Answer::Now(Ok(Some(0))),
            Some(prepared) => self
                .applied(prepared, now)
                .map(|concluded| concluded.map(|conclusion| Some(KoalaRules::concluded_value(&conclusion)))),
        }
    }

    /// Asks what can only be answered by the store itself.
    fn applied(self: &Arc<Self>, prepared: Prepared, now: Time) -> Answer<Result<Conclusion, StoreAway>> {
        let Ok(sent) = self.send(&prepared, now) else { return Answer::Now(Err(StoreAway)) };
        let store = Arc::clone(self);
        Answer::later(async move {
            let concluded = store.conclude(&prepared, sent, now).await;
            concluded.map_err(|undecided| {
                store.note_failure(undecided.why);
                StoreAway
            })
        })
    }

    fn koala_without(
        &self,
        prepared: &PreparedKoala,
        koala: &KoalaInForce,
        request: &Request<'_>,
        now: Time,
    ) -> KoalaAnswer {
        self.health.degraded();
        // Rules that were compiled with a shared store have a local copy.
        let local = koala.local.as_ref().unwrap_or(&koala.rules);
        self.fallback.koala(prepared, local, request, now).as_stopgap()
    }
}
