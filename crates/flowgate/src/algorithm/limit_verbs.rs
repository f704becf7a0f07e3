//! The verbs on a limit, with `after=`, which works the same for all algorithms: a second counter, `seen`, decides
//! whether the limit is enforced yet.

use super::{Bucket, Charge, Counter, Law, MAX_EXACT_INTEGER, WindowCount, apply_words, dispatch};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::{After, Limit, MAX_COUNT};
use crate::time::{Span, Time};

impl Limit {
    /// Applies `op` to one counter: what [`plan`](crate::plan) does for several, without rules.
    pub(crate) fn apply(&self, ask: Ask, counter: &mut Counter) -> Decision {
        let verdict = if ask.op.asks() { self.check(ask, counter) } else { Verdict::PASS };
        match ask.op {
            Op::Take | Op::TakeWithin(_) if !verdict.allowed() => {}
            Op::Take | Op::TakeWithin(_) | Op::Record | Op::CheckAndRecord => {
                self.charge(ask, counter, Charge::Counted);
            }
            Op::Refund => self.refund(ask, counter),
            Op::Peek | Op::Deny => {}
        }
        self.status(counter, ask.now, verdict)
    }

    /// Applies `op` to a counter that is two words (see [`Limit::is_words`]). The fast path for the many
    /// requests that meet one limit: the same, without leaving the registers. Also gives the class of the new state.
    #[inline(always)]
    pub(crate) fn apply_words(&self, ask: Ask, words: &mut Option<[u64; 2]>) -> (Decision, Class) {
        dispatch!(
            self.law(),
            words meter => apply_words(meter, ask, words),
            Law::Unlimited | Law::Sliding(_) => unreachable!("not two words: the caller asked `is_words`")
        )
    }

    /// The bucket whose state is one instant: a bucket without fractions of a nanosecond.
    pub(crate) fn instant_bucket(&self) -> Option<&Bucket<u64>> {
        match self.law() {
            Law::Bucket(bucket) if self.after_window().is_none() && bucket.has_whole_nanos() => Some(bucket),
            _ => None,
        }
    }

    /// Whether its counter is two words.
    #[inline]
    pub(crate) fn is_words(&self) -> bool {
        self.after_window().is_none() && !matches!(self.law(), Law::Unlimited | Law::Sliding(_))
    }

    /// Whether its counter is one state: it counts, and has no `after=`.
    #[inline]
    pub(crate) fn has_one_state(&self) -> bool {
        self.after_window().is_none() && !matches!(self.law(), Law::Unlimited)
    }

    /// Would `cost` pass now?
    #[inline(always)]
    pub(crate) fn check(&self, ask: Ask, counter: &Counter) -> Verdict {
        match self.after_window() {
            None => self.check_own(ask, counter),
            Some(after) => self.check_after(ask, after, counter),
        }
    }

    /// The same without the free units of `after=`.
    #[inline(always)]
    pub(crate) fn check_own(&self, ask: Ask, counter: &Counter) -> Verdict {
        if ask.cost == 0 {
            return Verdict::PASS;
        }
        if ask.cost > MAX_COUNT && !matches!(self.law(), Law::Unlimited) {
            return Verdict::Deny(Retry::Never);
        }
        self.law().check(&counter.state, ask)
    }

    fn check_after(&self, ask: Ask, after: &After, counter: &Counter) -> Verdict {
        let (cost, now) = (ask.cost, ask.now.as_nanos());
        if WindowCount::count_at(counter.seen.as_ref(), now).saturating_add(cost) <= after.free {
            return Verdict::PASS;
        }
        match self.check_own(ask, counter) {
            // When the period of `seen` ends, the request is free again.
            Verdict::Deny(retry) if cost <= after.free => {
                Verdict::Deny(retry.min(Retry::After(WindowCount::reset_after(counter.seen.as_ref(), now))))
            }
            verdict => verdict,
        }
    }

    /// Whether `cost` units can never pass at once, whatever was counted.
    pub(crate) fn never_grants(&self, cost: u64, now: Time) -> bool {
        let at_once = Ask::new(Op::TakeWithin(Span::ZERO), cost, now);
        self.check(at_once, &Counter::default()) == Verdict::Deny(Retry::Never)
    }

    /// Counts `cost`, whatever the limit says.
    #[inline]
    pub(crate) fn charge(&self, ask: Ask, counter: &mut Counter, charge: Charge) {
        if ask.cost == 0 {
            return;
        }
        let (now, cost) = (ask.now.as_nanos(), ask.cost.min(MAX_COUNT));
        if let Some(after) = self.after_window() {
            let enforced = WindowCount::count_at(counter.seen.as_ref(), now) + cost >= after.free;
            let cap = if charge == Charge::Denied { after.free } else { MAX_EXACT_INTEGER };
            counter.seen = Some(after.window.counted(counter.seen, now, cost, cap));
            if !enforced {
                return;
            }
        }
        self.law().charge(&mut counter.state, now, cost, charge);
    }

    /// Gives `cost` back.
    pub(crate) fn refund(&self, ask: Ask, counter: &mut Counter) {
        if ask.cost == 0 {
            return;
        }
        let (now, cost) = (ask.now.as_nanos(), ask.cost.min(MAX_COUNT));
        if let Some(after) = self.after_window() {
            let enforced = WindowCount::count_at(counter.seen.as_ref(), now) >= after.free;
            counter.seen = WindowCount::refunded(counter.seen, now, cost);
            if !enforced {
                return;
            }
        }
        self.law().refund(&mut counter.state, now, cost);
    }

    /// How many units are counted: with `after=` all in its period, else those in the limit's own state.
    pub(crate) fn used(&self, counter: &Counter, now: Time) -> u64 {
        let now = now.as_nanos();
        match self.after_window() {
            Some(_) => WindowCount::count_at(counter.seen.as_ref(), now),
            None => self.law().used(&counter.state, now),
        }
    }

    /// The numbers of a state, beside a verdict.
    #[inline]
    pub(crate) fn status(&self, counter: &Counter, now: Time, verdict: Verdict) -> Decision {
        let decision = self.own_status(counter, now, verdict);
        match self.after_window() {
            None => decision,
            Some(after) => decision.while_free(after, counter.seen.as_ref(), now.as_nanos()),
        }
    }

    /// The same without the free units of `after=`.
    #[inline]
    pub(crate) fn own_status(&self, counter: &Counter, now: Time, verdict: Verdict) -> Decision {
        match self.law().numbers(&counter.state, now.as_nanos()) {
            None => Decision { verdict, limit: None, remaining: None, reset_after: Span::ZERO },
            Some(numbers) => numbers.beside(verdict),
        }
    }
}

impl Decision {
    /// While free units are left, the numbers are those of the free allowance.
    fn while_free(mut self, after: &After, seen: Option<&WindowCount>, now: u64) -> Decision {
        let count = WindowCount::count_at(seen, now);
        if count < after.free {
            self.limit = Some(after.free);
            self.remaining = Some(after.free - count);
        }
        self.reset_after = self.reset_after.max(WindowCount::reset_after(seen, now));
        self
    }
}
