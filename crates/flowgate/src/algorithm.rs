//! The algorithms: pure functions on a compact state, with time as an argument.
//!
//! Each file below holds one algorithm and opens with its contract. This file lists the algorithms: their laws, their
//! states, and the one match on them. `limit_verbs` offers them as four verbs on a limit. Everything else uses these:
//!
//! * `check`: would `cost` pass now? Changes nothing.
//! * `charge`: count it, whatever the limit says.
//! * `refund`: give it back, never beyond a fresh state.
//! * `status`: what is left, and when is the state as if never used?

mod approx;
mod bucket;
mod fixed;
mod limit_verbs;
mod sliding;
mod ticks;

pub(crate) use approx::{Approx, Pair};
pub(crate) use bucket::{Bucket, FullAt, Pace};
pub(crate) use fixed::{Fixed, Window, WindowCount};
pub(crate) use sliding::{Entries, Entry, Log, MAX_WORDS, Sliding, UsualCharge};

use crate::ask::{Ask, Op};
use crate::ban::LastBan;
use crate::class::Class;
use crate::decision::{Decision, Retry, Verdict};
use crate::limit::{Algorithm, MAX_COUNT};
use crate::time::Span;

/// The longest debt: 36,500 days.
pub(crate) const MAX_DEBT_NANOS: u64 = 36_500 * 86_400 * 1_000_000_000;

/// The largest integer up to which a double holds every integer. Counters stop here, so that every store counts alike.
pub(crate) const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;

/// An algorithm with the numbers of a limit.
#[derive(Clone, Debug)]
pub(crate) enum Law {
    Unlimited,
    Bucket(Bucket<u64>),
    /// A bucket whose sums do not fit 64 bits.
    WideBucket(Bucket),
    Pace(Pace),
    Fixed(Fixed),
    Sliding(Sliding),
    Approx(Approx),
}

impl Law {
    #[inline]
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Law::Unlimited => Algorithm::Unlimited,
            Law::Bucket(_) | Law::WideBucket(_) => Algorithm::Bucket,
            Law::Pace(_) => Algorithm::Pace,
            Law::Fixed(_) => Algorithm::Fixed,
            Law::Sliding(_) => Algorithm::Sliding,
            Law::Approx(_) => Algorithm::Approx,
        }
    }
}

/// The state of one limit for one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) state: State,
    /// The count of a limit with `after=`, in its period.
    pub(crate) seen: Option<WindowCount>,
}

/// The state of an algorithm for a key. A key without a state is as if never used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Unused,
    Bucket(FullAt),
    Fixed(WindowCount),
    Sliding(Log),
    Approx(Pair),
    /// The state of [`redis_cell`](crate::redis_cell), not of a limit: the theoretical arrival time.
    Throttle(u64),
    /// The last ban of a subject. It is not a state of a limit.
    Banned(LastBan),
}

/// Why units are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// The request happened.
    Counted,
    /// The request was denied, and the rule counts denied requests. Such a charge is capped: it keeps a subject out no
    /// longer than a limit that is used up.
    Denied,
}

/// An algorithm: pure functions on its own kind of state. `None` is the state of a key that was never used.
pub(crate) trait Meter {
    /// The state that the algorithm keeps for a key.
    type State: StateKind;

    /// Would `cost` pass now?
    fn check(&self, state: Option<&Self::State>, ask: Ask) -> Verdict;

    /// The state after `cost` is counted, whatever the limit says.
    fn charged(&self, state: Option<Self::State>, now: u64, cost: u64, charge: Charge) -> Self::State;

    /// The state after `cost` is given back.
    fn refunded(&self, state: Option<Self::State>, now: u64, cost: u64) -> Option<Self::State>;

    /// The numbers of a state.
    fn numbers(&self, state: Option<&Self::State>, now: u64) -> Numbers;

    /// The number of units that are counted, also beyond the limit. Rounded up.
    fn used(&self, state: Option<&Self::State>, now: u64) -> u64;

    /// Counts `cost` if it passes. The result is that of `check`, `charged` and `numbers` in turn.
    #[inline(always)]
    fn take(&self, state: &mut Option<Self::State>, ask: Ask) -> Decision {
        let now = ask.now.as_nanos();
        let verdict = self.check(state.as_ref(), ask);
        if verdict.allowed() {
            *state = Some(self.charged(state.take(), now, ask.cost, Charge::Counted));
        }
        self.numbers(state.as_ref(), now).beside(verdict)
    }

    /// The class of the state after an operation that was answered with `decision`.
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

impl Numbers {
    /// The decision with this verdict.
    #[inline(always)]
    pub(crate) fn beside(self, verdict: Verdict) -> Decision {
        let Numbers { limit, remaining, reset_after } = self;
        Decision { verdict, limit: Some(limit), remaining: Some(remaining), reset_after }
    }
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

/// A state that fits two words. The first word is the instant from which the key is as if never used; it is never zero.
pub(crate) trait Words: StateKind {
    fn pack(&self) -> [u64; 2];
    fn unpack(words: [u64; 2]) -> Self;
}

/// Evaluates an expression with the meter of a law, or another one for `unlimited`. With `words`, this works only for
/// laws whose state is two words.
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

/// Would `cost` pass now?
#[inline(always)]
pub(crate) fn check<M: Meter>(meter: &M, state: Option<&M::State>, ask: Ask) -> Verdict {
    match ask.cost {
        0 => Verdict::PASS,
        1..=MAX_COUNT => meter.check(state, ask),
        _ => Verdict::Deny(Retry::Never),
    }
}

/// Applies `op` to one state.
#[inline(always)]
pub(crate) fn apply<M: Meter>(meter: &M, ask: Ask, state: &mut Option<M::State>) -> Decision {
    let Ask { op, cost, now } = ask;
    if op == Op::Take && (1..=MAX_COUNT).contains(&cost) {
        return meter.take(state, ask);
    }
    let now = now.as_nanos();
    let mut verdict = Verdict::PASS;
    if cost > 0 {
        if op.asks() {
            verdict = check(meter, state.as_ref(), ask);
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
    meter.numbers(state.as_ref(), now).beside(verdict)
}

/// Like [`apply`], for a state of two words. Also returns the class of the new state.
#[inline(always)]
pub(crate) fn apply_words<M>(meter: &M, ask: Ask, words: &mut Option<[u64; 2]>) -> (Decision, Class)
where
    M: Meter<State: Words>,
{
    let mut state = words.map(Words::unpack);
    let decision = apply(meter, ask, &mut state);
    *words = state.as_ref().map(Words::pack);
    (decision, meter.class(&decision))
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
        dispatch!(self, meter => meter.used(StateKind::borrow(state), now), 0)
    }

    #[inline]
    fn numbers(&self, state: &State, now: u64) -> Option<Numbers> {
        dispatch!(self, meter => Some(meter.numbers(StateKind::borrow(state), now)), None)
    }
}
