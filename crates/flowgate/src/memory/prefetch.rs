//! Prefetching: lets the processor fetch the counters of later requests while earlier ones are decided.
//!
//! A counter lies at the end of a chain: the slot says where the log is, the log where its entries are. Each link can be
//! fetched once the one before has arrived. A caller with several requests at hand fetches each link for all of them:
//!
//! 1. The slots, and of the shard its lock and where its logs are. Takes no lock.
//! 2. The logs that the slots name.
//! 3. The oldest entry of each log, which a take reads, and the place behind the newest, which it writes.
//!
//! Nothing here changes a state or an answer, and none of it is ever needed.

use smallvec::SmallVec;

use super::MemoryStore;
use super::key::Key;
use super::shards::prefetch;
use super::slot::Slot;

/// The subjects of requests that are decided soon, for [`MemoryStore::prefetch_group`].
#[derive(Debug, Default)]
pub struct PrefetchGroup {
    subjects: SmallVec<[PrefetchSubject; PrefetchGroup::INLINE_SUBJECTS]>,
}

#[derive(Debug)]
struct PrefetchSubject {
    key: Key,
    counters: usize,
}

impl PrefetchGroup {
    /// The subjects that a group holds without an allocation, and those that are looked at together.
    const INLINE_SUBJECTS: usize = 16;

    /// An empty group.
    pub const fn new() -> PrefetchGroup {
        PrefetchGroup { subjects: SmallVec::new_const() }
    }

    /// Adds the subject of a key. `counters` is about how many of the subject's counters a request needs.
    #[inline]
    pub fn push(&mut self, key: Key, counters: usize) {
        self.subjects.push(PrefetchSubject { key, counters });
    }
}

impl MemoryStore {
    /// Fetches the counters of a key's subject into the processor's cache. Worth it for a caller that knows the next key while
    /// the one before it is decided; never needed.
    #[inline]
    pub fn prefetch(&self, key: Key) {
        self.shards.prefetch(key.shard(self.shards.len()), key.tag(), 1);
    }

    /// As [`MemoryStore::prefetch`], for a caller that knows about how many counters the subject has, and decides many other
    /// requests before this one: the lock is fetched, too, since those of all shards of a large store do not fit the cache.
    #[inline]
    pub fn prefetch_several(&self, key: Key, counters: usize) {
        let index = key.shard(self.shards.len());
        self.shards.prefetch_lock(index);
        self.shards.prefetch(index, key.tag(), counters);
    }

    /// As [`MemoryStore::prefetch_several`] for each subject of a group, and further: their sliding logs. Leaves the group empty.
    pub fn prefetch_group(&self, group: &mut PrefetchGroup) {
        for PrefetchSubject { key, counters } in &group.subjects {
            self.prefetch_several(*key, *counters);
            self.shards.prefetch_second_line(key.shard(self.shards.len()));
        }
        group.subjects.chunks(PrefetchGroup::INLINE_SUBJECTS).for_each(|subjects| self.prefetch_logs(subjects));
        group.subjects.clear();
    }

    /// Fetches the logs of some subjects. The shards stay locked from one link to the next. A shard that is locked already,
    /// by this function or another thread, is left out, so nothing here waits.
    #[inline]
    fn prefetch_logs(&self, subjects: &[PrefetchSubject]) {
        let mut found = SmallVec::<[_; PrefetchGroup::INLINE_SUBJECTS]>::new();
        for PrefetchSubject { key, .. } in subjects {
            let Some(shard) = self.shards.try_look(key.shard(self.shards.len())) else { continue };
            let slots = shard.counters_at_home(key.tag());
            let places = shard.slots[slots.clone()].iter().filter_map(Slot::log_index);
            if places.map(|place| prefetch(shard.logs.address(place))).count() > 0 {
                found.push((shard, slots));
            }
        }
        for (shard, slots) in &found {
            for log in shard.slots[slots.clone()].iter().filter_map(|slot| shard.logs.get(slot.log_index()?)) {
                log.ends().into_iter().flatten().for_each(|end| prefetch(end.cast()));
            }
        }
    }
}
