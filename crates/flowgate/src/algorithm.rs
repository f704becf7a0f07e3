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
mod ticks;

pub(crate) use approx::{Approx, Pair};
pub(crate) use bucket::{Bucket, FullAt, Pace};
pub(crate) use fixed::{Fixed, Window, WindowCount};
pub(crate) use sliding::{Entries, Entry, Log, Sliding};

use crate::ask::{Ask, Op};
use crate::ban::LastBan;
use crate::class::Class;
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::{After, Law, Limit, MAX_COUNT};
use crate::time::{Span, Time};

/// No debt is longer than 36,500 days.
pub(crate) const MAX_DEBT_NANOS: u64 = 36_500 * 86_400 * 1_000_000_000;

/// The largest integer below which a double holds every integer. Counters stop here, so that every store counts alike.
pub(crate) const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;

/// What one limit knows about one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) state: State,
    /// What was counted through a limit with `after=`.
    pub(crate) seen: Option<WindowCount>,
}

/// The state of an algorithm; of a key that was never used, or is as if it never had been, there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Unused,
    Bucket(FullAt),
    Fixed(WindowCount),
    Sliding(Log),
    Approx(Pair),
    /// Not a limit's: the theoretical arrival time that [`redis_cell`](crate::redis_cell) keeps.
    Throttle(u64),
    /// Not a limit's: the last ban of a subject.
    Banned(LastBan),
}

/// Why something is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// It happened.
    Counted,
    /// The request was denied, and the rule counts denied requests. Caps keep the state bounded: such a charge keeps a
    /// subject out no longer than a full limit does.
    Denied,
}

/// An algorithm: pure functions on its own kind of state. No state is that of a key never used.
pub(crate) trait Meter {
    /// What it keeps of a key.
    type State: StateKind;

    /// Would `cost` pass now?
    fn check(&self, state: Option<&Self::State>, ask: Ask) -> Verdict;

    /// The state once `cost` is counted, whatever the limit says.
    fn charged(&self, state: Option<Self::State>, now: u64, cost: u64, charge: Charge) -> Self::State;

    /// The state once `cost` is given back.
    fn refunded(&self, state: Option<Self::State>, now: u64, cost: u64) -> Option<Self::State>;

    /// What the state says of itself.
    fn numbers(&self, state: Option<&Self::State>, now: u64) -> Numbers;

    /// How many units are counted, also beyond the limit. Rounded up.
    fn used(&self, state: Option<&Self::State>, now: u64) -> u64;

    /// The class of the state that the operation answered by `decision` leaves.
    #[inline(always)]
    fn class(&self, decision: &Decision) -> Class {
        decision.class()
    }
}

/// The numbers of a [`Decision`].
pub(crate) struct Numbers {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset_after: Span,
}

/// A kind of state that [`State`] can hold.
pub(crate) trait StateKind: Sized {
    fn borrow(state: &State) -> Option<&Self>;
    fn take(state: State) -> Option<Self>;
    fn into_state(self) -> State;
}

macro_rules! state_kinds {
    ($($variant:ident($kind:ty)),*) => {$(
        impl StateKind for $kind {
            #[inline]
            fn borrow(state: &State) -> Option<&$kind> {
                if let State::$variant(kept) = state { Some(kept) } else { None }
            }

            #[inline]
            fn take(state: State) -> Option<$kind> {
                if let State::$variant(kept) = state { Some(kept) } else { None }
            }

            #[inline]
            fn into_state(self) -> State {
                State::$variant(self)
            }
        }
    )*};
}

state_kinds!(Bucket(FullAt), Fixed(WindowCount), Sliding(Log), Approx(Pair));

/// A state that is two words. The first is the instant from which it is as if never used, never zero.
pub(crate) trait Words: StateKind {
    fn pack(&self) -> [u64; 2];
    fn unpack(words: [u64; 2]) -> Self;
}

/// Evaluates an expression with the meter of a law, or another one for `unlimited`. With `words`, only for the laws whose
/// state is two words.
macro_rules! dispatch {
    ($law:expr, $meter:ident => $body:expr, $unlimited:expr) => {
        $crate::algorithm::dispatch!(
            $law, words $meter => $body, Law::Sliding($meter) => $body, Law::Unlimited => $unlimited
        )
    };
    ($law:expr, words $meter:ident => $body:expr, $($other:pat => $value:expr),+) => {
        match $law {
            Law::Bucket($meter) => $body,
            Law::WideBucket($meter) => $body,
            Law::Pace($meter) => $body,
            Law::Fixed($meter) => $body,
            Law::Approx($meter) => $body,
            $($other => $value,)+
        }
    };
}

pub(crate) use dispatch;

