//! Forgetting: what has expired goes by and by; when memory is full, what is closest to expiring goes first.
//!
//! A state that is as if never used may be forgotten at any time, and nobody notices. So nothing is timed: every few
//! calls a shard looks at the next few of its slots and drops what has expired. A call thus touches a bounded
//! number of slots, however many keys expire at once, and a shard is swept as fast as it is used.
//!
//! *As if never used* holds for the time of the call and later ones. Another thread may still be on its way with a
//! time it read earlier, for which the state did matter. Therefore states are kept [`GRACE`] longer, and a shard
//! remembers up to when it has forgotten (its floor): a time before that is decided as that instant, which is
//! stricter, never laxer.
//!
//! When the budget is spent, a shard forgets among [`SAMPLE`] neighbouring slots the one that expires first: the
//! hash has shuffled them, so they are a fair sample. That is what is closest to never used: a subject that is
//! almost back at its full allowance loses the least by having all of it.

use std::sync::atomic::Ordering::Relaxed;

use super::budget::Budget;
use super::shard::Shard;
use super::slot::Slot;

/// How much longer than needed an expired state is kept.
pub(super) const GRACE: u64 = 1_000_000_000;

/// A sweep looks at this many slots (1 KiB, so it costs one cache miss and a few prefetched lines)...
pub(super) const SWEEP: usize = 32;
/// ...every so many calls: half a slot a call, for a few nanoseconds. Under a flood of new keys that is too slow to
/// keep up, but then the table is laid out anew for them, which drops all that has expired.
const CALLS_PER_SWEEP: u32 = 64;

/// Among so many slots the one to evict is chosen.
pub(super) const SAMPLE: usize = 32;

impl Shard {
    /// A step of the sweep, if one is due.
    #[inline]
    pub(super) fn tick(&mut self, now: u64, budget: &Budget) {
        match self.calls_to_sweep.checked_sub(1) {
            Some(rest) => self.calls_to_sweep = rest,
            None => self.sweep(now, budget),
        }
    }

    fn sweep(&mut self, now: u64, budget: &Budget) {
        self.calls_to_sweep = CALLS_PER_SWEEP - 1;
        let from = self.hand;
        let to = from + SWEEP;
        self.drop_expired(from, to, now);
        self.hand = to;
        if to >= self.slots.len() {
            self.hand = 0;
            self.shrink(now, budget);
        }
        self.settle(budget);
    }

    /// Drops all that has expired: what a full shard does before it evicts anybody or denies a new subject. Once per
    /// [`GRACE`] will do: in between, hardly anything expires, and who is denied is told to come back after a second.
    pub(super) fn drop_all_expired(&mut self, now: u64, budget: &Budget) {
        if now.abs_diff(self.swept_at) >= GRACE {
            self.swept_at = now;
            self.drop_expired(0, self.slots.len(), now);
            self.settle(budget);
        }
    }

    /// Drops what has expired among the slots `from..to`.
    pub(super) fn drop_expired(&mut self, from: usize, to: usize, now: u64) {
        let before = now.saturating_sub(GRACE);
        let to = to.min(self.slots.len());
        // Mostly there is nothing to drop, and to see that is much cheaper than to drop nothing.
        if !self.slots[from.min(to)..to].iter().any(|slot| !slot.is_empty() && slot.forget_at() < before) {
            return;
        }
        let mut last = 0;
        self.drop_where(from, to, |forget_at| {
            let expired = forget_at < before;
            if expired {
                last = last.max(forget_at);
            }
            expired
        });
        self.raise_floor(last);
    }

    /// Forgets one counter: of the next few the one that is closest to never used.
    pub(super) fn evict(&mut self, now: u64, budget: &Budget) {
        self.evict_where(now, budget, |_| true);
    }

    /// Forgets one counter that holds a log, if there is one among the next few.
    pub(super) fn evict_log(&mut self, now: u64, budget: &Budget) {
        self.evict_where(now, budget, Slot::holds_log);
    }

    fn evict_where(&mut self, now: u64, budget: &Budget, may_go: impl Fn(&Slot) -> bool) {
        let Some((index, forget_at)) = self.victim(may_go) else { return };
        self.drop_where(index, index + 1, |_| true);
        self.settle(budget);
        if forget_at < now {
            self.raise_floor(forget_at);
        } else {
            budget.evicted.fetch_add(1, Relaxed);
        }
    }

    fn victim(&mut self, may_go: impl Fn(&Slot) -> bool) -> Option<(usize, u64)> {
        let len = self.slots.len();
        // Twice round covers every slot wherever the hand stands.
        for _ in 0..=2 * (len / SAMPLE + 1) {
            // The last few are a full sample, too: of one or two the wrong one would go.
            let from = if self.hand < len { self.hand.min(len.saturating_sub(SAMPLE)) } else { 0 };
            let to = (from + SAMPLE).min(len);
            self.hand = to;
            // The second part of a counter with `after=` goes with the first.
            let second = |index: usize| index > 0 && self.is_pair(index - 1);
            let taken = (from..to).filter(|&index| !self.slots[index].is_empty() && !second(index));
            let taken = taken.filter(|&index| may_go(&self.slots[index]));
            if let Some(found) = taken.map(|index| (index, self.forget_at(index))).min_by_key(|&(_, at)| at) {
                return Some(found);
            }
        }
        None
    }

    /// What was forgettable at `forgotten` is gone: no time up to that instant is decided for any more.
    fn raise_floor(&mut self, forgotten: u64) {
        if forgotten > 0 {
            self.floor = self.floor.max(forgotten + 1);
        }
    }
}
