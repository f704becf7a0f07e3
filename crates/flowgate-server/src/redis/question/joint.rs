//! Several requests that pass together or not at all.

use std::sync::Arc;

use flowgate::{Op, Reading};
use flowgate_engine::redis::{OwnedJointPlan, RedisQuestion, ReplyError};
use flowgate_engine::{Decider, JointDecision, JointPlan, Request};

use super::{LocalQuestion, OwnedQuestion, Question};
use crate::owned_request::OwnedRequest;
use crate::redis::deny_cache::{DenyQuestion, DenyTable};
use crate::redis::failover::Local;
use crate::service::{JointRequest, PartRules, Snapshot};

/// Several requests and their common plan.
pub(crate) struct JointQuestion<'a, 'r, 'q> {
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) plan: &'a JointPlan<'r>,
    pub(crate) requests: &'a [JointRequest<'q>],
}

/// Several requests that await their decision.
pub(crate) struct OwnedJointQuestion {
    snapshot: Arc<Snapshot>,
    plan: OwnedJointPlan,
    pub(crate) parts: Vec<OwnedPart>,
}

/// As [`JointRequest`].
pub(crate) struct OwnedPart {
    pub(crate) op: Op,
    pub(crate) request: OwnedRequest,
    pub(crate) rules: PartRules,
}

impl Question for JointQuestion<'_, '_, '_> {
    type Owned = OwnedJointQuestion;

    fn to_owned(&self) -> OwnedJointQuestion {
        let requests = self.requests.iter().map(|part| (&part.rules.snapshot(self.snapshot).rules, &part.request));
        let part = |JointRequest { op, request, rules }: &JointRequest<'_>| OwnedPart {
            op: *op,
            request: OwnedRequest::new(request),
            rules: rules.clone(),
        };
        OwnedJointQuestion {
            snapshot: Arc::clone(self.snapshot),
            plan: OwnedJointPlan::new(self.plan, requests),
            parts: self.requests.iter().map(part).collect(),
        }
    }

    /// The cache keeps no denials of joint steps, which have one for each part. But refunds of a step remove the cached
    /// denials of their counters.
    fn deny_question(&self, _: &DenyTable) -> Option<DenyQuestion> {
        let refunds = self.plan.parts.iter().filter(|part| part.op() == Op::Refund);
        let counters: Vec<u128> = refunds.flat_map(|part| part.hits()).map(|hit| hit.key().bits()).collect();
        (!counters.is_empty()).then(|| DenyQuestion::giving_back(counters.into_iter()))
    }
}

impl OwnedQuestion for OwnedJointQuestion {
    type Reply = JointDecision;

    fn asked(&self) -> &dyn RedisQuestion {
        &self.plan
    }

    fn conclude(&self, decider: &Decider, answers: &[&[i64]]) -> Result<JointDecision, ReplyError> {
        let conclusion = self.plan.conclude(answers)?;
        decider.note_joint_conclusion(&conclusion, |part| self.parts[part].request.get());
        Ok(conclusion.decision)
    }
}

impl LocalQuestion for OwnedJointQuestion {
    fn decide(&self, local: &Local, at: Reading) -> JointDecision {
        let requests: Vec<Request<'_>> = self.parts.iter().map(|part| part.request.get()).collect();
        let snapshots = self.parts.iter().map(|part| &**part.rules.snapshot(&self.snapshot));
        local.decide_joint(snapshots, &self.plan, &requests, at)
    }

    fn keeps_charge(joint: &JointDecision) -> bool {
        joint.allowed()
    }
}
