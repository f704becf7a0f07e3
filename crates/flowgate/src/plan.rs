//! A plan: what one request asks of its counters, and the one function that decides it.
//!
//! Rule       The hits of all rules are applied together. If any is exceeded, nothing is consumed; otherwise all
//!            are charged. A shadow rule neither denies nor is held back: it is charged by itself when it would
//!            pass. A rule that counts denied requests is charged, within its caps, when it denies. A ban in force
//!            denies before any limit is asked and nothing at all changes; otherwise a rule that denies strikes.
//!            A hit for whose counter there is no room is denied.
//! Invariant  [`decide`] is pure: a store loads the counters before it and keeps them after it, under its locks.

use crate::algorithm::{Charge, Counter};
use crate::ban::{BanHit, Standing};
use crate::class::Class;
use crate::clock::Reading;
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::Limit;
use crate::memory::Key;
use crate::time::{Span, Time};

/// What to do with the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Check and count, in one step.
    Take,
    /// Would it pass? Changes nothing.
    Peek,
    /// Count, whatever the limit says.
    Record,
    /// Check, and count whatever the answer is: the verdict of a [`Op::Peek`] with the state that a [`Op::Record`]
    /// leaves, in one step. Each hit is counted by itself, so nothing is ever taken back. The numbers are those after
    /// it. (What Koala's `_writeThrough` does.)
    CheckAndRecord,
    /// Give back; never beyond a fresh state.
    Refund,
    /// Take, for one who would not be held for longer than this: as if no `pace` had a larger `max_wait`. With
    /// [`Span::ZERO`] only what may go at once is taken.
    TakeWithin(Span),
    /// Take, but denied whatever the limits say, because something else has decided so: changes what a denial
    /// changes and nothing else.
    Deny,
}

impl Op {
    /// The same for a clock that is ahead: the time for which a caller would be held is real time.
    #[inline]
    #[must_use]
    pub fn on_clock(self, at: Reading) -> Op {
        match self {
            Op::TakeWithin(longest) => Op::TakeWithin(at.passes_in(longest)),
            other => other,
        }
    }

    /// Whether it asks to pass, rather than correcting a count.
    pub(crate) fn asks(self) -> bool {
        matches!(self, Op::Take | Op::TakeWithin(_) | Op::CheckAndRecord | Op::Peek | Op::Deny)
    }

    /// Whether it may leave a counter where there was none.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Op::Take | Op::TakeWithin(_) | Op::CheckAndRecord | Op::Record | Op::Deny)
    }
}

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
/// use flowgate::{Decision, Hit, Limit, MemoryStore, Op, Time};
///
/// let memory = MemoryStore::default();
/// let (minute, day): (Limit, Limit) = ("5/60s".parse()?, "fixed 100/day tz=UTC".parse()?);
/// let subject = memory.subject(b"user:42");
/// let mut plan = [
///     Hit::new(subject.counter(memory.counter(b"reply minute")), &minute),
///     Hit::new(subject.counter(memory.counter(b"reply day")), &day),
/// ];
/// memory.apply(Op::Take, 1, Time::from_secs(1_700_000_000), &mut plan);
/// assert_eq!(Decision::from_hits(&plan).remaining, Some(4));
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Hit<'a> {
    pub(crate) key: Key,
    pub(crate) limit: &'a Limit,
    /// The hits of one rule stand next to each other.
    pub(crate) rule_id: u32,
    pub(crate) flags: RuleFlags,
    /// Loaded by the store, changed by [`decide`].
    pub(crate) counter: Counter,
    /// The classes of the counter's two parts: loaded and changed with it.
    pub(crate) classes: [Class; 2],
    /// How many slots of its counter the store neither has nor has made room for.
    pub(crate) new_slots: usize,
    /// The store has no room for the new slots, so the counter cannot be charged.
    pub(crate) no_room: bool,
    pub(crate) outcome: Decision,
}

