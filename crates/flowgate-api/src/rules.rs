//! The configuration file as administrators change it: `/v1/rules`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Millis, Values};

/// The answer of `POST /v1/rules/validate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation<'a> {
    /// Whether the text could be put in force.
    pub valid: bool,
    /// The number of rules in the text; null if the text is wrong.
    pub rules: Option<u64>,
    /// The settings of the text that only a restart of the server would put in force.
    #[serde(default)]
    pub restart_needed: Vec<Cow<'a, str>>,
    /// What is wrong, and what looks wrong.
    #[serde(flatten)]
    pub findings: Findings<'a>,
}

impl<'a> Validation<'a> {
    /// The answer for a text that cannot be put in force.
    pub fn wrong(findings: Findings<'a>) -> Validation<'a> {
        Validation { valid: false, rules: None, restart_needed: Vec::new(), findings }
    }
}

/// The answer of `PUT /v1/rules` and `POST /v1/rules/rollback`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedRules<'a> {
    /// The version of the text that is now in force.
    pub version: u64,
    /// The number of rules in the text.
    pub rules: u64,
    /// The settings of the text that only a restart of the server puts in force.
    #[serde(default)]
    pub restart_needed: Vec<Cow<'a, str>>,
    /// What looks wrong.
    #[serde(flatten)]
    pub findings: Findings<'a>,
}

/// Findings one by one, and all of them as text for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings<'a> {
    /// The findings one by one.
    pub findings: Vec<Finding<'a>>,
    /// All findings as text for people.
    pub report: String,
}

/// A mistake or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding<'a> {
    /// Whether the finding is a mistake or a warning.
    pub severity: Severity,
    /// What is wrong.
    pub message: Cow<'a, str>,
    /// The file or variable.
    pub source: Option<Cow<'a, str>>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The column, from 1.
    pub column: Option<u64>,
    /// What to do about it, one hint a line.
    pub hint: Cow<'a, str>,
    /// The name of `message`; null: it has none.
    pub code: Option<Cow<'a, str>>,
    /// The values in `message`, by name.
    #[serde(default)]
    pub values: Values<'a>,
    /// The hints one by one.
    #[serde(default)]
    pub hints: Vec<Hint<'a>>,
}

/// What to do about a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint<'a> {
    /// In English.
    pub text: Cow<'a, str>,
    /// The name of the sentence; null: it has none.
    pub code: Option<Cow<'a, str>>,
    /// The values in it, by name.
    #[serde(default)]
    pub values: Values<'a>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The text cannot be put in force.
    Error,
    /// The text works, but probably not as its author means.
    Warning,
}

/// The answer of `GET /v1/rules/history`: newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The versions that are kept.
    pub versions: Vec<Version>,
}

/// A text that was in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The number of the version.
    pub version: u64,
    /// When it was written.
    pub time: Millis,
    /// The length of the text in bytes.
    pub bytes: u64,
    /// The author's note.
    pub note: Option<String>,
    /// The older version whose text this version repeats, if it is a rollback.
    pub restores: Option<u64>,
    /// The author of the version; null for a version of a server that did not record authors.
    pub author: Option<Author>,
}

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The right that the author used: `admin token`, or `file` for a text that the server found on disk.
    pub by: String,
    /// The author's address, or `unix socket`.
    pub from: Option<String>,
    /// The address of the proxy in front of the client.
    pub through: Option<String>,
    /// The `User-Agent` of the client.
    pub agent: Option<String>,
}

/// `POST /v1/rules/rollback`: puts the text of a version in force, as a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// The version.
    pub version: u64,
}
