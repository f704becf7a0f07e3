//! A request that rules decide, and the explanation of such a decision.

use std::sync::Arc;

use flowgate::{Op, Reading};
use flowgate_engine::redis::{OwnedPlan, RedisQuestion, ReplyError};
use flowgate_engine::{Decider, Decision, Explanation, Plan, Request};

use super::{LocalQuestion, OwnedQuestion, Question};
use crate::owned_request::OwnedRequest;
use crate::redis::deny_cache::{Denial, DenyQuestion, DenyTable};
use crate::redis::failover::Local;
use crate::service::Snapshot;

/// A request and its plan.
pub(crate) struct RuleQuestion<'a, 'r, 'q> {
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) plan: &'a Plan<'r>,
    pub(crate) request: &'a Request<'q>,
}

/// A request that awaits its decision.
pub(crate) struct OwnedRuleQuestion {
    snapshot: Arc<Snapshot>,
    plan: OwnedPlan,
    pub(crate) request: OwnedRequest,
}

impl Question for RuleQuestion<'_, '_, '_> {
    type Owned = OwnedRuleQuestion;

    fn to_owned(&self) -> OwnedRuleQuestion {
        OwnedRuleQuestion {
            snapshot: Arc::clone(self.snapshot),
            plan: OwnedPlan::new(&self.snapshot.rules, self.plan, self.request),
            request: OwnedRequest::new(self.request),
        }
    }

    /// Only a `take` or a `peek` whose denial changes nothing is remembered.
    fn deny_question(&self, table: &DenyTable) -> Option<DenyQuestion> {
        let counters = || self.plan.hits().iter().map(|hit| hit.key().bits());
        let op = self.plan.op();
        if op == Op::Refund {
            return Some(DenyQuestion::giving_back(counters()));
        }
        if self.plan.hits().is_empty()
            || !matches!(op, Op::Take | Op::TakeWithin(_) | Op::Peek)
            || !self.plan.is_idle_when_denied()
        {
            return None;
        }
        // Callers with different patience ask different questions.
        let patience = if let Op::TakeWithin(longest) = op { longest.as_nanos().saturating_add(1) } else { 0 };
        // One counter may be under different limits: by the value of a field, or after a reload.
        let limits = self.plan.limits_id() ^ patience.rotate_left(48);
        let asked = u128::from(limits) << 64 | u128::from(self.plan.cost());
        Some(DenyQuestion::about(table, counters(), asked))
    }

    fn recall(&self, denied: Denial) -> Option<Decision> {
        match denied {
            Denial::Request(decision) => Some(decision),
            Denial::Key(_) | Denial::Throttle(..) => None,
        }
    }
}

impl OwnedQuestion for OwnedRuleQuestion {
    type Reply = Decision;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.plan
    }

    fn conclude(&self, decider: &Decider, answers: &[&[i64]]) -> Result<Decision, ReplyError> {
        let conclusion = self.plan.conclude(answers)?;
        decider.note_conclusion(&conclusion, || self.request.get());
        Ok(conclusion.decision)
    }
}

impl LocalQuestion for OwnedRuleQuestion {
    fn decide(&self, local: &Local, at: Reading) -> Decision {
        local.decide(&self.snapshot, &self.plan, &self.request.get(), at)
    }

    fn keeps_charge(decision: &Decision) -> bool {
        decision.allowed()
    }

    fn denied(&self, decision: &Decision) -> Option<Denial> {
        (!decision.allowed()).then(|| Denial::Request(decision.clone()))
    }
}

/// As [`RuleQuestion`]; the reply is the explanation.
pub(crate) struct ExplainQuestion<'a, 'r, 'q>(pub(crate) RuleQuestion<'a, 'r, 'q>);

/// As [`OwnedRuleQuestion`]; the reply is the explanation.
pub(crate) struct OwnedExplainQuestion(OwnedRuleQuestion);

impl Question for ExplainQuestion<'_, '_, '_> {
    type Owned = OwnedExplainQuestion;

    fn to_owned(&self) -> OwnedExplainQuestion {
        OwnedExplainQuestion(self.0.to_owned())
    }
}

impl OwnedQuestion for OwnedExplainQuestion {
    type Reply = Explanation;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.0.plan
    }

    fn conclude(&self, _: &Decider, answers: &[&[i64]]) -> Result<Explanation, ReplyError> {
        self.0.plan.explain(&self.0.request.get(), answers)
    }
}

impl LocalQuestion for OwnedExplainQuestion {
    fn decide(&self, local: &Local, at: Reading) -> Explanation {
        let OwnedRuleQuestion { snapshot, plan, request } = &self.0;
        local.explain(snapshot, plan, &request.get(), at)
    }

    fn keeps_charge(_: &Explanation) -> bool {
        true
    }
}