impl<'a> Hit<'a> {
    /// A hit on the counter `key` under `limit`. It belongs to rule 0, which has no flags.
    #[inline]
    pub fn new(key: Key, limit: &'a Limit) -> Hit<'a> {
        let outcome = Decision { verdict: Verdict::PASS, limit: None, remaining: None, reset_after: Span::ZERO };
        let (counter, classes) = (Counter::default(), [Class::LITTLE; 2]);
        let (rule_id, flags) = (0, RuleFlags::default());
        Hit { key, limit, rule_id, flags, counter, classes, new_slots: 0, no_room: false, outcome }
    }

    /// The same hit as part of a rule. The hits of one rule stand next to each other in a plan.
    #[inline]
    #[must_use]
    pub fn in_rule(self, rule_id: u32, flags: RuleFlags) -> Hit<'a> {
        Hit { rule_id, flags, ..self }
    }

    /// What became of it, once it was applied.
    pub fn outcome(&self) -> &Decision {
        &self.outcome
    }

    /// The counter.
    #[inline]
    pub fn key(&self) -> Key {
        self.key
    }

    /// The rule it belongs to.
    #[inline]
    pub fn rule_id(&self) -> u32 {
        self.rule_id
    }

    /// The flags of that rule.
    #[inline]
    pub fn flags(&self) -> RuleFlags {
        self.flags
    }

    /// The limit it is under.
    pub fn limit(&self) -> &'a Limit {
        self.limit
    }

    /// Whether its rule does nothing but allow and deny.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        !self.flags.count_denied && !self.flags.shadow
    }

    #[inline]
    fn check(&self, op: Op, cost: u64, now: Time) -> Verdict {
        let verdict = self.limit.check(op, &self.counter, now, cost);
        if self.no_room { verdict.refused() } else { verdict }
    }

    /// Fills in the outcome of a look.
    #[inline]
    fn report(&mut self, verdict: Verdict, now: Time) {
        self.outcome = self.limit.status(&self.counter, now, verdict);
    }

    /// Fills in the outcome, and the classes that go with it. A counter that the store denies for want of room has
    /// not denied anything itself.
    #[inline]
    fn conclude(&mut self, verdict: Verdict, now: Time) {
        self.report(verdict, now);
        if !self.no_room {
            self.classes = self.limit.classes(&self.counter, now, &self.outcome);
        }
    }
}

/// Applies `op` to the counters of all hits and fills in their outcomes.
#[inline]
pub(crate) fn decide(op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>]) {
    match op {
        Op::Take | Op::TakeWithin(_) | Op::Deny => take(op, cost, now, hits),
        Op::Peek => {
            for hit in hits {
                hit.report(hit.check(op, cost, now), now);
            }
        }
        Op::Record | Op::CheckAndRecord => {
            for hit in hits {
                let verdict = match op {
                    Op::CheckAndRecord => hit.check(op, cost, now),
                    _ if hit.no_room => Verdict::PASS.refused(),
                    _ => Verdict::PASS,
                };
                if !hit.no_room {
                    hit.limit.charge(&mut hit.counter, now, cost, Charge::Counted);
                }
                hit.conclude(verdict, now);
            }
        }
        Op::Refund => {
            for hit in hits {
                hit.limit.refund(&mut hit.counter, now, cost);
                hit.conclude(Verdict::PASS, now);
            }
        }
    }
}

/// As [`decide`], where some of the rules ban.
pub(crate) fn decide_banning(op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>], bans: &mut [BanHit<'_>]) {
    bans.iter_mut().for_each(|ban| ban.look(now));
    if op.asks() && bans.iter().any(|ban| ban.standing != Standing::Clear) {
        return decide(Op::Peek, cost, now, hits);
    }
    decide(op, cost, now, hits);
    if op == Op::Peek || !op.asks() {
        return;
    }
    for ban in bans {
        let mut of_rule = hits.iter().filter(|hit| hit.rule_id == ban.rule_id && !hit.flags.shadow);
        // That the store is full is nobody's fault.
        if of_rule.any(|hit| !hit.outcome.allowed() && !hit.no_room) {
            ban.strike(now);
        }
    }
}

