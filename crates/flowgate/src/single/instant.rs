//! A counter that is one atomic instant: that of a bucket whose interval is a whole number of nanoseconds.
//!
//! A decision is one compare-and-exchange, and none where nothing changes: half of what a lock and two words cost where several
//! threads meet.

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

use crate::ask::Ask;
use crate::decision::Decision;
use crate::limit::Limit;

/// Zero stands for an unused counter: no bucket is full again at the epoch.
#[derive(Debug, Default)]
pub(super) struct AtomicInstant(AtomicU64);

impl AtomicInstant {
    /// Applies an operation of a limit that [is an instant](Limit::is_instant), anew if another thread comes in between.
    #[inline(always)]
    pub(super) fn apply(&self, limit: &Limit, ask: Ask) -> Decision {
        let mut old = self.0.load(Acquire);
        loop {
            let mut new = old;
            let decision = limit.apply_instant(ask, &mut new);
            if new == old {
                return decision;
            }
            match self.0.compare_exchange_weak(old, new, AcqRel, Acquire) {
                Ok(_) => return decision,
                Err(changed) => old = changed,
            }
        }
    }
}
