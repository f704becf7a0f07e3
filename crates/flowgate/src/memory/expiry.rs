//! Expiry: drops counters that are as if never used, a few slots at a time.
//!
//! A state that is as if never used may be forgotten at any time without changing an answer. So nothing is timed: every
//! few calls a shard looks at the next few of its slots and drops what has expired. A call thus touches a bounded
//! number of slots, however many keys expire at once, and a shard is swept as fast as it is used.
//!
//! *As if never used* holds for the time of the call and later ones. Another thread may still be on its way with a
//! time it read earlier, for which the state did matter. Therefore states are kept [`GRACE_NANOS`] longer, and a shard
//! remembers up to when it has forgotten (its floor): a time before that is decided as that instant, which is
//! stricter, never laxer.
//!
//! [`eviction`](super::eviction) forgets what has not expired, when memory is full.

use super::budget::Budget;
use super::key::Tag;
use super::shard::Shard;

/// How much longer than necessary an expired state is kept.
pub(super) const GRACE_NANOS: u64 = 1_000_000_000;

/// A sweep looks at this many slots (1 KiB, so it costs one cache miss and a few prefetched lines).
pub(super) const SWEEP_SLOTS: usize = 32;
/// A shard sweeps once in this many calls: half a slot a call, for a few nanoseconds. Under a flood of new keys that is
/// too slow to keep up, but then the table is laid out anew for them, which drops all that has expired.
const CALLS_PER_SWEEP: u32 = 64;

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
        let to = from + SWEEP_SLOTS;
        self.drop_expired(from, to, now);
        self.hand = to;
        if to >= self.slots.len() {
            self.hand = 0;
            self.shrink(now, budget);
        }
        self.settle(budget);
    }

    /// Drops all expired counters. A full shard does this before it evicts a counter or denies a new subject. Once per
    /// [`GRACE_NANOS`] is enough: in between hardly anything expires, and a denied client is told to come back after a
    /// second.
    pub(super) fn drop_all_expired(&mut self, now: u64, budget: &Budget) {
        if now.abs_diff(self.swept_at) >= GRACE_NANOS {
            self.swept_at = now;
            self.drop_expired(0, self.slots.len(), now);
            self.settle(budget);
        }
    }

    /// Drops what has expired among the slots `from..to`.
    pub(super) fn drop_expired(&mut self, from: usize, to: usize, now: u64) {
        let before = now.saturating_sub(GRACE_NANOS);
        let to = to.min(self.slots.len());
        // Mostly there is nothing to drop, and this check is much cheaper than the loop below.
        if !self.slots[from.min(to)..to].iter().any(|slot| !slot.is_empty() && slot.has_expired(now)) {
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

    /// The number of parts of a counter that [`Shard::drop_expired`] would drop.
    pub(super) fn expired_parts(&self, tag: Tag, now: u64) -> usize {
        let parts = [tag, tag.seen()].into_iter().filter_map(|tag| self.find(tag).ok());
        parts.filter(|&index| self.slots[index].has_expired(now)).count()
    }

    /// Notes that states which ended at `forgotten` are gone: from now on every request is decided at that instant or later.
    pub(super) fn raise_floor(&mut self, forgotten: u64) {
        self.floor = self.floor.max(forgotten);
    }
}
