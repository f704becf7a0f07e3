//! A counter behind the cheapest lock that its state allows.
//!
//! Most states are two words. They are kept in atomics under a flag: one atomic exchange to lock, a plain store to
//! unlock, half of what a mutex costs, and no `unsafe`. The lock is held for a few nanoseconds. A thread that finds it
//! taken spins for as long as that may last and then yields. Larger states (a sliding log, the two counters of
//! `after=`) are behind a mutex.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// After this many checks of the lock, its holder must have lost the processor.
const LOOKS_PER_YIELD: u32 = 64;

#[derive(Debug, Default)]
pub(super) struct SpinWords {
    taken: AtomicBool,
    /// Zeros stand for an unused counter: no state ends at the epoch to the tick.
    words: [AtomicU64; 2],
}

impl SpinWords {
    /// Locks the words and gives them out until [`SpinWords::put`] brings them back.
    #[inline(always)]
    pub(super) fn take(&self) -> Option<[u64; 2]> {
        self.lock();
        let [first, second] = [self.words[0].load(Relaxed), self.words[1].load(Relaxed)];
        (first | second != 0).then_some([first, second])
    }

    #[inline(always)]
    pub(super) fn put(&self, words: Option<[u64; 2]>) {
        let [first, second] = words.unwrap_or_default();
        self.words[0].store(first, Relaxed);
        self.words[1].store(second, Relaxed);
        self.taken.store(false, Release);
    }

    #[inline(always)]
    fn lock(&self) {
        let mut looks = 0_u32;
        while self.taken.swap(true, Acquire) {
            // Only reads until the lock seems free: a swap would take the cache line away from the holder.
            while self.taken.load(Relaxed) {
                looks += 1;
                if looks.is_multiple_of(LOOKS_PER_YIELD) { std::thread::yield_now() } else { spin_loop() }
            }
        }
    }
}
