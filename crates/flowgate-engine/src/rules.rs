//! Rules as they are written: the definition types that every front (TOML, a rule file, code) converts into.
//!
//! A [`Policy`] is plain data and may still be wrong as a whole (two rules of one name, a list that is not there);
//! compiling it finds such mistakes. Its parts are valid by construction: a [`flowgate::Limit`], a [`Matcher`], a
//! [`List`].

mod compile;
mod describe;
mod fields;
pub(crate) mod glob;
mod index;
mod matcher;
mod number;
mod predicate;
mod rule;
mod set;
mod spelled_condition;
mod subjects;
mod text_table;

use std::collections::BTreeMap;
use std::sync::Arc;

use flowgate::{Limit, Span};

pub use compile::PolicyError;
pub use describe::{LimitsByField, RuleDescription};
pub(crate) use fields::{FieldId, Values};
pub(crate) use index::Candidates;
pub use matcher::{AddressMatcher, Matcher, MatcherError};
pub(crate) use matcher::{is_name, shown};
pub use rule::Rule;
pub(crate) use rule::{LimitListId, NamedLimit};
pub(crate) use set::Mismatch;
pub use set::RuleSet;
pub(crate) use spelled_condition::{Spelling, spelled};
pub(crate) use subjects::Subjects;
pub use {glob::Glob, number::NumberRange};

use crate::http::PathSpelling;
use crate::lists::List;

/// All rules, in the order in which they are evaluated, and the lists they refer to.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Top to bottom.
    pub rules: Vec<RuleDef>,
    /// By name; shared, so that a reload keeps what did not change.
    pub lists: BTreeMap<String, Arc<List>>,
    /// How the field `path` is spelled, in requests and therefore in conditions on it.
    pub path_spelling: PathSpelling,
}

/// One rule: when it applies, whom it counts, how often that may happen, and what follows when it is exceeded.
///
/// ```
/// use flowgate_engine::{Limits, RuleDef, rules::{Condition, Matcher}};
///
/// let rule = RuleDef {
///     when: vec![Condition::new("act", Matcher::equal("reply")), Condition::new("user", Matcher::Present)],
///     by: vec!["user".into()],
///     limits: Limits::Fixed(vec!["5/60s".parse()?]),
///     ..RuleDef::named("reply")
/// };
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleDef {
    /// Letters, digits, `_`, `.` and `-`: it becomes a header and a metric label.
    pub name: String,
    /// Any text.
    pub title: Option<String>,
    /// All must hold. A field may stand here more than once.
    pub when: Vec<Condition>,
    /// The fields whose values make the subject; none: one counter for all.
    pub by: Vec<String>,
    /// How often.
    pub limits: Limits,
    /// What is to happen when a limit is exceeded, or at once where there are no limits.
    pub action: Action,
    /// Handed to the caller on a denial.
    pub code: Option<i64>,
    /// Handed to the caller on a denial.
    pub message: Option<String>,
    /// A denied attempt counts too.
    pub count_denied: bool,
    /// Evaluated, counted and reported; never denies.
    pub shadow: bool,
    /// Overrides the store's.
    pub on_failure: Option<OnFailure>,
    /// Subjects that are denied again and again stay out for longer and longer.
    pub ban: Option<BanDef>,
    /// Where the rule is written; `None`: not in a file.
    pub place: Option<RulePlace>,
}

/// Where a rule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlace {
    /// The file, as the configuration names it.
    pub source: Box<str>,
    /// The line of its name, from 1.
    pub line: usize,
}

impl RuleDef {
    /// A rule of that name that matches every request and denies it at once. Callers change the fields that differ.
    pub fn named(name: impl Into<String>) -> RuleDef {
        RuleDef { name: name.into(), ..RuleDef::default() }
    }
}

/// A condition on one field.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The field's name.
    pub field: String,
    /// What its value must be.
    pub matcher: Matcher,
}

impl Condition {
    /// `field` must be what `matcher` says.
    pub fn new(field: impl Into<String>, matcher: Matcher) -> Condition {
        Condition { field: field.into(), matcher }
    }
}

/// The limits of a rule.
#[derive(Clone, Debug, Default)]
pub enum Limits {
    /// The rule decides at once (`allow`, `deny`, or another word).
    #[default]
    None,
    /// All of these together; at least one.
    Fixed(Vec<Limit>),
    /// Chosen by the value of a field.
    ByField {
        /// The field.
        field: String,
        /// The limits for each value that has its own.
        cases: BTreeMap<String, Vec<Limit>>,
        /// For every other value, and for a request that lacks the field. Without it the rule does not match those.
        default: Option<Vec<Limit>>,
    },
}

impl Limits {
    /// Every limit that may apply.
    pub fn iter(&self) -> impl Iterator<Item = &Limit> {
        let (fixed, cases, default): (&[Limit], _, &[Limit]) = match self {
            Limits::None => (&[], None, &[]),
            Limits::Fixed(limits) => (limits, None, &[]),
            Limits::ByField { cases, default, .. } => (&[], Some(cases), default.as_deref().unwrap_or(&[])),
        };
        fixed.iter().chain(cases.into_iter().flat_map(|cases| cases.values().flatten())).chain(default)
    }
}

/// What a rule asks of the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// Let it pass and look no further. Only for rules without limits.
    Allow,
    /// Refuse.
    #[default]
    Deny,
    /// Any word the caller understands: `captcha`, `review`. The request is denied as with `deny`.
    Other(Box<str>),
}

impl Action {
    /// The word for this action, as rules write it.
    pub fn as_str(&self) -> &str {
        match self {
            Action::Allow => "allow",
            Action::Deny => "deny",
            Action::Other(word) => word,
        }
    }
}

impl From<&str> for Action {
    fn from(word: &str) -> Action {
        match word {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            other => Action::Other(other.into()),
        }
    }
}

/// What a rule does while the store is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// Each node grants its share by itself.
    Local,
    /// Let everything pass.
    Allow,
    /// Refuse everything.
    Deny,
}

impl OnFailure {
    /// The word for this value, as rules write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnFailure::Local => "local",
            OnFailure::Allow => "allow",
            OnFailure::Deny => "deny",
        }
    }
}

/// `after` denials of a subject `within` the window start a ban; each next one takes the next length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanDef {
    /// The number of denials that start a ban.
    pub after: u64,
    /// The length of the window in which they count.
    pub within: Span,
    /// The lengths of the first, second, .. ban; the last one repeats. At least one.
    pub lengths: Vec<Span>,
    /// The time after the end of a ban after which the next ban has the first length again.
    pub forget: Span,
    /// Where the ban denies.
    pub scope: BanScope,
}

/// Where a ban that a rule has imposed denies its subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BanScope {
    /// Where the rule matches.
    #[default]
    Rule,
    /// Everywhere: before the rules, every request that has the fields of `by`.
    Subject,
}

impl BanScope {
    /// The word for this value, as rules write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            BanScope::Rule => "rule",
            BanScope::Subject => "subject",
        }
    }
}
