//! An explanation: the answer of `/v1/explain`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Decision, ManualBan, Millis, is_false};

/// What would be decided, and how every rule sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation<'a> {
    /// What `peek` answers.
    pub decision: Decision<'a>,
    /// The ban by hand that decides before any rule.
    pub ban: Option<ManualBan<'a>>,
    /// Every rule, top to bottom.
    pub rules: Vec<RuleReport<'a>>,
    /// The fields that the rules look at, by their names. Other fields make no difference to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Cow<'a, str>>,
    /// The end of the pause, while the rules are paused and deny nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Millis>,
    /// What the endpoints of other systems would answer, by rule files of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fronts: Vec<FrontReport<'a>>,
}

/// What the endpoints of another system would answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrontReport<'a> {
    /// The name of the other system, such as `koala`.
    pub name: Cow<'a, str>,
    /// Whether these endpoints would let the request pass.
    pub allowed: bool,
    /// The rule that decides.
    pub rule: Option<Cow<'a, str>>,
    /// Every rule of its file, top to bottom.
    pub rules: Vec<RuleReport<'a>>,
}

/// How one rule sees a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReport<'a> {
    /// The rule's name.
    pub rule: Cow<'a, str>,
    /// The rule's title.
    pub title: Option<Cow<'a, str>>,
    /// Whether the rule matches.
    pub matched: bool,
    /// The first condition that failed.
    pub failed: Option<FailedCondition<'a>>,
    /// Whether the evaluation got as far as this rule.
    pub reached: bool,
    /// Whether the rule is a shadow rule, which reports denials and never denies.
    pub shadow: bool,
    /// What the rule asks of callers that it denies.
    pub action: Cow<'a, str>,
    /// How the rule's limits stand for the request's subject.
    pub limits: Vec<LimitReport<'a>>,
    /// The end of a ban in force on the request's subject, also where the rule does not match.
    pub banned_until: Option<Millis>,
    /// Where the bans of the rule deny: `rule` or `subject`; null if the rule does not ban.
    pub ban_scope: Option<Cow<'a, str>>,
    /// What the rule does while the store is away.
    pub on_failure: Option<Cow<'a, str>>,
}

/// A condition that failed: what it wants and what the request has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCondition<'a> {
    /// The field.
    pub field: Cow<'a, str>,
    /// What the field must be, as the rule writes it.
    pub expected: Cow<'a, str>,
    /// What the field is; null where the request lacks it.
    pub found: Option<Cow<'a, str>>,
}

/// How one limit stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReport<'a> {
    /// The limit, in the limit language.
    pub limit: Cow<'a, str>,
    /// Whether this limit alone lets the request pass.
    pub allowed: bool,
    /// The most units that can be taken at once.
    pub most: Option<u64>,
    /// The units that can be taken right after this request.
    pub remaining: Option<u64>,
    /// The wait after which this limit lets the request pass.
    pub retry_after: Option<Millis>,
    /// Whether this limit never lets the request pass.
    #[serde(default, skip_serializing_if = "is_false")]
    pub never: bool,
    /// The wait until the counter is as if never used.
    pub reset_after: Millis,
    /// How long to hold an allowed request before it is passed on.
    pub delay: Millis,
}
