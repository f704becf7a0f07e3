//! Undo: how the other side takes back a charge.

use super::scale::Exact;
use super::terms::AlgorithmTerms;
use crate::algorithm::State;
use crate::ask::Op;
use crate::limit::Law;
use crate::plan::Hit;
use crate::time::{NANOS_PER_MICRO, Time};

/// How to undo a charge. Its name is the instant or the window in which it was made. A charge with another name belongs to
/// another request and stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The limit's own count, if it was charged.
    pub own: Option<AlgorithmUndo>,
    /// The end of the window of `after=`.
    pub seen: Option<u64>,
}

/// How to undo a charge to a limit's own count, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmUndo {
    /// When it has leaked out again, what it was, and how many ticks a microsecond has.
    Bucket {
        /// When it has leaked out.
        full_at: Exact,
        /// What it was.
        want: Exact,
        /// How many ticks a microsecond has.
        ticks: u64,
    },
    /// The end of its window.
    Fixed(u64),
    /// When its units leave.
    Sliding(u64),
    /// When both its windows are over, and their length.
    Approx {
        /// When both windows are over.
        forget_at: u64,
        /// Their length.
        period: u64,
    },
}

impl Hit<'_> {
    /// How to undo what [`decide`](super::decide) has charged to it for a `take` of `cost` that passed.
    pub fn undo(&self, cost: u64) -> Undo {
        let free = self.limit.after_window().map_or(0, |after| after.free);
        let seen = self.counter.seen.filter(|_| self.limit.after_window().is_some());
        // As it was charged: only from the last free unit on.
        let enforced = seen.is_none_or(|seen| seen.count >= free);
        let own = if enforced { self.undo_own(cost) } else { None };
        Undo { own, seen: seen.map(|seen| seen.ends_at / NANOS_PER_MICRO) }
    }

    fn undo_own(&self, cost: u64) -> Option<AlgorithmUndo> {
        let micros = |nanos: u64| nanos / NANOS_PER_MICRO;
        Some(match &self.counter.state {
            State::Bucket(full_at) => {
                let scale = self.limit.law().scale()?;
                let AlgorithmTerms::Bucket { ticks, want, .. } = self.limit.terms(Op::Take, cost, Time::EPOCH).own
                else {
                    return None;
                };
                AlgorithmUndo::Bucket { full_at: scale.exact_full_at(*full_at), want, ticks }
            }
            State::Fixed(window) => AlgorithmUndo::Fixed(micros(window.ends_at)),
            State::Sliding(log) => AlgorithmUndo::Sliding(micros(log.last_leaves_at())),
            State::Approx(pair) => {
                let Law::Approx(approx) = self.limit.law() else { return None };
                AlgorithmUndo::Approx { forget_at: micros(pair.forget_at), period: micros(approx.numbers_in_nanos().1) }
            }
            State::Unused | State::Throttle(_) | State::Banned(_) => return None,
        })
    }
}
