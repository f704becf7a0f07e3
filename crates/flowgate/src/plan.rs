//! A plan: what one or several requests ask of their counters, and the functions that decide it.
//!
//! Rule       The hits of all rules are applied together. If any is exceeded, nothing is consumed; otherwise all are
//!            charged. A shadow rule neither denies nor is held back: it is charged by itself when it would pass. A
//!            rule that counts denied requests is charged, within its caps, when it denies. That includes requests that
//!            no wait would let pass. A ban in force denies before any limit is asked, and nothing changes. Without
//!            one, a denial by a rule that bans is a strike. A hit is denied if the store has no room for its counter.
//! Rule       Several parts are decided together, all or nothing; see [`joint`].
//! Invariant  Every function here is pure: a store loads the counters before it and keeps them after it, under its
//!            locks.

mod hit;
pub(crate) mod joint;

use smallvec::SmallVec;

pub(crate) use hit::LoadedCounter;
pub use hit::{Hit, RuleFlags};

use crate::algorithm::{Charge, Counter};
use crate::ask::{Ask, Op};
use crate::ban::{BanHit, Standing};
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::Limit;
use crate::time::{Span, Time};

/// What is asked of a store in one atomic step: one request, or several that pass together or not at all.
///
/// ```
/// use flowgate::{Ask, Hit, Limit, MemoryStore, Op, Plan, PlanPart, Time};
///
/// let memory = MemoryStore::default();
/// let (user, address): (Limit, Limit) = ("5/60s".parse()?, "2/h".parse()?);
/// let replies = memory.counter(b"replies");
/// let now = Time::from_secs(1_700_000_000);
/// let take = || {
///     let mut by_user = [Hit::new(memory.subject(b"user 42").counter(replies), &user)];
///     let mut by_address = [Hit::new(memory.subject(b"ip 1.2.3.4").counter(replies), &address)];
///     let mut plan = Plan::new(now);
///     plan.push(PlanPart::new(Op::Take, 1, &mut by_user));
///     plan.push(PlanPart::new(Op::Take, 1, &mut by_address));
///     memory.apply(&mut plan);
///     (plan.allowed(), plan.parts()[0].hits[0].outcome().remaining)
/// };
/// assert_eq!(take(), (true, Some(4)));
/// assert_eq!(take(), (true, Some(3)));
/// assert_eq!(take(), (false, Some(3)), "the address is exceeded, so the user is not charged");
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Plan<'p, 'a> {
    pub(crate) now: Time,
    pub(crate) parts: SmallVec<[PlanPart<'p, 'a>; 1]>,
}

/// What one request asks: an operation and its cost, the counters and the bans it meets.
///
/// Each hit names another counter. The hits of several parts may name the same one: then they share it.
#[derive(Debug)]
pub struct PlanPart<'p, 'a> {
    /// The operation.
    pub op: Op,
    /// The number of units.
    pub cost: u64,
    /// The limits that the request meets. Hits of one rule stand next to each other.
    pub hits: &'p mut [Hit<'a>],
    /// The bans of the rules of these hits.
    pub bans: &'p mut [BanHit<'a>],
}

impl<'p, 'a> Plan<'p, 'a> {
    /// A plan without parts, to be decided at `now`.
    #[inline]
    pub fn new(now: Time) -> Plan<'p, 'a> {
        Plan { now, parts: SmallVec::new() }
    }

    /// A plan of one part.
    #[inline]
    pub fn one(ask: Ask, hits: &'p mut [Hit<'a>]) -> Plan<'p, 'a> {
        Plan::banning(ask, hits, &mut [])
    }

    /// A plan of one part with bans: a ban in force denies, and a denial by a rule that bans is a strike.
    #[inline]
    pub fn banning(ask: Ask, hits: &'p mut [Hit<'a>], bans: &'p mut [BanHit<'a>]) -> Plan<'p, 'a> {
        let Ask { op, cost, now } = ask;
        Plan { now, parts: SmallVec::from_buf([PlanPart { op, cost, hits, bans }]) }
    }

    /// Adds a part.
    pub fn push(&mut self, part: PlanPart<'p, 'a>) {
        self.parts.push(part);
    }

    /// The parts in order.
    #[inline]
    pub fn parts(&self) -> &[PlanPart<'p, 'a>] {
        &self.parts
    }

    /// True if the decided step passed: no part denies it. Every part is then charged; otherwise only the refunds are.
    pub fn allowed(&self) -> bool {
        !self.parts.iter().any(PlanPart::denies)
    }

    /// The longest wait of all parts that deny, after the decision; the longest delay if the step passed.
    pub fn verdict(&self) -> Verdict {
        let parts = self.parts.iter().filter(|part| part.op != Op::Refund);
        parts.map(|part| part.verdict(self.now)).fold(Verdict::PASS, Verdict::and)
    }
}

