//! A decision: the answer of `/v1/take` and its siblings and of `/v1/limit`, and a replay's decision lines.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Millis, is_false};

/// Whether a request may happen, which rule decides, how much is left, and when to come back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision<'a> {
    /// Whether the request may happen.
    pub allowed: bool,
    /// `allow`, or what the deciding rule asks of the caller.
    pub action: Cow<'a, str>,
    /// The rule that decided, or whose limit is the tightest of those that passed.
    pub rule: Option<Cow<'a, str>>,
    /// Whether a rule or a ban by hand matched.
    pub matched: bool,
    /// The deciding rule's number for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The deciding rule's text for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// The most units that can be taken at once; null without a limit.
    pub limit: Option<u64>,
    /// The units that can be taken right after this request; null without a limit.
    pub remaining: Option<u64>,
    /// The wait after which the same request passes; null when it was allowed or no wait helps.
    pub retry_after: Option<Millis>,
    /// Whether the request is denied and no wait helps.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// The wait until the counters are as if never used.
    pub reset_after: Millis,
    /// How long to hold an allowed request before it is passed on.
    pub delay: Millis,
    /// The limits that were exceeded, in file order.
    pub exceeded: Vec<ExceededLimit<'a>>,
    /// The shadow rules that would have denied.
    pub shadow: Vec<Cow<'a, str>>,
    /// The end of the ban that denies, or that this denial starts.
    pub banned_until: Option<Millis>,
    /// Whether the answer is a stopgap, because the store is away or its disk is behind.
    pub degraded: bool,
}

/// A limit that was exceeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceededLimit<'a> {
    /// The rule that has the limit; null for the limit of a `/v1/limit`.
    pub rule: Option<Cow<'a, str>>,
    /// The limit, in the limit language.
    pub limit: Cow<'a, str>,
    /// When that limit alone lets the request pass.
    pub retry_after: Option<Millis>,
    /// Whether that limit never lets the request pass.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// Whether the limit is not exceeded, but the server's memory is full and has no room for the limit's counter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory_full: bool,
}
