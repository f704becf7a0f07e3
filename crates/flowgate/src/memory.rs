//! The embedded store: a sharded table in memory, exact under concurrency and bounded in bytes.
//!
//! Rule       [`Memory::apply`] locks the shards of a plan, loads the counters, lets [`plan`](crate::plan) decide,
//!            and keeps the counters. One subject lives in one shard, so one lock is the rule.
//! Invariant  Shards are locked in index order, so two plans cannot deadlock.
//! Invariant  No more than `max_bytes` is held, sliding logs included.
//!
//! A lookup costs a hash, a lock and one or two cache lines. See [`shard`] for the table, [`expiry`] for how it
//! forgets.

mod budget;
mod expiry;
mod key;
mod shard;
mod slot;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use budget::WhenFull;
pub use key::{CounterId, Key, Seed, Subject};

use crate::decision::Decision;
use crate::limit::Limit;
use crate::plan::{self, Hit, Op, Rule};
use crate::time::Time;
use budget::Budget;
use shard::{RESERVED_BYTES, Room, Shard};

/// A full shard holds about this much, so laying one out anew takes some tens of microseconds.
const SHARD_BYTES: usize = 256 << 10;
const SHARDS: std::ops::RangeInclusive<usize> = 16..=1 << 16;

/// Counters in memory, for any number of subjects and limits.
///
/// Embedders mostly want a [`Limiter`](crate::Limiter), which is this store with one set of limits and a clock. Use
/// the store itself when the limits differ from call to call, or several subjects must be decided together.
///
/// ```
/// use flowgate::{Decision, Hit, Limit, Memory, Op, Rule, Time};
///
/// let memory = Memory::default();
/// let (user, address): (Limit, Limit) = ("5/60s".parse()?, "100/5s".parse()?);
/// let replies = memory.counter(b"replies");
/// let mut take = |now| {
///     let mut plan = [
///         Hit::new(memory.subject(b"user 42").counter(replies), &user, Rule::default()),
///         Hit::new(memory.subject(b"ip 1.2.3.4").counter(replies), &address, Rule::default()),
///     ];
///     memory.apply(Op::Take, 1, Time::from_secs(now), &mut plan);
///     Decision::of(&plan).allowed()
/// };
/// let passed = (0..10).filter(|second| take(1_700_000_000 + second)).count();
/// assert_eq!(passed, 5);
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Debug)]
pub struct Memory {
    seed: Seed,
    shards: Box<[Mutex<Shard>]>,
    budget: Budget,
}

/// How a [`Memory`] is made.
#[derive(Clone, Copy, Debug)]
pub struct MemoryConfig {
    /// The most bytes that all counters together may take, at least some 10 KiB. Default: 64 MiB, about 1.5 million
    /// `bucket` keys.
    pub max_bytes: usize,
    /// What to do when they are spent. Default: evict.
    pub when_full: WhenFull,
    /// The key of the hash. Default: random.
    pub seed: Seed,
}

impl Default for MemoryConfig {
    fn default() -> MemoryConfig {
        MemoryConfig { max_bytes: 64 << 20, when_full: WhenFull::default(), seed: Seed::random() }
    }
}

/// What a [`Memory`] holds and what it had to do to stay within its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Counters that are kept (one with `after=` counts twice).
    pub counters: usize,
    /// Bytes they take, sliding logs and spare room included.
    pub bytes: usize,
    /// The cap on `bytes`.
    pub max_bytes: usize,
    /// Counters that were forgotten early because memory was full.
    pub evicted: u64,
    /// Requests that found no room for a counter because memory was full.
    pub refused: u64,
    /// Sliding logs that gave up their precision in time because memory was full.
    pub coarsened: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new(MemoryConfig::default())
    }
}

impl Memory {
    /// An empty store.
    pub fn new(config: MemoryConfig) -> Memory {
        let MemoryConfig { max_bytes, when_full, seed } = config;
        let shards = (max_bytes / SHARD_BYTES).clamp(*SHARDS.start(), *SHARDS.end()).next_power_of_two();
        let shards = shards.min(*SHARDS.end());
        let overhead = shards * (size_of::<Mutex<Shard>>() + RESERVED_BYTES);
        let shards = (0..shards).map(|_| Mutex::default()).collect();
        Memory { seed, shards, budget: Budget::new(max_bytes, when_full, overhead) }
    }

    /// The subject that some bytes name.
    #[inline]
    pub fn subject(&self, bytes: &[u8]) -> Subject {
        self.seed.subject(bytes)
    }

    /// The counter that some bytes name. Worth keeping: it is the same for every subject.
    pub fn counter(&self, bytes: &[u8]) -> CounterId {
        self.seed.counter(bytes)
    }

