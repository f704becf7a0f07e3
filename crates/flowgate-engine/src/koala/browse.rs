//! How Koala decides, on the engine's counters.
//!
//! Rule       The rules that match are met top to bottom. A direct one is always *exceeded*; any other is, when one more
//!            would be too many. The first exceeded one decides; without any, the request passes. Nothing is counted.
//! Rule       With write-through, and by an update, **every** matching rule counts one, also those below the one that
//!            decided, also when that denies. Verdict and count are one atomic step.
//! Rule       A ban by hand of a field's value denies before any rule, and then nothing is counted but by an update.
//! Invariant  A [`KoalaPlan`] holds one hit per matching rule that has a counter, in file order.

use std::sync::Arc;

use flowgate::{Limit, MemoryStore, Op, Time};
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::KoalaFile;
use super::result::KoalaResult;
use super::rule::Method;
use super::tally::{Counts, KoalaTally, RuleTally};
use crate::config::render::quoted;
use crate::config::report::Report;
use crate::decider::Decider;
use crate::plan::Plan;
use crate::request::Request;
use crate::rule_counters::RuleCounters;
use crate::rules::{Limits, Policy, PolicyError, Rule, RuleSet, Subjects};
use crate::store::Store;

/// A rule file in force on a store.
#[derive(Debug)]
pub struct KoalaRules {
    file: KoalaFile,
    set: Arc<RuleSet>,
    /// The same counters under limits that show how much is in them.
    gauges: Arc<RuleSet>,
    /// Which rule has a number.
    numbers: HashMap<u32, u32>,
    counts: Vec<Arc<Counts>>,
    tally: Arc<KoalaTally>,
    day: Limit,
}

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KoalaAsk {
    /// Which rule decides? Counts nothing.
    Browse,
    /// As [`KoalaAsk::Browse`], and counts.
    BrowseAndCount,
    /// Which rules are exceeded? Counts nothing.
    Complete,
    /// As [`KoalaAsk::Complete`], and counts.
    CompleteAndCount,
    /// Counts.
    Update,
}

/// What feedback gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KoalaErase {
    /// `erase1` of each leak rule.
    Erase1,
    /// `erase2` of each leak rule.
    Erase2,
}

/// What a request asks of the store.
#[derive(Debug)]
pub struct KoalaPlan<'r> {
    /// The counters, for the store to apply.
    pub plan: Plan<'r>,
    /// The direct rules that match, by position.
    pub(crate) direct: SmallVec<[u32; 2]>,
}

/// What a request met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KoalaAnswer {
    /// The positions of the rules that it met, top to bottom, and whether each was exceeded.
    met: SmallVec<[(u32, bool); 4]>,
    banned: bool,
    degraded: bool,
}

impl KoalaPlan<'_> {
    /// Whether a rule matches that decides at once.
    pub fn meets_a_direct_rule(&self) -> bool {
        !self.direct.is_empty()
    }
}

impl KoalaAsk {
    pub(crate) fn op(self) -> Op {
        match self {
            KoalaAsk::Browse | KoalaAsk::Complete => Op::Peek,
            KoalaAsk::BrowseAndCount | KoalaAsk::CompleteAndCount => Op::CheckAndRecord,
            KoalaAsk::Update => Op::Record,
        }
    }
}

impl KoalaAnswer {
    /// What was met: rules with counters, each exceeded or not, and direct ones, which always are.
    pub(crate) fn new(ask: KoalaAsk, hits: impl Iterator<Item = (u32, bool)>, direct: &[u32]) -> KoalaAnswer {
        let mut met: SmallVec<[(u32, bool); 4]> = hits.chain(direct.iter().map(|&rule| (rule, true))).collect();
        met.sort_unstable_by_key(|(rule, _)| *rule);
        if matches!(ask, KoalaAsk::Browse | KoalaAsk::BrowseAndCount)
            && let Some(last) = met.iter().position(|(_, exceeded)| *exceeded)
        {
            // Whoever asks for the first exceeded rule has not met those below it.
            met.truncate(last + 1);
        }
        KoalaAnswer { met, ..KoalaAnswer::default() }
    }

    /// The same, of a node whose store was away.
    #[must_use]
    pub fn as_stopgap(self) -> KoalaAnswer {
        KoalaAnswer { degraded: true, ..self }
    }

    /// Whether a ban by hand denies, before any rule.
    pub fn banned(&self) -> bool {
        self.banned
    }

    /// Whether the store was away and the answer is a stopgap.
    pub fn degraded(&self) -> bool {
        self.degraded
    }

    /// Whether any rule matched.
    pub fn matched(&self) -> bool {
        !self.met.is_empty()
    }

    /// The position of the first exceeded rule, which decides.
    pub fn decided(&self) -> Option<usize> {
        self.exceeded().next()
    }

