//! The answer to a request, complete: whatever a protocol shows is in here.

use std::sync::Arc;

use flowgate::{Hit, Limit, Reading, Retry, Span, Time, Verdict};

use crate::rules::Rule;

/// May it happen, by which rule, what is left, when to come back.
#[derive(Clone, Debug)]
pub struct Decision {
    /// May it happen?
    pub verdict: Verdict,
    /// The rule that decided, or whose limit is the tightest of those that passed.
    pub rule: Option<Arc<Rule>>,
    /// What kind of thing decided.
    pub decided_by: DecidedBy,
    /// Whether any rule matched, or a ban by hand did.
    pub matched: bool,
    /// The deciding rule's number for the caller.
    pub code: Option<i64>,
    /// The deciding rule's text for the caller; for a ban by hand its reason.
    pub message: Option<Arc<str>>,
    /// The most that could be taken at once (`None`: unlimited, or no limit was asked).
    pub limit: Option<u64>,
    /// What could be taken right after this (`None`: unlimited, or no limit was asked). Rounded down.
    pub remaining: Option<u64>,
    /// The span in which `limit` is granted, where it has one; see [`Limit::window`].
    pub window: Option<Span>,
    /// The wait until the state is as if never used. Rounded up.
    pub reset_after: Span,
    /// The limits that were exceeded, in file order.
    pub exceeded: Vec<Exceeded>,
    /// The shadow rules that would have denied.
    pub shadow: Vec<Arc<Rule>>,
    /// The end of the ban that denies, or that this denial starts.
    pub banned_until: Option<Time>,
    /// Whether the store was away and the answer is a stopgap.
    pub degraded: bool,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// Nothing: no limit was asked, no rule had a say.
    Nothing,
    /// The limits of the rules that matched.
    Limits,
    /// A rule without limits, at once.
    Rule,
    /// A ban that a rule had imposed on the subject.
    Ban,
    /// A ban by hand.
    ManualBan,
}

/// A limit that was exceeded.
#[derive(Clone, Debug)]
pub struct Exceeded {
    /// The rule it belongs to.
    pub rule: Arc<Rule>,
    /// The limit.
    pub limit: Limit,
    /// When that limit alone would let the request pass.
    pub retry: Retry,
}

impl Decision {
    /// Nothing has an opinion: allowed, not matched.
    pub(crate) fn unmatched() -> Decision {
        Decision {
            verdict: Verdict::Allow { delay: Span::ZERO },
            rule: None,
            decided_by: DecidedBy::Nothing,
            matched: false,
            code: None,
            message: None,
            limit: None,
            remaining: None,
            window: None,
            reset_after: Span::ZERO,
            exceeded: Vec::new(),
            shadow: Vec::new(),
            banned_until: None,
            degraded: false,
        }
    }

    /// Decided by a rule: it speaks to the caller.
    pub(crate) fn by(mut self, rule: &Arc<Rule>) -> Decision {
        self.code = rule.code();
        self.message = rule.message().cloned();
        self.rule = Some(Arc::clone(rule));
        self
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
        self.verdict = self.verdict.in_real_time(at);
        self.reset_after = at.real_wait(self.reset_after);
        self.exceeded.iter_mut().for_each(|exceeded| exceeded.retry = exceeded.retry.in_real_time(at));
        self.banned_until = self.banned_until.map(|until| at.on_the_wall(until));
    }

    /// With the numbers of one limit.
    pub(crate) fn numbers(self, of: &Hit<'_>) -> Decision {
        let &flowgate::Decision { limit, remaining, reset_after, .. } = of.outcome();
        Decision { limit, remaining, window: of.limit().window(), reset_after, ..self }
    }

    /// Whether the request passes.
    pub fn allowed(&self) -> bool {
        self.verdict.allowed()
    }

    /// `allow`, or what the deciding rule asks of the caller.
    pub fn action(&self) -> &str {
        match &self.rule {
            _ if self.allowed() => "allow",
            Some(rule) => rule.action().as_str(),
            None => "deny",
        }
    }

    /// The wait after which the same request passes; `None` when it was allowed or no wait helps.
    pub fn retry_after(&self) -> Option<Span> {
        match self.verdict {
            Verdict::Deny(Retry::After(wait)) => Some(wait),
            _ => None,
        }
    }

    /// Whether it was denied and no wait helps.
    pub fn never(&self) -> bool {
        self.verdict == Verdict::Deny(Retry::Never)
    }

    /// How long to hold an allowed request before it goes (`pace`); zero otherwise.
    pub fn delay(&self) -> Span {
        match self.verdict {
            Verdict::Allow { delay } => delay,
            Verdict::Deny(_) => Span::ZERO,
        }
    }
}
