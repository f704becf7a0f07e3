//! The algorithms: pure functions on a compact state, with time as an argument.
//!
//! Each file below holds one algorithm and opens with its contract. This one puts them behind four verbs on
//! [`Limit`], which everything else is made of:
//!
//! * `check`: would `cost` pass now? Changes nothing.
//! * `charge`: count it, whatever the limit says.
//! * `refund`: give it back, never beyond a fresh state.
//! * `status`: what is left, and when is the state as if never used?
//!
//! `after=` is settled here too, for all algorithms alike: a second counter, `seen`, decides whether the limit is
//! enforced yet.

mod approx;
mod bucket;
mod fixed;
mod sliding;

pub(crate) use approx::{Approx, Pair};
pub(crate) use bucket::{Bucket, FullAt, Pace};
pub(crate) use fixed::{Counted, Fixed, Window};
pub(crate) use sliding::{Entries, Entry, Log, Sliding};

use crate::decision::{Decision, Retry, Verdict};
use crate::limit::{After, Law, Limit, MAX_COUNT};
use crate::time::{Span, Time};

/// No debt is longer than 36,500 days.
pub(crate) const MAX_DEBT_NANOS: u64 = 36_500 * 86_400 * 1_000_000_000;

/// Counters stop here: what a double still counts exactly, so that every store can.
pub(crate) const MAX_COUNTED: u64 = (1 << 53) - 1;

/// What one limit knows about one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) state: State,
    /// What was counted through a limit with `after=`.
    pub(crate) seen: Option<Counted>,
}

/// The state of an algorithm; of a key that was never used, or is as if it never had been, there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Unused,
    Bucket(FullAt),
    Fixed(Counted),
    Sliding(Log),
    Approx(Pair),
}

/// Why something is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// It happened.
    Counted,
    /// It was denied, and the rule counts that. Caps keep the state bounded: nobody is kept out longer than by a
    /// full limit.
    Denied,
}

impl State {
    fn bucket(&self) -> Option<FullAt> {
        match self {
            State::Bucket(full_at) => Some(*full_at),
            _ => None,
        }
    }

    fn fixed(&self) -> Option<Counted> {
        match self {
            State::Fixed(counted) => Some(*counted),
            _ => None,
        }
    }

    fn sliding(&self) -> Option<&Log> {
        match self {
            State::Sliding(log) => Some(log),
            _ => None,
        }
    }

    fn approx(&self) -> Option<Pair> {
        match self {
            State::Approx(pair) => Some(*pair),
            _ => None,
        }
    }

    /// Lends the log out for a change.
    fn with_log(&mut self, change: impl FnOnce(&mut Option<Log>)) {
        let mut log = match std::mem::take(self) {
            State::Sliding(log) => Some(log),
            _ => None,
        };
        change(&mut log);
        *self = log.map_or(State::Unused, State::Sliding);
    }
}

impl Limit {
    /// Would `cost` pass now?
    #[inline]
    pub(crate) fn check(&self, counter: &Counter, now: Time, cost: u64) -> Verdict {
        if cost == 0 {
            return Verdict::PASS;
        }
        if cost > MAX_COUNT && !matches!(self.law(), Law::Unlimited) {
            return Verdict::Deny(Retry::Never);
        }
        let now = now.as_nanos();
        match self.after_window() {
            None => self.law().check(&counter.state, now, cost),
            Some(after) => self.check_after(after, counter, now, cost),
        }
    }

    fn check_after(&self, after: &After, counter: &Counter, now: u64, cost: u64) -> Verdict {
        if Counted::count_at(counter.seen, now) + cost <= after.free {
            return Verdict::PASS;
        }
        match self.law().check(&counter.state, now, cost) {
            // When the period of `seen` ends, the request is free again.
            Verdict::Deny(retry) if cost <= after.free => {
                Verdict::Deny(retry.min(Retry::After(Counted::reset_after(counter.seen, now))))
            }
            verdict => verdict,
        }
    }

    /// Counts `cost`, whatever the limit says.
    #[inline]
    pub(crate) fn charge(&self, counter: &mut Counter, now: Time, cost: u64, charge: Charge) {
        if cost == 0 {
            return;
        }
        let (now, cost) = (now.as_nanos(), cost.min(MAX_COUNT));
        if let Some(after) = self.after_window() {
            let enforced = Counted::count_at(counter.seen, now) + cost >= after.free;
            let cap = if charge == Charge::Denied { after.free } else { MAX_COUNTED };
            counter.seen = Some(after.window.counted(counter.seen, now, cost, cap));
            if !enforced {
                return;
            }
        }
        self.law().charge(&mut counter.state, now, cost, charge);
    }

