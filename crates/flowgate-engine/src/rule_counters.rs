//! Counts how a rule decides.
//!
//! State      Counts since a rule of this name came into force. A new policy with a rule of that name takes them over.
//! Rule       The engine keeps the counters beside the rule, so that counting needs no lookup. The caller of the engine
//!            counts: the server does, a replay makes its own report.
//! Cost       A count is one addition to a cache line that threads on other cores seldom touch: there are [`LANES`]
//!            copies of the counters, each thread uses one, and a reader adds them up. Counting takes no lock, and only
//!            the first count allocates.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The number of copies of the counters. If there are more threads, some share a copy, whose cache line then moves
/// between cores. Counts stay exact.
const LANES: usize = 8;

/// How a rule took part in a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOutcome {
    /// A request passed, and this rule decided it or was the tightest.
    Allowed,
    /// The rule denied a request: a limit was exceeded, or the rule denies at once.
    Denied,
    /// A request was denied because the rule had banned its subject.
    Banned,
    /// A shadow rule would have denied a request.
    Shadowed,
    /// The rule started a ban.
    BanStarted,
}

const OUTCOMES: usize = 5;

/// The counters of one rule; see [`crate::Rule::counters`].
#[derive(Debug, Default)]
pub struct RuleCounters {
    /// Allocated by the first count: of a hundred thousand rules most never decide.
    lanes: OnceLock<Box<[Lane; LANES]>>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Lane([AtomicU64; OUTCOMES]);

/// Counts of one rule, or a sum over rules. They are read one after the other, so they may be of different instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts([u64; OUTCOMES]);

impl RuleCounters {
    /// Counts one decision.
    #[inline]
    pub fn count(&self, outcome: RuleOutcome) {
        self.add(outcome, 1);
    }

    /// Counts `number` decisions at once.
    #[inline]
    pub fn add(&self, outcome: RuleOutcome, number: u64) {
        let lanes = self.lanes.get_or_init(Default::default);
        lanes[lane()].0[outcome as usize].fetch_add(number, Relaxed);
    }

    /// The counts so far.
    pub fn read(&self) -> RuleCounts {
        let mut sums = [0; OUTCOMES];
        if let Some(lanes) = self.lanes.get() {
            for lane in lanes.iter() {
                for (sum, count) in sums.iter_mut().zip(&lane.0) {
                    *sum += count.load(Relaxed);
                }
            }
        }
        RuleCounts(sums)
    }
}

impl RuleCounts {
    /// The number of decisions with this outcome.
    pub fn get(&self, outcome: RuleOutcome) -> u64 {
        self.0[outcome as usize]
    }
}

impl std::ops::AddAssign for RuleCounts {
    fn add_assign(&mut self, other: RuleCounts) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// The index of the copy of the counters that this thread adds to. New threads get the copies in turn.
#[inline]
fn lane() -> usize {
    thread_local! {
        static LANE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    LANE.with(|lane| {
        if lane.get() == usize::MAX {
            lane.set(NEXT.fetch_add(1, Relaxed) % LANES);
        }
        lane.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_lose_no_count() {
        let counters = RuleCounters::default();
        assert_eq!(counters.read(), RuleCounts::default());
        std::thread::scope(|scope| {
            for _ in 0..2 * LANES {
                scope.spawn(|| (0..1000).for_each(|_| counters.count(RuleOutcome::Denied)));
            }
        });
        counters.add(RuleOutcome::BanStarted, 3);
        let counts = counters.read();
        assert_eq!(counts.get(RuleOutcome::Denied), 2000 * LANES as u64);
        assert_eq!((counts.get(RuleOutcome::BanStarted), counts.get(RuleOutcome::Allowed)), (3, 0));
        let mut twice = counts;
        twice += counts;
        assert_eq!(twice.get(RuleOutcome::BanStarted), 6);
    }
}
