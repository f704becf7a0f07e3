//! Questions by Koala's rules.

use std::sync::Arc;

use flowgate::{Reading, Time};
use flowgate_engine::redis::{OwnedPlan, ReplyError, ScriptCall, ScriptTime};
use flowgate_engine::{Decider, Outcomes, Request};
use flowgate_koala::{KoalaAnswer, KoalaAsk, KoalaPlan, OwnedKoalaPlan};

use super::{LocalQuestion, OwnedQuestion, Question};
use crate::redis::deny_cache::{Denied, DenyQuestion, DenyTable};
use crate::redis::failover::Local;
use crate::service::KoalaInForce;

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
}

impl Question for KoalaQuestion<'_, '_, '_> {
    type Owned = OwnedKoalaQuestion;

    fn to_owned(&self) -> OwnedKoalaQuestion {
        let plan = OwnedKoalaPlan::new(&self.koala.rules, self.ask, self.plan, self.request);
        OwnedKoalaQuestion { koala: Arc::clone(self.koala), plan }
    }

    /// Koala counts denied requests, too, so each must reach Redis.
    fn deny_question(&self, _: &DenyTable) -> Option<DenyQuestion> {
        None
    }

    fn recall(&self, _: Denied) -> Option<KoalaAnswer> {
        None
    }
}

impl OwnedQuestion for OwnedKoalaQuestion {
    type Reply = KoalaAnswer;

    fn groups(&self) -> usize {
        self.plan.plan.groups()
    }

    fn call(&self, group: Option<usize>, prefix: &str, around: Time) -> ScriptCall {
        self.plan.plan.call_of(group, prefix, ScriptTime::Redis, around)
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<KoalaAnswer, ReplyError> {
        self.plan.conclude(answers)
    }

    fn rollbacks(&self, prefix: &str, answers: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        self.plan.plan.undo_calls(prefix, ScriptTime::Redis, answers)
    }
}

impl LocalQuestion for OwnedKoalaQuestion {
    fn decide(&self, local: &Local, at: Reading) -> KoalaAnswer {
        local.koala(&self.koala, &self.plan, at.now)
    }

    /// Koala counts denied requests, too.
    fn keeps_charge(_: &KoalaAnswer) -> bool {
        true
    }

    fn denied(&self, _: &KoalaAnswer) -> Option<Denied> {
        None
    }
}

/// A plan of which only the outcomes are of interest, and that only Redis can answer.
pub(crate) struct OutcomesQuestion<T> {
    pub(crate) plan: OwnedPlan,
    pub(crate) conclude: fn(Outcomes<'_, '_>) -> T,
}

impl<T: Send + 'static> OwnedQuestion for OutcomesQuestion<T> {
    type Reply = T;

    fn groups(&self) -> usize {
        self.plan.groups()
    }

    fn call(&self, group: Option<usize>, prefix: &str, around: Time) -> ScriptCall {
        self.plan.call_of(group, prefix, ScriptTime::Redis, around)
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<T, ReplyError> {
        self.plan.read(answers, |outcomes, _| (self.conclude)(outcomes))
    }

    fn rollbacks(&self, prefix: &str, answers: &[Option<&[i64]>]) -> Vec<ScriptCall> {
        self.plan.undo_calls(prefix, ScriptTime::Redis, answers)
    }
}
