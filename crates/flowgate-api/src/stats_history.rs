//! The history of decisions: `/v1/stats/history`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Millis;

/// Values of successive steps, oldest first; null: nothing was measured.
pub type Steps<T> = Vec<Option<T>>;

/// The answer of `GET /v1/stats/history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsHistory<'a> {
    /// The server's time.
    pub now: Millis,
    /// When it started: nothing was measured before.
    pub started: Millis,
    /// The seconds of a step.
    pub step: u64,
    /// The end of the last step, which lasts still. The value at place i of n is that of the step that begins at
    /// `end - (n - i) * step`.
    pub end: u64,
    /// All decisions.
    pub total: TotalCounts,
    /// How long answers took.
    pub latency: Latencies,
    /// Bytes of counters in memory.
    pub memory: Steps<u64>,
    /// The rules that were asked for.
    pub rules: Vec<RuleHistory<'a>>,
    /// The rules without a history of their own.
    pub other: Counts,
    /// Instants to mark.
    pub marks: Vec<Mark<'a>>,
}

/// Decisions per step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Let pass.
    pub allowed: Steps<u32>,
    /// Denied by a limit, at once, or by a ban.
    pub denied: Steps<u32>,
    /// Let pass, though a shadow rule would have denied them.
    pub shadow: Steps<u32>,
}

/// All decisions per step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalCounts {
    /// By their outcome.
    #[serde(flatten)]
    pub counts: Counts,
    /// Those of `denied` whose rule has an action of its own, such as `captcha`.
    pub own_action: Steps<u32>,
    /// Decided without the shared store.
    pub degraded: Steps<u32>,
}

/// The decisions of a rule per step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleHistory<'a> {
    /// The rule's name.
    pub rule: Cow<'a, str>,
    /// What the rule in force asks of the caller on a denial: `deny`, or a word of its own; null: no rule of that name is.
    pub action: Option<Cow<'a, str>>,
    /// By their outcome.
    #[serde(flatten)]
    pub counts: Counts,
}

/// How long answers took, by protocol, and how long the shared store took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Over the Redis protocol.
    pub resp: Latency,
    /// Over HTTP.
    pub http: Latency,
    /// Over gRPC.
    pub grpc: Latency,
    /// The shared store.
    pub store: Latency,
}

/// Microseconds per step; null: no answer was timed, or the step lasts still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: Steps<u32>,
    /// The 99th percentile.
    pub p99: Steps<u32>,
}

/// An instant and what happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark<'a> {
    /// When.
    pub at: Millis,
    /// `start`, `rules`, `away`, `back`, `pause` or `resume`.
    pub kind: Cow<'a, str>,
    /// The version of the rules that came into force, where it is known.
    pub version: Option<u64>,
}
