//! What a reload replaces: all rules, compiled, in one value.
//!
//! Rule       A question is answered by one snapshot. A caller that reads the rules before it asks (which fields they look
//!            at, how they spell a path) hands the same snapshot to the question.
//! Rule       A reload compiles a whole snapshot first and swaps it in by one store. A mistake changes nothing.

use std::sync::Arc;

use flowgate::Time;
use flowgate_engine::config::Config;
use flowgate_engine::{Policy, PolicyError, RuleSet};

use super::Service;
use crate::fronts::Fronts;

/// The rules in force.
#[derive(Debug)]
pub struct Snapshot {
    /// The rules.
    pub rules: Arc<RuleSet>,
    /// The same rules with this node's shares of the limits, for the time without the shared store; `None` where
    /// counters live in memory.
    pub(crate) local_rules: Option<Arc<RuleSet>>,
    /// The fronts of other systems.
    pub(crate) fronts: Fronts,
    /// True if the snapshot is a copy that denies nothing.
    pub(crate) is_paused: bool,
    /// When the snapshot was compiled.
    pub(crate) loaded: Time,
}

impl Snapshot {
    /// A snapshot of these rules alone: the counters live in memory, and no front of another system is served.
    pub(super) fn in_memory(rules: Arc<RuleSet>, loaded: Time) -> Snapshot {
        Snapshot { loaded, ..Snapshot::of_rules(rules, None) }
    }

    /// A snapshot of these rules and those in this node's shares, without a front of another system.
    pub(crate) fn of_rules(rules: Arc<RuleSet>, local_rules: Option<Arc<RuleSet>>) -> Snapshot {
        Snapshot { rules, local_rules, fronts: Fronts::default(), is_paused: false, loaded: Time::EPOCH }
    }

    /// A copy that denies nothing.
    pub(crate) fn shadowed(&self) -> Snapshot {
        Snapshot {
            rules: Arc::new(self.rules.shadowed()),
            local_rules: self.local_rules.as_ref().map(|rules| Arc::new(rules.shadowed())),
            fronts: self.fronts.paused(),
            is_paused: true,
            loaded: self.loaded,
        }
    }

    /// True if a rule, one of a front included, matches or counts by a field.
    pub fn uses_field(&self, field: &str) -> bool {
        self.fronts.uses_field(field) || self.rules.field_names().any(|name| name == field)
    }
}

impl Service {
    /// The rules in force.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Compiles the rules and lists of a configuration, and the rule files of fronts, to be [swapped](Service::swap) in.
    /// Rules of the same name continue their counts.
    ///
    /// # Errors
    /// When the rules do not fit together, which those of a configuration that was loaded do.
    pub fn compile(&self, config: &Config) -> Result<Snapshot, PolicyError> {
        let fronts = Fronts::compile(self, config, &self.snapshot.load().fronts)?;
        self.compile_with(&config.policy, fronts)
    }

    /// Puts other rules and lists in force and keeps the fronts.
    ///
    /// # Errors
    /// When the rules do not fit together; then nothing has changed.
    pub fn replace(&self, policy: &Policy) -> Result<(), PolicyError> {
        self.swap(self.compile_with(policy, self.unpaused().fronts.clone())?);
        Ok(())
    }

    /// Compiles rules that are used apart from the rules in force.
    pub(crate) fn compile_alone(&self, policy: &Policy) -> Result<Snapshot, PolicyError> {
        self.compile_with(policy, Fronts::default())
    }

    fn compile_with(&self, policy: &Policy, fronts: Fronts) -> Result<Snapshot, PolicyError> {
        let rules = Arc::new(self.decider.compile(policy, Some(&self.snapshot.load().rules))?);
        let local_rules = self.shared.as_ref().map(|shared| shared.local().compile(policy)).transpose()?.map(Arc::new);
        Ok(Snapshot { rules, local_rules, fronts, is_paused: false, loaded: self.now() })
    }
}
