//! The answer of `POST /v1/batch?atomic=true`.

use serde::{Deserialize, Serialize};

use crate::Decision;

/// Whether all requests pass, and the decision of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicBatch<'a> {
    /// Whether every request passes. If one request is denied, all of them are.
    pub allowed: bool,
    /// The decisions, in the order of the requests.
    pub decisions: Vec<PartDecision<'a>>,
}

/// The decision of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartDecision<'a> {
    /// The decision on this request alone. It may be allowed although the batch as a whole is denied.
    #[serde(flatten)]
    pub decision: Decision<'a>,
    /// Whether the batch has passed and the cost of this request is counted.
    pub charged: bool,
}
