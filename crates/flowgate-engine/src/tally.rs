//! What a rule has decided, counted.
//!
//! State      Counts since the rule first had its name; another policy with a rule of that name takes them over.
//! Rule       The engine only keeps the counts beside the rule, so that counting needs no lookup. Whoever decides for
//!            callers counts (a server does, a replay has its own report).
//! Cost       A count is one addition to a cache line that threads on other cores seldom touch: counts are kept in
//!            [`LANES`] copies, each thread uses one, and only a reader adds them up. No lock, no allocation but at the
//!            first count.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Threads beyond so many share: what one pays then is a cache line that moves, no wrong count.
const LANES: usize = 8;

/// What can be counted of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// A request that passed, and of which this rule was the tightest or the deciding one.
    Allowed,
    /// A request that the rule denied: a limit was exceeded, or the rule denies at once.
    Denied,
    /// A request that was denied because the rule has banned its subject.
    Banned,
    /// A request that the rule would have denied were it no shadow.
    Shadowed,
    /// A ban that the rule has started.
    BanStarted,
}

const KINDS: usize = 5;

/// The counts of one rule. A clone-free handle lives beside the compiled rule; see [`crate::Rule::tally`].
#[derive(Debug, Default)]
pub struct Tally {
    /// There once something was counted: most of a hundred thousand rules never decide.
    lanes: OnceLock<Box<[Lane; LANES]>>,
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Lane([AtomicU64; KINDS]);

/// Counts as they were read: one after the other, so they need not be of one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallied([u64; KINDS]);

impl Tally {
    /// Counts one.
    #[inline]
    pub fn count(&self, what: Counted) {
        self.add(what, 1);
    }

    /// Counts several at once.
    #[inline]
    pub fn add(&self, what: Counted, number: u64) {
        let lanes = self.lanes.get_or_init(Default::default);
        lanes[lane()].0[what as usize].fetch_add(number, Relaxed);
    }

    /// What was counted so far.
    pub fn read(&self) -> Tallied {
        let mut sums = [0; KINDS];
        for lane in self.lanes.get().into_iter().flat_map(|lanes| lanes.iter()) {
            for (sum, count) in sums.iter_mut().zip(&lane.0) {
                *sum += count.load(Relaxed);
            }
        }
        Tallied(sums)
    }
}

impl Tallied {
    /// How many of these.
    pub fn get(&self, what: Counted) -> u64 {
        self.0[what as usize]
    }
}

impl std::ops::AddAssign for Tallied {
    fn add_assign(&mut self, other: Tallied) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}

/// The lane of this thread: threads take them in turn.
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
        let tally = Tally::default();
        assert_eq!(tally.read(), Tallied::default());
        std::thread::scope(|scope| {
            for _ in 0..2 * LANES {
                scope.spawn(|| (0..1000).for_each(|_| tally.count(Counted::Denied)));
            }
        });
        tally.add(Counted::BanStarted, 3);
        let read = tally.read();
        assert_eq!(read.get(Counted::Denied), 2000 * LANES as u64);
        assert_eq!((read.get(Counted::BanStarted), read.get(Counted::Allowed)), (3, 0));
        let mut twice = read;
        twice += read;
        assert_eq!(twice.get(Counted::BanStarted), 6);
    }
}
