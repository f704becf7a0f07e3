//! The conclusion: the decision that follows from a store's answers to a plan.

use std::sync::Arc;

use flowgate::{BanHit, Hit, Key, Limit, Op, Reading, Retry, Span, Standing, Time, Verdict};

use super::evaluation::{End, Evaluation};
use crate::bans::ManualBan;
use crate::decision::{DecidedBy, Decision, ExceededLimit, LimitDenial};
use crate::rules::{Action, BanScope, Rule, RuleSet};

/// The outcomes that a store has filled into the hits of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Outcomes<'p, 'r> {
    pub(crate) rules: &'r RuleSet,
    pub(crate) evaluation: &'p Evaluation,
    pub(crate) hits: &'p [Hit<'r>],
    pub(crate) bans: &'p [BanHit<'r>],
}

impl<'p, 'r> Outcomes<'p, 'r> {
    /// The hits, in file order.
    pub fn hits(self) -> &'p [Hit<'r>] {
        self.hits
    }

    /// The bans that the request has started: the rule, the counter that records the ban, and the ban's end.
    pub(crate) fn new_bans(self) -> impl Iterator<Item = (&'r Arc<Rule>, Key, Time)> + use<'p, 'r> {
        self.bans.iter().filter_map(move |ban| Some((self.rules.rule(ban.rule_id()), ban.key(), just_banned(ban)?)))
    }

    /// The names of the fields that a rule counts by.
    pub(crate) fn by(self, rule: &Rule) -> impl Iterator<Item = &'r str> {
        self.rules.by(rule).map(move |field| self.rules.field_name(field))
    }

    /// Whether the evaluation got as far as this rule.
    pub(crate) fn reached(self, rule: &Rule) -> bool {
        self.evaluation.reached(rule.id)
    }

    /// The ban by hand that has ended the evaluation before any rule.
    pub(crate) fn ban_by_hand(self) -> Option<&'p Arc<ManualBan>> {
        match &self.evaluation.end {
            End::Ban(ban) => Some(ban),
            End::Bottom | End::Rule(_) => None,
        }
    }

    /// The answer to a take. Most takes pass.
    #[inline]
    pub(crate) fn answer(self, at: Reading) -> TakeAnswer<'r> {
        match self.passing() {
            Some(limits) => TakeAnswer::Passes(self.pass(limits).in_real_time(at)),
            None => self.answer_otherwise(at),
        }
    }

    #[inline(never)]
    fn answer_otherwise(self, at: Reading) -> TakeAnswer<'r> {
        match self.denied(at) {
            Some(denied) => TakeAnswer::Denied(denied),
            None => TakeAnswer::Decided(self.conclude_otherwise(at)),
        }
    }

    /// The decision, once the store has filled in the outcomes. Its waits are real time.
    #[inline]
    pub(crate) fn conclude(self, at: Reading) -> Decision {
        match self.passing() {
            Some(limits) => self.pass(limits).in_real_time(at).into_decision(),
            None => self.conclude_otherwise(at),
        }
    }

    /// What decides, in this order: a ban by hand; the first rule with a ban in force; the first rule with an
    /// exceeded limit; the rule without limits that ended the evaluation; the tightest limit.
    #[inline(never)]
    fn conclude_otherwise(self, at: Reading) -> Decision {
        let now = at.now;
        let mut decided = match &self.evaluation.end {
            _ if matches!(self.evaluation.asked, Op::Record | Op::Refund) => {
                self.pass(self.asked_limits()).into_decision()
            }
            End::Ban(ban) => banned_by_hand(ban, now),
            end => match (self.banned(now), self.exceeded(now), end) {
                (Some(banned), _, _) => banned,
                (None, Some(exceeded), _) => exceeded,
                (None, None, End::Rule(rule)) => at_once(self.rules.rule(*rule)),
                (None, None, _) => self.pass(self.asked_limits()).into_decision(),
            },
        };
        if self.has_shadows() {
            decided.shadow = self.shadows();
        }
        decided.make_real(at);
        decided
    }

    /// Whether there is nothing to tell but that the request passes.
    pub(crate) fn merely_passes(self) -> bool {
        self.passing().is_some()
    }

    /// Whether nothing but limits has a say: no ban, no rule without limits.
    #[inline(always)]
    fn is_up_to_limits(self) -> bool {
        let Evaluation { end, passed_by, .. } = self.evaluation;
        let is_clear = |ban: &BanHit<'_>| ban.standing() == Standing::Clear;
        matches!(end, End::Bottom) && passed_by.is_empty() && self.bans.iter().all(is_clear)
    }

    /// What the limits say, if there is nothing to tell but that the request passes: every limit lets it pass, also those of
    /// shadow rules, and nothing else has a say.
    #[inline(always)]
    fn passing(self) -> Option<PassingLimits<'p, 'r>> {
        if !self.is_up_to_limits() {
            return None;
        }
        let mut limits = PassingLimits { tightest: None, delay: Span::ZERO };
        for hit in self.hits {
            let Verdict::Allow { delay } = hit.outcome().verdict else { return None };
            if !hit.flags().shadow {
                limits.add(hit, delay);
            }
        }
        Some(limits)
    }

    /// What the limits say of a request that they do not deny, whatever their verdicts are.
    fn asked_limits(self) -> PassingLimits<'p, 'r> {
        let mut limits = PassingLimits { tightest: None, delay: Span::ZERO };
        self.enforced().for_each(|hit| limits.add(hit, hit.outcome().delay()));
        limits
    }

    /// Allowed as far as limits go.
    // Inlined, so that the numbers are copied once, to where the answer lies.
    #[inline(always)]
    fn pass(self, PassingLimits { tightest, delay }: PassingLimits<'_, 'r>) -> Pass<'r> {
        let verdict = Verdict::Allow { delay };
        match tightest {
            Some(tightest) => Pass {
                tightest: Some((self.rule_of(tightest), tightest.limit())),
                matched: true,
                numbers: flowgate::Decision { verdict, ..*tightest.outcome() },
            },
            None => Pass {
                tightest: None,
                matched: self.evaluation.matched(),
                numbers: flowgate::Decision { verdict, limit: None, remaining: None, reset_after: Span::ZERO },
            },
        }
    }

    /// The denial by limits, if nothing but limits has a say and no shadow rule was asked.
    fn denied(self, at: Reading) -> Option<Denied<'r>> {
        if !self.is_up_to_limits() || self.has_shadows() {
            return None;
        }
        let hit = self.first_exceeded()?;
        let verdict = Verdict::Deny(self.longest_wait(None, at.now));
        let mut numbers = flowgate::Decision { verdict, ..*hit.outcome() };
        numbers.make_real(at);
        Some(Denied { rule: self.rule_of(hit), numbers })
    }

    /// The limit that denies: of those of the first rule with an exceeded limit, the one with the longest wait.
    fn first_exceeded(self) -> Option<&'p Hit<'r>> {
        let first = self.denials().next()?.0.rule_id();
        self.denials().filter(|(hit, _)| hit.rule_id() == first).reduce(longer).map(|(hit, _)| hit)
    }

    /// Denied by the first rule with an exceeded limit, for as long as the longest of them all, or as the ban that
    /// this denial has started.
    fn exceeded(self, now: Time) -> Option<Decision> {
        let hit = self.first_exceeded()?;
        let banned_until = self.bans.iter().filter_map(just_banned).max();
        let exceeded = self.denials().map(|(hit, retry)| ExceededLimit {
            rule: Arc::clone(self.rule_of(hit)),
            limit: hit.limit().clone(),
            retry,
            lacks_room: hit.outcome().lacks_room(),
        });
        let (rule, window) = (Arc::clone(self.rule_of(hit)), hit.limit().window());
        let denial = Box::new(LimitDenial { exceeded: exceeded.collect(), banned_until });
        let decided_by = DecidedBy::Limits { rule, window, denial: Some(denial) };
        let verdict = Verdict::Deny(self.longest_wait(banned_until, now));
        Some(Decision::new(decided_by, flowgate::Decision { verdict, ..*hit.outcome() }))
    }

    /// Denied by the first rule that has a ban in force on its subject. Limits that also deny can make the wait longer,
    /// so that a client that waits passes.
    fn banned(self, now: Time) -> Option<Decision> {
        let in_force = || self.bans_in_force().filter(|(ban, _)| self.may_deny(ban));
        let (first, until) = in_force().min_by_key(|(ban, _)| ban.rule_id())?;
        let longest = in_force().map(|(_, until)| until).max();
        let own = self.enforced().filter(|hit| hit.rule_id() == first.rule_id());
        let tightest = own.min_by_key(|hit| hit.outcome().remaining.unwrap_or(u64::MAX));
        let (rule, left) = (Arc::clone(self.rules.rule(first.rule_id())), until.since(now));
        let window = tightest.and_then(|hit| hit.limit().window());
        let numbers = flowgate::Decision {
            verdict: Verdict::Deny(self.longest_wait(longest, now)),
            limit: tightest.and_then(|hit| hit.outcome().limit),
            remaining: tightest.map(|_| 0),
            reset_after: tightest.map_or(left, |hit| hit.outcome().reset_after.max(left)),
        };
        Some(Decision::new(DecidedBy::Ban { rule, window, until }, numbers))
    }

    /// The bans in force on the subjects of the request.
    pub(crate) fn bans_in_force(self) -> impl Iterator<Item = (&'p BanHit<'r>, Time)> {
        self.bans.iter().filter_map(|ban| Some((ban, banned(ban)?)))
    }

    /// Whether a ban in force denies this request: its rule has matched, or it denies everywhere.
    fn may_deny(self, ban: &BanHit<'_>) -> bool {
        let rule = self.rules.rule(ban.rule_id());
        let has_matched = self.evaluation.skips_limits || self.evaluation.limits_by(rule.id);
        has_matched || rule.ban_scope() == Some(BanScope::Subject)
    }

    /// The longest wait of all limits that deny and of a ban.
    fn longest_wait(self, banned_until: Option<Time>, now: Time) -> Retry {
        let ban = Retry::After(banned_until.map_or(Span::ZERO, |until| until.since(now)));
        self.denials().map(|(_, retry)| retry).fold(ban, Retry::max)
    }

    /// Whether a shadow rule took part.
    #[inline]
    fn has_shadows(self) -> bool {
        !self.evaluation.passed_by.is_empty() || self.hits.iter().any(|hit| hit.flags().shadow)
    }

    /// The shadow rules that would have denied, top to bottom.
    fn shadows(self) -> Vec<Arc<Rule>> {
        let exceeded = self.hits.iter().filter(|hit| hit.flags().shadow && !hit.outcome().allowed());
        let passed_by = self.evaluation.passed_by.iter().map(|rule| self.rules.rule(*rule));
        let against = passed_by.filter(|rule| rule.action != Action::Allow);
        let mut rules: Vec<&Arc<Rule>> = exceeded.map(|hit| self.rule_of(hit)).chain(against).collect();
        rules.sort_by_key(|rule| rule.id);
        rules.dedup_by_key(|rule| rule.id);
        rules.into_iter().cloned().collect()
    }

    /// The hits of the rules that may deny: those that are not shadows.
    fn enforced(self) -> impl Iterator<Item = &'p Hit<'r>> {
        self.hits.iter().filter(|hit| !hit.flags().shadow)
    }

    fn denials(self) -> impl Iterator<Item = (&'p Hit<'r>, Retry)> {
        self.enforced().filter_map(|hit| match hit.outcome().verdict {
            Verdict::Deny(retry) => Some((hit, retry)),
            Verdict::Allow { .. } => None,
        })
    }

    fn rule_of(self, hit: &Hit<'_>) -> &'r Arc<Rule> {
        self.rules.rule(hit.rule_id())
    }
}

