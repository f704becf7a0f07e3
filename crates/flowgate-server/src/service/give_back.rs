//! Gives units that a request has taken and does not use back to the counters that have granted them.

use std::sync::Arc;

use flowgate_engine::{Decision, Request};

use super::{Operation, Service, Snapshot};

impl Service {
    /// Gives back units that a request has taken and does not use, to the counters that have granted them: those of
    /// this node alone if the shared store had no part in the decision. The refund is sent, and its answer is not
    /// awaited.
    pub fn give_back(&self, snapshot: &Arc<Snapshot>, request: &Request<'_>, decision: &Decision) {
        let at = self.read();
        match &self.shared {
            Some(shared) if decision.degraded => {
                self.observer.begin(Operation::Refund);
                shared.give_back_alone(snapshot, request, at);
            }
            _ => drop(self.decide_by(snapshot, Operation::Refund, request, at)),
        }
    }
}