    /// The positions of all exceeded rules, top to bottom.
    pub fn exceeded(&self) -> impl Iterator<Item = usize> {
        self.met.iter().filter(|(_, exceeded)| *exceeded).map(|(rule, _)| *rule as usize)
    }
}

impl KoalaRules {
    /// Puts a file in force on the counters of `memory`. What `before` has tallied today goes on.
    ///
    /// # Errors
    /// When the rules do not fit together, which those of a file that was loaded do.
    pub fn new(file: KoalaFile, memory: &MemoryStore, before: Option<&KoalaRules>) -> Result<KoalaRules, PolicyError> {
        let policy = file.policy();
        let mut set = RuleSet::compile(&policy, memory)?;
        if let Some(before) = before {
            set.inherit_counters(&before.set);
        }
        let set = Arc::new(set);
        let gauges = Arc::new(RuleSet::compile(&gauges(&file, policy), memory)?);
        let numbers = file.rules.iter().zip(0..).map(|(rule, position)| (rule.number, position)).collect();
        let tally = before.map_or_else(Arc::default, |before| Arc::clone(&before.tally));
        let counts = tally.keep(file.rules.iter().map(|rule| rule.number));
        let day = format!("fixed 1/day tz={}", file.tz).parse().unwrap_or_else(|_| Limit::unlimited());
        Ok(KoalaRules { file, set, gauges, numbers, counts, tally, day })
    }

    /// The file.
    pub fn file(&self) -> &KoalaFile {
        &self.file
    }

    /// The number of the rule at a position.
    pub fn number(&self, rule: usize) -> u32 {
        self.file.rules[rule].number
    }

    /// What a caller is answered whom the rule at a position decides.
    pub fn result_of(&self, rule: usize) -> &KoalaResult {
        self.result(self.file.rules[rule].result)
    }

    /// What the rule at a position has decided, counted beside it.
    pub fn decided_by(&self, rule: usize) -> &RuleCounters {
        self.set.rules()[rule].counters()
    }

    /// What a caller is answered whom a ban by hand keeps out: as the file denies; `None`: it never does.
    pub fn denial(&self) -> Option<&KoalaResult> {
        let denials = || self.file.results.values().filter(|result| !result.passes());
        denials().find(|result| !result.wants_captcha()).or_else(|| denials().next())
    }

    /// What a caller is answered whom no rule decides: 1 when one matched, 0 when none did.
    pub fn pass(&self, matched: bool) -> &KoalaResult {
        self.result(u32::from(matched))
    }

    /// Whether some rule looks at a field.
    pub fn uses_field(&self, field: &str) -> bool {
        self.set.field_names().any(|name| name == field)
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.file.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.file.rules.is_empty()
    }

    /// How often each rule let pass and refused today.
    pub fn tally(&self, now: Time) -> Vec<RuleTally> {
        self.tally.turn(&self.day, now);
        self.tally.list()
    }

    /// Counts what became of a request, for [`KoalaRules::tally`].
    pub fn note(&self, answer: &KoalaAnswer, now: Time) {
        self.tally.turn(&self.day, now);
        for &(rule, exceeded) in &answer.met {
            self.counts[rule as usize].note(exceeded);
        }
    }

    /// Which rules a request met, once the store has filled in the outcomes.
    pub fn conclude(&self, ask: KoalaAsk, plan: &KoalaPlan<'_>) -> KoalaAnswer {
        let hits = plan.plan.hits().iter().map(|hit| (hit.rule_id(), !hit.outcome().allowed()));
        KoalaAnswer::new(ask, hits, &plan.direct)
    }

    /// The same rules with other limits, to decide by while the store is away, on the counters of another memory.
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

    #[cfg(feature = "redis")]
    pub(crate) fn set(&self) -> &Arc<RuleSet> {
        &self.set
    }

    #[cfg(feature = "redis")]
    pub(crate) fn gauges(&self) -> &Arc<RuleSet> {
        &self.gauges
    }

    /// The position of the rule of a number.
    pub(crate) fn position(&self, number: u32) -> Option<u32> {
        self.numbers.get(&number).copied()
    }

    /// What feedback gives back on a rule; `None`: nothing.
    pub(crate) fn erased(&self, rule: &Rule, erase: KoalaErase) -> Option<u64> {
        let written = &self.file.rules[rule.id() as usize];
        let units = written.erase[usize::from(erase == KoalaErase::Erase2)];
        (written.method == Method::Leak && units > 0).then_some(units)
    }

    /// How much is in a counter, by the numbers of its gauge.
    pub(crate) fn counted(outcome: Option<&flowgate::Decision>) -> u64 {
        outcome.and_then(|outcome| Some(outcome.limit?.saturating_sub(outcome.remaining?))).unwrap_or(0)
    }

    fn result(&self, number: u32) -> &KoalaResult {
        // Every rule's result was checked when the file was read; 0 and 1 are always there.
        &self.file.results[&number]
    }
}

