//! A rule file in force on a store.

use std::sync::Arc;

use flowgate::{Limit, MemoryStore, Time};
use flowgate_engine::explain::{RuleMatch, RuleReport};
use flowgate_engine::front::{Report, quoted};
use flowgate_engine::{Explanation, Limits, PolicyError, Rule, RuleCounters, RuleSet};
use hashbrown::HashMap;

use super::KoalaFile;
use super::answer::{KoalaAnswer, KoalaAsk};
use super::daily_counts::{Counts, DailyCounts, RuleCounts};
use super::plan::KoalaErase;
use super::result::KoalaResult;
use super::rule::Method;

/// A rule file in force on a store.
#[derive(Clone, Debug)]
pub struct KoalaRules {
    /// The file.
    pub file: KoalaFile,
    /// The rules as rules of the engine.
    pub set: Arc<RuleSet>,
    /// The positions of the rules, by their numbers.
    numbers: HashMap<u32, u32>,
    pub(super) counts: Vec<Arc<Counts>>,
    pub(super) daily_counts: Arc<DailyCounts>,
    /// The counts of requests that no rule decided, because they passed or a ban by hand denied them.
    pub unruled: Arc<RuleCounters>,
}

impl KoalaRules {
    /// Puts a file in force on the counters of `memory`. The counts of `before` continue.
    ///
    /// # Errors
    /// If the rules contradict each other. The rules of a loaded file are already checked.
    pub fn new(file: KoalaFile, memory: &MemoryStore, before: Option<&KoalaRules>) -> Result<KoalaRules, PolicyError> {
        let mut set = RuleSet::compile(&file.policy(), memory)?;
        if let Some(before) = before {
            set.inherit_counters(&before.set);
        }
        let set = Arc::new(set);
        let numbers = file.rules.iter().zip(0..).map(|(rule, position)| (rule.number, position)).collect();
        let daily_counts = before.map_or_else(Arc::default, |before| Arc::clone(&before.daily_counts));
        let unruled = before.map_or_else(Arc::default, |before| Arc::clone(&before.unruled));
        let counts = daily_counts.share(file.rules.iter().map(|rule| rule.number));
        Ok(KoalaRules { file, set, numbers, counts, daily_counts, unruled })
    }

    /// The number of the rule at a position.
    pub fn number(&self, rule: usize) -> u32 {
        self.file.rules[rule].number
    }

    /// The answer to a request that the rule at a position decides.
    pub fn result_of(&self, rule: usize) -> &KoalaResult {
        self.result(self.file.rules[rule].result)
    }

    /// The rule at a position, as a rule of the engine.
    pub fn rule(&self, rule: usize) -> &Rule {
        &self.set.rules[rule]
    }

    /// The decisions of the rule at a position, counted by outcome.
    pub fn decided_by(&self, rule: usize) -> &RuleCounters {
        &self.rule(rule).counters
    }

    /// A copy whose rules deny nothing: they count as before, and answers name the rules that would have denied.
    #[must_use]
    pub fn paused(&self) -> KoalaRules {
        KoalaRules { set: Arc::new(self.set.shadowed()), ..self.clone() }
    }

    /// Whether the rule at a position denies but is paused. A rule whose result is a pass is never paused.
    pub fn is_paused(&self, rule: usize) -> bool {
        self.rule(rule).is_shadow() && !self.result_of(rule).passes()
    }

    /// Whether the rule at a position decides whenever it matches.
    pub fn is_direct(&self, rule: usize) -> bool {
        self.file.rules[rule].method == Method::Direct
    }

    /// What a browse answers to a request that the engine has explained by [`KoalaRules::set`].
    pub fn explained(&self, explanation: &Explanation) -> KoalaAnswer {
        if explanation.ban.is_some() {
            return KoalaAnswer { banned: true, ..KoalaAnswer::default() };
        }
        let met = || explanation.rules.iter().filter(|report| report.matched == RuleMatch::Yes);
        let (direct, counted): (Vec<_>, Vec<_>) = met().partition(|report| self.is_direct(report.rule.position()));
        let position = |report: &RuleReport| report.rule.position() as u32;
        let exceeded = |report: &RuleReport| report.limits.iter().any(|limit| !limit.outcome.allowed());
        let direct: Vec<u32> = direct.into_iter().map(position).collect();
        KoalaAnswer::new(
            self,
            KoalaAsk::Browse,
            counted.into_iter().map(|report| (position(report), exceeded(report))),
            &direct,
        )
    }

    /// The answer to a request that a ban by hand denies: a denying result of the file; `None`: the file has none.
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

    /// The rules with other limits on the counters of another memory, for the time in which the store is away.
    ///
    /// # Errors
    /// The same as for [`KoalaRules::new`].
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

    /// The position of the rule with this number.
    pub(crate) fn position(&self, number: u32) -> Option<u32> {
        self.numbers.get(&number).copied()
    }

    /// The units that feedback gives back on the rule at a position; `None`: it gives nothing back.
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

/// Compiles the rules of a file, and reports mistakes that only all rules together show. Mistakes in single rules are
/// reported earlier, with their places.
pub(super) fn check(report: &mut Report, file: &KoalaFile) {
    if let Err(error) = RuleSet::compile(&file.policy(), &MemoryStore::default()) {
        let message = format!("wrong {}: expected {}, found {}", error.key, error.expected, quoted(&error.found));
        report.error_anywhere(message).done();
    }
}
