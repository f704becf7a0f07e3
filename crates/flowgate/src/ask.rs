//! What a decision asks: an operation, its cost and its time.

use crate::clock::Reading;
use crate::time::{Span, Time};

/// A question to counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The operation.
    pub op: Op,
    /// The number of units.
    pub cost: u64,
    /// The time of the request.
    pub now: Time,
}

impl Ask {
    /// A question about `cost` units at `now`.
    #[inline]
    pub fn new(op: Op, cost: u64, now: Time) -> Ask {
        Ask { op, cost, now }
    }

    /// The same question at another time.
    #[inline]
    #[must_use]
    pub fn at(self, now: Time) -> Ask {
        Ask { now, ..self }
    }

    /// The same question about another number of units.
    #[inline]
    pub(crate) fn of(self, cost: u64) -> Ask {
        Ask { cost, ..self }
    }

    /// True if the question may create a counter.
    #[inline]
    pub(crate) fn counts(self) -> bool {
        self.cost > 0 && self.op.counts()
    }
}

/// The operation on the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Check and count in one step.
    Take,
    /// Check only. Changes nothing.
    Peek,
    /// Count, whatever the limit says.
    Record,
    /// Check, and count whatever the answer is: the verdict of [`Op::Peek`] with the state that [`Op::Record`] leaves,
    /// in one step. The numbers are those after the operation. In a plan of several parts it is a take.
    CheckAndRecord,
    /// Give units back, never beyond a fresh state.
    Refund,
    /// Take, for a caller that can be held for at most this time: every `max_wait` of `pace` counts as no longer. With
    /// [`Span::ZERO`], a request that has to wait is denied.
    TakeWithin(Span),
    /// A take that something other than a limit has denied. It changes what a denial changes.
    Deny,
}

impl Op {
    /// The same operation for a clock that is ahead: the longest hold of a caller is real time.
    #[inline]
    #[must_use]
    pub fn on_clock(self, at: Reading) -> Op {
        match self {
            Op::TakeWithin(longest) => Op::TakeWithin(at.passes_in(longest)),
            other => other,
        }
    }

    /// True if the operation asks to pass, so that a limit can deny it. Record and refund only correct a count.
    #[inline]
    pub fn asks(self) -> bool {
        matches!(self, Op::Take | Op::TakeWithin(_) | Op::CheckAndRecord | Op::Peek | Op::Deny)
    }

    /// True if the operation may change a counter.
    #[inline]
    pub fn changes(self) -> bool {
        !matches!(self, Op::Peek)
    }

    /// True if the operation may create a counter.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Op::Take | Op::TakeWithin(_) | Op::CheckAndRecord | Op::Record | Op::Deny)
    }
}
