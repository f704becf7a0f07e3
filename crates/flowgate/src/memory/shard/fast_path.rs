//! Fast paths: decisions about counters that are two words or one, or a single sliding log, without taking them out of the
//! table.
//!
//! Invariant  They answer as the slow path does, which `memory/shard/tests.rs` and the property tests check.

use std::sync::atomic::Ordering::Relaxed;

use super::super::OtherAlgorithm;
use super::super::budget::Budget;
use super::super::key::Tag;
use super::super::slot::{Kind, Label, Slot, THROTTLE_MARK};
use super::Shard;
use crate::algorithm::{self, Entry, Log, Sliding, State};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::Decision;
use crate::limit::{Algorithm, Limit};
use crate::plan::{self, Hit};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::Time;

impl Shard {
    /// Decides about one counter that is two words: the fast path for the many requests that meet one limit.
    #[inline(always)]
    pub(in crate::memory) fn apply_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        let at = self.begin(ask.now, budget);
        let mut decision = self.decide_words(ask.at(at), tag, limit, budget);
        decision.count_from(ask.now, at);
        decision
    }

    /// Takes by one of the fast paths, where the hits allow it; false when nothing was done.
    #[inline]
    pub(in crate::memory) fn take_fast(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        if !hits.iter().all(Hit::is_plain) {
            return false;
        }
        if let [hit] = hits
            && let Some(sliding) = hit.limit.as_sliding()
        {
            return self.take_sliding(cost, now, hit, sliding, budget);
        }
        hits.iter().all(|hit| hit.limit.is_words()) && are_distinct(hits) && self.take_words(cost, now, hits, budget)
    }

    /// Takes from counters that are all two words, all or nothing: a look at each, and if all pass, the deed. False
    /// when nothing was done: the slow path handles new counters without room.
    #[inline(always)]
    fn take_words(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let (mut passes, mut missing) = (true, 0);
        for hit in hits.iter_mut() {
            let (found, kind) = (self.find(hit.key.tag()), Kind::of_words(hit.limit.algorithm()));
            let mut words = found.ok().and_then(|index| self.slots[index].words(kind));
            (hit.outcome, _) = hit.limit.apply_words(Ask::new(Op::Peek, cost, at), &mut words);
            missing += usize::from(found.is_err());
            if !hit.outcome.allowed() {
                passes = false;
                self.note_denial(found, &hit.outcome);
            }
        }
        if passes {
            if missing > 0 && !self.has_room(budget.room(missing, missing)) {
                return false;
            }
            for hit in hits.iter_mut() {
                hit.outcome = self.decide_words(Ask::new(Op::Take, cost, at), hit.key.tag(), hit.limit, budget);
            }
        }
        hits.iter_mut().for_each(|hit| hit.outcome.count_from(now, at));
        true
    }

    /// The counter that was found has denied by itself.
    fn note_denial(&mut self, found: Result<usize, usize>, denied: &Decision) {
        if let (Ok(index), Some(_)) = (found, denied.retry_after()) {
            self.slots[index].set_class(Class::EXHAUSTED);
        }
    }

    /// Takes from one sliding log. False when nothing was done: there is no room for a new counter, or another
    /// algorithm has left its own.
    #[inline]
    fn take_sliding(&mut self, cost: u64, now: Time, hit: &mut Hit<'_>, sliding: &Sliding, budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let tag = hit.key.tag();
        let found = self.find(tag);
        let slot = found.map_or(Slot::EMPTY, |index| self.slots[index]);
        let mut log = match (slot.kind(), slot.words(Kind::One)) {
            (Kind::Empty, _) if self.has_room(budget.room(1, 1)) => None,
            (Kind::Log, _) => slot.log_index().map(|place| Log::Many(std::mem::take(&mut self.logs[place]))),
            (_, Some([leaves_at, units])) => Some(Log::One(Entry { leaves_at, units })),
            _ => return false,
        };
        let bytes = log.as_ref().map_or(0, Log::heap_bytes);
        hit.outcome = algorithm::apply(sliding, Ask::new(Op::Take, cost, at), &mut log);
        let label = Label { mark: Algorithm::Sliding as u8, class: hit.outcome.class() };
        hit.outcome.count_from(now, at);
        match (found, slot.log_index(), log) {
            (Ok(index), None, Some(Log::One(Entry { leaves_at, units }))) => {
                self.slots[index].rewrite(Kind::One, label.class, [leaves_at, units]);
            }
            (Ok(index), Some(place), Some(Log::Many(entries))) if entries.heap_bytes() == bytes => {
                self.slots[index].rewrite(Kind::Log, label.class, [entries.last_leaves_at(), place as u64]);
                self.logs[place] = entries;
            }
            (Err(index), _, Some(Log::One(Entry { leaves_at, units }))) => {
                self.insert(index, Slot::of_words(tag, Kind::One, label, [leaves_at, units]));
            }
            (_, _, None) => {}
            (found, _, Some(log)) => {
                // The log needs more room beside the table, or less: from here on as on the slow path.
                if let Ok(index) = found {
                    self.slots[index].take(&mut self.logs);
                    self.log_bytes -= bytes;
                }
                let slot = self.slot(tag, State::Sliding(log), label, at.as_nanos(), budget);
                self.put(tag, slot);
                self.settle(budget);
            }
        }
        true
    }

    /// A step of the sweep, and the instant to decide for.
    #[inline(always)]
    pub(in crate::memory) fn begin(&mut self, now: Time, budget: &Budget) -> Time {
        self.tick(now.as_nanos(), budget);
        now.max(Time::from_nanos(self.floor))
    }

    #[inline(always)]
    pub(in crate::memory) fn decide_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        let (op, at) = (ask.op, ask.now);
        let kind = Kind::of_words(limit.algorithm());
        let found = self.find(tag);
        let mut words = found.ok().and_then(|index| self.slots[index].words(kind));
        let (mut decision, class) = limit.apply_words(ask, &mut words);
        let label = Label { mark: limit.algorithm() as u8, class };
        match (found, words) {
            (Ok(index), words) if !self.slots[index].is(kind) => self.change_kind(index, kind, label, words, budget),
            (Ok(index), Some(words)) if op == Op::Peek => self.slots[index].set_words(words),
            (Ok(index), Some(words)) => self.slots[index].rewrite(kind, class, words),
            (Ok(index), None) => self.close_gap(index),
            (Err(index), Some(words)) => {
                let slot = Slot::of_words(tag, kind, label, words);
                if !self.insert_new(index, slot, at.as_nanos(), budget) {
                    decision = plan::refused(limit, at, decision.verdict);
                }
            }
            (Err(_), None) => {}
        }
        decision
    }

    /// Answers a call of `CL.THROTTLE`.
    #[inline]
    pub(in crate::memory) fn throttle(
        &mut self,
        tag: Tag,
        throttle: &Throttle,
        now: Time,
        budget: &Budget,
    ) -> Result<ThrottleReply, ThrottleError> {
        self.tick(now.as_nanos(), budget);
        let at = now.max(Time::from_nanos(self.floor));
        let mut found = self.find(tag);
        let mut tat = found.ok().and_then(|index| self.slots[index].words(Kind::Throttle)).map(|[tat, _]| tat);
        if tat.is_none() {
            self.give_up_to_throttle(tag, now, budget)?;
            found = self.find(tag);
        }
        let mut reply = throttle.decide(&mut tat, at)?;
        let label = Label { mark: THROTTLE_MARK, class: reply.class() };
        match (found, tat) {
            (Ok(index), Some(tat)) => self.slots[index].rewrite(Kind::Throttle, label.class, [tat, 0]),
            (Ok(index), None) => self.close_gap(index),
            (Err(index), Some(tat)) => {
                let slot = Slot::of_words(tag, Kind::Throttle, label, [tat, 0]);
                if !self.insert_new(index, slot, at.as_nanos(), budget) {
                    reply = throttle.refused();
                }
            }
            (Err(_), None) => {}
        }
        reply.count_from(now, at);
        Ok(reply)
    }

    /// Makes way where a limit's counter has been and is as if never used.
    pub(in crate::memory) fn give_up_to_throttle(
        &mut self,
        tag: Tag,
        now: Time,
        budget: &Budget,
    ) -> Result<(), OtherAlgorithm> {
        match self.owner(tag) {
            None => Ok(()),
            Some((forget_at, _)) if now.as_nanos() < forget_at => Err(OtherAlgorithm),
            Some(_) => {
                self.forget(tag, budget);
                Ok(())
            }
        }
    }

    /// Inserts a slot where `find` says, making room for it; false when there is none.
    #[inline]
    pub(in crate::memory) fn insert_new(&mut self, index: usize, slot: Slot, now: u64, budget: &Budget) -> bool {
        let room = budget.room(1, 1);
        if self.has_room(room) {
            self.insert(index, slot);
        } else if self.grow(room, now, budget) {
            let (Ok(index) | Err(index)) = self.find(slot.tag());
            self.insert(index, slot);
        } else {
            budget.refused.fetch_add(1, Relaxed);
            return false;
        }
        true
    }

    /// Puts the state of another algorithm in the place of the one at `index`, if there is any.
    #[cold]
    pub(in crate::memory) fn change_kind(
        &mut self,
        index: usize,
        kind: Kind,
        label: Label,
        words: Option<[u64; 2]>,
        budget: &Budget,
    ) {
        let Some(words) = words else { return };
        self.take_at(index);
        self.slots[index] = Slot::of_words(self.slots[index].tag(), kind, label, words);
        self.settle(budget);
    }
}

/// Whether no counter is named twice. A long plan is not worth the look.
#[inline]
fn are_distinct(hits: &[Hit<'_>]) -> bool {
    hits.len() <= 8 && (1..hits.len()).all(|index| hits[..index].iter().all(|hit| hit.key != hits[index].key))
}
