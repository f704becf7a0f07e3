//! The answer of `POST /v1/batch?atomic=true`.

use serde::{Deserialize, Serialize};

use crate::Decision;

/// Whether all requests pass, and the decision of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicBatch<'a> {
    /// Whether the step passes: no request is denied.
    pub allowed: bool,
    /// The decisions, in the order of the requests.
    pub decisions: Vec<PartDecision<'a>>,
}

/// The decision of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartDecision<'a> {
    /// The request's own decision. In a step that is denied a request may be allowed by itself.
    #[serde(flatten)]
    pub decision: Decision<'a>,
    /// Whether the step has passed and has counted the cost of this request.
    pub charged: bool,
}
