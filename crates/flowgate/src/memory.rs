//! The embedded store: a sharded table in memory, exact under concurrency and bounded in bytes.
//!
//! Rule       [`MemoryStore::apply`] locks the shards of a plan, loads the counters, lets [`plan`](crate::plan) decide,
//!            and keeps the counters. One subject lives in one shard, so one lock is the rule.
//! Invariant  Shards are locked in index order, so two plans cannot deadlock.
//! Invariant  No more than `max_bytes` is held, sliding logs included.
//!
//! A lookup costs a hash, a lock and one or two cache lines. See [`shard`] for the table, [`expiry`] and
//! [`eviction`] for how it forgets.

mod budget;
mod changes;
mod database;
mod eviction;
mod expiry;
mod key;
mod load;
mod logs;
mod prefetch;
mod record;
mod shard;
mod shards;
mod sip_hash;
mod slot;
mod step;

use std::sync::atomic::Ordering::Relaxed;

pub use budget::WhenFull;
pub use changes::VisitCursor;
pub use database::Database;
pub use key::{CounterId, Key, Seed, Subject, SubjectHasher};
pub use load::{LoadAt, LoadOutcome};
pub use prefetch::PrefetchGroup;
pub use record::{Record, Records};

use crate::ask::{Ask, Op};
use crate::ban::BanHit;
use crate::decision::Decision;
use crate::limit::Limit;
use crate::plan::joint::{self, SharedCounters};
use crate::plan::{Hit, Plan, PlanPart};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::{Span, Time};
use budget::Budget;
use shard::RESERVED_BYTES;
use shards::{ShardGuard, Shards};
use step::{OneShard, SeveralShards, apply_to, keep, load, make_room};

/// The approximate size of a full shard in bytes. Laying such a shard out anew takes about a tenth of a millisecond.
const SHARD_BYTES: usize = 512 << 10;
/// The fewest and the most shards of a store. The allocator may map each table and each log by itself; with 2^14 shards
/// these mappings stay well below the 65,530 that Linux allows a process.
const SHARD_COUNTS: std::ops::RangeInclusive<usize> = 16..=1 << 14;

/// Counters in memory, for any number of subjects and limits.
///
/// Embedders mostly want a [`Limiter`](crate::Limiter), which is this store with one set of limits and a clock. Use
/// the store itself when the limits differ from call to call, or several subjects must be decided together.
///
/// ```
/// use flowgate::{Ask, Decision, Hit, Limit, MemoryStore, Op, Plan, Time};
///
/// let memory = MemoryStore::default();
/// let (user, address): (Limit, Limit) = ("5/60s".parse()?, "100/5s".parse()?);
/// let replies = memory.counter(b"replies");
/// let mut take = |now| {
///     let mut hits = [
///         Hit::new(memory.subject(b"user 42").counter(replies), &user),
///         Hit::new(memory.subject(b"ip 1.2.3.4").counter(replies), &address),
///     ];
///     memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_secs(now)), &mut hits));
///     Decision::from_hits(&hits).allowed()
/// };
/// let passed = (0..10).filter(|second| take(1_700_000_000 + second)).count();
/// assert_eq!(passed, 5);
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    seed: Seed,
    shards: Shards,
    budget: Budget,
}

/// The settings of a [`MemoryStore`].
#[derive(Clone, Copy, Debug)]
pub struct MemoryConfig {
    /// The most bytes that all counters together may take, at least some 10 KiB. Default: 64 MiB, about 1.5 million
    /// `bucket` keys.
    pub max_bytes: usize,
    /// What happens when these bytes are spent. Default: evict.
    pub when_full: WhenFull,
    /// The key of the hash. Default: random.
    pub seed: Seed,
}

impl Default for MemoryConfig {
    fn default() -> MemoryConfig {
        MemoryConfig { max_bytes: 64 << 20, when_full: WhenFull::default(), seed: Seed::random() }
    }
}

