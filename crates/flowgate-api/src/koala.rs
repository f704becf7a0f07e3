//! The JSON that Koala's clients send and receive, except the results of a rule file; and `/v1/koala`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{BrokenFile, Millis, Text};

/// The answer of `GET /v1/koala`: the rule file in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFile<'a> {
    /// The server's time.
    pub now: Millis,
    /// What is wrong with the configuration or the rule file on disk; null while both are right. The rules in force are
    /// older.
    pub broken: Option<BrokenFile>,
    /// The rules in the order of the file.
    pub rules: Vec<FileRule<'a>>,
    /// The whole as TOML, as `flowgate import koala` prints it.
    pub toml: String,
}

/// A rule of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRule<'a> {
    /// The rule's number, from `return`.
    pub number: u32,
    /// The number of the rule's line in the file, from 1.
    pub line: u64,
    /// `direct`, `count`, `base` or `leak`.
    pub method: Cow<'a, str>,
    /// The conditions as they are written.
    pub conditions: Cow<'a, str>,
    /// The length of the rule's time in seconds; null: the rule does not give it.
    pub time: Option<u64>,
    /// How many requests the rule allows within its time; null: the rule does not give it.
    pub count: Option<u64>,
    /// The requests of a day that pass before the rule counts; null: the rule does not give it.
    pub base: Option<u64>,
    /// What the rule asks of callers: `allow`, `captcha` or `deny`.
    pub result: Cow<'a, str>,
    /// Requests of today that met the rule and did not exceed it, on this node.
    pub passed: u64,
    /// Requests of today that exceeded the rule, or that it decided as a direct rule, on this node.
    pub refused: u64,
}

/// `POST /v1/koala/validate`: what is wrong with the text of a rule file?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleText<'a> {
    /// The text of a rule file.
    #[serde(borrow)]
    pub text: Text<'a>,
}

/// One request of `argsJson`: an id for its answer, and a query string that is encoded once more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The id, which the answer repeats.
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
    /// Always empty.
    pub err_msg: &'a str,
    /// The counter's value.
    pub cache_val: u64,
}

/// The answer of `/admin/counters`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters<'a> {
    /// 0: the call succeeded.
    pub err_no: i64,
    /// Always empty.
    pub err_msg: &'a str,
    /// One entry for each rule.
    pub counters: Vec<RuleCounter>,
}

/// What a rule has decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCounter {
    /// The rule's number in its file.
    pub rule_no: u32,
    /// Requests that matched the rule and did not exceed it.
    pub allow: u64,
    /// Requests that the rule decided: those that exceeded it, and all that a direct rule matched, whitelists included.
    pub deny: u64,
}