impl Decider {
    /// The answer to a request that a ban by hand keeps out.
    pub fn koala_ban(&self, ask: KoalaAsk, request: &Request<'_>, now: Time) -> Option<KoalaAnswer> {
        let asks = ask != KoalaAsk::Update;
        let banned = asks && self.manual_bans().find(request, now).is_some();
        banned.then(|| KoalaAnswer { banned, ..KoalaAnswer::default() })
    }

    /// What a request asks of the store by Koala's rules, once no [ban by hand](Decider::koala_ban) keeps it out.
    pub fn koala_plan<'r>(&self, rules: &'r KoalaRules, ask: KoalaAsk, request: &Request<'_>) -> KoalaPlan<'r> {
        let mut plan = KoalaPlan { plan: Plan::new(&rules.set, ask.op(), 1), direct: SmallVec::new() };
        let values = rules.set.read(request);
        let mut subjects = Subjects::new(&rules.set, &values, self.memory());
        for (rule, limits) in rules.set.matching(&values) {
            if !limits.limits.is_empty() {
                plan.plan.limit(rule, subjects.counted_by(rule), limits);
                continue;
            }
            plan.direct.push(rule.id());
            if ask == KoalaAsk::Browse {
                break;
            }
        }
        plan
    }

    /// Decides a request by Koala's rules.
    pub fn koala(&self, rules: &KoalaRules, ask: KoalaAsk, request: &Request<'_>, now: Time) -> KoalaAnswer {
        let mut plan = self.koala_plan(rules, ask, request);
        self.memory().apply_plan(&mut plan.plan, now);
        rules.conclude(ask, &plan)
    }

    /// What feedback asks of the store: each leak rule that matches gets units back, each its own number of them.
    pub fn koala_feedback_plans<'r>(
        &self,
        rules: &'r KoalaRules,
        erase: KoalaErase,
        request: &Request<'_>,
    ) -> SmallVec<[Plan<'r>; 2]> {
        let values = rules.set.read(request);
        let mut subjects = Subjects::new(&rules.set, &values, self.memory());
        let mut plans = SmallVec::new();
        for (rule, limits) in rules.set.matching(&values) {
            if let Some(units) = rules.erased(rule, erase) {
                let mut plan = Plan::new(&rules.set, Op::Refund, units);
                plan.limit(rule, subjects.counted_by(rule), limits);
                plans.push(plan);
            }
        }
        plans
    }

    /// Gives back what feedback gives back.
    pub fn koala_feedback(&self, rules: &KoalaRules, erase: KoalaErase, request: &Request<'_>, now: Time) {
        for mut plan in self.koala_feedback_plans(rules, erase, request) {
            self.memory().apply_plan(&mut plan, now);
        }
    }

    /// What asks how much the rule of a number has counted for a request; `None`: there is no such rule. A rule
    /// without a counter, or that does not match, gives a plan without hits.
    pub fn koala_value_plan<'r>(&self, rules: &'r KoalaRules, number: u32, request: &Request<'_>) -> Option<Plan<'r>> {
        let rule = rules.gauges.rule(rules.position(number)?);
        let values = rules.gauges.read(request);
        let mut plan = Plan::new(&rules.gauges, Op::Peek, 0);
        if let Ok(limits) = rules.gauges.check(rule, &values)
            && !limits.limits.is_empty()
        {
            plan.limit(rule, Subjects::new(&rules.gauges, &values, self.memory()).counted_by(rule), limits);
        }
        Some(plan)
    }

    /// How much the rule of a number has counted for a request; `None`: there is no such rule.
    pub fn koala_value(&self, rules: &KoalaRules, number: u32, request: &Request<'_>, now: Time) -> Option<u64> {
        let mut plan = self.koala_value_plan(rules, number, request)?;
        self.memory().apply_plan(&mut plan, now);
        Some(KoalaRules::counted(plan.hits().first().map(flowgate::Hit::outcome)))
    }
}

/// The rules with limits that show what is in their counters.
fn gauges(file: &KoalaFile, mut policy: Policy) -> Policy {
    for (def, rule) in policy.rules.iter_mut().zip(&file.rules) {
        def.limits = rule.gauge.as_ref().map_or(Limits::None, |gauge| Limits::Fixed(vec![gauge.clone()]));
    }
    policy
}

/// What is accepted must not be refused by the engine later, so the engine is asked. Rules are checked one by one
/// before, with better words; this finds what is too much of them together.
pub(super) fn check(report: &mut Report, file: &KoalaFile) {
    if let Err(error) = RuleSet::compile(&file.policy(), &MemoryStore::default()) {
        let message = format!("wrong {}: expected {}, found {}", error.key(), error.expected(), quoted(error.found()));
        report.error_anywhere(message).done();
    }
}
