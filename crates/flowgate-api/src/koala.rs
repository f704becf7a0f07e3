//! The JSON that Koala's clients send and receive, except the results of a rule file.

use serde::{Deserialize, Serialize};

/// One request of `argsJson`: an id for its answer, and a query string that is encoded once more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Comes back with the answer.
    #[serde(default, rename = "Id", alias = "id", alias = "ID")]
    pub id: String,
    /// `k%3Dv%26k%3Dv`.
    #[serde(default, rename = "Arg", alias = "arg")]
    pub arg: String,
}

/// The answer of `/rule/value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterValue<'a> {
    /// 0: the call succeeded.
    pub err_no: i64,
    /// Empty.
    pub err_msg: &'a str,
    /// The counter's value.
    pub cache_val: u64,
}

/// The answer of `/admin/counters`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters<'a> {
    /// 0: the call succeeded.
    pub err_no: i64,
    /// Empty.
    pub err_msg: &'a str,
    /// One entry for each rule.
    pub counters: Vec<RuleCounter>,
}

/// What a rule has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCounter {
    /// The rule's number in its file.
    pub rule_no: u32,
    /// Requests that it let pass.
    pub allow: u64,
    /// Requests that it denied.
    pub deny: u64,
}