impl<'p, 'a> PlanPart<'p, 'a> {
    /// A part whose rules do not ban.
    #[inline]
    pub fn new(op: Op, cost: u64, hits: &'p mut [Hit<'a>]) -> PlanPart<'p, 'a> {
        PlanPart { op, cost, hits, bans: &mut [] }
    }

    /// True if the decided part denies the step.
    pub fn denies(&self) -> bool {
        let exceeded = || self.hits.iter().any(|hit| !hit.flags.shadow && !hit.outcome.allowed());
        self.op.asks() && (self.op == Op::Deny || self.is_banned() || exceeded())
    }

    /// The longest wait of the part's hits and bans, or the longest delay of its hits.
    fn verdict(&self, now: Time) -> Verdict {
        let enforced = self.hits.iter().filter(|hit| !hit.flags.shadow);
        let by_limits = enforced.map(|hit| hit.outcome.verdict).fold(Verdict::PASS, Verdict::and);
        let bans = self.bans.iter().filter_map(|ban| ban.standing.until());
        bans.map(|until| Verdict::Deny(Retry::After(until.since(now)))).fold(by_limits, Verdict::and)
    }

    fn ask(&self, now: Time) -> Ask {
        Ask { op: self.op, cost: self.cost, now }
    }

    fn is_banned(&self) -> bool {
        self.bans.iter().any(|ban| ban.standing != Standing::Clear)
    }
}

