//! The problem document (RFC 9457) of a denied request, at the gate and in the tower layer.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Millis;

/// The `type` of a problem document that says that a quota is exceeded
/// (draft-ietf-httpapi-ratelimit-headers).
pub const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// Why a request is denied, for its client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem<'a> {
    /// The status of the response.
    pub status: u16,
    /// [`QUOTA_EXCEEDED`] where a limit denies, else `about:blank`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// `Quota exceeded` or `Forbidden`.
    pub title: Cow<'a, str>,
    /// The rule's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// What the rule asks of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Cow<'a, str>>,
    /// The rule's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The wait after which the same request passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
    /// The names of the rules that deny.
    #[serde(rename = "violated-policies", skip_serializing_if = "Option::is_none")]
    pub violated_policies: Option<Vec<Cow<'a, str>>>,
}
