//! The answer: may it happen now, what is left, when to come back.

use crate::clock::Reading;
use crate::time::Span;

/// Whether a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It passes; with `pace`, after the caller has held it for `delay`.
    Allow {
        /// How long to hold the request; zero but for `pace`.
        delay: Span,
    },
    /// It does not pass now.
    Deny(Retry),
}

impl Verdict {
    /// Passes at once.
    pub(crate) const PASS: Verdict = Verdict::Allow { delay: Span::ZERO };

    /// Whether it passes.
    pub fn allowed(self) -> bool {
        matches!(self, Verdict::Allow { .. })
    }

    /// The same with another wait.
    #[must_use]
    pub fn map(self, change: impl Fn(Span) -> Span) -> Verdict {
        match self {
            Verdict::Allow { delay } => Verdict::Allow { delay: change(delay) },
            Verdict::Deny(retry) => Verdict::Deny(retry.map(change)),
        }
    }
}

/// When a denied request passes. Ordered by how long that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// After this wait, if nothing else happens; any less does not do.
    After(Span),
    /// No wait helps: the cost is more than the limit ever grants.
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
    /// May it happen?
    pub verdict: Verdict,
    /// The most that could be taken at once (`None`: unlimited).
    pub limit: Option<u64>,
    /// What could be taken right after this operation (`None`: unlimited). Rounded down.
    pub remaining: Option<u64>,
    /// The wait until the state is as if never used. Rounded up.
    pub reset_after: Span,
}

impl Decision {
    /// The answer where nothing is limited.
    pub(crate) const UNLIMITED: Decision =
        Decision { verdict: Verdict::PASS, limit: None, remaining: None, reset_after: Span::ZERO };

    /// Whether the request passes.
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

    /// Whether it was denied and no wait helps.
    pub fn never(&self) -> bool {
        self.verdict == Verdict::Deny(Retry::Never)
    }

    /// Whether it was denied because a full store had no room for the counter. The counter is as if never used, so its
    /// limit is not exceeded.
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

    /// Makes the waits real time. It was decided on the clock of `at`.
    #[inline]
    pub fn make_real(&mut self, at: Reading) {
        if !at.ahead.is_zero() {
            *self = self.in_real_time(at);
        }
    }

    // By value, so that a decision on a clock that is not ahead stays in the registers.
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
