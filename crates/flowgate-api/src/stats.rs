//! How a server is doing: `/v1/stats`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Millis;

/// The answer of `GET /v1/stats`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats<'a> {
    /// The server's version.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// When it started.
    pub started: Millis,
    /// For how long it has run.
    pub uptime: Millis,
    /// The number of its rules.
    pub rules: u64,
    /// When the pause of all rules ends; null: they are in force.
    pub paused_until: Option<Millis>,
    /// Its counters.
    pub memory: Memory,
    /// The subjects with the most requests.
    #[serde(borrow)]
    pub hottest: Top<'a>,
    /// The subjects with the most denials.
    #[serde(borrow)]
    pub most_denied: Top<'a>,
}

/// What the store holds and had to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The number of counters.
    pub keys: u64,
    /// The bytes that they take.
    pub bytes: u64,
    /// The bytes that they may take.
    pub max_bytes: u64,
    /// Counters that were evicted.
    pub evicted: u64,
    /// Counters that were evicted while half used or more, and bans.
    pub evicted_in_use: u64,
    /// Requests denied because memory was full.
    pub refused: u64,
    /// Strikes not counted because memory was full.
    pub bans_refused: u64,
}

/// The subjects that are counted most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top<'a> {
    /// Since when they are counted.
    pub since: Millis,
    /// Most frequent first.
    #[serde(borrow)]
    pub subjects: Vec<TopSubject<'a>>,
}

/// How often a subject was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopSubject<'a> {
    /// The rule that counts it; null for the key of a `/v1/limit`.
    #[serde(borrow)]
    pub rule: Option<Cow<'a, str>>,
    /// The subject.
    #[serde(borrow)]
    pub subject: Cow<'a, str>,
    /// How often, at most.
    pub count: u64,
    /// By how much that may be too high.
    pub error: u64,
}
