//! The answer: may a request happen now, what is left, and when to come back.

use crate::clock::Reading;
use crate::time::Span;

/// Whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The request passes; with `pace`, after the caller has held it for `delay`.
    Allow {
        /// How long to hold the request; zero except under `pace`.
        delay: Span,
    },
    /// The request does not pass now.
    Deny(Retry),
}

impl Verdict {
    /// The verdict of a request that passes at once.
    pub(crate) const PASS: Verdict = Verdict::Allow { delay: Span::ZERO };

    /// True if the request passes.
    pub fn allowed(self) -> bool {
        matches!(self, Verdict::Allow { .. })
    }

    /// The same verdict with another wait.
    #[must_use]
    pub fn map(self, change: impl Fn(Span) -> Span) -> Verdict {
        match self {
            Verdict::Allow { delay } => Verdict::Allow { delay: change(delay) },
            Verdict::Deny(retry) => Verdict::Deny(retry.map(change)),
        }
    }
}

/// When a denied request passes. A longer wait is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// After exactly this wait, if nothing else happens.
    After(Span),
    /// Never: the cost is more than the limit ever grants.
    Never,
}

impl Retry {
    /// The same with another wait.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Span) -> Span) -> Retry {
        match self {
            Retry::After(wait) => Retry::After(change(wait)),
            Retry::Never => Retry::Never,
        }
    }
}

/// The answer to one operation.
///
/// With several limits, an allowed request carries the numbers of the tightest one (fewest remaining), a denied one
/// those of the limit with the longest wait.
///
/// ```
/// use flowgate::{Limiter, Retry, Verdict};
///
/// let limiter = Limiter::new("5/60s")?;
/// let decision = limiter.take("user:42");
/// assert!(decision.allowed());
/// assert_eq!(decision.remaining, Some(4));
///
/// match limiter.take_n("user:42", 6).verdict {
///     Verdict::Allow { delay } => println!("go, after {delay}"),
///     Verdict::Deny(Retry::After(wait)) => println!("come back in {wait}"),
///     Verdict::Deny(Retry::Never) => println!("six at once will never do"),
/// }
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request passes.
    pub verdict: Verdict,
    /// The most that could be taken at once (`None`: unlimited).
    pub limit: Option<u64>,
    /// What could be taken right after this operation (`None`: unlimited). Rounded down.
    pub remaining: Option<u64>,
    /// The wait until the state is as if never used. Rounded up.
    pub reset_after: Span,
}

impl Decision {
    /// The answer without a limit.
    pub(crate) const UNLIMITED: Decision =
        Decision { verdict: Verdict::PASS, limit: None, remaining: None, reset_after: Span::ZERO };

    /// True if the request passes.
    pub fn allowed(&self) -> bool {
        self.verdict.allowed()
    }

    /// The wait after which the same request passes; `None` when it was allowed or no wait helps.
    pub fn retry_after(&self) -> Option<Span> {
        match self.verdict {
            Verdict::Deny(Retry::After(wait)) => Some(wait),
            _ => None,
        }
    }

    /// True if the request was denied and no wait helps.
    pub fn never(&self) -> bool {
        self.verdict == Verdict::Deny(Retry::Never)
    }

    /// True if the request was denied because a full store had no room for the counter. The counter is as if never
    /// used, so its limit is not exceeded.
    pub fn lacks_room(&self) -> bool {
        self.retry_after().is_some() && self.reset_after.is_zero()
    }

    /// How long to hold an allowed request before it goes (`pace`); zero otherwise.
    pub fn delay(&self) -> Span {
        match self.verdict {
            Verdict::Allow { delay } => delay,
            Verdict::Deny(_) => Span::ZERO,
        }
    }

    /// Converts the waits to real time. The decision was made on the clock of `at`.
    #[inline]
    pub fn make_real(&mut self, at: Reading) {
        if !at.ahead.is_zero() {
            *self = self.in_real_time(at);
        }
    }

    // This takes the decision by value, so that one on a clock that is not ahead stays in registers.
    #[cold]
    fn in_real_time(mut self, at: Reading) -> Decision {
        self.map_waits(|wait| at.real_wait(wait));
        self
    }

    /// Changes every wait.
    #[cold]
    pub fn map_waits(&mut self, change: impl Fn(Span) -> Span) {
        self.verdict = self.verdict.map(&change);
        self.reset_after = change(self.reset_after);
    }
}
