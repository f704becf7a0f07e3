//! Prefetching: lets the processor fetch the counters of later requests while earlier ones are decided.
//!
//! A counter lies at the end of a chain: the slot says where the log is, the log where its entries are. Each link can be
//! fetched once the one before has arrived. A caller with several requests at hand goes over all of them for each link:
//!
//! 1. [`MemoryStore::prefetch`], [`MemoryStore::prefetch_several`]: the slots. Takes no lock.
//! 2. [`MemoryStore::prefetch_logs`]: the logs that the slots name.
//! 3. [`MemoryStore::prefetch_entries`]: the oldest and the newest entry of each log, which a take reads and writes.
//!
//! Nothing here changes a state or an answer, and none of it is ever needed.

use super::MemoryStore;
use super::key::Key;
use super::shard::Shard;
use super::shards::prefetch;
use super::slot::Slot;

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

    /// As [`MemoryStore::prefetch`], further: the sliding logs of the counters that were fetched. False if there are none.
    pub fn prefetch_logs(&self, key: Key) -> bool {
        let shard = self.lock(key.shard(self.shards.len()));
        let mut found = false;
        for place in shard.log_places(key) {
            prefetch(shard.logs.address(place));
            found = true;
        }
        found
    }

    /// As [`MemoryStore::prefetch_logs`], further: the ends of the logs that were fetched.
    pub fn prefetch_entries(&self, key: Key) {
        let shard = self.lock(key.shard(self.shards.len()));
        for log in shard.log_places(key).filter_map(|place| shard.logs.get(place)) {
            log.ends().into_iter().flatten().for_each(|end| prefetch(end.cast()));
        }
    }
}

impl Shard {
    /// The places of the logs of a key's subject.
    #[inline]
    fn log_places(&self, key: Key) -> impl Iterator<Item = usize> {
        self.slots[self.counters_at_home(key.tag())].iter().filter_map(Slot::log_index)
    }
}
