//! The limiter: a set of limits, a store and a clock behind one type.

mod limits_in_force;
mod take_each;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::ask::{Ask, Op};
use crate::clock::{Clock, Reading};
use crate::decision::{Decision, Retry, Verdict};
use crate::key_bytes::KeyBytes;
use crate::limit::{Limit, LimitError, Part};
use crate::memory::{CounterId, MemoryConfig, MemoryStats, MemoryStore, Seed, Subject, WhenFull};
use crate::plan::{Hit, RuleFlags};
use crate::queue::Queues;
use crate::time::Span;
use crate::wait::{Turns, WaitError, Waiting};
use limits_in_force::{LimitsInForce, NamedLimit, named};

/// The number of limits up to which a key is decided without an allocation.
const INLINE_LIMITS: usize = 10;

/// Limits for any number of keys: users, addresses, jobs.
///
/// Cheap to clone, and clones share all counters. Every operation is exact under concurrency: of a thousand threads
/// that take at the same instant under `5/60s`, five pass.
///
/// ```
/// use flowgate::Limiter;
///
/// let limiter = Limiter::new("5/60s")?;
/// let passed = (0..10).filter(|_| limiter.take("user:42").allowed()).count();
/// assert_eq!(passed, 5);
/// assert!(limiter.take("user:43").allowed());
/// # Ok::<(), flowgate::LimitError>(())
/// ```
///
/// A text, bytes, a number or an address is a key: see [`KeyBytes`].
///
/// Several limits are applied all or nothing: what one of them denies, none of them counts.
///
/// ```
/// # use flowgate::Limiter;
/// let limiter = Limiter::new(["300/60s", "100/5s"])?;
/// let decision = limiter.take_n("10.0.0.1", 100);
/// assert_eq!((decision.limit, decision.remaining), (Some(100), Some(0)));
/// assert!(!limiter.take("10.0.0.1").allowed());
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limiter {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: LimitsInForce,
    flags: RuleFlags,
    memory: MemoryStore,
    clock: Clock,
    queues: Queues,
}

impl Limiter {
    /// A limiter with the real clock and room for 64 MiB of counters.
    ///
    /// # Errors
    /// When a limit cannot be parsed.
    pub fn new(limits: impl IntoLimits) -> Result<Limiter, LimitError> {
        Limiter::builder(limits).build()
    }

    /// Starts a limiter with other than the default settings.
    pub fn builder(limits: impl IntoLimits) -> LimiterBuilder {
        LimiterBuilder {
            limits: limits.into_limits(),
            clock: Clock::default(),
            memory: MemoryConfig::default(),
            count_denied: false,
        }
    }

    /// Takes one unit, if all limits allow it.
    #[inline]
    pub fn take(&self, key: impl KeyBytes) -> Decision {
        self.take_n(key, 1)
    }

    /// Takes `cost` units, all of them or none.
    #[inline]
    pub fn take_n(&self, key: impl KeyBytes, cost: u64) -> Decision {
        let subject = self.fetched_subject(key);
        self.take_subject(subject, cost, self.inner.clock.read())
    }

    /// Takes `cost` units at a time that was read before: once for a whole batch. Waits are given in real time if it is
    /// a [`Reading`] of a clock, and on the caller's own clock if it is a [`Time`](crate::Time).
    ///
    /// ```
    /// # use flowgate::Limiter;
    /// let limiter = Limiter::new("bucket 1000/s")?;
    /// let now = limiter.clock().read();
    /// let passed = ["a", "b", "c"].iter().filter(|key| limiter.take_at(key, 1, now).allowed()).count();
    /// assert_eq!(passed, 3);
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    #[inline]
    pub fn take_at(&self, key: impl KeyBytes, cost: u64, at: impl Into<Reading>) -> Decision {
        self.take_subject(self.fetched_subject(key), cost, at.into())
    }

    /// Would `cost` units pass? Changes nothing; a peek of 0 reads the state.
    ///
    /// ```
    /// # use flowgate::Limiter;
    /// let limiter = Limiter::new("5/60s")?;
    /// limiter.take("user:42");
    /// assert_eq!(limiter.peek("user:42", 0).remaining, Some(4));
    /// assert!(!limiter.peek("user:42", 5).allowed());
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn peek(&self, key: impl KeyBytes, cost: u64) -> Decision {
        self.apply_at(Op::Peek, key, cost, self.inner.clock.read())
    }

