//! The JSON documents that a Flowgate server sends and receives over HTTP, as serde types: one file for each kind.
//!
//! Rule       A field's name, order and absence are facts of the wire and are stated here once. The server, the command
//!            line, replays and the tower layer use these types; `openapi.json` describes them for other languages.
//! Rule       Waits and instants are [`Millis`]: seconds with at most three decimals, rounded up.
//! Rule       Texts are borrowed, from the engine when a document is written and from the message when a call is read.
//!
//! The types know no engine. With the feature `engine` they are made from the engine's types.
//!
//! ```
//! let answer = r#"{"allowed":false,"action":"deny","rule":"reply","matched":true,"limit":5,"remaining":0,
//!     "retry_after":12.25,"reset_after":60,"delay":0,"exceeded":[],"shadow":[],"banned_until":null,"degraded":false}"#;
//! let decision: flowgate_api::Decision = serde_json::from_str(answer)?;
//! assert_eq!(decision.retry_after, Some(flowgate_api::Millis(12_250)));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod bans;
mod batch;
mod call;
mod decision;
#[cfg(feature = "json")]
mod decision_json;
#[cfg(feature = "engine")]
mod engine;
mod error;
mod explanation;
#[cfg(feature = "json")]
mod json_text;
pub mod koala;
mod millis;
mod operation;
mod pause;
mod policy;
mod problem;
mod rules;
mod sample;
mod session;
mod stats;
mod stats_history;
mod subjects;
mod text;

pub use bans::{
    BanAuthor, BanOrder, BanSearch, Bans, FoundBan, FoundBans, ManualBan, NewBan, Origin, RuleBan, WarningCode,
};
pub use batch::{AtomicBatch, PartDecision};
pub use call::{BatchItem, Cost, DecideCall, Fields, LimitCall, MAX_ATOMIC_BATCH, MAX_BATCH, MAX_COST, MAX_FIELDS};
pub use decision::{Decision, ExceededLimit};
pub use error::{ErrorBody, Values};
pub use explanation::{Explanation, FailedCondition, FrontReport, LimitReport, RuleReport};
#[cfg(feature = "json")]
pub use json_text::write_text;
pub use millis::Millis;
pub use operation::Operation;
pub use pause::{Pause, PauseOrder};
pub use policy::{BanRule, BrokenFile, Condition, LimitsBy, Policy, PolicyRule, RuleTotals};
pub use problem::{Problem, QUOTA_EXCEEDED};
pub use rules::{Author, Finding, Findings, Hint, History, ReplacedRules, Rollback, Severity, Validation, Version};
pub use sample::{Sample, SampleOrder};
pub use session::{Login, Rights, Session};
pub use stats::{BanCounts, Connections, Memory, RedisServer, Reloads, Stats, Store, Top, TopSubject};
pub use stats_history::{Counts, Latencies, Latency, Mark, MarkedBan, RuleHistory, StatsHistory, Steps, TotalCounts};
pub use subjects::{Denial, Denials, SubjectCount, Subjects};
pub use text::Text;

/// For serde: a member that is left out while it is false.
fn is_false(value: &bool) -> bool {
    !*value
}
