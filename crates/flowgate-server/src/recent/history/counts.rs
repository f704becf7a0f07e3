//! Counts of decisions: tallies that count up, and counts of one step.

use flowgate_engine::rules::Action;
use flowgate_engine::{RuleCounts, RuleOutcome};

/// The decisions of a rule, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) allowed: u64,
    /// Requests that a limit, a rule without limits or a ban has denied.
    pub(crate) denied: u64,
    /// Requests that passed, though a shadow rule would have denied them.
    pub(crate) shadow: u64,
    /// Those of `denied` whose rule has an action of its own, such as `captcha`.
    pub(crate) own_action: u64,
}

impl Tally {
    /// The tally of a rule that asks the caller for `action` on a denial.
    pub(crate) fn new(counts: RuleCounts, action: &str) -> Tally {
        let denied = counts.get(RuleOutcome::Denied) + counts.get(RuleOutcome::Banned);
        Tally {
            allowed: counts.get(RuleOutcome::Allowed),
            denied,
            shadow: counts.get(RuleOutcome::Shadowed),
            own_action: if action == Action::Deny.as_str() { 0 } else { denied },
        }
    }

    /// The decisions since `before`. A tally that is smaller than before has begun anew, and all of it counts.
    pub(super) fn since(self, before: Tally) -> Tally {
        let new = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        Tally {
            allowed: new(self.allowed, before.allowed),
            denied: new(self.denied, before.denied),
            shadow: new(self.shadow, before.shadow),
            own_action: new(self.own_action, before.own_action),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self == Tally::default()
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.shadow += other.shadow;
        self.own_action += other.own_action;
    }
}

/// The counts of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepCounts {
    pub(crate) allowed: u32,
    pub(crate) denied: u32,
    pub(crate) shadow: u32,
}

impl StepCounts {
    pub(super) fn add(&mut self, tally: Tally) {
        self.allowed = saturating_sum(self.allowed, tally.allowed);
        self.denied = saturating_sum(self.denied, tally.denied);
        self.shadow = saturating_sum(self.shadow, tally.shadow);
    }

    pub(super) fn merge(&mut self, other: &StepCounts) {
        let StepCounts { allowed, denied, shadow } = *other;
        self.add(Tally { allowed: allowed.into(), denied: denied.into(), shadow: shadow.into(), own_action: 0 });
    }
}

pub(super) fn saturating_sum(count: u32, number: u64) -> u32 {
    count.saturating_add(u32::try_from(number).unwrap_or(u32::MAX))
}