    /// Counts `cost` units that happened anyway, even past the limit.
    ///
    /// ```
    /// # use flowgate::Limiter;
    /// let limiter = Limiter::new("5/60s")?;
    /// limiter.record("user:42", 7);
    /// assert!(!limiter.take("user:42").allowed());
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn record(&self, key: impl KeyBytes, cost: u64) -> Decision {
        self.apply_at(Op::Record, key, cost, self.inner.clock.read())
    }

    /// Gives `cost` units back, never beyond a fresh state: a call that failed need not count.
    ///
    /// ```
    /// # use flowgate::Limiter;
    /// let limiter = Limiter::new("5/60s")?;
    /// limiter.take("user:42");
    /// assert_eq!(limiter.refund("user:42", 1).remaining, Some(5));
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn refund(&self, key: impl KeyBytes, cost: u64) -> Decision {
        self.apply_at(Op::Refund, key, cost, self.inner.clock.read())
    }

    /// Forgets everything that was counted for `key`; true if there was a counter.
    ///
    /// ```
    /// # use flowgate::Limiter;
    /// let limiter = Limiter::new("1/60s")?;
    /// limiter.take("user:42");
    /// assert!(limiter.reset("user:42"));
    /// assert!(limiter.take("user:42").allowed());
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn reset(&self, key: impl KeyBytes) -> bool {
        let Inner { memory, limits, .. } = &*self.inner;
        let subject = self.subject(key);
        limits.read(|limits| limits.iter().fold(false, |found, named| memory.reset(subject.counter(named.id)) | found))
    }

    /// Applies any operation at any time; see [`take_at`](Limiter::take_at).
    #[inline]
    pub fn apply_at(&self, op: Op, key: impl KeyBytes, cost: u64, at: impl Into<Reading>) -> Decision {
        self.apply(op, self.subject(key), cost, at.into())
    }

    /// Blocks until `cost` units may go, and takes them.
    ///
    /// Callers of a key are served in the order they came. The thread sleeps meanwhile. A caller that gives up, here by
    /// way of `at_most`, costs nothing. With the `tokio` feature, `wait_async` does the same for tasks.
    ///
    /// ```
    /// use flowgate::{Limiter, Span, WaitError};
    ///
    /// let limiter = Limiter::new("pace 1000/s")?;
    /// limiter.wait("backend", 1, Span::MAX).unwrap();
    /// limiter.wait("backend", 1, Span::MAX).unwrap(); // a millisecond later
    ///
    /// let hourly = Limiter::new("1/h")?;
    /// hourly.wait("report", 1, Span::ZERO).unwrap();
    /// assert!(matches!(hourly.wait("report", 1, Span::from_secs(5)), Err(WaitError::TooLong(_))));
    /// assert_eq!(hourly.wait("report", 2, Span::MAX), Err(WaitError::Never));
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// At once if no wait helps, or if the turn comes later than `at_most` even when all callers before this one leave.
    /// Else after `at_most`, if the callers before this one take too long.
    pub fn wait(&self, key: impl KeyBytes, cost: u64, at_most: impl Into<Span>) -> Result<Decision, WaitError> {
        Waiting::new(self.turns(key), cost, at_most.into()).block()
    }

    /// Waits until `cost` units may go, and takes them. Dropping the future gives up the place in the queue.
    ///
    /// ```
    /// # use flowgate::{Limiter, Span};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Limiter::new("pace 1000/s")?;
    /// for _ in 0..3 {
    ///     limiter.wait_async("backend", 1, Span::from_secs(1)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// At once if no wait helps, or if the turn comes later than `at_most` even when all callers before this one leave.
    /// Else after `at_most`, if the callers before this one take too long.
    #[cfg(feature = "tokio")]
    pub async fn wait_async(
        &self,
        key: impl KeyBytes,
        cost: u64,
        at_most: impl Into<Span>,
    ) -> Result<Decision, WaitError> {
        Waiting::new(self.turns(key), cost, at_most.into()).run().await
    }

