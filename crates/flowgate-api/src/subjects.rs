//! The subjects of a rule, and denied requests: `/v1/subjects/NAME`, `/v1/denials`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Fields, Millis};

/// The answer of `GET /v1/subjects/NAME`: the subjects of a rule, the most frequent first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subjects<'a> {
    /// The server's time.
    pub now: Millis,
    /// The time from which on the subjects are counted, one to two minutes ago; null: there are no subjects.
    pub since: Option<Millis>,
    /// Subjects that asked.
    #[serde(borrow)]
    pub asked: Vec<SubjectCount<'a>>,
    /// Subjects that were denied.
    #[serde(borrow)]
    pub denied: Vec<SubjectCount<'a>>,
    /// Subjects that would have been denied if the rule were not a shadow.
    #[serde(borrow)]
    pub shadow: Vec<SubjectCount<'a>>,
}

/// How often a subject was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectCount<'a> {
    /// The names and values of the rule's `by` fields.
    #[serde(borrow)]
    pub subject: Fields<'a>,
    /// Whether a value is too long and is cut.
    pub cut: bool,
    /// The number of requests, too high by at most `error`.
    pub count: u64,
    /// The largest possible error of the count.
    pub error: u64,
    /// The start of the minutes without a gap in which the subject was seen.
    pub first: Millis,
    /// When the subject was seen last.
    pub last: Millis,
    /// Whether a ban by hand is in force on one of the subject's values.
    pub banned: bool,
}

/// The answer of `GET /v1/denials`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denials<'a> {
    /// The server's time.
    pub now: Millis,
    /// Send this as `after` to get the denials that follow.
    pub next: u64,
    /// The number of denials that were dropped before this answer could show them.
    pub lost: u64,
    /// The denials, oldest first.
    #[serde(borrow)]
    pub events: Vec<Denial<'a>>,
}

/// A denied request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial<'a> {
    /// The number of the denial; denials are numbered from 1.
    pub seq: u64,
    /// When the request was denied.
    pub at: Millis,
    /// The rule; null: a limit that the caller brought, or a ban by hand.
    pub rule: Option<Cow<'a, str>>,
    /// What denied: `limit`, `rule`, `ban` or `ban by hand`.
    pub by: Cow<'a, str>,
    /// The action that the caller was told to take.
    pub action: Cow<'a, str>,
    /// The names and values of the rule's `by` fields; `key` for a limit that the caller brought.
    #[serde(borrow)]
    pub subject: Fields<'a>,
    /// Whether a value of the subject is too long and is cut.
    pub cut: bool,
    /// The other fields of the request, without headers and queries.
    #[serde(borrow)]
    pub fields: Fields<'a>,
    /// The cost of the request.
    pub cost: u64,
    /// The wait that the client was told; null: none.
    pub retry_after: Option<Millis>,
    /// The number of denied requests that this one stands for. Under load the server keeps a sample only.
    pub stands_for: u32,
    /// Whether the shared store was away.
    pub degraded: bool,
}
