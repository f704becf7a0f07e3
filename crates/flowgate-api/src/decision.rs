//! A decision: the answer of `/v1/take` and its siblings and of `/v1/limit`, and a replay's decision lines.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Millis, is_false};

/// May it happen, by which rule, what is left, when to come back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision<'a> {
    /// May it happen?
    pub allowed: bool,
    /// `allow`, or what the deciding rule asks of the caller.
    pub action: Cow<'a, str>,
    /// The rule that decided, or whose limit is the tightest of those that passed.
    pub rule: Option<Cow<'a, str>>,
    /// Whether any rule matched, or a ban by hand did.
    pub matched: bool,
    /// The deciding rule's number for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The deciding rule's text for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// The most that could be taken at once; null without a limit.
    pub limit: Option<u64>,
    /// What could be taken right after this; null without a limit.
    pub remaining: Option<u64>,
    /// The wait after which the same request passes; null when it was allowed or no wait helps.
    pub retry_after: Option<Millis>,
    /// Whether it was denied and no wait helps.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// The wait until the state is as if never used.
    pub reset_after: Millis,
    /// How long to hold an allowed request before it goes.
    pub delay: Millis,
    /// The limits that were exceeded, in file order.
    pub exceeded: Vec<ExceededLimit<'a>>,
    /// The shadow rules that would have denied.
    pub shadow: Vec<Cow<'a, str>>,
    /// The end of the ban that denies, or that this denial starts.
    pub banned_until: Option<Millis>,
    /// Whether the store was away, or its disk behind, and the answer is a stopgap.
    pub degraded: bool,
}

/// A limit that was exceeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceededLimit<'a> {
    /// The rule it belongs to; null for the limit of a `/v1/limit`.
    pub rule: Option<Cow<'a, str>>,
    /// The limit, in the limit language.
    pub limit: Cow<'a, str>,
    /// When that limit alone lets the request pass.
    pub retry_after: Option<Millis>,
    /// Whether it never does.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// Whether it is not exceeded, but the server's memory is full and has no room for its counter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub memory_full: bool,
}