/// What limits say of a request that passes, but for those of shadow rules.
struct PassingLimits<'p, 'r> {
    /// The limit with the fewest remaining units, the first on a tie.
    tightest: Option<&'p Hit<'r>>,
    /// The longest delay.
    delay: Span,
}

impl<'p, 'r> PassingLimits<'p, 'r> {
    #[inline(always)]
    fn add(&mut self, hit: &'p Hit<'r>, delay: Span) {
        let remaining = |hit: &Hit<'_>| hit.outcome().remaining.unwrap_or(u64::MAX);
        self.delay = self.delay.max(delay);
        if self.tightest.is_none_or(|tightest| remaining(hit) < remaining(tightest)) {
            self.tightest = Some(hit);
        }
    }
}

/// The answer to a take that was planned.
#[derive(Debug)]
pub enum TakeAnswer<'r> {
    /// The take passes, and there is nothing more to report. This is the usual answer. It owns nothing.
    Passes(Pass<'r>),
    /// Limits deny the take, and no ban and no shadow rule has a say. This is the usual answer to a client that sends too much. It
    /// owns nothing, and does not list the limits.
    Denied(Denied<'r>),
    /// Any other decision.
    Decided(Decision),
}

/// The numbers of a request that all limits let pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'r> {
    /// The tightest limit and its rule; `None`: no limit was asked but those of shadow rules.
    tightest: Option<(&'r Arc<Rule>, &'r Limit)>,
    /// Whether any rule matched.
    matched: bool,
    numbers: flowgate::Decision,
}

