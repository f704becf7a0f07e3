//! The table from inside: its invariants after anything that can happen to it.

mod budget;
mod calls;
mod classes;
mod eviction;
mod expiry;
mod fast_path;
mod layout;
mod model;

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::shards::Shards;
use super::super::slot::Kind;
use super::super::{Database, Key, MemoryConfig, MemoryStore, Seed};
use super::*;
use crate::{Ask, Ban, BanHit, CounterId, Decision, Limit, Op, Plan, Span, Time};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

/// The number of cases, times `FLOWGATE_CASES`.
fn cases(cases: u32) -> ProptestConfig {
    let times = std::env::var("FLOWGATE_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases * times) }
}

impl Shard {
    /// Checks the invariants that hold between any two calls.
    fn check_invariants(&self) {
        let taken: Vec<(usize, &Slot)> = self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_empty()).collect();
        assert!(
            taken.windows(2).all(|pair| pair[0].1.tag() < pair[1].1.tag()),
            "the slots are sorted, no tag is twice"
        );
        for (index, slot) in &taken {
            let home = self.position(slot.place());
            assert!(home <= *index, "a slot lies at or after its home");
            assert!(self.slots[home..*index].iter().all(|slot| !slot.is_empty()), "with no gap in between");
        }
        assert!(self.slots.last().is_none_or(Slot::is_empty), "the last slot is empty");
        assert_eq!(self.live, taken.len());
        for number in 1..Database::COUNT {
            let database = Database::new(number).unwrap();
            let slots = taken.iter().filter(|(_, slot)| slot.tag().database() == database).count();
            assert_eq!(self.databases.as_ref().map_or(0, |counts| counts.get(database)), slots);
        }
        let logs: HashMap<usize, u64> =
            taken.iter().filter(|(_, slot)| slot.kind() == Kind::Log).map(|(_, slot)| slot.log()).collect();
        assert!(taken.iter().all(|(_, slot)| slot.kind() != Kind::Lent), "every log has come back");
        assert_eq!(self.logs.len(), logs.len(), "every log has its slot, every slot its log");
        for (index, forget_at) in logs {
            assert_eq!(self.logs[index].last_leaves_at(), forget_at);
        }
        assert_eq!(self.log_bytes, self.logs.iter().map(Log::heap_bytes).sum::<usize>());
        assert_eq!(self.reserved, self.held(), "what is held is reserved");
        let is_marked = |group: u8| self.changed_groups[usize::from(group / 64)] >> (group % 64) & 1 == 1;
        assert!(
            taken.iter().all(|(_, slot)| !slot.is_changed() || is_marked(slot.group())),
            "a visit finds what changed"
        );
    }
}

impl MemoryStore {
    fn check_invariants(&self) {
        let mut held = self.shards.len() * (Shards::BYTES_EACH + RESERVED_BYTES);
        for index in 0..self.shards.len() {
            let shard = self.lock(index);
            shard.check_invariants();
            let is_followed = shard.changed_groups != [0; 4] && shard.followed.is_some();
            assert!(!is_followed || self.shards.changed.is_set(index), "a visit finds the shards that changed");
            held += shard.held();
            drop(shard);
            self.shards.check_outline(index);
        }
        let counters: usize = (0..self.shards.len()).map(|index| self.lock(index).live()).sum();
        assert_eq!(self.stats().counters, counters, "the counts beside the shards add up");
        assert_eq!(self.budget.used(), held, "the budget knows what is held");
        assert!(held <= self.budget.max_bytes(), "{held} bytes are held of {}", self.budget.max_bytes());
    }
}

/// The smallest store: seven slots a shard, one of them kept for bans in one that denies.
fn smallest(when_full: WhenFull) -> MemoryStore {
    MemoryStore::new(MemoryConfig { max_bytes: 0, when_full, seed: Seed([1, 2]) })
}

/// Keys that live in the first shard.
fn neighbours(memory: &MemoryStore) -> impl Iterator<Item = Key> {
    let key = |number: u32| memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
    (0..).map(key).filter(|key| key.shard(memory.shards.len()) == 0)
}

fn take(memory: &MemoryStore, key: Key, limit: &str, now: u64) -> Decision {
    let limit = limit.parse().unwrap();
    let mut hits = [Hit::new(key, &limit)];
    memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(now)), &mut hits));
    memory.check_invariants();
    *hits[0].outcome()
}

fn holds(memory: &MemoryStore, key: Key) -> bool {
    memory.lock(0).find(key.tag()).is_ok()
}
