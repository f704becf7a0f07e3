//! A hit: one limit applied to one counter.

use std::ops::{Deref, DerefMut};

use super::Verdict;
use crate::algorithm::{Counter, State};
use crate::ask::Ask;
use crate::class::Class;
use crate::decision::Decision;
use crate::limit::{Algorithm, Limit};
use crate::memory::Key;
use crate::time::Time;

/// How the limits of one rule behave together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleFlags {
    /// The rule is also charged for a request that it denies.
    pub count_denied: bool,
    /// The rule is evaluated and counted, but never denies.
    pub shadow: bool,
}

/// One limit applied to one counter: the element of a plan.
///
/// ```
/// use flowgate::{Ask, Decision, Hit, Limit, MemoryStore, Op, Plan, Time};
///
/// let memory = MemoryStore::default();
/// let (minute, day): (Limit, Limit) = ("5/60s".parse()?, "fixed 100/day tz=UTC".parse()?);
/// let subject = memory.subject(b"user:42");
/// let mut hits = [
///     Hit::new(subject.counter(memory.counter(b"reply minute")), &minute),
///     Hit::new(subject.counter(memory.counter(b"reply day")), &day),
/// ];
/// memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_secs(1_700_000_000)), &mut hits));
/// assert_eq!(Decision::from_hits(&hits).remaining, Some(4));
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Hit<'a> {
    pub(crate) key: Key,
    pub(crate) limit: &'a Limit,
    /// The hits of one rule stand next to each other.
    pub(crate) rule_id: u32,
    /// Where the store has found its counter, while it decides.
    pub(crate) slot: u32,
    pub(crate) flags: RuleFlags,
    /// Loaded by the store, changed by the decision.
    pub(crate) counter: LoadedCounter,
    /// The classes of the counter's two parts: loaded and changed with it.
    pub(crate) classes: [Class; 2],
    /// The number of slots of the counter that the store does not have and has not made room for.
    pub(crate) new_slots: u8,
    /// The store has no room for the new slots, so the counter cannot be charged.
    pub(crate) no_room: bool,
    pub(crate) outcome: Decision,
    used: u64,
}

/// A counter that a store has taken out for a decision. Most hits are decided where their counters lie, so it has a box of its
/// own: a hit is copied several times on its way.
#[derive(Debug, Default, Clone)]
pub(crate) struct LoadedCounter(Option<Box<Counter>>);

impl LoadedCounter {
    pub(crate) fn into_counter(self) -> Counter {
        self.0.map_or_else(Counter::default, |counter| *counter)
    }
}

impl From<Counter> for LoadedCounter {
    fn from(counter: Counter) -> LoadedCounter {
        LoadedCounter(Some(Box::new(counter)))
    }
}

impl Deref for LoadedCounter {
    type Target = Counter;

    fn deref(&self) -> &Counter {
        static UNUSED: Counter = Counter { state: State::Unused, seen: None };
        self.0.as_deref().unwrap_or(&UNUSED)
    }
}

impl DerefMut for LoadedCounter {
    fn deref_mut(&mut self) -> &mut Counter {
        self.0.get_or_insert_default()
    }
}

impl<'a> Hit<'a> {
    /// A hit on the counter `key` under `limit`. It belongs to rule 0, which has no flags.
    #[inline]
    pub fn new(key: Key, limit: &'a Limit) -> Hit<'a> {
        let outcome = Decision::UNLIMITED;
        let (counter, classes) = (LoadedCounter::default(), [Class::LITTLE; 2]);
        let (rule_id, flags) = (0, RuleFlags::default());
        Hit { key, limit, rule_id, slot: 0, flags, counter, classes, new_slots: 0, no_room: false, outcome, used: 0 }
    }

    /// The same hit as part of a rule. The hits of one rule stand next to each other in a plan.
    #[inline]
    #[must_use]
    pub fn in_rule(mut self, rule_id: u32, flags: RuleFlags) -> Hit<'a> {
        (self.rule_id, self.flags) = (rule_id, flags);
        self
    }

    /// The decision of this limit alone, after the plan was applied.
    pub fn outcome(&self) -> &Decision {
        &self.outcome
    }

    /// The number of units that are counted, after a [`Op::Peek`](crate::Op::Peek) was applied: also those that a record
    /// counted beyond the limit, of which `sliding` keeps none. With `after=`, all units of its period, the free ones included.
    /// Rounded up.
    ///
    /// ```
    /// use flowgate::{Ask, Hit, Limit, MemoryStore, Op, Plan, Time};
    ///
    /// let (memory, limit): (MemoryStore, Limit) = (MemoryStore::default(), "5/60s".parse()?);
    /// let mut hits = [Hit::new(memory.subject(b"user:42").counter(memory.counter(b"replies")), &limit)];
    /// let now = Time::from_secs(1_700_000_000);
    /// memory.apply(&mut Plan::one(Ask::new(Op::Take, 3, now), &mut hits));
    /// memory.apply(&mut Plan::one(Ask::new(Op::Peek, 0, now), &mut hits));
    /// assert_eq!(hits[0].used(), 3);
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The counter.
    #[inline]
    pub fn key(&self) -> Key {
        self.key
    }

    /// The rule of the hit.
    #[inline]
    pub fn rule_id(&self) -> u32 {
        self.rule_id
    }

    /// The flags of that rule.
    #[inline]
    pub fn flags(&self) -> RuleFlags {
        self.flags
    }

    /// The limit of the hit.
    pub fn limit(&self) -> &'a Limit {
        self.limit
    }

    /// A hit on the same counter, with the state that was loaded.
    pub(super) fn split_off(&mut self) -> Hit<'a> {
        Hit { counter: std::mem::take(&mut self.counter), ..Hit::new(self.key, self.limit) }
    }

    /// Loads and keeps what this limit has of the counter, too: limits of one counter may differ in `after=`.
    pub(super) fn cover(&mut self, limit: &'a Limit) {
        let extent = |limit: &Limit| (limit.algorithm() != Algorithm::Unlimited, limit.after_window().is_some());
        if extent(limit) > extent(self.limit) {
            self.limit = limit;
        }
    }

    /// Exchanges the counter and what the store says of it.
    pub(super) fn swap_counter(&mut self, other: &mut Hit<'_>) {
        std::mem::swap(&mut self.counter, &mut other.counter);
        std::mem::swap(&mut self.classes, &mut other.classes);
        std::mem::swap(&mut self.no_room, &mut other.no_room);
    }

    /// True if the rule only allows and denies: it has no flags.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.flags.count_denied && !self.flags.shadow
    }

    /// Whether it is as most hits are: its rule is plain, and its counter is one state.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.is_plain() && self.limit.has_one_state()
    }

    #[inline]
    pub(super) fn check(&self, ask: Ask) -> Verdict {
        let verdict = self.limit.check(ask, &self.counter);
        if self.no_room { verdict.refused() } else { verdict }
    }

    /// Fills in the outcome of a peek.
    #[inline]
    pub(super) fn look(&mut self, verdict: Verdict, now: Time) {
        self.used = self.limit.used(&self.counter, now);
        self.report(verdict, now);
    }

    #[inline]
    fn report(&mut self, verdict: Verdict, now: Time) {
        self.outcome = self.limit.status(&self.counter, now, verdict);
    }

    /// Fills in the outcome, and the classes that go with it. A counter that the store has no room for keeps its
    /// classes: the store denies, not the counter.
    #[inline]
    pub(super) fn conclude(&mut self, verdict: Verdict, now: Time) {
        self.report(verdict, now);
        if !self.no_room {
            self.classes = self.limit.classes(&self.counter, now, &self.outcome);
        }
    }
}