#[inline]
fn take(op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>]) {
    let mut denied = op == Op::Deny;
    for hit in hits.iter_mut() {
        hit.outcome.verdict = hit.check(op, cost, now);
        denied |= !hit.outcome.allowed() && !hit.flags.shadow;
    }
    for rule_hits in hits.chunk_by_mut(|a, b| a.rule_id == b.rule_id) {
        settle(op, cost, now, rule_hits, denied);
    }
}

/// Charges the hits of one rule, or does not, and concludes them. Their verdicts are in, `denied` is the request's.
#[inline]
fn settle(op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>], denied: bool) {
    let flags = hits[0].flags;
    let exceeded = hits.iter().any(|hit| !hit.outcome.allowed());
    let passes = if flags.shadow { !exceeded } else { !denied };
    let counts_denied = exceeded && flags.count_denied && !hits.iter().any(|hit| hit.outcome.never() || hit.no_room);
    for hit in hits {
        let mut verdict = hit.outcome.verdict;
        if passes {
            hit.limit.charge(&mut hit.counter, now, cost, Charge::Counted);
        } else if counts_denied {
            hit.limit.charge(&mut hit.counter, now, cost, Charge::Denied);
            verdict = hit.check(op, cost, now);
        }
        hit.conclude(verdict, now);
    }
}

/// The answer on a counter that there is no room for: that of a fresh one, denied.
pub(crate) fn refused(limit: &Limit, now: Time, verdict: Verdict) -> Decision {
    limit.status(&Counter::default(), now, verdict.refused())
}

impl Verdict {
    /// The same for who finds no room: denied.
    fn refused(self) -> Verdict {
        if self.allowed() { Verdict::Deny(Retry::After(REFUSED_RETRY)) } else { self }
    }
}

/// When to come back to a store that was full. Nobody knows when it will have room.
pub(crate) const REFUSED_RETRY: Span = Span::from_secs(1);

impl Decision {
    /// The answer of several limits together: denied if any denies. Hits of shadow rules do not count.
    ///
    /// Allowed, the numbers are those of the tightest limit (fewest remaining; the first on a tie) and the delay is
    /// the longest; denied, they are those of the limit with the longest wait (the first on a tie).
    pub fn from_hits(hits: &[Hit<'_>]) -> Decision {
        let mut outcomes = hits.iter().filter(|hit| !hit.flags.shadow).map(|hit| hit.outcome);
        let unlimited = Decision { verdict: Verdict::PASS, limit: None, remaining: None, reset_after: Span::ZERO };
        let Some(first) = outcomes.next() else { return unlimited };
        outcomes.fold(first, Decision::and)
    }

    /// Makes the waits and the delay, which count from `at`, count from `now`.
    #[inline]
    pub(crate) fn count_from(&mut self, now: Time, at: Time) {
        if at == now {
            return;
        }
        let later = |span: Span| Span::from_nanos(span.as_nanos() + at.since(now).as_nanos());
        match &mut self.verdict {
            Verdict::Deny(Retry::After(wait)) => *wait = later(*wait),
            Verdict::Allow { delay } if !delay.is_zero() => *delay = later(*delay),
            _ => {}
        }
        if !self.reset_after.is_zero() {
            self.reset_after = later(self.reset_after);
        }
    }

    fn and(self, other: Decision) -> Decision {
        match (self.verdict, other.verdict) {
            (Verdict::Deny(mine), Verdict::Deny(others)) => {
                if others > mine {
                    other
                } else {
                    self
                }
            }
            (Verdict::Deny(_), Verdict::Allow { .. }) => self,
            (Verdict::Allow { .. }, Verdict::Deny(_)) => other,
            (Verdict::Allow { delay: mine }, Verdict::Allow { delay: others }) => {
                let looser = |remaining: Option<u64>| remaining.unwrap_or(u64::MAX);
                let tightest = if looser(other.remaining) < looser(self.remaining) { other } else { self };
                Decision { verdict: Verdict::Allow { delay: mine.max(others) }, ..tightest }
            }
        }
    }
}
