//! The recorded traces of `testdata/vectors/limits.jsonl`, for whoever replays them: the pure functions, the stores, the
//! protocols.
//!
//! Rule       A module that includes this file has in scope what it compares: the `Decision` that it gets, and `Op`.
#![allow(dead_code, reason = "not everybody replays in the same way")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use serde::Deserialize;

use super::{Decision, Op};

/// Limits of one rule, and what happens to one subject.
#[derive(Deserialize)]
pub(crate) struct Trace {
    pub(crate) case: String,
    pub(crate) limits: Vec<String>,
    pub(crate) count_denied: bool,
    pub(crate) steps: Vec<Step>,
}

#[derive(Deserialize)]
pub(crate) struct Step {
    pub(crate) at_us: u64,
    pub(crate) op: String,
    pub(crate) cost: u64,
    pub(crate) expect: Expect,
}

#[derive(Deserialize, Debug, PartialEq)]
pub(crate) struct Expect {
    pub(crate) allowed: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) remaining: Option<u64>,
    pub(crate) retry_after_us: Option<u64>,
    pub(crate) never: bool,
    pub(crate) reset_after_us: u64,
    pub(crate) delay_us: u64,
}

pub(crate) fn traces() -> Vec<Trace> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/limits.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let traces: Vec<Trace> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(traces.len() > 200, "the vectors are there");
    traces
}

impl Trace {
    /// Expects `found` of the step of this number.
    #[track_caller]
    pub(crate) fn check(&self, number: usize, found: impl Into<Expect>) {
        let (Trace { case, limits, .. }, Step { at_us, op, cost, expect }) = (self, &self.steps[number]);
        assert_eq!(found.into(), *expect, "{case} {limits:?} step {number}: {op} {cost} at {at_us}");
    }

    /// Whether each step is at the time of the one before or later.
    pub(crate) fn runs_forward(&self) -> bool {
        self.steps.is_sorted_by_key(|step| step.at_us)
    }
}

impl Step {
    pub(crate) fn op(&self) -> Op {
        match self.op.as_str() {
            "take" => Op::Take,
            "peek" => Op::Peek,
            "record" => Op::Record,
            "refund" => Op::Refund,
            other => panic!("{other}"),
        }
    }
}

impl From<Decision> for Expect {
    fn from(decision: Decision) -> Expect {
        Expect {
            allowed: decision.allowed(),
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after_us: decision.retry_after().map(|wait| wait.as_micros_ceil()),
            never: decision.never(),
            reset_after_us: decision.reset_after.as_micros_ceil(),
            delay_us: decision.delay().as_micros_ceil(),
        }
    }
}
