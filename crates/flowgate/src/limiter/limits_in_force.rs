//! The limits of a limiter, and the names of their counters.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use crate::limit::Limit;
use crate::memory::{CounterId, MemoryStore};

/// A limit and the name of its counters.
#[derive(Debug)]
pub(super) struct NamedLimit {
    pub(super) id: CounterId,
    pub(super) limit: Limit,
}

/// The limits in force. Most limiters keep their first limits. These are read directly, which saves the two atomic
/// writes of reading a replaceable pointer.
#[derive(Debug)]
pub(super) struct LimitsInForce {
    first: Vec<NamedLimit>,
    /// The limits after the first change; empty before it.
    changed: OnceLock<ArcSwap<Vec<NamedLimit>>>,
}

impl LimitsInForce {
    pub(super) fn new(first: Vec<NamedLimit>) -> LimitsInForce {
        LimitsInForce { first, changed: OnceLock::new() }
    }

    #[inline(always)]
    pub(super) fn read<R>(&self, look: impl FnOnce(&[NamedLimit]) -> R) -> R {
        let guard;
        let limits = match self.changed.get() {
            None => &self.first,
            Some(changed) => {
                guard = changed.load();
                &**guard
            }
        };
        look(limits)
    }

    pub(super) fn replace(&self, limits: Vec<NamedLimit>) {
        let limits = Arc::new(limits);
        self.changed.get_or_init(|| ArcSwap::new(Arc::clone(&limits))).store(limits);
    }
}

/// Names the counters of a set of limits: by algorithm and period, and by number where those are equal.
pub(super) fn named(memory: &MemoryStore, limits: Vec<Limit>) -> Vec<NamedLimit> {
    let mut named: Vec<NamedLimit> = Vec::with_capacity(limits.len());
    for limit in limits {
        let identity = limit.identity();
        let twins = named.iter().filter(|other| other.limit.identity() == identity).count();
        let id = memory.counter(format!("{identity} {twins}").as_bytes());
        named.push(NamedLimit { id, limit });
    }
    named
}