/// Applies an operation to the counters of all hits and fills in their outcomes.
#[inline]
pub(crate) fn decide(ask: Ask, hits: &mut [Hit<'_>]) {
    match ask.op {
        Op::Take | Op::TakeWithin(_) | Op::Deny => take(ask, hits),
        Op::Peek => {
            for hit in hits {
                hit.look(hit.check(ask), ask.now);
            }
        }
        Op::Record | Op::CheckAndRecord => {
            for hit in hits {
                let verdict = match ask.op {
                    Op::CheckAndRecord => hit.check(ask),
                    _ if hit.no_room => Verdict::PASS.refused(),
                    _ => Verdict::PASS,
                };
                if !hit.no_room {
                    hit.limit.charge(ask, &mut hit.counter, Charge::Counted);
                }
                hit.conclude(verdict, ask.now);
            }
        }
        Op::Refund => {
            for hit in hits {
                hit.limit.refund(ask, &mut hit.counter);
                hit.conclude(Verdict::PASS, ask.now);
            }
        }
    }
}

/// Like [`decide`], where some of the rules ban.
pub(crate) fn decide_banning(ask: Ask, hits: &mut [Hit<'_>], bans: &mut [BanHit<'_>]) {
    bans.iter_mut().for_each(|ban| ban.look(ask.now));
    if ask.op.asks() && bans.iter().any(|ban| ban.standing != Standing::Clear) {
        return decide(Ask { op: Op::Peek, ..ask }, hits);
    }
    decide(ask, hits);
    if ask.op == Op::Peek || !ask.op.asks() {
        return;
    }
    for ban in bans {
        let mut of_rule = hits.iter().filter(|hit| hit.rule_id == ban.rule_id && !hit.flags.shadow);
        // A denial because the store is full is not a strike: the client did not cause it.
        if of_rule.any(|hit| !hit.outcome.allowed() && !hit.no_room) {
            ban.strike(ask.now);
        }
    }
}

#[inline]
fn take(ask: Ask, hits: &mut [Hit<'_>]) {
    let mut denied = ask.op == Op::Deny;
    for hit in hits.iter_mut() {
        hit.outcome.verdict = hit.check(ask);
        denied |= !hit.outcome.allowed() && !hit.flags.shadow;
    }
    for rule_hits in hits.chunk_by_mut(|a, b| a.rule_id == b.rule_id) {
        settle(ask, rule_hits, denied);
    }
}

/// Charges the hits of one rule, or does not, and fills in their outcomes. Their verdicts are known. `denied` is the
/// request's.
#[inline]
fn settle(ask: Ask, hits: &mut [Hit<'_>], denied: bool) {
    let passes = if hits[0].flags.shadow { !is_exceeded(hits) } else { !denied };
    let counts_denied = counts_denied(hits);
    for hit in hits {
        let mut verdict = hit.outcome.verdict;
        if passes {
            hit.limit.charge(ask, &mut hit.counter, Charge::Counted);
        } else if counts_denied {
            hit.limit.charge(ask, &mut hit.counter, Charge::Denied);
            verdict = hit.check(ask);
        }
        hit.conclude(verdict, ask.now);
    }
}

/// True if one of a rule's hits denies.
#[inline]
fn is_exceeded(hits: &[Hit<'_>]) -> bool {
    hits.iter().any(|hit| !hit.outcome.allowed())
}

/// True if a rule counts the request although it denies it. The verdicts of its hits are known.
#[inline]
fn counts_denied(hits: &[Hit<'_>]) -> bool {
    let no_room = || hits.iter().any(|hit| hit.no_room);
    hits[0].flags.count_denied && is_exceeded(hits) && !no_room()
}

/// The answer for a counter that the store has no room for: that of a fresh counter, denied.
pub(crate) fn refused(limit: &Limit, now: Time, verdict: Verdict) -> Decision {
    limit.status(&Counter::default(), now, verdict.refused())
}

impl Verdict {
    /// The verdict of a request whose counter the full store could not create.
    fn refused(self) -> Verdict {
        if self.allowed() { Verdict::Deny(Retry::After(REFUSED_RETRY)) } else { self }
    }

    /// The verdict of two limits together: a denial wins; of two denials the longer wait, of two passes the longer delay.
    fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Deny(first), Verdict::Deny(second)) => Verdict::Deny(first.max(second)),
            (Verdict::Deny(_), Verdict::Allow { .. }) => self,
            (Verdict::Allow { .. }, Verdict::Deny(_)) => other,
            (Verdict::Allow { delay: first }, Verdict::Allow { delay: second }) => {
                Verdict::Allow { delay: first.max(second) }
            }
        }
    }
}

/// The wait of a denial by a full store. The time at which the store has room again is unknown.
pub(crate) const REFUSED_RETRY: Span = Span::from_secs(1);

impl Decision {
    /// The answer of several limits together: denied if any denies. Hits of shadow rules do not count.
    ///
    /// Allowed, the numbers are those of the tightest limit (fewest remaining; the first on a tie) and the delay is
    /// the longest; denied, they are those of the limit with the longest wait (the first on a tie).
    pub fn from_hits(hits: &[Hit<'_>]) -> Decision {
        let mut outcomes = hits.iter().filter(|hit| !hit.flags.shadow).map(|hit| &hit.outcome);
        let Some(mut told) = outcomes.next() else { return Decision::UNLIMITED };
        let mut longest = told.delay();
        for outcome in outcomes {
            longest = longest.max(outcome.delay());
            if outcome.is_told_before(told) {
                told = outcome;
            }
        }
        match told.verdict {
            Verdict::Allow { .. } => Decision { verdict: Verdict::Allow { delay: longest }, ..*told },
            Verdict::Deny(_) => *told,
        }
    }

    /// Converts waits and the delay that count from `at` to ones that count from `now`.
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

    /// True if a client is told these numbers rather than those of `other`.
    #[inline]
    fn is_told_before(&self, other: &Decision) -> bool {
        match (self.verdict, other.verdict) {
            (Verdict::Deny(mine), Verdict::Deny(others)) => mine > others,
            (Verdict::Deny(_), Verdict::Allow { .. }) => true,
            (Verdict::Allow { .. }, Verdict::Deny(_)) => false,
            (Verdict::Allow { .. }, Verdict::Allow { .. }) => {
                self.remaining.unwrap_or(u64::MAX) < other.remaining.unwrap_or(u64::MAX)
            }
        }
    }
}