/// The rule that denies a request by its limits, and its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Denied<'r> {
    rule: &'r Arc<Rule>,
    numbers: flowgate::Decision,
}

impl<'r> Denied<'r> {
    /// The first rule with an exceeded limit.
    #[inline]
    pub fn rule(&self) -> &'r Rule {
        self.rule
    }

    /// The numbers of the limit of that rule that denies for longest, and the longest wait of all limits that deny.
    #[inline]
    pub fn numbers(&self) -> &flowgate::Decision {
        &self.numbers
    }
}

impl<'r> Pass<'r> {
    /// The rule of the tightest limit.
    #[inline]
    pub fn rule(&self) -> Option<&'r Rule> {
        self.tightest.map(|(rule, _)| &**rule)
    }

    /// The numbers of the tightest limit, and the longest delay.
    #[inline]
    pub fn numbers(&self) -> &flowgate::Decision {
        &self.numbers
    }

    /// Makes the waits real time. They were decided on the clock of `at`.
    #[inline]
    fn in_real_time(mut self, at: Reading) -> Pass<'r> {
        self.numbers.make_real(at);
        self
    }

    #[inline]
    pub(crate) fn into_decision(self) -> Decision {
        let decided_by = match self.tightest {
            None => DecidedBy::Nothing { matched: self.matched },
            Some((rule, limit)) => {
                let (rule, window) = (Arc::clone(rule), limit.window());
                DecidedBy::Limits { rule, window, denial: None }
            }
        };
        Decision::new(decided_by, self.numbers)
    }
}

/// The decision with the longer wait; the first one if both waits are equal.
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

/// The decision of a rule without limits. Waiting does not change it.
fn at_once(rule: &Arc<Rule>) -> Decision {
    let verdict = match &rule.action {
        Action::Allow => Verdict::Allow { delay: Span::ZERO },
        Action::Deny | Action::Other(_) => Verdict::Deny(Retry::Never),
    };
    Decision::without_limit(DecidedBy::Rule(Arc::clone(rule)), verdict)
}

fn banned_by_hand(ban: &Arc<ManualBan>, now: Time) -> Decision {
    let reset_after = ban.until.since(now);
    let verdict = Verdict::Deny(Retry::After(reset_after));
    let numbers = flowgate::Decision { verdict, limit: None, remaining: None, reset_after };
    Decision::new(DecidedBy::ManualBan(Arc::clone(ban)), numbers)
}
