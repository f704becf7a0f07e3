//! Rules, lists and bans on top of [`flowgate`]: policy as data.

mod address;
mod bans;
mod client_address;
pub mod config;
mod decider;
mod decision;
mod engine;
mod explain;
mod headers;
mod host;
mod key;
mod koala;
mod lists;
mod network;
mod path;
mod plan;
mod region_index;
mod request;
mod rule_counters;
mod rules;
mod store;
mod text;
mod top_k;
#[cfg(feature = "count-work")]
mod work;

pub use bans::{BanId, BanKind, BanOrder, BanOrderError, MAX_BANS, MAX_BANS_BYTES, ManualBan, NotABanId, RuleBan};
pub use client_address::{Client, ClientAddresses};
pub use decider::{AdHoc, Decider};
pub use decision::{DecidedBy, Decision, Exceeded};
pub use engine::Engine;
pub use explain::{Explanation, LimitReport, Matched, RuleReport};
pub use headers::Quota;
pub use host::normalized_host;
pub use koala::{
    KoalaAnswer, KoalaAsk, KoalaErase, KoalaFile, KoalaPlan, KoalaResult, KoalaRules, KoalaTally, KoalaValue,
    LoadedKoala, RuleTally,
};
pub use lists::{List, ListDef, ListError, ListSource};
pub use path::{PathPart, PathSpelling, decoded_query};
pub use plan::{Outcomes, Plan};
pub use request::Request;
pub use rule_counters::{RuleCounters, RuleCounts, RuleOutcome};
pub use rules::{
    Action, AddressMatcher, BanDef, Condition, Glob, Limits, Matcher, MatcherError, MatcherPart, NumberRange,
    OnFailure, Policy, PolicyError, Rule, RuleDef, RuleSet,
};
pub use store::Store;
#[cfg(feature = "redis")]
pub use store::redis;
pub use text::escaped_text;
pub use top_k::{TopEntry, TopK};
#[cfg(feature = "count-work")]
pub use work::Work;
