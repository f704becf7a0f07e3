//! Rules, lists and bans on top of [`flowgate`]: policy as data.
//!
//! The root has what most callers need: the engine, its policy, requests and decisions. The rest is in modules.

mod address;
pub mod bans;
pub mod config;
mod decider;
mod decision;
mod engine;
pub mod explain;
pub mod field_name;
pub mod front;
pub mod http;
mod key;
pub mod lists;
mod network;
mod plan;
mod region_index;
mod request;
mod rule_counters;
pub mod rules;
mod store;
mod top_k;
#[cfg(feature = "count-work")]
mod work;

pub use decider::{AdHoc, AdHocKey, Decider};
pub use decision::{DecidedBy, Decision, ExceededLimit, LimitDenial};
pub use engine::Engine;
pub use explain::Explanation;
pub use plan::{
    Denied, HitBuffer, JointDecision, JointPlan, Outcomes, PartDecision, Pass, Plan, PlannedTake, RequestNames,
    TakeAnswer,
};
pub use request::Request;
pub use rule_counters::{RuleCounters, RuleCounts, RuleOutcome};
pub use rules::{Limits, OnFailure, Policy, PolicyError, Rule, RuleDef, RuleSet};
pub use store::Store;
#[cfg(feature = "redis")]
pub use store::redis;
pub use top_k::{TopEntry, TopK};
#[cfg(feature = "count-work")]
pub use work::Work;
