//! A plan: what a request asks of the store, worked out before the store is touched, and what follows from the
//! store's answers. Both steps are pure; a store fills in the outcomes in between.
//!
//! Invariant  The hits of a plan are in file order, those of one rule next to each other.

use std::sync::Arc;

use flowgate::{Algorithm, BanHit, Hit, Key, Op, Retry, Span, Standing, Subject, Time, Verdict};
use smallvec::SmallVec;

use crate::bans::ManualBan;
use crate::decision::{DecidedBy, Decision, Exceeded};
use crate::rules::{Action, LimitList, LimitListId, NamedLimit, Rule, RuleSet};

/// What a request asks of the store, and how its evaluation ended.
#[derive(Debug)]
pub struct Plan<'r> {
    rules: &'r RuleSet,
    asked: Op,
    cost: u64,
    pub(crate) hits: SmallVec<[Hit<'r>; 4]>,
    pub(crate) bans: SmallVec<[BanHit<'r>; 1]>,
    steps: SmallVec<[Step; 2]>,
    /// Shadow rules without limits.
    passed_by: SmallVec<[&'r Arc<Rule>; 1]>,
    end: End<'r>,
}

/// A rule whose limits are applied to a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) limits: LimitListId,
}

/// What ended the evaluation of the rules.
#[derive(Debug)]
enum End<'r> {
    /// The last rule: the limits decide.
    Bottom,
    /// A rule without limits: it decides what the limits above it let pass.
    Rule(&'r Arc<Rule>),
    /// A ban by hand, before any rule.
    Ban(Arc<ManualBan>),
}

impl<'r> Plan<'r> {
    pub(crate) fn new(rules: &'r RuleSet, op: Op, cost: u64) -> Plan<'r> {
        Plan {
            rules,
            asked: op,
            cost,
            hits: SmallVec::new(),
            bans: SmallVec::new(),
            steps: SmallVec::new(),
            passed_by: SmallVec::new(),
            end: End::Bottom,
        }
    }

    /// A plan of nothing, in whose place [`Decider::plan_into`](crate::Decider::plan_into) puts others.
    pub fn empty(rules: &'r RuleSet) -> Plan<'r> {
        Plan::new(rules, Op::Peek, 0)
    }

    /// Begins anew, for another request.
    #[inline]
    pub(crate) fn begin(&mut self, op: Op, cost: u64) {
        (self.asked, self.cost, self.end) = (op, cost, End::Bottom);
        self.hits.clear();
        self.bans.clear();
        self.steps.clear();
        self.passed_by.clear();
    }

    /// The rules that it is made by.
    pub(crate) fn rule_set(&self) -> &'r RuleSet {
        self.rules
    }

    /// Applies the limits of a rule to a subject.
    pub(crate) fn limit(&mut self, rule: &'r Rule, subject: Subject, list: LimitList<'r>) {
        self.steps.push(Step { limits: list.id });
        let hit =
            |named: &'r NamedLimit| Hit::new(subject.counter(named.id), &named.limit).in_rule(rule.id(), rule.flags());
        self.hits.extend(list.limits.iter().map(hit));
        if let Some((ban, id)) = rule.ban() {
            self.bans.push(BanHit::new(subject.counter(id), ban, rule.id()));
        }
    }

    /// As [`Plan::limit`], where the counters are kept elsewhere.
    #[cfg(feature = "redis")]
    pub(crate) fn limit_elsewhere(&mut self, rule: &'r Rule, limits: &'r [NamedLimit]) {
        self.hits.extend(limits.iter().map(|named| Hit::portable(&named.limit).in_rule(rule.id(), rule.flags())));
        if let Some((ban, _)) = rule.ban() {
            self.bans.push(BanHit::portable(ban, rule.id()));
        }
    }

    /// Ends with a rule without limits.
    pub(crate) fn end_with(&mut self, rule: &'r Arc<Rule>) {
        self.end = End::Rule(rule);
    }

    /// Notes a shadow rule without limits, which ends nothing.
    pub(crate) fn pass_by(&mut self, rule: &'r Arc<Rule>) {
        self.passed_by.push(rule);
    }

    /// Ends before any rule.
    pub(crate) fn end_with_ban(&mut self, ban: Arc<ManualBan>) {
        self.end = End::Ban(ban);
    }

    /// What the store is to do: where something other than a limit has denied, nothing is to be consumed. Where no limit
    /// hands out turns, a take is a take however long the caller would wait for one.
    pub fn op(&self) -> Op {
        match (self.asked, &self.end) {
            (Op::Take | Op::TakeWithin(_), End::Rule(rule)) if *rule.action() != Action::Allow => Op::Deny,
            (Op::TakeWithin(_), _) if !self.hits.iter().any(paces) => Op::Take,
            (asked, _) => asked,
        }
    }

    /// How much the request costs.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The hits, for the store to apply and the curious to look at.
    pub fn hits(&self) -> &[Hit<'r>] {
        &self.hits
    }

    /// Which limits are asked, and by which rules: different for limits that differ.
    pub fn limits_id(&self) -> u64 {
        let first = self.rules.generation().rotate_left(32);
        self.steps.iter().fold(first, |id, step| id.rotate_left(9) ^ u64::from(step.limits.number()))
    }

    /// The positions of the rules that matched as far as the evaluation went, each once, in no particular order.
    pub fn rules(&self) -> impl Iterator<Item = usize> + '_ {
        // The hits of one rule stand next to each other.
        let first = |index: usize| index == 0 || self.hits[index - 1].rule_id() != self.hits[index].rule_id();
        let limited = (0..self.hits.len()).filter(move |&index| first(index));
        let limited = limited.map(|index| self.hits[index].rule_id() as usize);
        let end = match self.end {
            End::Rule(rule) => Some(rule.position()),
            End::Bottom | End::Ban(_) => None,
        };
        limited.chain(self.passed_by.iter().map(|rule| rule.position())).chain(end)
    }

    /// Whether there is nothing to tell but that it passes, once the store has filled in the outcomes: every limit lets
    /// it, be it of a shadow rule, and nothing else has a say.
    #[inline]
    pub fn merely_passes(&self) -> bool {
        let plain = matches!(self.end, End::Bottom) && self.bans.is_empty() && self.passed_by.is_empty();
        plain && self.hits.iter().all(|hit| hit.outcome().allowed())
    }

    /// Whether any rule matched, or a ban by hand did.
    #[inline]
    pub fn matched(&self) -> bool {
        !self.hits.is_empty() || !self.passed_by.is_empty() || !matches!(self.end, End::Bottom)
    }

    /// Whether a denial of it by its limits would change nothing and be the same for whoever asks the same: no rule of
    /// it counts denied requests, bans, or is a shadow, and nothing else decides.
    pub fn is_idle_when_denied(&self) -> bool {
        let plain = |hit: &Hit<'_>| !hit.flags().count_denied && !hit.flags().shadow;
        let ends_idle = match self.end {
            End::Bottom => true,
            End::Rule(rule) => *rule.action() == Action::Allow,
            End::Ban(_) => false,
        };
        ends_idle && self.bans.is_empty() && self.passed_by.is_empty() && self.hits.iter().all(plain)
    }

    /// The bans that the request has started: the rule, where its record is kept, the end.
    pub(crate) fn new_bans(&self) -> impl Iterator<Item = (&'r Arc<Rule>, Key, Time)> {
        self.bans.iter().filter_map(|ban| Some((self.rules.rule(ban.rule_id()), ban.key(), just_banned(ban)?)))
    }

    /// The names of the fields that a rule counts by.
    pub(crate) fn by(&self, rule: &Rule) -> impl Iterator<Item = &'r str> {
        self.rules.by(rule).iter().map(|field| self.rules.field_name(*field))
    }

    /// Whether the evaluation got as far as this rule.
    pub(crate) fn reached(&self, rule: &Rule) -> bool {
        match &self.end {
            End::Bottom => true,
            End::Rule(last) => rule.id() <= last.id(),
            End::Ban(_) => false,
        }
    }

    /// The ban by hand that has ended the evaluation before any rule.
    pub(crate) fn ban_by_hand(&self) -> Option<&Arc<ManualBan>> {
        match &self.end {
            End::Ban(ban) => Some(ban),
            End::Bottom | End::Rule(_) => None,
        }
    }

    /// The decision, once the store has filled in the outcomes.
    ///
    /// Who decides, in this order: a ban by hand; the first rule with a ban in force; the first rule with an
    /// exceeded limit; the rule without limits that ended the evaluation; the tightest limit.
    pub fn conclude(&self, now: Time) -> Decision {
        let decided = match &self.end {
            _ if matches!(self.asked, Op::Record | Op::Refund) => self.counted(),
            End::Ban(ban) => banned_by_hand(ban, now),
            end => match (self.banned(now), self.exceeded(now), end) {
                (Some(banned), _, _) => banned,
                (None, Some(exceeded), _) => exceeded,
                (None, None, End::Rule(rule)) => at_once(rule),
                (None, None, _) => self.counted(),
            },
        };
        Decision { matched: self.matched(), shadow: self.shadows(), ..decided }
    }

    /// Allowed as far as limits go: the numbers are those of the tightest, the delay is the longest.
    fn counted(&self) -> Decision {
        let delay = self.enforced().map(|hit| hit.outcome().delay()).max().unwrap_or(Span::ZERO);
        let looseness = |hit: &&Hit<'_>| hit.outcome().remaining.unwrap_or(u64::MAX);
        let Some(tightest) = self.enforced().min_by_key(looseness) else { return Decision::unmatched() };
        let rule = Some(Arc::clone(self.rule_of(tightest)));
        let numbers = Decision::unmatched().numbers(tightest);
        Decision { verdict: Verdict::Allow { delay }, decided_by: DecidedBy::Limits, rule, ..numbers }
    }

    /// Denied by the first rule with an exceeded limit, for as long as the longest of them all, or as the ban that
    /// this denial has started.
    fn exceeded(&self, now: Time) -> Option<Decision> {
        let first = self.denials().next()?.0.rule_id();
        let own = self.denials().filter(|(hit, _)| hit.rule_id() == first);
        let (hit, _) = own.reduce(longer)?;
        let banned_until = self.bans.iter().filter_map(just_banned).max();
        let exceeded = self.denials().map(|(hit, retry)| Exceeded {
            rule: Arc::clone(self.rule_of(hit)),
            limit: hit.limit().clone(),
            retry,
        });
        Some(Decision {
            verdict: Verdict::Deny(self.longest_wait(banned_until, now)),
            decided_by: DecidedBy::Limits,
            exceeded: exceeded.collect(),
            banned_until,
            ..Decision::unmatched().by(self.rule_of(hit)).numbers(hit)
        })
    }

    /// Denied by the first rule that has a ban in force on its subject. Limits that would deny as well make the wait
    /// longer, so that whoever waits passes.
    fn banned(&self, now: Time) -> Option<Decision> {
        let in_force = || self.bans.iter().filter_map(|ban| Some((ban, banned(ban)?)));
        let (first, banned_until) = in_force().next()?;
        let longest = in_force().map(|(_, until)| until).max();
        let own = self.enforced().filter(|hit| hit.rule_id() == first.rule_id());
        let tightest = own.min_by_key(|hit| hit.outcome().remaining.unwrap_or(u64::MAX))?;
        let reset_after = tightest.outcome().reset_after.max(banned_until.since(now));
        Some(Decision {
            verdict: Verdict::Deny(self.longest_wait(longest, now)),
            decided_by: DecidedBy::Ban,
            banned_until: Some(banned_until),
            remaining: Some(0),
            reset_after,
            ..Decision::unmatched().by(self.rules.rule(first.rule_id())).numbers(tightest)
        })
    }

    /// The longest wait of all limits that deny and of a ban.
    fn longest_wait(&self, banned_until: Option<Time>, now: Time) -> Retry {
        let ban = Retry::After(banned_until.map_or(Span::ZERO, |until| until.since(now)));
        self.denials().map(|(_, retry)| retry).fold(ban, Retry::max)
    }

    /// The shadow rules that would have denied, top to bottom.
    fn shadows(&self) -> Vec<Arc<Rule>> {
        let exceeded = self.hits.iter().filter(|hit| hit.flags().shadow && !hit.outcome().allowed());
        let against = self.passed_by.iter().copied().filter(|rule| *rule.action() != Action::Allow);
        let mut rules: Vec<&Arc<Rule>> = exceeded.map(|hit| self.rule_of(hit)).chain(against).collect();
        rules.sort_by_key(|rule| rule.id());
        rules.dedup_by_key(|rule| rule.id());
        rules.into_iter().cloned().collect()
    }

    /// The hits of rules that are no shadows.
    fn enforced(&self) -> impl Iterator<Item = &Hit<'r>> {
        self.hits.iter().filter(|hit| !hit.flags().shadow)
    }

    fn denials(&self) -> impl Iterator<Item = (&Hit<'r>, Retry)> {
        self.enforced().filter_map(|hit| match hit.outcome().verdict {
            Verdict::Deny(retry) => Some((hit, retry)),
            Verdict::Allow { .. } => None,
        })
    }

    fn rule_of(&self, hit: &Hit<'_>) -> &'r Arc<Rule> {
        self.rules.rule(hit.rule_id())
    }
}