/// Applies `op` to one state.
#[inline(always)]
pub(crate) fn apply<M: Meter>(meter: &M, ask: Ask, state: &mut Option<M::State>) -> Decision {
    let Ask { op, cost, now } = ask;
    let now = now.as_nanos();
    let mut verdict = Verdict::PASS;
    if cost > 0 {
        if op.asks() {
            verdict = if cost > MAX_COUNT { Verdict::Deny(Retry::Never) } else { meter.check(state.as_ref(), ask) };
        }
        match op {
            Op::Take | Op::TakeWithin(_) | Op::Record if verdict.allowed() => {
                *state = Some(meter.charged(state.take(), now, cost.min(MAX_COUNT), Charge::Counted));
            }
            Op::CheckAndRecord => {
                *state = Some(meter.charged(state.take(), now, cost.min(MAX_COUNT), Charge::Counted));
            }
            Op::Refund => *state = meter.refunded(state.take(), now, cost.min(MAX_COUNT)),
            _ => {}
        }
    }
    let Numbers { limit, remaining, reset_after } = meter.numbers(state.as_ref(), now);
    Decision { verdict, limit: Some(limit), remaining: Some(remaining), reset_after }
}

#[inline(always)]
fn apply_words<M>(meter: &M, ask: Ask, words: &mut Option<[u64; 2]>) -> (Decision, Class)
where
    M: Meter<State: Words>,
{
    let mut state = words.map(Words::unpack);
    let decision = apply(meter, ask, &mut state);
    *words = state.as_ref().map(Words::pack);
    (decision, meter.class(&decision))
}

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

    /// Whether its counter is two words.
    #[inline]
    pub(crate) fn is_words(&self) -> bool {
        self.after_window().is_none() && !matches!(self.law(), Law::Unlimited | Law::Sliding(_))
    }

    /// The sliding window, where its counter is a log and nothing else.
    #[inline]
    pub(crate) fn as_sliding(&self) -> Option<&Sliding> {
        match self.law() {
            Law::Sliding(sliding) if self.after_window().is_none() => Some(sliding),
            _ => None,
        }
    }

    /// Would `cost` pass now?
    #[inline(always)]
    pub(crate) fn check(&self, ask: Ask, counter: &Counter) -> Verdict {
        match self.after_window() {
            None => self.check_own(ask, counter),
            Some(after) => self.check_after(ask, after, counter),
        }
    }

    /// The same, as if nothing were free.
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

    /// Whether no wait lets `cost` units go at once, whatever was counted.
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

    /// How many units are counted: of the free allowance of `after=` while some of it is left, else of the limit itself.
    pub(crate) fn used(&self, counter: &Counter, now: Time) -> u64 {
        let now = now.as_nanos();
        match self.after_window() {
            Some(after) if WindowCount::count_at(counter.seen.as_ref(), now) < after.free => {
                WindowCount::count_at(counter.seen.as_ref(), now)
            }
            _ => self.law().used(&counter.state, now),
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

    /// The same, as if nothing were free.
    #[inline]
    pub(crate) fn own_status(&self, counter: &Counter, now: Time, verdict: Verdict) -> Decision {
        match self.law().numbers(&counter.state, now.as_nanos()) {
            None => Decision { verdict, limit: None, remaining: None, reset_after: Span::ZERO },
            Some(Numbers { limit, remaining, reset_after }) => {
                Decision { verdict, limit: Some(limit), remaining: Some(remaining), reset_after }
            }
        }
    }
}

impl Decision {
    /// While something is free, the numbers are those of the free allowance.
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

impl Law {
    #[inline]
    fn check(&self, state: &State, ask: Ask) -> Verdict {
        dispatch!(self, meter => meter.check(StateKind::borrow(state), ask), Verdict::PASS)
    }

    #[inline]
    fn charge(&self, state: &mut State, now: u64, cost: u64, charge: Charge) {
        let old = std::mem::take(state);
        *state = dispatch!(self, meter => meter.charged(StateKind::take(old), now, cost, charge).into_state(), old);
    }

    fn refund(&self, state: &mut State, now: u64, cost: u64) {
        let old = std::mem::take(state);
        let new = dispatch!(
            self,
            meter => meter.refunded(StateKind::take(old), now, cost).map(StateKind::into_state),
            Some(old)
        );
        *state = new.unwrap_or_default();
    }

    fn used(&self, state: &State, now: u64) -> u64 {
        match self {
            Law::Unlimited => 0,
            Law::Bucket(bucket) => bucket.used(StateKind::borrow(state), now),
            Law::WideBucket(bucket) => bucket.used(StateKind::borrow(state), now),
            Law::Pace(pace) => pace.used(StateKind::borrow(state), now),
            Law::Fixed(fixed) => fixed.used(StateKind::borrow(state), now),
            Law::Sliding(sliding) => sliding.used(StateKind::borrow(state), now),
            Law::Approx(approx) => approx.used(StateKind::borrow(state), now),
        }
    }

    #[inline]
    fn numbers(&self, state: &State, now: u64) -> Option<Numbers> {
        dispatch!(self, meter => Some(meter.numbers(StateKind::borrow(state), now)), None)
    }
}
