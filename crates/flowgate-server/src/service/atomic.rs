//! Several requests in one atomic step: they pass together or not at all.

use std::sync::Arc;

use flowgate::{Op, Reading};
use flowgate_engine::{JointDecision, Request};

use super::{Answer, Operation, Pending, Service, Snapshot};
use crate::observer::Observer;

impl Service {
    /// Decides some requests, each with its own operation, by one snapshot in one step. Every request is noted by its own
    /// decision.
    pub fn decide_together(
        &self,
        snapshot: &Arc<Snapshot>,
        requests: &[(Op, Request<'_>)],
        at: Reading,
    ) -> Answer<JointDecision> {
        let pending = match &self.shared {
            None => Pending::Now(self.decider.decide_joint_by(&snapshot.rules, requests, at)),
            Some(shared) => shared.decide_together(snapshot, requests, at),
        };
        let mut is_noted = false;
        for (op, _) in requests {
            is_noted |= self.observer.begin(operation(*op));
        }
        match pending {
            Pending::Now(joint) => {
                for ((op, request), part) in requests.iter().zip(joint.parts()) {
                    if is_take(*op) {
                        self.observer.note(|| request, &part.decision, at.now);
                    }
                }
                Answer::Now(joint)
            }
            Pending::Later(sent) => {
                self.observer.later(sent, is_noted, at, |observer: &Observer, question, joint, now| {
                    for ((op, request), part) in question.requests.iter().zip(joint.parts()) {
                        if is_take(*op) {
                            observer.note(|| request.get(), &part.decision, now);
                        }
                    }
                })
            }
        }
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

fn is_take(op: Op) -> bool {
    operation(op) == Operation::Take
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
        let step = [(Op::Take, Request::new().field("user", "1")), (Op::Take, Request::new().field("ip", "1"))];
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
