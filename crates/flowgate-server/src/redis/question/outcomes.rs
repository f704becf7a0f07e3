//! A plan of which only the outcomes are of interest.

use flowgate::Time;
use flowgate_engine::redis::{OwnedPlan, ReplyError, ScriptCall, ScriptTime};
use flowgate_engine::{Decider, Outcomes};

use super::OwnedQuestion;

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
