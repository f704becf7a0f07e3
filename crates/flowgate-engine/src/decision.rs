//! The complete answer to a request. It holds everything that a protocol shows.

use std::sync::Arc;

use flowgate::{Limit, Reading, Retry, Span, Time, Verdict};
use smallvec::SmallVec;

use crate::bans::ManualBan;
use crate::rules::Rule;

/// May it happen, by which rule, what is left, when to come back.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What decided.
    pub decided_by: DecidedBy,
    /// The verdict and the numbers of the limit that decided.
    pub numbers: flowgate::Decision,
    /// The shadow rules that would have denied.
    pub shadow: Vec<Arc<Rule>>,
    /// Whether the answer is a stopgap, because the store was away or its disk was late.
    pub degraded: bool,
}

/// What decided.
#[derive(Clone, Debug)]
pub enum DecidedBy {
    /// Nothing decided: only limits of shadow rules were asked, and no rule decided at once.
    Nothing {
        /// Whether any rule matched.
        matched: bool,
    },
    /// The limits of the rules that matched.
    Limits {
        /// The first rule with an exceeded limit, or the rule of the tightest limit if all let pass.
        rule: Arc<Rule>,
        /// The span in which the limit grants its units; `None` if it has no span. See [`Limit::window`].
        window: Option<Span>,
        /// Why they deny; `None` if the request passes.
        denial: Option<Box<LimitDenial>>,
    },
    /// A rule without limits, at once; or one that denies while the store is away.
    Rule(Arc<Rule>),
    /// A ban that a rule had imposed on the subject.
    Ban {
        /// The rule.
        rule: Arc<Rule>,
        /// The same details as for limits.
        window: Option<Span>,
        /// The end of the ban.
        until: Time,
    },
    /// A ban by hand.
    ManualBan(Arc<ManualBan>),
}

/// Why limits deny a request. It is boxed, because most requests pass and a decision is copied several times.
#[derive(Clone, Debug)]
pub struct LimitDenial {
    /// The limits that were exceeded, in file order.
    pub exceeded: SmallVec<[ExceededLimit; 1]>,
    /// The end of the ban that this denial starts.
    pub banned_until: Option<Time>,
}

/// A limit that was exceeded.
#[derive(Clone, Debug)]
pub struct ExceededLimit {
    /// The rule it belongs to.
    pub rule: Arc<Rule>,
    /// The limit.
    pub limit: Limit,
    /// The time at which this limit alone would let the request pass.
    pub retry: Retry,
    /// Whether the store was full and had no room for the counter: the limit itself is not exceeded.
    pub lacks_room: bool,
}

impl Decision {
    pub(crate) fn new(decided_by: DecidedBy, numbers: flowgate::Decision) -> Decision {
        Decision { decided_by, numbers, shadow: Vec::new(), degraded: false }
    }

    /// A decision without the numbers of a limit.
    pub(crate) fn without_limit(decided_by: DecidedBy, verdict: Verdict) -> Decision {
        Decision::new(decided_by, flowgate::Decision { verdict, limit: None, remaining: None, reset_after: Span::ZERO })
    }

    /// The denial of a rule whose store is away, with a pause before the next attempt.
    pub fn denied_without_store(rule: &Arc<Rule>, pause: Span) -> Decision {
        let verdict = Verdict::Deny(Retry::After(pause));
        let numbers = flowgate::Decision { verdict, limit: None, remaining: Some(0), reset_after: pause };
        Decision { degraded: true, ..Decision::new(DecidedBy::Rule(Arc::clone(rule)), numbers) }
    }

    /// Marks the answer as a stopgap.
    #[must_use]
    pub fn as_stopgap(self) -> Decision {
        Decision { degraded: true, ..self }
    }

    /// Makes the waits real time, and the end of a ban an instant on the wall clock. It was decided on the clock of
    /// `at`.
    #[inline]
    pub(crate) fn make_real(&mut self, at: Reading) {
        if !at.ahead.is_zero() {
            self.make_real_ahead(at);
        }
    }

    #[cold]
    fn make_real_ahead(&mut self, at: Reading) {
        self.map_waits(|wait| at.real_wait(wait));
        match &mut self.decided_by {
            DecidedBy::Limits { denial: Some(denial), .. } => {
                denial.banned_until = denial.banned_until.map(|until| at.on_the_wall(until));
            }
            DecidedBy::Ban { until, .. } => *until = at.on_the_wall(*until),
            DecidedBy::ManualBan(ban) => *ban = Arc::clone(ban).on_the_wall(at),
            DecidedBy::Limits { denial: None, .. } | DecidedBy::Nothing { .. } | DecidedBy::Rule(_) => {}
        }
    }