    /// Puts other limits in force, for all clones, from the next operation on.
    ///
    /// A counter survives when its limit's algorithm and period stay: raising `5/60s` to `10/60s` keeps
    /// what was counted.
    ///
    /// ```
    /// # use flowgate::Limiter;
    /// let limiter = Limiter::new("5/60s")?;
    /// limiter.take_n("user:42", 5);
    /// limiter.set_limits("7/60s")?;
    /// assert_eq!(limiter.peek("user:42", 0).remaining, Some(2));
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// When a limit cannot be parsed; the old limits then stay in force.
    pub fn set_limits(&self, limits: impl IntoLimits) -> Result<(), LimitError> {
        self.inner.limits.replace(named(&self.inner.memory, limits.into_limits()?));
        Ok(())
    }

    /// The limits in force.
    pub fn limits(&self) -> Vec<Limit> {
        self.inner.limits.read(|limits| limits.iter().map(|named| named.limit.clone()).collect())
    }

    /// The clock of the limiter.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// What the store holds, and what it had to give up.
    pub fn stats(&self) -> MemoryStats {
        self.inner.memory.stats()
    }

    /// As `apply`, compiled for takes alone, once for all types of keys.
    fn take_subject(&self, subject: Subject, cost: u64, at: Reading) -> Decision {
        self.apply(Op::Take, subject, cost, at)
    }

    #[inline(always)]
    fn apply(&self, op: Op, subject: Subject, cost: u64, at: Reading) -> Decision {
        self.apply_as(self.inner.flags, op, subject, cost, at)
    }

    #[inline]
    fn subject(&self, key: impl KeyBytes) -> Subject {
        key.with_bytes(|bytes| self.inner.memory.subject(bytes))
    }

    /// The subject of a key that is about to be decided. Its counters are fetched into the cache while the clock is read and the
    /// lock is taken.
    #[inline]
    fn fetched_subject(&self, key: impl KeyBytes) -> Subject {
        let subject = self.subject(key);
        self.inner.memory.prefetch(subject.counter(CounterId::default()));
        subject
    }

    fn turns(&self, key: impl KeyBytes) -> KeyTurns<'_> {
        KeyTurns { limiter: self, subject: self.subject(key) }
    }

    #[inline(always)]
    fn apply_as(&self, flags: RuleFlags, op: Op, subject: Subject, cost: u64, at: Reading) -> Decision {
        let Inner { limits, memory, .. } = &*self.inner;
        let ask = Ask { op: op.on_clock(at), cost, now: at.now };
        let mut decision = limits.read(|limits| match limits {
            [NamedLimit { id, limit }] if !flags.count_denied => memory.apply_one(ask, subject.counter(*id), limit),
            limits => apply_all(memory, ask, subject, limits, flags),
        });
        decision.make_real(at);
        decision
    }
}

fn apply_all(memory: &MemoryStore, ask: Ask, subject: Subject, limits: &[NamedLimit], flags: RuleFlags) -> Decision {
    let mut hits: SmallVec<[Hit<'_>; INLINE_LIMITS]> = SmallVec::new();
    hits.extend(limits.iter().map(|named| Hit::new(subject.counter(named.id), &named.limit).in_rule(0, flags)));
    memory.apply_part(ask, &mut hits, &mut []);
    Decision::from_hits(&hits)
}

/// The turns of one key.
#[derive(Clone, Copy)]
struct KeyTurns<'a> {
    limiter: &'a Limiter,
    subject: Subject,
}

impl<'a> Turns<'a> for KeyTurns<'a> {
    fn clock(self) -> &'a Clock {
        &self.limiter.inner.clock
    }

    fn queues(self) -> &'a Queues {
        &self.limiter.inner.queues
    }

    fn subject(self) -> Subject {
        self.subject
    }

    /// Denied attempts of a waiting caller are not charged, even if the limiter counts denied requests.
    fn try_turn(self, cost: u64, at: Reading) -> Decision {
        let flags = RuleFlags::default();
        self.limiter.apply_as(flags, Op::TakeWithin(Span::ZERO), self.subject, cost, at)
    }

    fn look_ahead(self, cost: u64, at: Reading) -> Verdict {
        let never = |named: &NamedLimit| named.limit.never_grants(cost, at.now);
        if self.limiter.inner.limits.read(|limits| limits.iter().any(never)) {
            return Verdict::Deny(Retry::Never);
        }
        self.limiter.apply(Op::Peek, self.subject, cost, at).verdict
    }
}

