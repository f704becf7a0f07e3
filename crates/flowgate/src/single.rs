//! One counter without a key: for a whole process, a backend, a worker.

mod instant;
mod spin;

use std::sync::{Mutex, PoisonError};

use crate::algorithm::Counter;
use crate::ask::{Ask, Op};
use crate::clock::{Clock, Reading};
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::{Limit, LimitError};
use crate::memory::Subject;
use crate::queue::Queues;
use crate::time::Span;
use crate::wait::{Turns, WaitError, Waiting};
use instant::AtomicInstant;
use spin::SpinWords;

/// A limit on one thing: the calls to a backend, the jobs of a worker.
///
/// It is a [`Limiter`](crate::Limiter) without keys: no table, no hash, about ten nanoseconds a decision. Share it by
/// reference or in an `Arc`.
///
/// ```
/// use flowgate::Single;
///
/// static CALLS: std::sync::LazyLock<Single> = std::sync::LazyLock::new(|| Single::new("bucket 500/s").unwrap());
///
/// let passed = (0..1000).filter(|_| CALLS.take().allowed()).count();
/// assert!(passed >= 500);
/// ```
#[derive(Debug)]
pub struct Single {
    limit: Limit,
    counter: SharedCounter,
    clock: Clock,
    queues: Queues,
}

#[derive(Debug)]
enum SharedCounter {
    Instant(AtomicInstant),
    Words(SpinWords),
    Counter(Mutex<Counter>),
}

impl Single {
    /// A counter under the limit that `text` says, with the real clock.
    ///
    /// # Errors
    /// When the limit cannot be parsed.
    pub fn new(text: &str) -> Result<Single, LimitError> {
        Ok(Single::from_limit(text.parse()?))
    }

    /// A counter under `limit`, with the real clock.
    pub fn from_limit(limit: Limit) -> Single {
        let counter = match limit.instant_bucket() {
            Some(bucket) => SharedCounter::Instant(AtomicInstant::new(bucket.clone())),
            None if limit.is_words() => SharedCounter::Words(SpinWords::default()),
            None => SharedCounter::Counter(Mutex::default()),
        };
        Single { limit, counter, clock: Clock::default(), queues: Queues::default() }
    }

    /// The same counter with another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Into<Clock>) -> Single {
        self.clock = clock.into();
        self
    }

    /// Takes one unit, if the limit allows it.
    #[inline]
    pub fn take(&self) -> Decision {
        self.take_n(1)
    }

    /// Takes `cost` units, all of them or none.
    #[inline]
    pub fn take_n(&self, cost: u64) -> Decision {
        self.take_at(cost, self.clock.read())
    }

    /// Takes `cost` units at a time that was read before: once for a whole batch. Waits are given in real time if it is
    /// a [`Reading`] of a clock, and on the caller's own clock if it is a [`Time`](crate::Time).
    #[inline]
    pub fn take_at(&self, cost: u64, at: impl Into<Reading>) -> Decision {
        self.apply_at(Op::Take, cost, at)
    }

    /// Would `cost` units pass? Changes nothing; a peek of 0 reads the state.
    pub fn peek(&self, cost: u64) -> Decision {
        self.apply_at(Op::Peek, cost, self.clock.read())
    }

    /// Counts `cost` units that happened anyway, even past the limit.
    pub fn record(&self, cost: u64) -> Decision {
        self.apply_at(Op::Record, cost, self.clock.read())
    }

    /// Gives `cost` units back, never beyond a fresh state.
    pub fn refund(&self, cost: u64) -> Decision {
        self.apply_at(Op::Refund, cost, self.clock.read())
    }

    /// Blocks until `cost` units may go, and takes them. Callers are served in the order they came. A caller that gives
    /// up after `at_most` costs nothing.
    ///
    /// ```
    /// use flowgate::{Single, Span, WaitError};
    ///
    /// let calls = Single::new("pace 1000/s")?;
    /// calls.wait(1, Span::MAX).unwrap();
    /// calls.wait(1, Span::MAX).unwrap(); // a millisecond later
    /// assert_eq!(calls.wait(2, Span::MAX), Err(WaitError::Never));
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Limiter::wait`](crate::Limiter::wait).
    pub fn wait(&self, cost: u64, at_most: impl Into<Span>) -> Result<Decision, WaitError> {
        Waiting::new(self, cost, at_most.into()).block()
    }

    /// Waits until `cost` units may go, and takes them. Dropping the future gives up the place in the queue.
    ///
    /// # Errors
    /// As [`Limiter::wait`](crate::Limiter::wait).
    #[cfg(feature = "tokio")]
    pub async fn wait_async(&self, cost: u64, at_most: impl Into<Span>) -> Result<Decision, WaitError> {
        Waiting::new(self, cost, at_most.into()).run().await
    }

    /// Applies any operation at any time; see [`take_at`](Single::take_at). Always inlined, so that `take_at` is
    /// compiled for takes alone.
    #[inline(always)]
    pub fn apply_at(&self, op: Op, cost: u64, at: impl Into<Reading>) -> Decision {
        let at = at.into();
        if let SharedCounter::Instant(instant) = &self.counter
            && op == Op::Take
            && cost > 0
        {
            let mut decision = instant.take(cost, at.now);
            decision.make_real(at);
            return decision;
        }
        self.apply_any(op, cost, at)
    }

    // This is not inlined, so that a take from an instant stays in registers.
    #[inline(never)]
    fn apply_any(&self, op: Op, cost: u64, at: Reading) -> Decision {
        let ask = Ask { op: op.on_clock(at), cost, now: at.now };
        let mut decision = match &self.counter {
            SharedCounter::Instant(instant) => instant.apply(ask),
            SharedCounter::Words(spin) => {
                let mut words = spin.take();
                let (decision, _) = self.limit.apply_words(ask, &mut words);
                spin.put(words);
                decision
            }
            SharedCounter::Counter(counter) => {
                let mut counter = counter.lock().unwrap_or_else(PoisonError::into_inner);
                self.limit.apply(ask, &mut counter)
            }
        };
        decision.make_real(at);
        decision
    }

    /// The limit of the counter.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }
}

impl<'a> Turns<'a> for &'a Single {
    fn clock(self) -> &'a Clock {
        &self.clock
    }

    fn queues(self) -> &'a Queues {
        &self.queues
    }

    fn subject(self) -> Subject {
        Subject::ONLY
    }

    fn try_turn(self, cost: u64, at: Reading) -> Decision {
        self.apply_at(Op::TakeWithin(Span::ZERO), cost, at)
    }

    fn look_ahead(self, cost: u64, at: Reading) -> Verdict {
        if self.limit.never_grants(cost, at.now) {
            return Verdict::Deny(Retry::Never);
        }
        self.apply_at(Op::Peek, cost, at).verdict
    }
}
