//! Several requests in one atomic step: they pass together or not at all.
//!
//! Rule       A request that brings a limit has two parts: the bans and the rules without limits that it meets, then its
//!            limit. The first of the two that denies decides the request.

use std::borrow::Borrow;
use std::sync::Arc;

use flowgate::{Op, Reading, Time};
use flowgate_engine::{Decider, Decision, JointDecision, JointPlan, PartDecision, Request};
use smallvec::{SmallVec, smallvec};

use super::{Answer, Operation, Pending, Service, Snapshot};
use crate::observer::Observer;

/// One part of a step.
#[derive(Clone, Debug)]
pub struct JointRequest<'a> {
    pub(crate) op: Op,
    pub(crate) request: Request<'a>,
    pub(crate) rules: PartRules,
}

/// Which rules decide a part of a step.
#[derive(Clone, Debug)]
pub(crate) enum PartRules {
    /// All rules in force.
    InForce,
    /// The rules in force without their limits. The next part is the limit that the request brings.
    WithoutLimits,
    /// The limit that the request of the part before it brings, as the only rule.
    Brought(Arc<Snapshot>),
}

impl<'a> JointRequest<'a> {
    /// A request that the rules in force decide.
    pub fn new(op: Op, request: Request<'a>) -> JointRequest<'a> {
        JointRequest { op, request, rules: PartRules::InForce }
    }

    /// The two parts of a request that brings a limit: `limit` is the request that the rules of `brought` count.
    pub(crate) fn with_limit(
        op: Op,
        request: Request<'a>,
        brought: Arc<Snapshot>,
        limit: Request<'a>,
    ) -> [JointRequest<'a>; 2] {
        [
            JointRequest { op, request, rules: PartRules::WithoutLimits },
            JointRequest { op, request: limit, rules: PartRules::Brought(brought) },
        ]
    }
}

impl PartRules {
    /// The snapshot whose rules decide this part, in a step that is decided by `snapshot`.
    pub(crate) fn snapshot<'s>(&'s self, snapshot: &'s Arc<Snapshot>) -> &'s Arc<Snapshot> {
        match self {
            PartRules::InForce | PartRules::WithoutLimits => snapshot,
            PartRules::Brought(brought) => brought,
        }
    }
}

/// The plan of a step.
pub(crate) fn plan<'r>(
    decider: &Decider,
    snapshot: &'r Arc<Snapshot>,
    requests: &'r [JointRequest<'_>],
    at: Reading,
) -> JointPlan<'r> {
    let plan = |JointRequest { op, request, rules }: &'r JointRequest<'_>| {
        let (op, set) = (op.on_clock(at), &rules.snapshot(snapshot).rules);
        match rules {
            PartRules::WithoutLimits => decider.plan_without_limits(set, op, request, at.now),
            PartRules::InForce | PartRules::Brought(_) => decider.plan(set, op, request, at.now),
        }
    };
    JointPlan::new(requests.iter().map(plan).collect())
}

/// For each request of a step the part that decides it, with the value of that part by `of_part`.
pub(crate) fn deciding<'j, T>(
    of_parts: impl Iterator<Item = (&'j PartRules, T)>,
    joint: &'j JointDecision,
) -> impl Iterator<Item = (T, &'j PartDecision)> {
    let mut is_decided = false;
    of_parts.zip(joint.parts()).filter_map(move |((rules, of_part), part)| {
        let decides = match rules {
            PartRules::InForce => true,
            PartRules::WithoutLimits => {
                is_decided = !part.decision.allowed();
                is_decided
            }
            PartRules::Brought(_) => !is_decided,
        };
        decides.then_some((of_part, part))
    })
}

