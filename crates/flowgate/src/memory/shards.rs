//! The shards behind their locks, and beside them an outline of each. An outline says where the table of the shard lies, so
//! that a counter can be fetched into the cache ahead of its decision, and how many counters it holds, so that they can be
//! summed without a lock.
//!
//! Invariant  While a shard's lock is free, its outline is that of its table. An outline that is read without the lock may
//!            be old; it serves only as a hint to the processor and for reports.
//!
//! Outlines lie close together, apart from the shards: those of thousands of shards stay in the cache, the shards do not.
//!
//! This is the one place with `unsafe` in it: the hint has no safe form. A counter of a large table is not in the cache;
//! waiting for it took a quarter of the time of a pipelined `CL.THROTTLE`.

use std::hint::spin_loop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::changes::ChangedShards;
use super::database::{Database, DatabaseCounts};
use super::key::Tag;
use super::shard::{Shard, position};
use super::slot::Slot;

/// All shards of a store.
#[derive(Debug)]
pub(super) struct Shards {
    outlines: Box<[Outline]>,
    shards: Box<[ShardLock]>,
    /// The shards that have changes.
    pub(super) changed: Arc<ChangedShards>,
    /// The counts of each shard by database, from the first use of another database on.
    databases: OnceLock<Box<[Arc<DatabaseCounts>]>>,
}

/// Where the table of a shard lies, and how large it is.
#[derive(Debug, Default)]
struct Outline {
    slots: AtomicPtr<Slot>,
    size: AtomicU64,
}

/// The positions of a table and the counters in it in one word, so that both are compared and kept at once. Each fits in
/// half of it: a table of 2^32 slots would take 128 GiB.
#[inline]
fn size_of_table(shard: &Shard) -> u64 {
    (shard.live() as u64) << 32 | shard.positions() as u64
}

fn positions_in(size: u64) -> usize {
    (size & u64::from(u32::MAX)) as usize
}

fn counters_in(size: u64) -> usize {
    (size >> 32) as usize
}

/// The bytes of a cache line.
pub(super) const CACHE_LINE: usize = 64;

/// The number of slots in a cache line.
const SLOTS_PER_LINE: usize = CACHE_LINE / size_of::<Slot>();

/// A shard behind its lock. Aligned, so that neighbours on other cores do not share its cache lines.
#[derive(Debug, Default)]
#[repr(align(64))]
struct ShardLock(Mutex<Shard>);

/// A thread that finds a shard locked looks again after one pause, then after two, and so on up to this many. Only then it
/// sleeps: the holder has lost the processor.
const MOST_PAUSES: u32 = 32;

