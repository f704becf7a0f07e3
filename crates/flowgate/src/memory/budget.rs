//! The budget: a cap in bytes on everything the table holds, and the counts of what it cost to keep it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What to do when a new key needs room and there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// Forget others: first what is as if never used, then what is closest to it.
    #[default]
    Evict,
    /// Deny new subjects; those that have a state keep it.
    Deny,
}

#[derive(Debug)]
pub(super) struct Budget {
    max_bytes: usize,
    pub(super) when_full: WhenFull,
    used: AtomicUsize,
    pub(super) evicted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) coarsened: AtomicU64,
}

impl Budget {
    /// A budget of which `used` is spent from the start, and which is at least that.
    pub(super) fn new(max_bytes: usize, when_full: WhenFull, used: usize) -> Budget {
        let [evicted, refused, coarsened] = [const { AtomicU64::new(0) }; 3];
        Budget { max_bytes: max_bytes.max(used), when_full, used: AtomicUsize::new(used), evicted, refused, coarsened }
    }

    /// Takes `bytes` if they are there.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|&total| total <= self.max_bytes);
        bytes == 0 || self.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    pub(super) fn release(&self, bytes: usize) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Relaxed);
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}
