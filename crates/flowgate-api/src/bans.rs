//! Bans: `/v1/bans`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Fields, Millis, Text};

/// The answer of `GET /v1/bans`: every ban in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bans<'a> {
    /// Bans by hand.
    #[serde(borrow)]
    pub bans: Vec<ManualBan<'a>>,
    /// Bans that rules imposed.
    #[serde(borrow)]
    pub rule_bans: Vec<RuleBan<'a>>,
}

/// A ban by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualBan<'a> {
    /// Names it, and no other ban ever.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The field.
    #[serde(borrow)]
    pub field: Cow<'a, str>,
    /// The value as it was given.
    #[serde(borrow)]
    pub value: Cow<'a, str>,
    /// When it ends.
    pub until: Millis,
    /// Any text.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
}

/// A ban that a rule imposed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleBan<'a> {
    /// Names it, and no other ban ever.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The rule's name.
    #[serde(borrow)]
    pub rule: Cow<'a, str>,
    /// Whom: the names and values of the rule's `by` fields.
    #[serde(borrow)]
    pub subject: Fields<'a>,
    /// Where it denies: `rule`, where the rule matches; `subject`, everywhere.
    #[serde(borrow)]
    pub scope: Cow<'a, str>,
    /// When it ends.
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
    /// Any text.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
}

/// The answer of `POST /v1/bans`: the ban, and a warning if it may never match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewBan<'a> {
    /// The ban.
    #[serde(borrow, flatten)]
    pub ban: ManualBan<'a>,
    /// A field that no rule uses, or a value that no request at the gate has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}
