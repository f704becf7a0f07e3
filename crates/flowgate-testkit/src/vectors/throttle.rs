//! The recorded calls of `cl_throttle.jsonl`.

use serde::Deserialize;

/// A call of `CL.THROTTLE` and redis-cell's reply. Calls of one case share their keys.
#[derive(Debug, Deserialize)]
pub struct Call {
    /// The number of the case. A new case starts with no keys.
    pub case: u64,
    /// Nanoseconds since the epoch.
    pub now_ns: u64,
    /// The key.
    pub key: String,
    /// The burst beyond the first unit.
    pub max_burst: i64,
    /// Units per period.
    pub count: i64,
    /// The period in seconds.
    pub period: i64,
    /// The units to take.
    pub quantity: i64,
    /// Limited, limit, remaining, and in seconds retry after and reset after.
    pub reply: [i64; 5],
}

/// All recorded calls.
pub fn calls() -> Vec<Call> {
    super::read("cl_throttle.jsonl", 3200)
}
