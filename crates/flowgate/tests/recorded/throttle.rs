//! The recorded calls of `testdata/vectors/cl_throttle.jsonl`, for whoever answers them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use serde::Deserialize;

/// A call of `CL.THROTTLE` and what redis-cell answers; those of a case share their keys.
#[derive(Deserialize)]
pub(crate) struct Call {
    pub(crate) case: u64,
    pub(crate) now_ns: u64,
    pub(crate) key: String,
    pub(crate) max_burst: i64,
    pub(crate) count: i64,
    pub(crate) period: i64,
    pub(crate) quantity: i64,
    pub(crate) reply: [i64; 5],
}

pub(crate) fn calls() -> Vec<Call> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/cl_throttle.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let calls: Vec<Call> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(calls.len() >= 3200, "the vectors are there");
    calls
}
