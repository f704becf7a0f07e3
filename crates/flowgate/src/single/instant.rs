//! A counter that is one atomic instant: that of a bucket whose interval is a whole number of nanoseconds.
//!
//! Its decision is one compare-and-exchange, and none where nothing changes. With a lock, the processor waits for the counter of
//! the last decision before it reads the clock for the next one; a take with the clock then takes up to twice as long.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

/// Zero stands for an unused counter: no bucket is full again at the epoch.
#[derive(Debug, Default)]
pub(super) struct AtomicInstant(AtomicU64);

impl AtomicInstant {
    /// Lets `change` decide on the instant and change it, as often as another thread comes in between.
    #[inline(always)]
    pub(super) fn update<R>(&self, change: impl Fn(&mut u64) -> R) -> R {
        let mut old = self.0.load(Acquire);
        loop {
            let mut new = old;
            let answer = change(&mut new);
            if new == old {
                return answer;
            }
            match self.0.compare_exchange_weak(old, new, AcqRel, Acquire) {
                Ok(_) => return answer,
                Err(changed) => old = changed,
            }
        }
    }
}
