//! Questions by Koala's rules.

use std::sync::Arc;

use flowgate::Reading;
use flowgate_engine::redis::{RedisQuestion, ReplyError};
use flowgate_engine::{Decider, OnFailure, Request};
use flowgate_koala::{KoalaAnswer, KoalaAsk, KoalaPlan, OwnedKoalaPlan};

use super::KoalaInForce;
use crate::owned_request::OwnedRequest;
use crate::redis::{Local, LocalQuestion, OwnedQuestion, Question};

/// A request to Koala and its plan.
pub(crate) struct KoalaQuestion<'a, 'r, 'q> {
    pub(crate) koala: &'a Arc<KoalaInForce>,
    pub(crate) ask: KoalaAsk,
    pub(crate) plan: &'a KoalaPlan<'r>,
    pub(crate) request: &'a Request<'q>,
}

/// A request to Koala that awaits its answer.
pub(crate) struct OwnedKoalaQuestion {
    pub(crate) koala: Arc<KoalaInForce>,
    plan: OwnedKoalaPlan,
    pub(crate) request: OwnedRequest,
}

// The deny cache does not know these questions: Koala counts denied requests, too, so each must reach Redis.
impl Question for KoalaQuestion<'_, '_, '_> {
    type Owned = OwnedKoalaQuestion;

    fn to_owned(&self) -> OwnedKoalaQuestion {
        let plan = OwnedKoalaPlan::new(&self.koala.rules, self.ask, self.plan, self.request);
        OwnedKoalaQuestion { koala: Arc::clone(self.koala), plan, request: OwnedRequest::new(self.request) }
    }
}

impl OwnedQuestion for OwnedKoalaQuestion {
    type Reply = KoalaAnswer;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.plan.plan
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<KoalaAnswer, ReplyError> {
        self.plan.conclude(&self.koala.rules, answers)
    }
}

impl LocalQuestion for OwnedKoalaQuestion {
    /// Koala's rules follow the store's `on_failure`.
    fn decide(&self, local: &Local, at: Reading) -> KoalaAnswer {
        let answer = match (local.settings.on_failure, self.plan.ask) {
            (OnFailure::Deny, ask) if ask != KoalaAsk::Update => self.plan.denied(&self.koala.rules),
            _ => self.plan.decide(
                &local.decider,
                &self.koala.rules,
                self.koala.local.as_ref().unwrap_or(&self.koala.rules),
                at.now,
            ),
        };
        answer.as_stopgap()
    }

    /// Koala counts denied requests, too.
    fn keeps_charge(_: &KoalaAnswer) -> bool {
        true
    }
}
