//! The replies to the clients: one record for each request that a client sent.

use std::time::Duration;

use crate::bounds::Interval;
use crate::workload::Asked;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) asked: Asked,
    pub(crate) node: NodeLife,
    pub(crate) interval: Interval,
    pub(crate) outcome: Outcome,
    /// The end of the ban that denied the request, since the start of the run.
    pub(crate) banned_until: Option<Duration>,
}

/// A process of a node. A node that is started again counts anew what it grants by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeLife {
    pub(crate) node: usize,
    pub(crate) life: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Allowed,
    Denied,
    /// Decided without the store.
    DegradedAllowed,
    DegradedDenied,
    /// The connection ended before the answer, or the client gave up.
    Unanswered,
}

impl Outcome {
    pub(crate) fn is_degraded(self) -> bool {
        matches!(self, Outcome::DegradedAllowed | Outcome::DegradedDenied)
    }
}

impl Record {
    pub(crate) fn latency(&self) -> Duration {
        self.interval.received - self.interval.sent
    }

    /// Whether the whole request lies within a span of time.
    pub(crate) fn is_within(&self, from: Duration, to: Duration) -> bool {
        self.interval.sent >= from && self.interval.received <= to
    }
}
