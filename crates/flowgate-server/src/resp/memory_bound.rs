//! The bound on what clients hold of half-received commands, transactions and unread replies.
//!
//! Rule       Above `all`, a client over its share is disconnected when it grows.
//! Bound      The shares add up to `all`, so the clients together hold at most twice `all`, and a client below its
//!            share is never disconnected for what others hold.

use crate::metrics::Counter;

/// How many bytes clients may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryBound {
    all: u64,
    share: u64,
}

/// The bytes that one client holds, as of the last update.
#[derive(Debug, Default)]
pub(super) struct HeldBytes(u64);

impl MemoryBound {
    pub(crate) fn new(all: u64, max_connections: usize) -> MemoryBound {
        MemoryBound { all, share: all / max_connections.max(1) as u64 }
    }
}

impl HeldBytes {
    /// Sets what this client holds, and adds the difference to `total`. False if the client must be disconnected.
    #[inline]
    pub(super) fn update(&mut self, bytes: usize, bound: MemoryBound, total: &Counter) -> bool {
        // Nearly always the client holds nothing before and after.
        bytes as u64 == self.0 || self.change(bytes as u64, bound, total)
    }

    #[cold]
    fn change(&mut self, bytes: u64, bound: MemoryBound, total: &Counter) -> bool {
        let before = std::mem::replace(&mut self.0, bytes);
        if bytes < before {
            total.subtract(before - bytes);
            return true;
        }
        total.add(bytes - before);
        bytes <= bound.share || total.get() <= bound.all
    }

    /// Subtracts what the client held from `total`, when the client leaves.
    pub(super) fn release(&mut self, total: &Counter) {
        total.subtract(std::mem::take(&mut self.0));
    }
}