impl ShardLock {
    /// Waits for the lock, for about as long as a few decisions take. A thread that looked at the lock all the time would take its
    /// cache line away from the holder, which writes to the same line.
    #[cold]
    fn wait(&self) -> MutexGuard<'_, Shard> {
        for pauses in 1..=MOST_PAUSES {
            (0..pauses).for_each(|_| spin_loop());
            if let Ok(shard) = self.0.try_lock() {
                return shard;
            }
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shards {
    /// The bytes that each shard takes beside its table.
    pub(super) const BYTES_EACH: usize = size_of::<ShardLock>() + size_of::<Outline>();

    /// Makes this number of empty shards.
    pub(super) fn new(shards: usize) -> Shards {
        let changed = Arc::new(ChangedShards::new(shards));
        let outlines = (0..shards).map(|_| Outline::default()).collect();
        let shards = (0..shards).map(|_| ShardLock::default()).collect();
        Shards { outlines, shards, changed, databases: OnceLock::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    #[inline]
    pub(super) fn lock(&self, index: usize) -> ShardGuard<'_> {
        let lock = &self.shards[index];
        // No call panics while it holds a shard. If one did, the shard would still be a valid table.
        let shard = match lock.0.try_lock() {
            Ok(shard) => shard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => lock.wait(),
        };
        ShardGuard { shard, outline: &self.outlines[index] }
    }

    /// The shard, locked, for a caller that changes nothing; `None` if it is locked already.
    #[inline]
    pub(super) fn try_look(&self, index: usize) -> Option<impl Deref<Target = Shard>> {
        self.shards[index].0.try_lock().ok()
    }

    /// The counters of all shards, without a lock. The number of a shard in use may be that before its current call.
    pub(super) fn counters(&self) -> usize {
        self.outlines.iter().map(|outline| counters_in(outline.size.load(Relaxed))).sum()
    }

    /// Gives every shard a place for the counts of its databases, once.
    pub(super) fn count_databases(&self) {
        self.databases.get_or_init(|| {
            let give = |index| {
                let counts = Arc::<DatabaseCounts>::default();
                self.lock(index).databases = Some(Arc::clone(&counts));
                counts
            };
            (0..self.len()).map(give).collect()
        });
    }

    /// The counters in a database, as [`Shards::counters`] counts them.
    pub(super) fn counters_in(&self, database: Database) -> usize {
        let shards = self.databases.get().into_iter().flatten();
        match database.number() {
            0 => self.counters().saturating_sub(shards.map(|counts| counts.sum()).sum()),
            _ => shards.map(|counts| counts.get(database)).sum(),
        }
    }

    /// Fetches the cache lines of a shard's table in which a search for so many counters of the tag's subject begins. Not those
    /// of the shard itself: to read its lock takes it away from a processor that holds it.
    #[inline]
    pub(super) fn prefetch(&self, index: usize, tag: Tag, counters: usize) {
        let outline = &self.outlines[index];
        let home =
            outline.slots.load(Relaxed).wrapping_add(position(tag.place(), positions_in(outline.size.load(Relaxed))));
        // Of a table that is as full as may be, half of the slots are displaced by three or more.
        for line in 0..(counters + 5) / SLOTS_PER_LINE {
            prefetch(home.wrapping_add(SLOTS_PER_LINE * line).cast());
        }
    }

    /// Fetches the lock of a shard and what lies beside it.
    #[inline]
    pub(super) fn prefetch_lock(&self, index: usize) {
        prefetch((&raw const self.shards[index]).cast());
    }

    /// Fetches the second cache line of a shard: the bits of its changed groups, and where its logs are.
    #[inline]
    pub(super) fn prefetch_second_line(&self, index: usize) {
        prefetch((&raw const self.shards[index]).cast::<u8>().wrapping_add(CACHE_LINE));
    }

    /// Fetches a shard, without its table.
    #[inline]
    pub(super) fn prefetch_shard(&self, index: usize) {
        if let Some(lock) = self.shards.get(index) {
            let (lock, lines) = ((&raw const *lock).cast::<u8>(), size_of::<ShardLock>() / CACHE_LINE);
            (0..lines).for_each(|line| prefetch(lock.wrapping_add(CACHE_LINE * line)));
        }
    }
}

#[cfg(test)]
impl Shards {
    pub(super) fn check_outline(&self, index: usize) {
        let (shard, outline) = (self.lock(index), &self.outlines[index]);
        assert_eq!(outline.size.load(Relaxed), size_of_table(&shard));
        assert!(shard.slots.is_empty() || outline.slots.load(Relaxed) == shard.slots.as_ptr().cast_mut());
    }
}

/// The shard, locked.
pub(super) struct ShardGuard<'a> {
    shard: MutexGuard<'a, Shard>,
    outline: &'a Outline,
}

impl Deref for ShardGuard<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for ShardGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Drop for ShardGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let (slots, size) = (self.shard.slots.as_ptr().cast_mut(), size_of_table(&self.shard));
        if self.outline.slots.load(Relaxed) != slots || self.outline.size.load(Relaxed) != size {
            self.outline.slots.store(slots, Relaxed);
            self.outline.size.store(size, Relaxed);
        }
    }
}

#[inline]
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the hint takes an address; there is no safe form of it")]
pub(super) fn prefetch(address: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has the instruction. It reads nothing that the program could see and ignores
    // addresses that are not mapped, so any address will do.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
}

#[inline]
#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "the hint takes an address; there is no safe form of it")]
pub(super) fn prefetch(address: *const u8) {
    // SAFETY: every 64-bit ARM processor has the instruction. It reads nothing that the program could see and ignores
    // addresses that are not mapped, so any address will do. (The intrinsic needs an unstable feature.)
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{address}]", address = in(reg) address,
            options(readonly, nostack, preserves_flags));
    }
}

/// On other processors the hint needs an unstable feature.
#[inline]
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn prefetch(_: *const u8) {}
