//! What a reload replaces: all rules, compiled, in one value.
//!
//! Rule       A question is answered by one snapshot. A caller that reads the rules before it asks (which fields they look
//!            at, how they spell a path) hands the same snapshot to the question.
//! Rule       A reload compiles a whole snapshot first and swaps it in by one store. A mistake changes nothing.

use std::sync::Arc;

use flowgate_engine::{Policy, PolicyError, RuleSet};
use flowgate_koala::{KoalaFile, KoalaRules};

use super::Service;

/// The rules in force.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) rules: Arc<RuleSet>,
    /// The same rules in this node's shares, for the time without the shared store; `None` where counters live in memory.
    pub(crate) local_rules: Option<Arc<RuleSet>>,
    koala: Option<Arc<KoalaInForce>>,
}

/// Koala's rules in force.
#[derive(Debug)]
pub struct KoalaInForce {
    /// The rules.
    pub rules: Arc<KoalaRules>,
    /// The same rules in this node's shares; see [`Snapshot`].
    pub(crate) local: Option<KoalaRules>,
}

impl Snapshot {
    /// Only these rules: the counters live in memory, and Koala is not served.
    pub(super) fn in_memory(rules: Arc<RuleSet>) -> Snapshot {
        Snapshot { rules, local_rules: None, koala: None }
    }

    #[cfg(test)]
    pub(crate) fn with_local(rules: Arc<RuleSet>, local_rules: Arc<RuleSet>) -> Snapshot {
        Snapshot { rules, local_rules: Some(local_rules), koala: None }
    }

    /// The rules.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.rules
    }

    /// Koala's rules; `None`: Koala is not served.
    pub fn koala(&self) -> Option<&Arc<KoalaInForce>> {
        self.koala.as_ref()
    }

    /// A copy that denies nothing.
    pub(super) fn shadowed(&self) -> Snapshot {
        Snapshot {
            rules: Arc::new(self.rules.shadowed()),
            local_rules: self.local_rules.as_ref().map(|rules| Arc::new(rules.shadowed())),
            koala: self.koala.clone(),
        }
    }

    /// Whether some rule, or some Koala rule, looks at a field or counts by it.
    pub fn uses_field(&self, field: &str) -> bool {
        let by_koala = self.koala.as_ref().is_some_and(|koala| koala.rules.uses_field(field));
        by_koala || self.rules.field_names().any(|name| name == field)
    }
}

impl Service {
    /// The rules in force.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Compiles rules, lists and a Koala rule file, to be [swapped](Service::swap) in. Rules of the same name continue
    /// their counts, and Koala's rules those of today.
    ///
    /// # Errors
    /// When the rules do not fit together, which those of a configuration that was loaded do.
    pub fn compile(&self, policy: &Policy, koala: Option<&KoalaFile>) -> Result<Snapshot, PolicyError> {
        let koala = koala.map(|file| self.compile_koala(file)).transpose()?;
        self.compile_with(policy, koala)
    }

    /// Puts other rules and lists in force and keeps Koala's rules.
    ///
    /// # Errors
    /// When the rules do not fit together; then nothing has changed.
    pub fn replace(&self, policy: &Policy) -> Result<(), PolicyError> {
        self.swap(self.compile_with(policy, self.unpaused().koala().cloned())?);
        Ok(())
    }

    /// Puts a Koala rule file in force, or none, and keeps the other rules.
    ///
    /// # Errors
    /// As [`Service::replace`].
    pub fn replace_koala(&self, file: Option<&KoalaFile>) -> Result<(), PolicyError> {
        let Snapshot { rules, local_rules, .. } = &*self.unpaused();
        let koala = file.map(|file| self.compile_koala(file)).transpose()?;
        self.swap(Snapshot { rules: Arc::clone(rules), local_rules: local_rules.clone(), koala });
        Ok(())
    }

    fn compile_with(&self, policy: &Policy, koala: Option<Arc<KoalaInForce>>) -> Result<Snapshot, PolicyError> {
        let rules = Arc::new(self.decider.compile(policy, Some(self.snapshot.load().rules()))?);
        let local_rules = self.shared.as_ref().map(|shared| shared.local_rules(policy)).transpose()?.map(Arc::new);
        Ok(Snapshot { rules, local_rules, koala })
    }

    fn compile_koala(&self, file: &KoalaFile) -> Result<Arc<KoalaInForce>, PolicyError> {
        let before = self.koala_rules();
        let before = before.as_ref().map(|koala| &*koala.rules);
        let rules = Arc::new(KoalaRules::new(file.clone(), self.decider.memory(), before)?);
        let local = self.shared.as_ref().map(|shared| shared.local_koala(&rules)).transpose()?;
        Ok(Arc::new(KoalaInForce { rules, local }))
    }
}
