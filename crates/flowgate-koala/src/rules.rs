//! A rule file in force on a store.

use std::sync::Arc;

use flowgate::{Limit, MemoryStore, Time};
use flowgate_engine::front::{Report, quoted};
use flowgate_engine::{Limits, Policy, PolicyError, RuleCounters, RuleSet};
use hashbrown::HashMap;

use super::KoalaFile;
use super::answer::KoalaAnswer;
use super::daily_counts::{Counts, DailyCounts, RuleCounts};
use super::plan::KoalaErase;
use super::result::KoalaResult;
use super::rule::Method;

/// A rule file in force on a store.
#[derive(Debug)]
pub struct KoalaRules {
    file: KoalaFile,
    set: Arc<RuleSet>,
    /// The same counters under limits that show how much is in them.
    gauges: Arc<RuleSet>,
    /// The position of the rule of a number.
    numbers: HashMap<u32, u32>,
    counts: Vec<Arc<Counts>>,
    daily_counts: Arc<DailyCounts>,
    unruled: Arc<RuleCounters>,
}

impl KoalaRules {
    /// Puts a file in force on the counters of `memory`. The counts of `before` continue.
    ///
    /// # Errors
    /// If the rules contradict each other. The rules of a loaded file are already checked.
    pub fn new(file: KoalaFile, memory: &MemoryStore, before: Option<&KoalaRules>) -> Result<KoalaRules, PolicyError> {
        let policy = file.policy();
        let mut set = RuleSet::compile(&policy, memory)?;
        if let Some(before) = before {
            set.inherit_counters(&before.set);
        }
        let set = Arc::new(set);
        let gauges = Arc::new(RuleSet::compile(&gauges(&file, policy), memory)?);
        let numbers = file.rules.iter().zip(0..).map(|(rule, position)| (rule.number, position)).collect();
        let daily_counts = before.map_or_else(Arc::default, |before| Arc::clone(&before.daily_counts));
        let unruled = before.map_or_else(Arc::default, |before| Arc::clone(&before.unruled));
        let counts = daily_counts.share(file.rules.iter().map(|rule| rule.number));
        Ok(KoalaRules { file, set, gauges, numbers, counts, daily_counts, unruled })
    }

    /// The file.
    pub fn file(&self) -> &KoalaFile {
        &self.file
    }

    /// The number of the rule at a position.
    pub fn number(&self, rule: usize) -> u32 {
        self.file.rules[rule].number
    }

    /// The answer to a request that the rule at a position decides.
    pub fn result_of(&self, rule: usize) -> &KoalaResult {
        self.result(self.file.rules[rule].result)
    }

    /// The counts of decisions by the rule at a position.
    pub fn decided_by(&self, rule: usize) -> &RuleCounters {
        self.set.rules()[rule].counters()
    }

    /// The counts of requests that no rule decided: that passed, or that a ban by hand denied.
    pub fn unruled(&self) -> &RuleCounters {
        &self.unruled
    }

    /// The answer to a request that a ban by hand keeps out: a denial of the file; `None`: the file has none.
    pub fn denial(&self) -> Option<&KoalaResult> {
        let denials = || self.file.results.values().filter(|result| !result.passes());
        denials().find(|result| !result.wants_captcha()).or_else(|| denials().next())
    }

    /// The answer to a request that no rule decides: result 1 if a rule matched, result 0 otherwise.
    pub fn pass(&self, matched: bool) -> &KoalaResult {
        self.result(u32::from(matched))
    }

    /// Whether a rule uses a field.
    pub fn uses_field(&self, field: &str) -> bool {
        self.set.field_names().any(|name| name == field)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.file.rules.len()
    }

    /// Whether the file has no rules.
    pub fn is_empty(&self) -> bool {
        self.file.rules.is_empty()
    }

    /// The requests that each rule allowed and denied today, in the order of the rules' numbers.
    pub fn daily_counts(&self, now: Time) -> Vec<RuleCounts> {
        self.daily_counts.turn(&self.file.tz, now);
        let counts = self.file.rules.iter().zip(&self.counts);
        let mut list: Vec<RuleCounts> = counts.map(|(rule, counts)| counts.read(rule.number)).collect();
        list.sort_unstable_by_key(|counts| counts.rule);
        list
    }

    /// Counts the rules that a request met, for [`KoalaRules::daily_counts`].
    pub fn note(&self, answer: &KoalaAnswer, now: Time) {
        self.daily_counts.turn(&self.file.tz, now);
        for &(rule, exceeded) in &answer.rules {
            self.counts[rule as usize].note(exceeded);
        }
    }

    /// The rules with other limits on the counters of another memory, for the time without the store.
    ///
    /// # Errors
    /// As [`KoalaRules::new`].
    pub fn with_limits(
        &self,
        limit: impl Fn(&Limit) -> Limit,
        memory: &MemoryStore,
    ) -> Result<KoalaRules, PolicyError> {
        let mut file = self.file.clone();
        for rule in &mut file.rules {
            if let Limits::Fixed(limits) = &mut rule.def.limits {
                limits.iter_mut().for_each(|one| *one = limit(one));
            }
        }
        KoalaRules::new(file, memory, None)
    }

    pub(crate) fn set(&self) -> &Arc<RuleSet> {
        &self.set
    }

    pub(crate) fn gauges(&self) -> &Arc<RuleSet> {
        &self.gauges
    }

    /// The position of the rule of a number.
    pub(crate) fn position(&self, number: u32) -> Option<u32> {
        self.numbers.get(&number).copied()
    }

    /// The units that feedback gives back on the rule at a position; `None`: nothing.
    pub(crate) fn erased_units(&self, rule: usize, erase: KoalaErase) -> Option<u64> {
        let written = &self.file.rules[rule];
        let units = written.erase[usize::from(erase == KoalaErase::Erase2)];
        (written.method == Method::Leak && units > 0).then_some(units)
    }

    fn result(&self, number: u32) -> &KoalaResult {
        // The reader of the file checks the result of every rule, and adds the results 0 and 1.
        &self.file.results[&number]
    }
}

/// The rules under limits that show the counts of their counters.
fn gauges(file: &KoalaFile, mut policy: Policy) -> Policy {
    for (def, rule) in policy.rules.iter_mut().zip(&file.rules) {
        def.limits = rule.gauge.as_ref().map_or(Limits::None, |gauge| Limits::Fixed(vec![gauge.clone()]));
    }
    policy
}

/// Compiles the rules of a file, and reports what only all rules together make wrong. Mistakes in single rules are found
/// earlier, with their places.
pub(super) fn check(report: &mut Report, file: &KoalaFile) {
    if let Err(error) = RuleSet::compile(&file.policy(), &MemoryStore::default()) {
        let message = format!("wrong {}: expected {}, found {}", error.key(), error.expected(), quoted(error.found()));
        report.error_anywhere(message).done();
    }
}