    /// Changes every wait.
    pub fn map_waits(&mut self, change: impl Fn(Span) -> Span) {
        self.numbers.map_waits(&change);
        if let DecidedBy::Limits { denial: Some(denial), .. } = &mut self.decided_by {
            denial.exceeded.iter_mut().for_each(|exceeded| exceeded.retry = exceeded.retry.map(&change));
        }
    }

    /// May it happen?
    pub fn verdict(&self) -> Verdict {
        self.numbers.verdict
    }

    /// Whether the request passes.
    pub fn allowed(&self) -> bool {
        self.numbers.allowed()
    }

    /// The rule that decided, or whose limit is the tightest of those that passed.
    pub fn rule(&self) -> Option<&Arc<Rule>> {
        match &self.decided_by {
            DecidedBy::Limits { rule, .. } | DecidedBy::Rule(rule) | DecidedBy::Ban { rule, .. } => Some(rule),
            DecidedBy::Nothing { .. } | DecidedBy::ManualBan(_) => None,
        }
    }

    /// The rule that speaks to the caller: one that denies, or that decides at once.
    fn speaker(&self) -> Option<&Arc<Rule>> {
        match &self.decided_by {
            DecidedBy::Limits { .. } if self.allowed() => None,
            _ => self.rule(),
        }
    }

    /// Whether any rule matched, or a ban by hand did.
    pub fn matched(&self) -> bool {
        !matches!(self.decided_by, DecidedBy::Nothing { matched: false })
    }

    /// The deciding rule's number for the caller.
    pub fn code(&self) -> Option<i64> {
        self.speaker().and_then(|rule| rule.code)
    }

    /// The deciding rule's text for the caller; for a ban by hand its reason.
    pub fn message(&self) -> Option<&str> {
        match &self.decided_by {
            DecidedBy::ManualBan(ban) => Some(&*ban.reason).filter(|reason| !reason.is_empty()),
            _ => self.speaker().and_then(|rule| rule.message.as_ref()).map(|message| &**message),
        }
    }

    /// The most that could be taken at once (`None`: unlimited, or no limit was asked).
    pub fn limit(&self) -> Option<u64> {
        self.numbers.limit
    }

    /// What could be taken right after this (`None`: unlimited, or no limit was asked). Rounded down.
    pub fn remaining(&self) -> Option<u64> {
        self.numbers.remaining
    }

    /// The span in which `limit` is granted; `None` if it has no span. See [`Limit::window`].
    pub fn window(&self) -> Option<Span> {
        match self.decided_by {
            DecidedBy::Limits { window, .. } | DecidedBy::Ban { window, .. } => window,
            DecidedBy::Nothing { .. } | DecidedBy::Rule(_) | DecidedBy::ManualBan(_) => None,
        }
    }

    /// The wait until the state is as if never used. Rounded up.
    pub fn reset_after(&self) -> Span {
        self.numbers.reset_after
    }

    /// The limits that were exceeded, in file order.
    pub fn exceeded(&self) -> &[ExceededLimit] {
        match &self.decided_by {
            DecidedBy::Limits { denial: Some(denial), .. } => &denial.exceeded,
            _ => &[],
        }
    }

    /// The end of the ban that denies, or that this denial starts.
    pub fn banned_until(&self) -> Option<Time> {
        match &self.decided_by {
            DecidedBy::Limits { denial, .. } => denial.as_ref()?.banned_until,
            DecidedBy::Ban { until, .. } => Some(*until),
            DecidedBy::ManualBan(ban) => Some(ban.until),
            DecidedBy::Nothing { .. } | DecidedBy::Rule(_) => None,
        }
    }

    /// `allow`, or what the deciding rule asks of the caller.
    pub fn action(&self) -> &str {
        match self.rule() {
            _ if self.allowed() => "allow",
            Some(rule) => rule.action.as_str(),
            None => "deny",
        }
    }

    /// The wait after which the same request passes; `None` when it was allowed or no wait helps.
    pub fn retry_after(&self) -> Option<Span> {
        self.numbers.retry_after()
    }

    /// Whether it was denied and no wait helps.
    pub fn never(&self) -> bool {
        self.numbers.never()
    }

    /// How long to hold an allowed request before it goes (`pace`); zero otherwise.
    pub fn delay(&self) -> Span {
        self.numbers.delay()
    }
}
