//! The recorded traces of `testdata/vectors/`, as plain data. The README there describes the files.
//!
//! A test replays the steps of a trace on a store or over a protocol, describes each answer with [`Numbers`], and hands
//! it to `check` of the trace.

pub mod joint;
pub mod limits;
pub mod throttle;

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a file of `testdata/vectors/`, one value a line.
///
/// # Panics
///
/// If the file has fewer than `at_least` lines: a test of no trace would always pass.
fn read<T: DeserializeOwned>(name: &str, at_least: usize) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let values: Vec<T> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(values.len() >= at_least, "{name} has only {} lines", values.len());
    values
}

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Check and count.
    Take,
    /// Take, for a caller that does not wait: `pace` may not delay it.
    #[serde(rename = "take_within_0")]
    TakeWithinZero,
    /// Check without counting.
    Peek,
    /// Count without checking.
    Record,
    /// Give back.
    Refund,
}

/// The operation's name in the protocols, which have no name for a take within zero seconds.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Take => "take",
            Op::TakeWithinZero => "take_within_0",
            Op::Peek => "peek",
            Op::Record => "record",
            Op::Refund => "refund",
        })
    }
}

/// The numbers of a decision. Spans are microseconds, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Numbers {
    /// Whether the request passes.
    pub allowed: bool,
    /// The limit's count of units; `None` without a limit.
    pub limit: Option<u64>,
    /// The units that are left; `None` without a limit.
    pub remaining: Option<u64>,
    /// How long a denied request has to wait; `None` if it passes, and if it never will.
    pub retry_after_us: Option<u64>,
    /// Whether waiting does not help: the cost is above the limit.
    pub never: bool,
    /// The time until the counter is as if never used.
    pub reset_after_us: u64,
    /// How long a request that passes is held.
    pub delay_us: u64,
}

impl Numbers {
    /// The numbers of a decision in the JSON of HTTP and of replays, whose spans are seconds with three digits.
    pub fn from_json(decision: &Value) -> Numbers {
        // A double tells milliseconds apart up to a million years.
        let micros = |key: &str| decision[key].as_f64().map(|seconds| (seconds * 1000.0).round() as u64 * 1000);
        Numbers {
            allowed: decision["allowed"].as_bool().unwrap(),
            limit: decision["limit"].as_u64(),
            remaining: decision["remaining"].as_u64(),
            retry_after_us: micros("retry_after"),
            never: decision.get("never").is_some(),
            reset_after_us: micros("reset_after").unwrap(),
            delay_us: micros("delay").unwrap(),
        }
    }

    /// The numbers of a decision over the Redis protocol: allowed, limit, remaining, retry after, reset after, delay.
    /// Spans are milliseconds. -1 stands for no number; a `retry after` of -2 stands for a request that never passes.
    pub fn from_resp([allowed, limit, remaining, retry_after, reset_after, delay]: [i64; 6]) -> Numbers {
        let number = |number: i64| u64::try_from(number).ok();
        let micros = |millis: i64| number(millis).map(|millis| millis * 1000);
        Numbers {
            allowed: allowed == 1,
            limit: number(limit),
            remaining: number(remaining),
            retry_after_us: micros(retry_after),
            never: retry_after == -2,
            reset_after_us: micros(reset_after).unwrap(),
            delay_us: micros(delay).unwrap(),
        }
    }

    /// The same numbers with spans rounded up to whole milliseconds, as the protocols give them.
    pub fn in_millis(self) -> Numbers {
        let round = |micros: u64| micros.div_ceil(1000) * 1000;
        Numbers {
            retry_after_us: self.retry_after_us.map(round),
            reset_after_us: round(self.reset_after_us),
            delay_us: round(self.delay_us),
            ..self
        }
    }
}

/// The [`Numbers`] of a decision of the library.
///
/// A macro, because the library's unit tests have a decision of their own build.
#[macro_export]
macro_rules! numbers {
    ($decision:expr) => {{
        let decision = &$decision;
        $crate::vectors::Numbers {
            allowed: decision.allowed(),
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after_us: decision.retry_after().map(|wait| wait.as_micros_ceil()),
            never: decision.never(),
            reset_after_us: decision.reset_after.as_micros_ceil(),
            delay_us: decision.delay().as_micros_ceil(),
        }
    }};
}

/// The `flowgate::Op` of an operation of the vectors.
///
/// A macro, because the library's unit tests have an `Op` of their own build: `op!(crate, step.op)`.
#[macro_export]
macro_rules! op {
    ($library:ident, $op:expr) => {
        match $op {
            $crate::vectors::Op::Take => $library::Op::Take,
            $crate::vectors::Op::TakeWithinZero => $library::Op::TakeWithin($library::Span::ZERO),
            $crate::vectors::Op::Peek => $library::Op::Peek,
            $crate::vectors::Op::Record => $library::Op::Record,
            $crate::vectors::Op::Refund => $library::Op::Refund,
        }
    };
}
