//! How a server is doing: `/v1/stats`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{BrokenFile, Fields, Millis};

/// The answer of `GET /v1/stats`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats<'a> {
    /// The server's time.
    pub now: Millis,
    /// The name of the machine.
    pub node: Cow<'a, str>,
    /// `ready`, `degraded` or `draining`.
    pub state: Cow<'a, str>,
    /// What is missing while the server is degraded, such as `redis away`.
    pub missing: Option<Cow<'a, str>>,
    /// Since when the server is in this state.
    pub since: Millis,
    /// The server's version.
    pub version: Cow<'a, str>,
    /// When the server started.
    pub started: Millis,
    /// For how long the server has run.
    pub uptime: Millis,
    /// The number of rules in force.
    pub rules: u64,
    /// When the pause of all rules ends; null: the rules are in force.
    pub paused_until: Option<Millis>,
    /// Changes whenever other rules come into force.
    pub policy_etag: Cow<'a, str>,
    /// The `ETag` of the configuration file as it is on disk; null: there is none.
    pub file_etag: Option<Cow<'a, str>>,
    /// The name of the configuration file, without directories; null: there is none.
    pub file: Option<Cow<'a, str>>,
    /// What is wrong with the configuration file on disk; null while it is right.
    pub broken: Option<BrokenFile>,
    /// Where counters live.
    pub store: Store<'a>,
    /// The number of bans in force: by hand, and by rules.
    pub bans: BanCounts,
    /// Attempts to put a changed configuration in force; null: there is no file.
    pub reloads: Option<Reloads>,
    /// The settings of the configuration file that only a restart of the server puts in force.
    #[serde(default)]
    pub restart_needed: Vec<Cow<'a, str>>,
    /// The other systems whose rule files are served.
    pub fronts: Vec<Cow<'a, str>>,
    /// Open connections.
    pub connections: Connections,
    /// The settings in force as `section.key`, with their values in TOML and secrets hidden.
    #[serde(borrow)]
    pub settings: Fields<'a>,
    /// The counters in memory.
    pub memory: Memory,
    /// The subjects with the most requests.
    #[serde(borrow)]
    pub hottest: Top<'a>,
    /// The subjects with the most denials.
    #[serde(borrow)]
    pub most_denied: Top<'a>,
}

/// The size of the store, and what it evicted or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// The number of counters.
    pub keys: u64,
    /// The bytes that the counters take.
    pub bytes: u64,
    /// The most bytes that the counters may take.
    pub max_bytes: u64,
    /// Counters that were evicted.
    pub evicted: u64,
    /// Counters that were evicted while half used or more, and bans.
    pub evicted_in_use: u64,
    /// Requests denied because memory was full.
    pub refused: u64,
    /// Strikes not counted because memory was full.
    pub bans_refused: u64,
    /// Sliding logs that gave up their precision in time because memory was full.
    pub coarsened: u64,
}

/// Where counters live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Store<'a> {
    /// In the memory of this node.
    Memory {
        /// Whether the counters outlive a restart.
        durable: bool,
    },
    /// In Redis, shared with other nodes.
    Redis {
        /// The servers as this node sees them.
        servers: Vec<RedisServer<'a>>,
        /// What rules do while Redis is away.
        on_failure: Cow<'a, str>,
        /// This node's share of the limits while Redis is away.
        local_share: Cow<'a, str>,
        /// Requests to Redis that had no answer in time.
        unanswered: u64,
        /// How often a server stopped answering.
        outages: u64,
        /// Decisions that this node made without Redis.
        degraded: u64,
        /// Values in Redis that could not be read.
        unreadable: u64,
        /// Denials that the deny cache answered, without asking Redis.
        deny_cache_hits: u64,
    },
}

/// A server of the shared store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedisServer<'a> {
    /// The server's address.
    pub at: Cow<'a, str>,
    /// `ready` or `away`.
    pub state: Cow<'a, str>,
    /// Open connections to the server.
    pub connections: u64,
}

/// The number of bans in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanCounts {
    /// Bans by hand.
    pub hand: u64,
    /// Bans by rules, at most 10,000.
    pub rules: u64,
}

/// Attempts to put a changed configuration in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloads {
    /// Attempts that put the configuration in force.
    pub succeeded: u64,
    /// Attempts that changed nothing.
    pub failed: u64,
}

/// Connections by protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Open connections over HTTP.
    pub http: u64,
    /// Open connections over the Redis protocol.
    pub resp: u64,
    /// Open connections over gRPC.
    pub grpc: u64,
    /// The most connections that each protocol may have.
    pub max: u64,
    /// Connections that the server refused because a protocol had the most that it may have.
    pub refused: u64,
    /// Wrong passwords and tokens.
    pub unauthorized: u64,
}

/// The subjects that are counted most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top<'a> {
    /// The time from which on the subjects are counted.
    pub since: Millis,
    /// The subjects, the most frequent first.
    #[serde(borrow)]
    pub subjects: Vec<TopSubject<'a>>,
}

/// How often a subject was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopSubject<'a> {
    /// The rule that counts the subject; `(ban)`: a ban by hand denied it; null: the subject is the key of a
    /// `/v1/limit`.
    pub rule: Option<Cow<'a, str>>,
    /// The subject.
    pub subject: Cow<'a, str>,
    /// The names and values; null: the subject is a key, or too long to be kept whole.
    #[serde(borrow)]
    pub fields: Option<Fields<'a>>,
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