/// What a [`MemoryStore`] holds and what it had to do to stay within its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// The number of counters (one with `after=` counts twice).
    pub counters: usize,
    /// The bytes of the counters, sliding logs and spare room included.
    pub bytes: usize,
    /// The cap on `bytes`.
    pub max_bytes: usize,
    /// Counters that were forgotten early because memory was full.
    pub evicted: u64,
    /// Evicted counters of which half the limit or more was used, bans and strikes included: each resets a limit that was
    /// in use.
    pub evicted_in_use: u64,
    /// Requests that found no room for a counter because memory was full.
    pub refused: u64,
    /// Strikes that were not counted, because not even the room that is kept for bans sufficed. The bans did not begin.
    pub bans_refused: u64,
    /// Sliding logs that gave up their precision in time because memory was full.
    pub coarsened: u64,
}

/// The counter holds the count of a limit of another algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this counter belongs to a limit of another algorithm")]
pub struct OtherAlgorithm;

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new(MemoryConfig::default())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(config: MemoryConfig) -> MemoryStore {
        let MemoryConfig { max_bytes, when_full, seed } = config;
        let shards = (max_bytes / SHARD_BYTES).clamp(*SHARD_COUNTS.start(), *SHARD_COUNTS.end()).next_power_of_two();
        let shards = shards.min(*SHARD_COUNTS.end());
        let overhead = shards * (Shards::BYTES_EACH + RESERVED_BYTES);
        let budget = Budget::new(max_bytes, when_full, shards, overhead);
        MemoryStore { seed, shards: Shards::new(shards), budget }
    }

    /// The subject that some bytes name.
    #[inline]
    pub fn subject(&self, bytes: &[u8]) -> Subject {
        self.seed.subject(bytes)
    }

    /// Hashes a subject piece by piece. [`MemoryStore::subject`] returns the same for all bytes at once.
    pub fn subject_hasher(&self) -> SubjectHasher {
        SubjectHasher::new(self.seed)
    }

    /// As [`MemoryStore::subject`], in a name space of its own: the same bytes name different subjects in different
    /// name spaces.
    #[inline]
    pub fn subject_in(&self, space: u8, bytes: &[u8]) -> Subject {
        self.seed.space(space).subject(bytes)
    }

    /// The counter that some bytes name. It is the same for every subject, so keep it.
    pub fn counter(&self, bytes: &[u8]) -> CounterId {
        self.seed.counter(bytes)
    }

    /// Decides all parts of a plan in one atomic step and fills in the outcomes of their hits and bans.
    ///
    /// When the store is full and [`WhenFull::Deny`], a hit that would need a new counter is denied, with a wait of
    /// a second: when there will be room is unknown. As any denial, that of a shadow rule holds no request back, and a
    /// record is counted where it can be.
    #[inline]
    pub fn apply(&self, plan: &mut Plan<'_, '_>) {
        match &mut *plan.parts {
            [PlanPart { op, cost, hits, bans }] => {
                self.apply_part(Ask { op: *op, cost: *cost, now: plan.now }, hits, bans);
            }
            parts => self.apply_joint(plan.now, parts),
        }
    }

    /// Decides a plan of one part.
    #[inline]
    pub(crate) fn apply_part(&self, ask: Ask, hits: &mut [Hit<'_>], bans: &mut [BanHit<'_>]) {
        let Some(first) = hits.first() else { return self.apply_bans(ask, bans) };
        let index = first.key.shard(self.shards.len());
        let of_one_subject = hits[1..].iter().all(|hit| hit.key.is_beside(first.key));
        if of_one_subject && bans.iter().all(|ban| ban.key.shard(self.shards.len()) == index) {
            let mut shard = self.lock(index);
            if ask.op == Op::Take && shard.is_clear(bans) && shard.take_fast(ask.cost, ask.now, hits, &self.budget) {
                return;
            }
            apply_to(&mut OneShard(&mut shard), &self.budget, ask, hits, bans);
        } else {
            apply_to(&mut self.lock_all(hits, bans), &self.budget, ask, hits, bans);
        }
    }

    /// Decides a plan of one part without hits.
    #[cold]
    fn apply_bans(&self, ask: Ask, bans: &mut [BanHit<'_>]) {
        if !bans.is_empty() {
            apply_to(&mut self.lock_all(&[], bans), &self.budget, ask, &mut [], bans);
        }
    }

    /// Decides a plan of any number of parts.
    #[cold]
    fn apply_joint(&self, now: Time, parts: &mut [PlanPart<'_, '_>]) {
        let mut shared = SharedCounters::new(parts);
        let mut locked = self.lock_all(&shared.hits, &shared.bans);
        let at = load(&mut locked, &self.budget, now, &mut shared.hits, &mut shared.bans);
        let (hits, bans) = (&mut shared.hits[..shared.creatable_hits], &mut shared.bans[..shared.creatable_bans]);
        make_room(&mut locked, &self.budget, at, hits, bans);
        joint::decide(at, parts, &mut shared);
        keep(&mut locked, &self.budget, at, &mut shared.hits, &mut shared.bans);
        for hit in parts.iter_mut().flat_map(|part| part.hits.iter_mut()) {
            hit.outcome.count_from(now, at);
        }
    }

    /// Asks one counter: what [`MemoryStore::apply`] does for a plan of one hit, in fewer steps.
    // Always inlined, so that it is compiled for the operation at hand.
    #[inline(always)]
    pub fn apply_one(&self, ask: Ask, key: Key, limit: &Limit) -> Decision {
        if ask.op == Op::Take && limit.has_one_state() {
            let mut shard = self.lock(key.shard(self.shards.len()));
            if let Some(decision) = shard.take_one(ask.cost, ask.now, key.tag(), limit, &self.budget) {
                return decision;
            }
        }
        self.apply_any(ask, key, limit)
    }

    fn apply_any(&self, ask: Ask, key: Key, limit: &Limit) -> Decision {
        if limit.is_words() {
            let mut shard = self.lock(key.shard(self.shards.len()));
            return shard.apply_words(ask, key.tag(), limit, &self.budget);
        }
        let mut hit = [Hit::new(key, limit)];
        self.apply_part(ask, &mut hit, &mut []);
        hit[0].outcome
    }

    /// As [`MemoryStore::apply_one`], unless a limit of another algorithm has made the counter and the counter still
    /// lives.
    ///
    /// # Errors
    /// If such a limit has made it; nothing has changed then.
    pub fn apply_same(&self, ask: Ask, key: Key, limit: &Limit) -> Result<Decision, OtherAlgorithm> {
        let mut shard = self.lock(key.shard(self.shards.len()));
        if !shard.is_marked(key.tag(), limit.algorithm() as u8) {
            shard.give_up_to(limit, key.tag(), ask.now, &self.budget)?;
        }
        let mut hit = [Hit::new(key, limit)];
        if ask.op != Op::Take || !shard.take_fast(ask.cost, ask.now, &mut hit, &self.budget) {
            apply_to(&mut OneShard(&mut shard), &self.budget, ask, &mut hit, &mut []);
        }
        Ok(hit[0].outcome)
    }

    /// Answers a call of `CL.THROTTLE` on a counter: one lock, no allocation.
    ///
    /// # Errors
    /// When the counter belongs to a limit and still lives, or the nanoseconds do not fit; nothing has changed then.
    #[inline]
    pub fn throttle(&self, key: Key, throttle: &Throttle, now: Time) -> Result<ThrottleReply, ThrottleError> {
        self.lock(key.shard(self.shards.len())).throttle(key.tag(), throttle, now, &self.budget)
    }

    /// How long a counter still differs from one that was never used; `None` if it does not.
    pub fn lifetime(&self, key: Key, now: Time) -> Option<Span> {
        let (forget_at, _) = self.lock(key.shard(self.shards.len())).owner(key.tag())?;
        Some(Time::from_nanos(forget_at).since(now)).filter(|left| !left.is_zero())
    }

    /// Forgets a counter; true if there was one.
    pub fn reset(&self, key: Key) -> bool {
        self.lock(key.shard(self.shards.len())).forget(key.tag(), &self.budget)
    }

    /// Sweeps expired counters out of the whole store, one shard at a time. Answers never depend on it: every few calls
    /// sweep a part. It frees the memory of a store that receives no more calls.
    pub fn sweep(&self, now: Time) {
        for index in 0..self.shards.len() {
            let mut shard = self.lock(index);
            let slots = shard.slots.len();
            shard.drop_expired(0, slots, now.as_nanos());
            shard.shrink(now.as_nanos(), &self.budget);
        }
    }

    /// What the store holds now. Takes no lock.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            counters: self.shards.counters(),
            bytes: self.budget.used(),
            max_bytes: self.budget.max_bytes(),
            evicted: self.budget.evicted.load(Relaxed),
            evicted_in_use: self.budget.evicted_in_use.load(Relaxed),
            refused: self.budget.refused.load(Relaxed),
            bans_refused: self.budget.bans_refused.load(Relaxed),
            coarsened: self.budget.coarsened.load(Relaxed),
        }
    }

    /// Counts counters by their database from now on. Call this before the first key [in a database](Key::in_database)
    /// other than the first. Further calls change nothing.
    pub fn count_databases(&self) {
        self.shards.count_databases();
    }

    /// The number of counters in a database; those with `after=` count twice. All counters are in the first database
    /// until [`MemoryStore::count_databases`]. Takes no lock.
    pub fn counters_in(&self, database: Database) -> usize {
        self.shards.counters_in(database)
    }

    /// Locks the shards of these counters and bans.
    fn lock_all(&self, hits: &[Hit<'_>], bans: &[BanHit<'_>]) -> SeveralShards<'_> {
        let keys = hits.iter().map(|hit| hit.key).chain(bans.iter().map(|ban| ban.key));
        let mut indices: Vec<usize> = keys.map(|key| key.shard(self.shards.len())).collect();
        indices.sort_unstable();
        indices.dedup();
        let guards = indices.into_iter().map(|index| (index, self.lock(index))).collect();
        SeveralShards { guards, shards: self.shards.len() }
    }

    #[inline]
    fn lock(&self, index: usize) -> ShardGuard<'_> {
        self.shards.lock(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_keeps_to_one_algorithm_while_it_lives() {
        let memory = MemoryStore::default();
        let key = memory.subject(b"key").counter(memory.counter(b"any"));
        let take = |limit: &str, second: u64| {
            let limit: Limit = limit.parse().unwrap();
            memory
                .apply_same(Ask::new(Op::Take, 1, Time::from_secs(second)), key, &limit)
                .map(|decision| decision.remaining)
        };
        assert_eq!(take("bucket 5/60s", 100), Ok(Some(4)));
        assert_eq!(take("bucket 9/60s", 100), Ok(Some(6)), "another count applies from now on");
        assert_eq!(take("pace 5/60s", 100), Err(OtherAlgorithm), "though its state looks the same");
        assert_eq!(take("5/60s", 100), Err(OtherAlgorithm));
        assert_eq!(memory.lifetime(key, Time::from_secs(100)), Some(Span::from_nanos(18_666_666_667)));
        assert_eq!(take("fixed 5/60s", 200), Ok(Some(4)), "what is as if never used has no algorithm");
        assert_eq!(take("fixed 5/60s after=10/day tz=UTC", 300), Ok(Some(9)));
        assert_eq!(take("5/60s after=10/day tz=UTC", 300), Err(OtherAlgorithm), "while it is still free, too");
        assert_eq!(memory.lifetime(key, Time::from_secs(86_400)), None);
    }

    #[test]
    fn a_counter_whose_parts_were_given_back_is_free() {
        let memory = MemoryStore::default();
        let key = memory.subject(b"key").counter(memory.counter(b"any"));
        let apply = |op: Op, limit: &str| {
            let limit: Limit = limit.parse().unwrap();
            memory.apply_same(Ask::new(op, 1, Time::from_secs(100)), key, &limit).map(|decision| decision.remaining)
        };
        let (free, plain) = ("fixed 5/60s after=1/60s", "fixed 5/60s");
        assert_eq!(apply(Op::Take, free), Ok(Some(4)));
        assert_eq!(apply(Op::Take, plain), Ok(Some(3)));
        assert_eq!(apply(Op::Refund, free), Ok(Some(1)), "one is free again");
        assert_eq!(apply(Op::Refund, plain), Ok(Some(5)));
        assert_eq!(memory.lifetime(key, Time::from_secs(100)), None);
        assert_eq!(apply(Op::Take, "5/60s"), Ok(Some(4)));
    }
}