impl Service {
    /// Decides some requests, each with its own operation, by one snapshot in one step. Every request is noted by its own
    /// decision.
    pub fn decide_together(
        &self,
        snapshot: &Arc<Snapshot>,
        requests: &[JointRequest<'_>],
        at: Reading,
    ) -> Answer<JointDecision> {
        let pending = match &self.shared {
            None => {
                let plan = plan(&self.decider, snapshot, requests, at);
                let requests = requests.iter().map(|part| &part.request);
                Pending::Now(self.decider.decide_joint_plan(plan, requests, at))
            }
            Some(shared) => shared.decide_together(snapshot, requests, at),
        };
        let mut is_noted = false;
        for part in requests.iter().filter(|part| !matches!(part.rules, PartRules::Brought(_))) {
            is_noted |= self.observer.begin(operation(part.op));
        }
        match pending {
            Pending::Now(joint) => {
                for (asked, part) in deciding(requests.iter().map(|part| (&part.rules, part)), &joint) {
                    note(&self.observer, (asked.op, &asked.rules), || &asked.request, &part.decision, at.now);
                }
                let passes = requests.iter().any(|part| part.op.changes()) && joint.allowed();
                self.kept(passes, joint, JointDecision::as_stopgap)
            }
            Pending::Later(sent) => {
                self.observer.later(sent, is_noted, at, |observer: &Observer, question, joint, now| {
                    for (asked, part) in deciding(question.parts.iter().map(|part| (&part.rules, part)), joint) {
                        note(observer, (asked.op, &asked.rules), || asked.request.get(), &part.decision, now);
                    }
                })
            }
        }
    }

    /// As [`Service::decide_together`]; returns the decision of each request. A single request is decided as such.
    pub(crate) fn decide_requests(
        &self,
        snapshot: &Arc<Snapshot>,
        requests: &[JointRequest<'_>],
        at: Reading,
    ) -> Answer<SmallVec<[Decision; 1]>> {
        if let [JointRequest { op, request, rules: PartRules::InForce }] = requests {
            return self.decide_op(snapshot, *op, operation(*op), request, at).map(|decision| smallvec![decision]);
        }
        let rules: Vec<PartRules> = requests.iter().map(|part| part.rules.clone()).collect();
        self.decide_together(snapshot, requests, at).map(move |joint| {
            let deciding = deciding(rules.iter().map(|rules| (rules, ())), &joint);
            deciding.map(|(_, part)| part.decision.clone()).collect()
        })
    }
}

/// Notes a take.
fn note<'q, R: Borrow<Request<'q>>>(
    observer: &Observer,
    (op, rules): (Op, &PartRules),
    request: impl Fn() -> R,
    decision: &Decision,
    now: Time,
) {
    match rules {
        _ if operation(op) != Operation::Take => {}
        PartRules::Brought(_) => observer.note_brought(request, decision, now),
        PartRules::InForce | PartRules::WithoutLimits => observer.note(request, decision, now),
    }
}

fn operation(op: Op) -> Operation {
    match op {
        Op::Peek => Operation::Peek,
        Op::Record => Operation::Record,
        Op::Refund => Operation::Refund,
        _ => Operation::Take,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{now, service};
    use super::*;

    #[test]
    fn requests_pass_together_or_not_at_all() {
        let rules = "rule = [
            { name = 'user', by = ['user'], limits = ['2/60s'] },
            { name = 'ip', by = ['ip'], limits = ['1/60s'] },
        ]";
        let (service, _) = service(rules);
        let take = |field, value| JointRequest::new(Op::Take, Request::new().field(field, value));
        let step = [take("user", "1"), take("ip", "1")];
        let ask = || now(service.decide_together(&service.snapshot(), &step, service.read()));
        let passed = ask();
        assert!(passed.allowed());
        assert!(passed.parts().iter().all(|part| part.charged));
        let denied = ask();
        let parts: Vec<_> = denied.parts().iter().map(|part| (part.decision.allowed(), part.charged)).collect();
        assert_eq!((denied.allowed(), parts), (false, vec![(true, false), (false, false)]));
        assert_eq!(denied.parts()[0].decision.remaining(), Some(1), "the first part is not charged");
    }
}