fn paces(hit: &Hit<'_>) -> bool {
    hit.limit().algorithm() == Algorithm::Pace
}

/// The one with the longer wait, the first on a tie.
fn longer<'a, 'r>(first: (&'a Hit<'r>, Retry), second: (&'a Hit<'r>, Retry)) -> (&'a Hit<'r>, Retry) {
    if second.1 > first.1 { second } else { first }
}

fn banned(ban: &BanHit<'_>) -> Option<Time> {
    match ban.standing() {
        Standing::Banned { until } => Some(until),
        _ => None,
    }
}

fn just_banned(ban: &BanHit<'_>) -> Option<Time> {
    match ban.standing() {
        Standing::JustBanned { until } => Some(until),
        _ => None,
    }
}

/// What a rule without limits says. Waiting does not change it.
fn at_once(rule: &Arc<Rule>) -> Decision {
    let verdict = match rule.action() {
        Action::Allow => Verdict::Allow { delay: Span::ZERO },
        Action::Deny | Action::Other(_) => Verdict::Deny(Retry::Never),
    };
    Decision { verdict, decided_by: DecidedBy::Rule, ..Decision::unmatched().by(rule) }
}

fn banned_by_hand(ban: &ManualBan, now: Time) -> Decision {
    let wait = ban.until.since(now);
    Decision {
        verdict: Verdict::Deny(Retry::After(wait)),
        decided_by: DecidedBy::ManualBan,
        message: Some(Arc::clone(&ban.reason)).filter(|reason| !reason.is_empty()),
        reset_after: wait,
        banned_until: Some(ban.until),
        ..Decision::unmatched()
    }
}
