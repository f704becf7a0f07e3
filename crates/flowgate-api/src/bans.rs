//! Bans: `/v1/bans`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Fields, Millis, Text, Values};

/// The answer of `GET /v1/bans`: every ban in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bans<'a> {
    /// Bans by hand.
    pub bans: Vec<ManualBan<'a>>,
    /// Bans that rules imposed.
    #[serde(borrow)]
    pub rule_bans: Vec<RuleBan<'a>>,
}

/// A ban by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualBan<'a> {
    /// The ban's own name. No other ban ever gets it.
    pub id: Cow<'a, str>,
    /// The field.
    pub field: Cow<'a, str>,
    /// The value as it was given.
    pub value: Cow<'a, str>,
    /// When the ban ends.
    pub until: Millis,
    /// Why the value is banned: any text.
    pub reason: Cow<'a, str>,
    /// Who imposed it; null: that was not noted.
    pub author: Option<BanAuthor<'a>>,
}

/// Who imposed a ban by hand, or lifted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BanAuthor<'a> {
    /// The kind of right that was used, such as `admin token`.
    pub by: Cow<'a, str>,
    /// The client's address, or that it is a unix socket; null: it has none.
    pub from: Option<Cow<'a, str>>,
}

/// A ban that a rule imposed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleBan<'a> {
    /// The ban's own name. No other ban ever gets it.
    pub id: Cow<'a, str>,
    /// The rule's name.
    pub rule: Cow<'a, str>,
    /// The subject: the names and values of the rule's `by` fields.
    #[serde(borrow)]
    pub subject: Fields<'a>,
    /// Where the ban denies: `rule`, where the rule matches; `subject`, everywhere.
    pub scope: Cow<'a, str>,
    /// When the ban ends.
    pub until: Millis,
}

/// `POST /v1/bans`: a ban to impose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BanOrder<'a> {
    /// The field.
    #[serde(borrow)]
    pub field: Text<'a>,
    /// The value; an address or a network bans addresses.
    #[serde(borrow)]
    pub value: Text<'a>,
    /// For how long: `10m`, `1h`, `7d`.
    #[serde(borrow, rename = "for")]
    pub length: Text<'a>,
    /// Why the value is banned: any text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
}

/// The answer of `POST /v1/bans`: the ban, and a warning if it may never match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewBan<'a> {
    /// The ban.
    #[serde(flatten)]
    pub ban: ManualBan<'a>,
    /// Why it may not have the intended effect: a very large network, a field that no rule uses, or a value that no
    /// request at the gate has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The name of `warning`, and the values in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning_code: Option<WarningCode<'a>>,
}

/// The name of a warning, and the values in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningCode<'a> {
    /// The name, which never changes.
    pub code: Cow<'a, str>,
    /// The values, by name.
    pub values: Values<'a>,
}

/// `POST /v1/bans/find`: looks for bans in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BanSearch<'a> {
    /// A part of the field, the value, the rule's name, the reason or the id, in any case; empty: every ban.
    #[serde(borrow)]
    pub text: Text<'a>,
    /// Who imposed the bans.
    pub origin: Origin,
    /// The `next` of the previous page; null: the first page.
    #[serde(borrow)]
    pub after: Option<Text<'a>>,
    /// The largest number of bans on a page, 1 to 1,000.
    pub limit: Option<u64>,
}

/// Who imposed a ban.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Anybody.
    #[default]
    Any,
    /// A person, or a program.
    Hand,
    /// A rule.
    Rule,
}

/// The answer of `POST /v1/bans/find`: bans by hand, then bans by rules, each the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundBans<'a> {
    /// The server's time.
    pub now: Millis,
    /// The number of all bans in force.
    pub total: u64,
    /// The number of bans by hand among all bans.
    pub by_hand: u64,
    /// The number of bans that match the search.
    pub found: u64,
    /// Send this as `after` to get the next page; null: this is the last page.
    pub next: Option<Cow<'a, str>>,
    /// False while the shared store is away: bans of other nodes may be missing.
    pub complete: bool,
    /// The bans of this page.
    #[serde(borrow)]
    pub bans: Vec<FoundBan<'a>>,
}

/// A ban, by hand or by a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundBan<'a> {
    /// The ban's own name. No other ban ever gets it.
    pub id: Cow<'a, str>,
    /// `hand` or `rule`.
    pub origin: Origin,
    /// The rule that imposed the ban.
    pub rule: Option<Cow<'a, str>>,
    /// The field, of a ban by hand.
    pub field: Option<Cow<'a, str>>,
    /// The value of that field.
    pub value: Option<Cow<'a, str>>,
    /// The names and values of the banned subject, of a ban by a rule.
    #[serde(borrow)]
    pub subject: Option<Fields<'a>>,
    /// Where a ban by a rule denies: `rule` or `subject`.
    pub scope: Option<Cow<'a, str>>,
    /// When the ban was imposed; null unless it was imposed by hand through this node.
    pub since: Option<Millis>,
    /// When the ban ends.
    pub until: Millis,
    /// Why the value is banned, of a ban by hand.
    pub reason: Option<Cow<'a, str>>,
    /// Who imposed a ban by hand, where that was noted.
    pub author: Option<BanAuthor<'a>>,
}
