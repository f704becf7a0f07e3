//! The history of decisions: `/v1/stats/history`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{BanAuthor, Millis};

/// Values of successive steps, oldest first; null: nothing was measured.
pub type Steps<T> = Vec<Option<T>>;

/// The answer of `GET /v1/stats/history`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsHistory<'a> {
    /// The server's time.
    pub now: Millis,
    /// When the server started. Earlier steps have no values.
    pub started: Millis,
    /// The seconds of a step.
    pub step: u64,
    /// The end of the last step, which is not over yet. The value at index i of n belongs to the step that begins at
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
    /// The sum of all rules that have no history of their own.
    pub other: Counts,
    /// Events to mark in a chart.
    pub marks: Vec<Mark<'a>>,
}

/// Decisions per step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that passed.
    pub allowed: Steps<u32>,
    /// Requests that a limit, a rule or a ban denied.
    pub denied: Steps<u32>,
    /// Requests that passed although a shadow rule would have denied them.
    pub shadow: Steps<u32>,
}

/// All decisions per step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TotalCounts {
    /// The decisions by their outcome.
    #[serde(flatten)]
    pub counts: Counts,
    /// Requests of `denied` whose rule has an action of its own, such as `captcha`.
    pub own_action: Steps<u32>,
    /// Requests that were decided without the shared store.
    pub degraded: Steps<u32>,
}

/// The decisions of a rule per step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleHistory<'a> {
    /// The rule's name.
    pub rule: Cow<'a, str>,
    /// What the rule in force asks of the caller on a denial: `deny`, or a word of its own; null: no rule of that name
    /// is in force.
    pub action: Option<Cow<'a, str>>,
    /// The decisions by their outcome.
    #[serde(flatten)]
    pub counts: Counts,
}

/// How long answers took, by protocol, and how long the shared store took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Answers over the Redis protocol.
    pub resp: Latency,
    /// Answers over HTTP.
    pub http: Latency,
    /// Answers over gRPC.
    pub grpc: Latency,
    /// Replies of the shared store.
    pub store: Latency,
}

/// Microseconds per step; null: no answer was timed, or the step is not over yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: Steps<u32>,
    /// The 99th percentile.
    pub p99: Steps<u32>,
}

/// An event and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark<'a> {
    /// When it happened.
    pub at: Millis,
    /// `start`, `rules`, `away`, `back`, `pause`, `resume`, `ban` or `lift`.
    pub kind: Cow<'a, str>,
    /// The version of the rules that came into force, where it is known.
    pub version: Option<u64>,
    /// What was banned by hand, or whose ban was lifted, through this node.
    pub ban: Option<MarkedBan<'a>>,
}

/// A ban by hand that came or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedBan<'a> {
    /// The field.
    pub field: Cow<'a, str>,
    /// The value as it was given.
    pub value: Cow<'a, str>,
    /// Who imposed the ban or lifted it.
    pub author: BanAuthor<'a>,
}