/// A limiter in the making.
///
/// ```
/// use flowgate::{Limiter, WhenFull};
///
/// let limiter = Limiter::builder(["5/60s", "fixed 100/day tz=Asia/Shanghai"])
///     .max_bytes(256 << 20)
///     .when_full(WhenFull::Deny)
///     .count_denied(true)
///     .build()?;
/// assert_eq!(limiter.take("user:42").remaining, Some(4));
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct LimiterBuilder {
    limits: Result<Vec<Limit>, LimitError>,
    clock: Clock,
    memory: MemoryConfig,
    count_denied: bool,
}

impl LimiterBuilder {
    /// Sets the source of the time. Default: the real clock.
    pub fn clock(mut self, clock: impl Into<Clock>) -> LimiterBuilder {
        self.clock = clock.into();
        self
    }

    /// Sets the most bytes that all counters together may take. A few counters always fit. Default: 64 MiB.
    pub fn max_bytes(mut self, max_bytes: usize) -> LimiterBuilder {
        self.memory.max_bytes = max_bytes;
        self
    }

    /// Sets what happens when these bytes are spent. Default: evict.
    pub fn when_full(mut self, when_full: WhenFull) -> LimiterBuilder {
        self.memory.when_full = when_full;
        self
    }

    /// Sets the key of the hash under which keys are kept. Default: random.
    pub fn seed(mut self, seed: Seed) -> LimiterBuilder {
        self.memory.seed = seed;
        self
    }

    /// Sets whether a denied request counts, too, so that a client that keeps asking stays out. Default: no.
    pub fn count_denied(mut self, count_denied: bool) -> LimiterBuilder {
        self.count_denied = count_denied;
        self
    }

    /// Makes the limiter.
    ///
    /// # Errors
    /// When a limit cannot be parsed.
    pub fn build(self) -> Result<Limiter, LimitError> {
        let memory = MemoryStore::new(self.memory);
        let limits = LimitsInForce::new(named(&memory, self.limits?));
        let flags = RuleFlags { count_denied: self.count_denied, shadow: false };
        let queues = Queues::default();
        Ok(Limiter { inner: Arc::new(Inner { limits, flags, memory, clock: self.clock, queues }) })
    }
}

/// The limits of a [`Limiter`]: one or several, as texts or built.
///
/// ```
/// use flowgate::{Limit, Limiter};
///
/// Limiter::new("5/60s")?;
/// Limiter::new(Limit::unlimited())?;
/// Limiter::new(["5/60s", "100/h"])?;
/// Limiter::new(vec!["5/60s".to_string()])?;
/// # Ok::<(), flowgate::LimitError>(())
/// ```
pub trait IntoLimits {
    /// The limits.
    ///
    /// # Errors
    /// When one cannot be parsed.
    fn into_limits(self) -> Result<Vec<Limit>, LimitError>;
}

impl IntoLimits for &str {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        Ok(vec![self.parse()?])
    }
}

impl IntoLimits for &&str {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        (*self).into_limits()
    }
}

impl IntoLimits for String {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        self.as_str().into_limits()
    }
}

impl IntoLimits for &String {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        self.as_str().into_limits()
    }
}

impl IntoLimits for Limit {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        Ok(vec![self])
    }
}

impl IntoLimits for &Limit {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        Ok(vec![self.clone()])
    }
}

impl<T: IntoLimits> IntoLimits for Vec<T> {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        collect(self)
    }
}

impl<T: IntoLimits, const N: usize> IntoLimits for [T; N] {
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        collect(self)
    }
}

impl<'a, T> IntoLimits for &'a [T]
where
    &'a T: IntoLimits,
{
    fn into_limits(self) -> Result<Vec<Limit>, LimitError> {
        collect(self)
    }
}

/// Requires at least one limit. An empty list mostly comes from a missing configuration and must not mean "unlimited".
fn collect<T: IntoLimits>(items: impl IntoIterator<Item = T>) -> Result<Vec<Limit>, LimitError> {
    let mut limits = Vec::new();
    for item in items {
        limits.extend(item.into_limits()?);
    }
    if limits.is_empty() {
        return Err(LimitError::new(Part::Limit, "[]", "at least one limit (`unlimited` where there is to be none)"));
    }
    Ok(limits)
}