    /// Applies `op` to all hits in one atomic step and fills in their outcomes. A counter that two of them name is
    /// charged once.
    ///
    /// When the store is full and [`WhenFull::Deny`], a hit that would need a new counter is denied, with a wait of
    /// a second: nobody knows when there will be room. As any denial, that of a shadow rule holds nobody back, and a
    /// record is counted where it can be.
    #[inline]
    pub fn apply(&self, op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>]) {
        let Some(first) = hits.first() else { return };
        let index = first.key.shard(self.shards.len());
        if hits[1..].iter().all(|hit| hit.key.shard(self.shards.len()) == index) {
            let mut shard = self.lock(index);
            apply_to(&mut One(&mut shard), &self.budget, op, cost, now, hits);
        } else {
            self.apply_across(op, cost, now, hits);
        }
    }

    /// Applies `op` to one counter: what [`Memory::apply`] does for a plan of one hit, the short way.
    #[inline]
    pub fn apply_one(&self, op: Op, cost: u64, now: Time, key: Key, limit: &Limit) -> Decision {
        if limit.is_words() {
            let mut shard = self.lock(key.shard(self.shards.len()));
            return shard.apply_words(op, cost, now, key.tag(), limit, &self.budget);
        }
        let mut hit = [Hit::new(key, limit, Rule::default())];
        self.apply(op, cost, now, &mut hit);
        hit[0].outcome
    }

    /// Forgets a counter; true when there was one.
    pub fn reset(&self, key: Key) -> bool {
        self.lock(key.shard(self.shards.len())).forget(key.tag(), &self.budget)
    }

    /// Sweeps expired counters out of the whole store, one shard at a time. Never needed for correctness: calls do
    /// it by and by. It returns the memory of a store that nobody calls any more.
    pub fn sweep(&self, now: Time) {
        for index in 0..self.shards.len() {
            let mut shard = self.lock(index);
            let slots = shard.slots.len();
            shard.drop_expired(0, slots, now.as_nanos());
            shard.shrink(now.as_nanos(), &self.budget);
        }
    }

    /// What the store holds now. Visits every shard.
    pub fn stats(&self) -> MemoryStats {
        MemoryStats {
            counters: (0..self.shards.len()).map(|index| self.lock(index).live()).sum(),
            bytes: self.budget.used(),
            max_bytes: self.budget.max_bytes(),
            evicted: self.budget.evicted.load(Relaxed),
            refused: self.budget.refused.load(Relaxed),
            coarsened: self.budget.coarsened.load(Relaxed),
        }
    }

    fn apply_across(&self, op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>]) {
        let mut indices: Vec<usize> = hits.iter().map(|hit| hit.key.shard(self.shards.len())).collect();
        indices.sort_unstable();
        indices.dedup();
        let guards = indices.into_iter().map(|index| (index, self.lock(index))).collect();
        let mut locked = Several { guards, shards: self.shards.len() };
        apply_to(&mut locked, &self.budget, op, cost, now, hits);
    }

    #[inline]
    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        // No call panics while it holds a shard; if one did, the shard would still be a table.
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shards of a plan, locked.
trait Locked {
    fn shard(&mut self, key: Key) -> &mut Shard;
    fn each(&mut self, visit: impl FnMut(&mut Shard));
}

struct One<'a>(&'a mut Shard);

impl Locked for One<'_> {
    #[inline]
    fn shard(&mut self, _: Key) -> &mut Shard {
        self.0
    }

    #[inline]
    fn each(&mut self, mut visit: impl FnMut(&mut Shard)) {
        visit(self.0);
    }
}

struct Several<'a> {
    /// In index order.
    guards: Vec<(usize, MutexGuard<'a, Shard>)>,
    shards: usize,
}

impl Locked for Several<'_> {
    fn shard(&mut self, key: Key) -> &mut Shard {
        let index = key.shard(self.shards);
        // Every key of the plan has its shard among them.
        let at = self.guards.partition_point(|&(locked, _)| locked < index);
        &mut self.guards[at].1
    }

    fn each(&mut self, mut visit: impl FnMut(&mut Shard)) {
        self.guards.iter_mut().for_each(|(_, shard)| visit(shard));
    }
}

#[inline]
fn apply_to(locked: &mut impl Locked, budget: &Budget, op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>]) {
    let mut floor = 0;
    locked.each(|shard| {
        shard.tick(now.as_nanos(), budget);
        floor = floor.max(shard.floor);
    });
    for hit in hits.iter_mut() {
        locked.shard(hit.key).load(hit);
    }
    // A caller whose time lies before what was already forgotten is decided for at that instant.
    let at = now.max(Time::from_nanos(floor));
    if cost > 0 && matches!(op, Op::Take | Op::TakeNow | Op::Record) {
        make_room(locked, budget, at, hits);
    }
    plan::decide(op, cost, at, hits);
    for hit in hits.iter_mut() {
        locked.shard(hit.key).keep(hit, at.as_nanos(), budget);
        hit.outcome.count_from(now, at);
    }
}

/// Makes room for the counters that the loaded hits may add, and marks those that find none.
#[inline]
fn make_room(locked: &mut impl Locked, budget: &Budget, at: Time, hits: &mut [Hit<'_>]) {
    let missing = hits.iter().map(|hit| hit.missing).sum();
    if missing == 0 {
        return;
    }
    // Each shard makes room for all: a few slots too many where a plan spans shards.
    let room = Room { missing, inserts: hits.iter().map(Shard::slots_of).sum() };
    for hit in hits.iter_mut().filter(|hit| hit.missing > 0) {
        if locked.shard(hit.key).make_room(room, at.as_nanos(), budget) {
            hit.missing = 0;
        } else {
            hit.homeless = true;
        }
    }
    if hits.iter().any(|hit| hit.homeless) {
        budget.refused.fetch_add(1, Relaxed);
    }
}
