//! Several requests in one step: they pass together or not at all.
//!
//! Rule       The step is atomic, see [`Service::decide_together`]. Where a request brings a limit of its own, the requests are
//!            asked one after the other; if one is denied, those before it are given back, so that others may see them
//!            counted for that long.
//! Rule       Refunds happen first and in any case.

use std::sync::Arc;

use flowgate::{Limit, Op, OtherAlgorithm, Reading, Retry, Span, Verdict};
use flowgate_engine::{AdHoc, Decision, Request};

use super::{KeyDecision, Operation, Service, Snapshot};

/// A limit that the caller brings, and the key of its counter.
#[derive(Clone, Debug)]
pub(crate) struct KeyLimit {
    pub(crate) key: Vec<u8>,
    /// `None`: nothing is granted.
    pub(crate) limit: Option<Limit>,
}

/// One request of a step.
#[derive(Debug)]
pub(crate) struct JointRequest<'a> {
    pub(crate) op: Op,
    pub(crate) request: Request<'a>,
    /// Decides in place of the limits of rules. Bans by hand and rules without limits hold nonetheless.
    pub(crate) limit: Option<KeyLimit>,
}

/// The answer to one request of a step.
#[derive(Clone, Debug)]
pub(crate) enum JointAnswer {
    Rules(Decision),
    /// By the limit that the caller brought, and the span in which it is granted.
    Key(KeyDecision, Option<Span>),
}

impl JointAnswer {
    pub(crate) fn numbers(&self) -> &flowgate::Decision {
        match self {
            JointAnswer::Rules(decision) => decision.numbers(),
            JointAnswer::Key(KeyDecision { decision, .. }, _) => decision,
        }
    }

    /// Whether the request passes. A peek that would have to wait for its turn does not: it stands for a caller that does
    /// not wait.
    pub(crate) fn allowed(&self) -> bool {
        self.numbers().allowed() && self.numbers().delay().is_zero()
    }
}

impl Service {
    /// Decides the requests of a step by one snapshot, at one instant.
    ///
    /// # Errors
    /// When the key of a limit that a caller brings is in use by another algorithm.
    pub(crate) async fn decide_joint(
        &self,
        snapshot: &Arc<Snapshot>,
        requests: &[JointRequest<'_>],
        at: Reading,
    ) -> Result<Vec<JointAnswer>, OtherAlgorithm> {
        if let [JointRequest { op, request, limit: None }] = requests {
            let decision = self.decide_op(snapshot, *op, operation(*op), request, at).await;
            return Ok(vec![JointAnswer::Rules(decision)]);
        }
        if requests.iter().any(|request| request.limit.is_some()) {
            return self.decide_one_by_one(snapshot, requests, at).await;
        }
        let parts: Vec<(Op, Request<'_>)> = requests.iter().map(|part| (part.op, part.request.clone())).collect();
        let joint = self.decide_together(snapshot, &parts, at).await;
        Ok(joint.parts().iter().map(|part| JointAnswer::Rules(part.decision.clone())).collect())
    }

    async fn decide_one_by_one(
        &self,
        snapshot: &Arc<Snapshot>,
        requests: &[JointRequest<'_>],
        at: Reading,
    ) -> Result<Vec<JointAnswer>, OtherAlgorithm> {
        let mut answers: Vec<Option<JointAnswer>> = vec![None; requests.len()];
        for (part, answer) in requests.iter().zip(&mut answers).filter(|(part, _)| part.op == Op::Refund) {
            *answer = Some(self.decide_part(snapshot, part, Op::Refund, at).await?);
        }
        let (mut denied, mut taken) = (false, Vec::new());
        for (index, part) in requests.iter().enumerate().filter(|(_, part)| part.op != Op::Refund) {
            let op = if denied { Op::Peek } else { part.op };
            let answer = match self.decide_part(snapshot, part, op, at).await {
                Ok(answer) => answer,
                Err(error) => {
                    // A call that is refused charges nothing.
                    for earlier in taken {
                        self.decide_part(snapshot, &requests[earlier], Op::Refund, at).await?;
                    }
                    return Err(error);
                }
            };
            if answer.allowed() && op != Op::Peek {
                taken.push(index);
            }
            if !answer.allowed() && !denied {
                denied = true;
                for earlier in taken.drain(..) {
                    answers[earlier] = Some(self.decide_part(snapshot, &requests[earlier], Op::Refund, at).await?);
                }
            }
            answers[index] = Some(answer);
        }
        Ok(answers.into_iter().flatten().collect())
    }

    async fn decide_part(
        &self,
        snapshot: &Arc<Snapshot>,
        part: &JointRequest<'_>,
        op: Op,
        at: Reading,
    ) -> Result<JointAnswer, OtherAlgorithm> {
        let JointRequest { request, limit, .. } = part;
        let Some(KeyLimit { key, limit }) = limit else {
            return Ok(JointAnswer::Rules(self.decide_op(snapshot, op, operation(op), request, at).await));
        };
        if op != Op::Refund
            && let Some(denied) = self.decider.denied_without_limits(&snapshot.rules, request, self.ban_time(at))
        {
            if self.observer.begin(operation(op)) {
                self.observer.note(|| request, &denied, at.now);
            }
            return Ok(JointAnswer::Rules(denied));
        }
        let Some(limit) = limit else { return Ok(JointAnswer::Key(nothing_granted(op), None)) };
        let call = AdHoc { key: key.as_slice().into(), limit, cost: request.units() };
        let decision = self.limit_at(operation(op), call, at).await?;
        Ok(JointAnswer::Key(decision, limit.window()))
    }
}

fn operation(op: Op) -> Operation {
    match op {
        Op::Peek => Operation::Peek,
        Op::Refund => Operation::Refund,
        Op::Record => Operation::Record,
        _ => Operation::Take,
    }
}

fn nothing_granted(op: Op) -> KeyDecision {
    let verdict = match op {
        Op::Refund => Verdict::Allow { delay: Span::ZERO },
        _ => Verdict::Deny(Retry::Never),
    };
    let decision = flowgate::Decision { verdict, limit: Some(0), remaining: Some(0), reset_after: Span::ZERO };
    KeyDecision { decision, degraded: false }
}
