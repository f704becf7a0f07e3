//! The rules in force: `/v1/policy`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Millis;

/// The answer of `GET /v1/policy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy<'a> {
    /// The server's time.
    pub now: Millis,
    /// Changes whenever other rules come into force.
    pub etag: Cow<'a, str>,
    /// When these rules came into force.
    pub loaded: Millis,
    /// What is wrong with the file on disk; null while it is right. The rules in force are older.
    pub broken: Option<BrokenFile>,
    /// The fields that rules look at or count by.
    pub fields: Vec<Cow<'a, str>>,
    /// The number of all rules.
    pub total: u64,
    /// The position among all rules of the first rule in `rules`, from 0.
    pub from: u64,
    /// Rules in their order.
    pub rules: Vec<PolicyRule<'a>>,
}

/// A file that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenFile {
    /// Since when the file is wrong.
    pub since: Millis,
    /// What is wrong, for people.
    pub report: String,
}

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule<'a> {
    /// The rule's name.
    pub name: Cow<'a, str>,
    /// The rule's title: any text.
    pub title: Option<Cow<'a, str>>,
    /// The file that has the rule.
    pub source: Option<Cow<'a, str>>,
    /// The line of the rule's name in that file, from 1.
    pub line: Option<u64>,
    /// The rule's conditions, which must all hold.
    pub when: Vec<Condition<'a>>,
    /// The fields whose values make the subject.
    pub by: Vec<Cow<'a, str>>,
    /// The limits that apply together.
    pub limits: Vec<String>,
    /// The limits that a field chooses.
    pub limits_by: Option<LimitsBy<'a>>,
    /// What the caller is to do on a denial.
    pub action: Cow<'a, str>,
    /// Whether the rule is a shadow rule, which never denies.
    pub shadow: bool,
    /// Whether a denied attempt counts.
    pub count_denied: bool,
    /// The ban of subjects that are denied again and again.
    pub ban: Option<BanRule<'a>>,
    /// What the rule does while the shared store is away; null: what `store.on_failure` says.
    pub on_failure: Option<Cow<'a, str>>,
    /// The decisions of the rule since the server started or the rule came into force.
    pub total: RuleTotals,
}

/// A condition on a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition<'a> {
    /// The field.
    pub field: Cow<'a, str>,
    /// The values of which the field must have one, as the rule writes them.
    pub is: Vec<Cow<'a, str>>,
}

/// Limits that the value of a field chooses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsBy<'a> {
    /// The field.
    pub field: Cow<'a, str>,
    /// The limits of each value.
    pub cases: BTreeMap<Cow<'a, str>, Vec<String>>,
    /// The limits of every other value; null: the rule does not match those.
    pub default: Option<Vec<String>>,
}

/// The ban of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanRule<'a> {
    /// The number of denials that start a ban.
    pub after: u64,
    /// The time within which these denials count.
    pub within: Millis,
    /// The lengths of the first, second, .. ban; the last one repeats.
    #[serde(rename = "for")]
    pub lengths: Vec<Millis>,
    /// The time after the end of a ban until the next is a first one again.
    pub forget: Millis,
    /// Where the ban denies: `rule` or `subject`.
    pub scope: Cow<'a, str>,
}

/// Counts of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleTotals {
    /// Requests that the rule allowed.
    pub allowed: u64,
    /// Requests that the rule denied.
    pub denied: u64,
    /// Requests that bans of the rule denied.
    pub banned: u64,
    /// Requests that the rule would have denied, were it not a shadow rule.
    pub shadow: u64,
    /// Bans that the rule started.
    pub bans_started: u64,
}
