//! A plan whose reply is its outcomes alone.

use flowgate_engine::redis::{OwnedPlan, RedisQuestion, ReplyError};
use flowgate_engine::{Decider, Outcomes};

use super::OwnedQuestion;

/// A plan whose reply is its outcomes alone, and which only Redis can answer.
pub(crate) struct OutcomesQuestion<T> {
    pub(crate) plan: OwnedPlan,
    pub(crate) conclude: fn(Outcomes<'_, '_>) -> T,
}

impl<T: Send + 'static> OwnedQuestion for OutcomesQuestion<T> {
    type Reply = T;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.plan
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<T, ReplyError> {
        self.plan.read(answers, |outcomes, _| (self.conclude)(outcomes))
    }
}
