//! The limit that a descriptor brings, as the only rule of a rule set.
//!
//! Rule       The counter belongs to domain, entries, algorithm and period: another count of the same unit goes on with
//!            it.
//! Rule       While the rules are paused, the rule is a shadow, as all others are: it counts and denies nothing.
//! Bound      [`MAX_LIMITS`] rule sets are kept. Envoys send the same few limits; past the bound all are made anew.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use flowgate::{Limit, LimitError};
use flowgate_engine::{Limits, Policy, PolicyError, RuleDef};

use super::message::{Descriptor, Override};
use crate::lock::Lock;
use crate::service::{Service, Snapshot};

/// The name of the rule.
const RULE: &str = "descriptor-limit";
/// The field that the rule counts by: [`counted`].
pub(super) const FIELD: &str = "descriptor-limit";

const MAX_LIMITS: usize = 1_024;

/// The limits that descriptors have brought.
#[derive(Debug, Default)]
pub(super) struct BroughtLimits {
    /// The rule sets, by their limit and by whether the rules are paused.
    sets: Lock<HashMap<(Override, bool), Arc<Snapshot>>>,
}

/// Why the limit that a descriptor brings is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OverrideError {
    #[error("the limit of a descriptor has the unknown unit {0}")]
    Unit(u32),
    #[error("the limit of a descriptor cannot be kept: {0}")]
    Limit(#[from] LimitError),
    #[error("the limit of a descriptor cannot be kept: {0}")]
    Rule(#[from] PolicyError),
}

impl BroughtLimits {
    /// The rules for a descriptor with this limit, which hold beside the rules in force.
    pub(super) fn rules(
        &self,
        service: &Service,
        in_force: &Snapshot,
        limit: Override,
    ) -> Result<Arc<Snapshot>, OverrideError> {
        let key = (limit, in_force.is_paused);
        let sets = || self.sets.lock();
        if let Some(known) = sets().get(&key) {
            return Ok(Arc::clone(known));
        }
        let rules = service.compile_alone(&policy(limit)?)?;
        let rules = Arc::new(if in_force.is_paused { rules.shadowed() } else { rules });
        let mut sets = sets();
        if sets.len() >= MAX_LIMITS {
            sets.clear();
        }
        sets.insert(key, Arc::clone(&rules));
        Ok(rules)
    }
}

/// The value of [`FIELD`]: different domains and entries have different texts.
pub(super) fn counted(domain: &str, descriptor: &Descriptor<'_>) -> String {
    let mut counted = String::new();
    let entries = descriptor.entries.iter().flat_map(|(key, value)| [&**key, &**value]);
    for text in [domain].into_iter().chain(entries) {
        // Writing to a string cannot fail.
        let _ = write!(counted, "{}:{text}", text.len());
    }
    counted
}

/// The policy of one rule with this limit. A limit of 0 denies at once.
fn policy(limit: Override) -> Result<Policy, OverrideError> {
    let text = text(limit)?;
    let limits = match limit.requests_per_unit {
        0 => Limits::None,
        _ => Limits::Fixed(vec![text.parse::<Limit>()?]),
    };
    Ok(Policy { rules: vec![RuleDef { by: vec![FIELD.into()], limits, ..RuleDef::named(RULE) }], ..Policy::default() })
}

fn text(limit: Override) -> Result<String, OverrideError> {
    let Override { requests_per_unit: count, unit, unit_multiplier } = limit;
    let (number, unit) = match (unit, u64::from(unit_multiplier.unwrap_or(1).max(1))) {
        (1, number) => (number, "s"),
        (2, number) => (number, "min"),
        (3, number) => (number, "h"),
        (4, number) => (number, "d"),
        (5, 1) => (1, "month"),
        (5, number) => (number * 30, "d"),
        (6, number) => (number * 365, "d"),
        (unit, _) => return Err(OverrideError::Unit(unit)),
    };
    Ok(match number {
        1 => format!("fixed {count}/{unit} tz=UTC"),
        number => format!("fixed {count}/{number}{unit}"),
    })
}

#[cfg(test)]
mod tests {
    use flowgate_engine::config::Config;

    use super::*;

    #[test]
    fn limits_by_unit_and_multiplier() {
        let text = |unit, unit_multiplier| text(Override { requests_per_unit: 7, unit, unit_multiplier });
        for (unit, multiplier, expected) in [
            (1, None, "fixed 7/s tz=UTC"),
            (2, Some(1), "fixed 7/min tz=UTC"),
            (3, Some(0), "fixed 7/h tz=UTC"),
            (4, None, "fixed 7/d tz=UTC"),
            (5, None, "fixed 7/month tz=UTC"),
            (6, None, "fixed 7/365d"),
            (1, Some(30), "fixed 7/30s"),
            (5, Some(2), "fixed 7/60d"),
        ] {
            assert_eq!(text(unit, multiplier).unwrap(), expected);
            expected.parse::<Limit>().unwrap();
        }
        for unit in [0, 7, 8] {
            assert!(matches!(text(unit, None), Err(OverrideError::Unit(wrong)) if wrong == unit));
        }
    }

    #[test]
    fn the_sets_are_bounded() {
        let service = Service::start(&Config::default()).unwrap();
        let limits = BroughtLimits::default();
        for requests_per_unit in 0..=MAX_LIMITS as u32 + 5 {
            let limit = Override { requests_per_unit, unit: 2, unit_multiplier: None };
            limits.rules(&service, &service.snapshot(), limit).unwrap();
        }
        assert_eq!(limits.sets.lock().len(), 6);
    }
}