    /// Gives `cost` back.
    pub(crate) fn refund(&self, counter: &mut Counter, now: Time, cost: u64) {
        if cost == 0 {
            return;
        }
        let (now, cost) = (now.as_nanos(), cost.min(MAX_COUNT));
        if let Some(after) = self.after_window() {
            let enforced = Counted::count_at(counter.seen, now) >= after.free;
            counter.seen = Counted::refunded(counter.seen, now, cost);
            if !enforced {
                return;
            }
        }
        self.law().refund(&mut counter.state, now, cost);
    }

    /// The numbers of a state, beside a verdict.
    #[inline]
    pub(crate) fn status(&self, counter: &Counter, now: Time, verdict: Verdict) -> Decision {
        let now = now.as_nanos();
        let (limit, remaining, reset_after) = self.law().status(&counter.state, now);
        let decision = Decision { verdict, limit, remaining, reset_after };
        match self.after_window() {
            None => decision,
            Some(after) => decision.while_free(after, counter.seen, now),
        }
    }
}

impl Decision {
    /// While something is free, the numbers are those of the free allowance.
    fn while_free(mut self, after: &After, seen: Option<Counted>, now: u64) -> Decision {
        let count = Counted::count_at(seen, now);
        if count < after.free {
            self.limit = Some(after.free);
            self.remaining = Some(after.free - count);
        }
        self.reset_after = self.reset_after.max(Counted::reset_after(seen, now));
        self
    }
}

impl Law {
    #[inline]
    fn check(&self, state: &State, now: u64, cost: u64) -> Verdict {
        match self {
            Law::Unlimited => Verdict::PASS,
            Law::Bucket(bucket) => bucket.check(state.bucket(), now, cost),
            Law::Pace(pace) => pace.check(state.bucket(), now, cost),
            Law::Fixed(fixed) => fixed.check(state.fixed(), now, cost),
            Law::Sliding(sliding) => sliding.check(state.sliding(), now, cost),
            Law::Approx(approx) => approx.check(state.approx(), now, cost),
        }
    }

    #[inline]
    fn charge(&self, state: &mut State, now: u64, cost: u64, charge: Charge) {
        let denied = charge == Charge::Denied;
        match self {
            Law::Unlimited => {}
            Law::Bucket(bucket) | Law::Pace(Pace { bucket, .. }) if denied => {
                *state = State::Bucket(bucket.charged_denied(state.bucket(), now, cost));
            }
            Law::Bucket(bucket) | Law::Pace(Pace { bucket, .. }) => {
                *state = State::Bucket(bucket.charged(state.bucket(), now, cost));
            }
            Law::Fixed(fixed) => {
                let cap = if denied { fixed.count } else { MAX_COUNTED };
                *state = State::Fixed(fixed.window.counted(state.fixed(), now, cost, cap));
            }
            // The log keeps the newest N units, however they came.
            Law::Sliding(sliding) => state.with_log(|log| sliding.charge(log, now, cost)),
            Law::Approx(approx) => {
                let cap = if denied { approx.limit() } else { u64::from(u32::MAX) };
                *state = State::Approx(approx.charged(state.approx(), now, cost, cap));
            }
        }
    }

    fn refund(&self, state: &mut State, now: u64, cost: u64) {
        match self {
            Law::Unlimited => {}
            Law::Bucket(bucket) | Law::Pace(Pace { bucket, .. }) => {
                *state = bucket.refunded(state.bucket(), now, cost).map_or(State::Unused, State::Bucket);
            }
            Law::Fixed(_) => *state = Counted::refunded(state.fixed(), now, cost).map_or(State::Unused, State::Fixed),
            Law::Sliding(sliding) => state.with_log(|log| sliding.refund(log, now, cost)),
            Law::Approx(approx) => {
                *state = approx.refunded(state.approx(), now, cost).map_or(State::Unused, State::Approx);
            }
        }
    }

    /// `limit`, `remaining`, `reset_after`.
    #[inline]
    fn status(&self, state: &State, now: u64) -> (Option<u64>, Option<u64>, Span) {
        let (limit, remaining, reset_after) = match self {
            Law::Unlimited => return (None, None, Span::ZERO),
            Law::Bucket(bucket) | Law::Pace(Pace { bucket, .. }) => {
                let full_at = state.bucket();
                (bucket.burst(), bucket.remaining(full_at, now), bucket.reset_after(full_at, now))
            }
            Law::Fixed(fixed) => {
                let counted = state.fixed();
                (fixed.count, fixed.remaining(counted, now), Counted::reset_after(counted, now))
            }
            Law::Sliding(sliding) => {
                let log = state.sliding();
                let left_at = log.map_or(0, Log::last_leaves_at);
                (sliding.count, sliding.remaining(log, now), Span::from_nanos(left_at.saturating_sub(now)))
            }
            Law::Approx(approx) => {
                let pair = state.approx();
                (approx.limit(), approx.remaining(pair, now), approx.reset_after(pair, now))
            }
        };
        (Some(limit), Some(remaining), reset_after)
    }
}
