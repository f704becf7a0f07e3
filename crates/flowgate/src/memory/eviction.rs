//! Eviction: which counter goes when memory is full.
//!
//! Rule       Of [`EVICTION_SAMPLE_SLOTS`] neighbours one goes: of the lowest [`Class`], of those the one that expires
//!            first, of those the last one. The next sample begins behind it.
//! Invariant  An eviction takes no class above the lowest one in its sample.
//! Bound      A crowd of keys can evict a counter of which half is used only after it has used half of the limits of
//!            all neighbours, which is nearly the whole table.
//!
//! The hash has shuffled the counters, so neighbours are a fair sample. A sample is a number of counters, not of
//! slots. If each range of slots lost one counter in turn, a range with few counters would soon hold only counters in
//! use, and lose those.
//!
//! The class decides before the expiry. A counter that is used up may expire soon, and new keys expire later. By expiry
//! alone, a crowd of new keys would evict the used-up counters of other clients, and so reset their limits.

use std::sync::atomic::Ordering::Relaxed;

use super::budget::Budget;
use super::shard::Shard;
use crate::class::Class;

/// The slots among which the counter to evict is chosen.
pub(super) const EVICTION_SAMPLE_SLOTS: usize = 32;

/// A log that needs bytes searches this many samples for a log of a lower class to evict. If there is none, the log
/// gives up its precision in time.
const LOG_SAMPLES: usize = 4;

/// A counter that may be evicted.
#[derive(Clone, Copy)]
struct Victim {
    index: usize,
    class: Class,
    forget_at: u64,
    holds_log: bool,
}

impl Victim {
    /// The one to evict first; `later` has the higher index and wins a tie.
    fn or(self, later: Victim) -> Victim {
        if (later.class, later.forget_at) <= (self.class, self.forget_at) { later } else { self }
    }
}

impl Shard {
    /// Forgets one counter of the next sample.
    pub(super) fn evict(&mut self, now: u64, budget: &Budget) {
        let victim = self.victim(1, now, |_| true);
        self.evict_victim(victim, now, budget);
    }

    /// Forgets one counter that holds a log and has expired or is of a class below `class`, if there is one in the next
    /// samples.
    pub(super) fn evict_log(&mut self, class: Class, now: u64, budget: &Budget) {
        if self.has_logs() {
            let may_go = |found: &Victim| found.holds_log && (found.class < class || found.forget_at < now);
            let victim = self.victim(LOG_SAMPLES, now, may_go);
            self.evict_victim(victim, now, budget);
        }
    }

    /// Forgets one of the last counters, if slots behind them are missing. Only a counter of their last run, laid out
    /// for `positions`, moves the end back.
    pub(super) fn evict_last(&mut self, positions: usize, now: u64, budget: &Budget) {
        let (from, to) = self.last_run(positions);
        let last = from.max(to.saturating_sub(EVICTION_SAMPLE_SLOTS))..to;
        let victim = last.filter_map(|index| self.candidate(index, now)).reduce(Victim::or);
        match victim {
            Some(_) => self.evict_victim(victim, now, budget),
            None => self.evict(now, budget),
        }
    }

    fn evict_victim(&mut self, victim: Option<Victim>, now: u64, budget: &Budget) {
        let Some(Victim { index, class, forget_at, .. }) = victim else { return };
        self.drop_where(index, index + 1, |_| true);
        self.settle(budget);
        if forget_at < now {
            self.raise_floor(forget_at);
            return;
        }
        budget.evicted.fetch_add(1, Relaxed);
        if class >= Class::HALF {
            budget.evicted_in_use.fetch_add(1, Relaxed);
        }
    }

    /// The counter to evict: that of the first sample with a counter that may go. Up to `samples` samples follow each
    /// other round the table, at most once.
    fn victim(&mut self, samples: usize, now: u64, may_go: impl Fn(&Victim) -> bool) -> Option<Victim> {
        let (mut least, mut looked_at): (Option<Victim>, usize) = (None, 0);
        let len = self.slots.len();
        let from = if self.hand < len { self.hand } else { 0 };
        for index in (from..len).chain(0..from) {
            self.hand = index + 1;
            let Some(found) = self.candidate(index, now) else { continue };
            if may_go(&found) {
                least = Some(least.map_or(found, |least| least.or(found)));
            }
            looked_at += 1;
            let sample_is_over = looked_at % EVICTION_SAMPLE_SLOTS == 0;
            if sample_is_over && (least.is_some() || looked_at == samples * EVICTION_SAMPLE_SLOTS) {
                break;
            }
        }
        least
    }

    /// The counter at `index`. The two parts of one with `after=`, or of a ban, go together: its class is the higher
    /// one, and it expires with the later one.
    fn candidate(&self, index: usize, now: u64) -> Option<Victim> {
        let slot = &self.slots[index];
        if slot.is_empty() || slot.is_second() && index > 0 && self.is_pair(index - 1) {
            return None;
        }
        let (mut class, mut forget_at) = (slot.class_at(now), slot.forget_at());
        if self.is_pair(index) {
            let second = &self.slots[index + 1];
            (class, forget_at) = (class.max(second.class_at(now)), forget_at.max(second.forget_at()));
        }
        Some(Victim { index, class, forget_at, holds_log: slot.holds_log() })
    }
}
