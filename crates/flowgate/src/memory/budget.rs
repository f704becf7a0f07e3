//! The budget: a cap on all bytes of the table, and counts of what was given up to stay below it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::shard::{Room, SpareRoom};

/// What to do when a new key needs room and memory is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Evict other counters: first expired ones, then those with the least use, then those that expire first.
    #[default]
    Evict,
    /// Deny new subjects. Subjects with a state keep it and can be banned.
    Deny,
}

/// The bytes of a page, in which most systems hand out memory.
const PAGE_BYTES: usize = 4096;

/// The largest share of a shard: that of a store of 64 GiB. The tables of a larger store allocate more as they grow,
/// instead of reserving address space that the machine may not have.
const MAX_SHARE: usize = 4 << 20;

/// A table is allocated at no more than this many times a shard's share, unless it needs more.
const MAX_SHARES_PER_TABLE: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Budget {
    max_bytes: usize,
    /// The bytes that each shard may take if all take the same.
    share: usize,
    /// The bytes of the largest table that was freed.
    largest_freed: AtomicUsize,
    pub(super) when_full: WhenFull,
    used: AtomicUsize,
    /// The number of counters that a shard will hold once all records are read; 0: unknown.
    expected_per_shard: AtomicUsize,
    pub(super) evicted: AtomicU64,
    pub(super) evicted_in_use: AtomicU64,
    pub(super) bans_refused: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) coarsened: AtomicU64,
}

impl Budget {
    /// A budget for `shards` shards. `used` bytes are spent from the start, and the budget is at least that.
    pub(super) fn new(max_bytes: usize, when_full: WhenFull, shards: usize, used: usize) -> Budget {
        let (max_bytes, share) = (max_bytes.max(used), (max_bytes / shards).min(MAX_SHARE));
        Budget { max_bytes, share, when_full, used: used.into(), ..Budget::default() }
    }

    /// The room that counters need. A store that denies keeps some for the records of bans, which
    /// [`Room::for_bans`] may take.
    #[inline]
    pub(super) fn room(&self, missing: usize, inserts: usize) -> Room {
        let spare = match self.when_full {
            WhenFull::Evict => SpareRoom::Nothing,
            WhenFull::Deny => SpareRoom::ForBans,
        };
        Room { missing, inserts, spare }
    }

    /// The bytes to allocate for a table that needs `bytes` now and may grow.
    ///
    /// A table that is allocated anew at each size leaves holes in the heap that few others fit in: the process took a
    /// fifth more than the budget. Memory that is allocated and never touched is not resident. So a table that outgrows
    /// a page is allocated at a shard's whole share, and only the part of it that is in use counts.
    ///
    /// glibc's allocator maps and unmaps an allocation of its own pages if it is larger than any such allocation freed
    /// so far; a smaller one lies in the heap and leaves a hole there. So a new table is a little larger than all freed
    /// ones, up to [`MAX_SHARES_PER_TABLE`].
    pub(super) fn capacity_for(&self, bytes: usize) -> usize {
        if bytes <= PAGE_BYTES {
            return bytes;
        }
        let above_freed = (self.largest_freed.load(Relaxed) + 2 * PAGE_BYTES).min(MAX_SHARES_PER_TABLE * self.share);
        bytes.max(self.share).max(above_freed)
    }

    /// Notes that an allocation of `bytes` is about to be freed.
    pub(super) fn note_freed(&self, bytes: usize) {
        if bytes > PAGE_BYTES {
            self.largest_freed.fetch_max(bytes, Relaxed);
        }
    }

    /// Takes `bytes` from the budget if it has them.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|&total| total <= self.max_bytes);
        bytes == 0 || self.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    pub(super) fn release(&self, bytes: usize) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Relaxed);
        }
    }

    pub(super) fn expect_per_shard(&self, counters: usize) {
        self.expected_per_shard.store(counters, Relaxed);
    }

    pub(super) fn expected_per_shard(&self) -> usize {
        self.expected_per_shard.load(Relaxed)
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub(super) fn share(&self) -> usize {
        self.share
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}
