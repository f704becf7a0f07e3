//! A compiled rule.

use std::sync::Arc;

use flowgate::{Ban, CounterId, Limit, RuleFlags};
use hashbrown::HashMap;

use super::fields::FieldId;
use super::predicate::Predicate;
use super::{Action, BanDef, BanScope, OnFailure, RulePlace};
use crate::rule_counters::RuleCounters;

/// A compiled rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The name: letters, digits, `_`, `.` and `-`.
    pub(super) name: Box<str>,
    /// Any text.
    pub title: Option<Box<str>>,
    /// What the caller is to do when a limit is exceeded, or at once where the rule has no limits.
    pub action: Action,
    /// A number for the caller.
    pub code: Option<i64>,
    /// A text for the caller.
    pub message: Option<Arc<str>>,
    /// What the rule does while the store is away; `None`: what the store's setting says.
    pub on_failure: Option<OnFailure>,
    /// The position as a number for the library.
    pub(crate) id: u32,
    /// How the limits of the rule behave together.
    pub(crate) flags: RuleFlags,
    pub(crate) checks: Box<[Check]>,
    /// The numbers of the checks that a request still needs after the index has named this rule. The other checks are
    /// known to hold then.
    pub(super) unproven: Box<[usize]>,
    pub(super) subject: SubjectId,
    pub(super) limits: RuleLimits,
    pub(super) ban: Option<RuleBan>,
    /// The names of the fields that the rule counts by, in the order in which they are written.
    pub(super) by: Box<[Box<str>]>,
    /// Where the rule is written; `None`: not in a file.
    pub place: Option<RulePlace>,
    /// The rule's decisions, if a service counts them.
    pub counters: Arc<RuleCounters>,
}

/// The ban of a rule and the counter that records it.
#[derive(Clone, Debug)]
pub(super) struct RuleBan {
    pub(super) ban: Ban,
    pub(super) counter: CounterId,
    /// In Redis.
    #[cfg(feature = "redis")]
    pub(super) name: crate::store::redis::CounterName,
    pub(super) scope: BanScope,
    /// As it was written.
    pub(super) def: Box<BanDef>,
}

/// One condition of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) field: FieldId,
    pub(crate) predicate: Predicate,
    /// The condition as it was written, for explanations: each item of a list.
    pub(crate) written: Box<[Box<str>]>,
}

impl Check {
    /// What the field must be, on one line.
    pub(crate) fn expected(&self) -> String {
        match &*self.written {
            [one] => one.to_string(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}

/// The index of a rule's `by` among those of its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubjectId(pub(super) u32);

/// The index of a list of limits among those of its set. Sets that are compiled from policies that differ in nothing but
/// their limits have the same indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitListId(pub(super) u32);

impl LimitListId {
    /// The list without limits: the rule decides at once. All other lists have some.
    pub(crate) const NONE: LimitListId = LimitListId(0);

    pub(crate) fn is_none(self) -> bool {
        self == LimitListId::NONE
    }

    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Which limits a rule applies to a request.
#[derive(Clone, Debug)]
pub(super) enum RuleLimits {
    /// The rule decides at once.
    None,
    Fixed(LimitListId),
    ByField {
        field: FieldId,
        cases: HashMap<Box<str>, LimitListId>,
        default: Option<LimitListId>,
    },
}

/// A limit and the name of its counter.
#[derive(Clone, Debug)]
pub(crate) struct NamedLimit {
    pub(crate) limit: Limit,
    pub(crate) id: CounterId,
    /// The counter's name in Redis.
    #[cfg(feature = "redis")]
    pub(crate) name: crate::store::redis::CounterName,
}

impl Rule {
    /// The name: letters, digits, `_`, `.` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields whose values make the subject, as they are written. Without any, one counter is for all requests.
    pub fn by(&self) -> impl Iterator<Item = &str> {
        self.by.iter().map(|field| &**field)
    }

    /// Whether a denied attempt counts, too.
    pub fn counts_denied(&self) -> bool {
        self.flags.count_denied
    }

    /// The ban of the rule, as it is written.
    pub fn ban_def(&self) -> Option<&BanDef> {
        self.ban.as_ref().map(|ban| &*ban.def)
    }

    /// The place of the rule in the policy, from 0 at the top.
    pub fn position(&self) -> usize {
        self.id as usize
    }

    /// Whether the rule is evaluated, counted and reported, but never denies.
    pub fn is_shadow(&self) -> bool {
        self.flags.shadow
    }

    /// The rule's ban and the counter that records it. A shadow rule never denies, so it never bans.
    pub(crate) fn ban(&self) -> Option<(&Ban, CounterId)> {
        self.ban.as_ref().filter(|_| !self.is_shadow()).map(|RuleBan { ban, counter, .. }| (ban, *counter))
    }

    /// The name of the record of the rule's bans in Redis, also while it is a shadow.
    #[cfg(feature = "redis")]
    pub(crate) fn ban_name(&self) -> Option<&crate::store::redis::CounterName> {
        self.ban.as_ref().map(|ban| &ban.name)
    }

    /// Where the bans of the rule deny; `None` if it does not ban.
    pub fn ban_scope(&self) -> Option<BanScope> {
        self.ban.as_ref().filter(|_| !self.is_shadow()).map(|ban| ban.scope)
    }

    /// Whether it lets requests pass as soon as it matches, so that it never denies.
    pub(super) fn allows_at_once(&self) -> bool {
        self.action == Action::Allow && matches!(self.limits, RuleLimits::None)
    }
}
