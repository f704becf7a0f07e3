//! One atomic step on locked shards: load the counters, make room for new ones, decide, keep.
//!
//! Rule       A request whose time lies before the floor of a shard (what ended before that is forgotten) is decided at the floor.
//! Rule       Room is made before the decision, so a decision that charges can always be kept.

use std::sync::atomic::Ordering::Relaxed;

use super::Key;
use super::budget::{Budget, WhenFull};
use super::shard::{Room, Shard};
use super::shards::ShardGuard;
use crate::ask::Ask;
use crate::ban::BanHit;
use crate::plan::{self, Hit};
use crate::time::Time;

/// The shards of a plan, locked.
pub(super) trait LockedShards {
    fn shard(&mut self, key: Key) -> &mut Shard;
    fn each(&mut self, visit: impl FnMut(&mut Shard));
}

pub(super) struct OneShard<'a>(pub(super) &'a mut Shard);

impl LockedShards for OneShard<'_> {
    #[inline]
    fn shard(&mut self, _: Key) -> &mut Shard {
        self.0
    }

    #[inline]
    fn each(&mut self, mut visit: impl FnMut(&mut Shard)) {
        visit(self.0);
    }
}

pub(super) struct SeveralShards<'a> {
    /// The locked shards, in index order.
    pub(super) guards: Vec<(usize, ShardGuard<'a>)>,
    pub(super) shards: usize,
}

impl LockedShards for SeveralShards<'_> {
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
pub(super) fn apply_to(
    locked: &mut impl LockedShards,
    budget: &Budget,
    ask: Ask,
    hits: &mut [Hit<'_>],
    bans: &mut [BanHit<'_>],
) {
    let at = load(locked, budget, ask.now, hits, bans);
    if ask.counts() {
        make_room(locked, budget, at, hits, bans);
    }
    plan::decide_banning(ask.at(at), hits, bans);
    keep(locked, budget, at, hits, bans);
    for hit in hits {
        hit.outcome.count_from(ask.now, at);
    }
}

/// Loads counters and bans. Returns the instant at which to decide: `now`, or the floor of a shard that is later.
#[inline]
pub(super) fn load(
    locked: &mut impl LockedShards,
    budget: &Budget,
    now: Time,
    hits: &mut [Hit<'_>],
    bans: &mut [BanHit<'_>],
) -> Time {
    let mut floor = 0;
    locked.each(|shard| {
        shard.tick(now.as_nanos(), budget);
        floor = floor.max(shard.floor);
    });
    for hit in hits {
        locked.shard(hit.key).load(hit);
    }
    for ban in bans {
        locked.shard(ban.key).load_ban(ban);
    }
    now.max(Time::from_nanos(floor))
}

/// Keeps the counters and bans that were loaded.
#[inline]
pub(super) fn keep(
    locked: &mut impl LockedShards,
    budget: &Budget,
    at: Time,
    hits: &mut [Hit<'_>],
    bans: &mut [BanHit<'_>],
) {
    for hit in hits {
        locked.shard(hit.key).keep(hit, at.as_nanos(), budget);
    }
    for ban in bans {
        locked.shard(ban.key).keep_ban(ban, at.as_nanos(), budget);
        if ban.lost {
            budget.bans_refused.fetch_add(1, Relaxed);
        }
    }
}

/// Makes room for the counters that the loaded hits and bans may add, and marks those that find none.
#[inline]
pub(super) fn make_room(
    locked: &mut impl LockedShards,
    budget: &Budget,
    at: Time,
    hits: &mut [Hit<'_>],
    bans: &mut [BanHit<'_>],
) {
    let missing = hits.iter().map(|hit| usize::from(hit.new_slots)).chain(bans.iter().map(Shard::missing_ban)).sum();
    if missing == 0 {
        return;
    }
    let struck = || bans.iter().filter(|ban| !ban.watches);
    // Each shard makes room for all new counters: a few slots too many if a plan spans several shards.
    let inserts: usize = match budget.when_full {
        WhenFull::Evict => hits.iter().map(Shard::slots_of).chain(struck().map(|_| Shard::SLOTS_OF_BAN)).sum(),
        // Of what is there, only what has expired can go and come back.
        WhenFull::Deny => {
            let keys = hits.iter().map(|hit| hit.key).chain(struck().map(|ban| ban.key));
            missing + keys.map(|key| locked.shard(key).expired_parts(key.tag(), at.as_nanos())).sum::<usize>()
        }
    };
    let mut refused = 0;
    let room = budget.room(missing, inserts);
    for hit in hits.iter_mut().filter(|hit| hit.new_slots > 0) {
        if locked.shard(hit.key).make_room(room, at.as_nanos(), budget) {
            hit.new_slots = 0;
        } else {
            hit.no_room = true;
            refused += usize::from(hit.new_slots);
        }
    }
    let room = Room::for_bans(missing - refused, inserts - refused);
    for ban in bans.iter_mut().filter(|ban| Shard::missing_ban(ban) > 0) {
        ban.no_room = !locked.shard(ban.key).make_room(room, at.as_nanos(), budget);
    }
    if hits.iter().any(|hit| hit.no_room) {
        budget.refused.fetch_add(1, Relaxed);
    }
}
