//! The fast path: takes from counters where they lie in the table, without taking them out.
//!
//! Rule       It repeats the rule of `plan::take` for plain rules: look at every counter, and if all let the request
//!            pass, charge every counter.
//! Rule       It changes nothing and leaves the plan to the slow path where a counter is not as usual: there is no room
//!            for a new one, another algorithm has left its own, or a log needs more memory or less.
//! Invariant  It answers as the slow path does, which `memory/shard/tests/fast_path.rs` and the property tests check.

use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use super::super::OtherAlgorithm;
use super::super::budget::{Budget, WhenFull};
use super::super::key::Tag;
use super::super::slot::{Kind, Label, Slot, SlotWords, THROTTLE_MARK};
use super::Shard;
use crate::algorithm::{self, Charge, Entry, Law, Log, LogGrowth, Meter, Sliding, dispatch};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::{Decision, Verdict};
use crate::limit::Limit;
use crate::plan::{self, Hit};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::Time;

/// The counters of a plan that are taken from without an allocation.
const INLINE_HITS: usize = 16;

/// Where a counter lies, or would go.
type Found = Result<usize, usize>;

/// What a take is about to write, once all counters of its plan have let it pass.
struct Pending<'l> {
    class: Class,
    change: Change<'l>,
}

enum Change<'l> {
    /// There is no state, and none comes.
    Nothing,
    /// The kind and the words of the slot as they are to be.
    Words(Kind, [u64; 2]),
    /// The units go into the log at this place beside the table.
    Log(&'l Sliding, usize),
    /// The units and the only entry make a log of two, which lies beside the table.
    SecondEntry(&'l Sliding, Entry),
}

impl Shard {
    /// Takes from all counters or from none; false when nothing was done.
    #[inline]
    pub(in crate::memory) fn take_fast(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let is_usual = |hit: &Hit<'_>| hit.is_plain() && hit.limit.has_one_state();
        match hits {
            [hit] if is_usual(hit) => match self.take_one(cost, now, hit.key.tag(), hit.limit, budget) {
                Some(decision) => {
                    hit.outcome = decision;
                    true
                }
                None => false,
            },
            _ => hits.iter().all(is_usual) && self.take_several(cost, now, hits, budget),
        }
    }

    /// Takes from the counter of a limit that [has one state](Limit::has_one_state); `None` when nothing was done.
    #[inline]
    pub(in crate::memory) fn take_one(
        &mut self,
        cost: u64,
        now: Time,
        tag: Tag,
        limit: &Limit,
        budget: &Budget,
    ) -> Option<Decision> {
        let at = self.begin(now, budget);
        let ask = Ask::new(Op::Take, cost, at);
        let found = self.find(tag);
        if found.is_err() && cost > 0 && !self.has_room(budget.room(1, 1)) {
            return None;
        }
        let (mut decision, pending) = self.look(found, limit, ask, 1, |decision, pending| (decision, pending))?;
        self.commit(&pending, found, tag, limit, ask);
        decision.count_from(now, at);
        Some(decision)
    }

    fn take_several(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let ask = Ask::new(Op::Take, cost, at);
        let mut all: SmallVec<[(Found, Pending<'_>); INLINE_HITS]> = SmallVec::new();
        let (mut passes, mut missing, mut indices, number) = (true, 0, 0_u64, hits.len());
        let (mut home, mut of_subject) = (None, 0..0);
        for hit in hits.iter_mut() {
            let tag = hit.key.tag();
            // Mostly all counters are of one subject, and lie side by side.
            if home != Some(tag.home) {
                (home, of_subject) = (Some(tag.home), self.counters_at_home(tag));
            }
            let offset = self.slots[of_subject.clone()].iter().position(|slot| slot.name() == tag.name);
            let found = offset.map(|offset| of_subject.start + offset).ok_or(of_subject.end);
            match found {
                // A counter that is named twice, or one that lies 64 slots away from another.
                Ok(index) if indices >> (index % 64) & 1 == 1 => return false,
                Ok(index) => indices |= 1 << (index % 64),
                Err(_) => missing += 1,
            }
            let outcome = &mut hit.outcome;
            let is_seen = self.look(found, hit.limit, ask, number, |decision, pending| {
                passes &= decision.allowed();
                *outcome = decision;
                all.push((found, pending));
            });
            if is_seen.is_none() {
                return false;
            }
        }
        if missing > 0 && cost > 0 && !self.has_room_for(hits, missing, at, budget) {
            return false;
        }
        if !passes {
            self.leave_uncharged(hits, &mut all, ask);
        }
        for (hit, (found, pending)) in hits.iter_mut().zip(&all) {
            let tag = hit.key.tag();
            // An insert moves other counters.
            let found = if missing == 0 { *found } else { self.find(tag) };
            self.commit(pending, found, tag, hit.limit, ask);
            hit.outcome.count_from(now, at);
        }
        true
    }

    /// Answers for the counters that would let a request pass which another one denies: the verdict stays, and nothing is taken
    /// from them.
    #[cold]
    fn leave_uncharged<'l>(&self, hits: &mut [Hit<'l>], all: &mut [(Found, Pending<'l>)], ask: Ask) {
        for (hit, (found, pending)) in hits.iter_mut().zip(all).filter(|(hit, _)| hit.outcome.allowed()) {
            self.look(*found, hit.limit, ask.of(0), 0, |decision, unchanged| {
                hit.outcome = Decision { verdict: hit.outcome.verdict, ..decision };
                *pending = unchanged;
            });
        }
    }

    /// Whether there is as much room as the slow path would make, and no new counter is named twice.
    #[cold]
    fn has_room_for(&self, hits: &[Hit<'_>], missing: usize, at: Time, budget: &Budget) -> bool {
        let inserts = match budget.when_full {
            WhenFull::Evict => hits.len(),
            WhenFull::Deny => {
                missing + hits.iter().map(|hit| self.expired_parts(hit.key.tag(), at.as_nanos())).sum::<usize>()
            }
        };
        let is_named_before =
            |(number, hit): (usize, &Hit<'_>)| hits[..number].iter().any(|before| before.key == hit.key);
        self.has_room(budget.room(missing, inserts)) && !hits.iter().enumerate().any(is_named_before)
    }

    /// Calls `then` with what a take answers for the counter that was found, and with what it writes; `None` where the slow
    /// path must decide. A plan of so many hits may need as many places for logs.
    // A function to call, so that an answer goes from the registers of each algorithm to where it is needed.
    #[inline(always)]
    fn look<'l, R>(
        &self,
        found: Found,
        limit: &'l Limit,
        ask: Ask,
        hits: usize,
        then: impl FnOnce(Decision, Pending<'l>) -> R,
    ) -> Option<R> {
        dispatch!(
            limit.law(),
            words meter => {
                let (decision, pending) = self.look_at_words(meter, found, ask)?;
                Some(then(decision, pending))
            },
            Law::Sliding(sliding) => {
                let (decision, pending) = self.look_at_log(sliding, found, ask, hits)?;
                Some(then(decision, pending))
            },
            Law::Unlimited => None
        )
    }

    #[inline(always)]
    fn look_at_words<'l, M>(&self, meter: &M, found: Found, ask: Ask) -> Option<(Decision, Pending<'l>)>
    where
        M: Meter<State: SlotWords>,
    {
        let kind = M::State::KIND;
        let mut words = match found {
            Ok(index) => Some(self.slots[index].words(kind)?),
            Err(_) => None,
        };
        let (decision, class) = algorithm::apply_words(meter, ask, &mut words);
        let change = words.map_or(Change::Nothing, |words| Change::Words(kind, words));
        Some((decision, Pending { class, change }))
    }

    #[inline(always)]
    fn look_at_log<'l>(
        &self,
        sliding: &'l Sliding,
        found: Found,
        ask: Ask,
        hits: usize,
    ) -> Option<(Decision, Pending<'l>)> {
        let now = ask.now.as_nanos();
        let new = sliding.entry(now, ask.cost);
        let takes = |verdict: Verdict| verdict.allowed() && ask.cost > 0;
        let slot = found.ok().map(|index| &self.slots[index]);
        let (mut left_at, mut used) = (slot.map_or(0, Slot::forget_at), 0);
        let (verdict, change) = match slot.map(|slot| (slot.words(Kind::One), slot.log_index())) {
            None => {
                let verdict = sliding.verdict(0, ask, |_| now);
                (verdict, if takes(verdict) { new.in_slot() } else { Change::Nothing })
            }
            Some((Some([leaves_at, units]), _)) => {
                let old = Entry { leaves_at, units };
                used = old.used(now);
                let verdict = sliding.verdict(used, ask, |_| leaves_at);
                let change = match old.joined(new, now, sliding.count) {
                    _ if !takes(verdict) => old.in_slot(),
                    Some(joined) => joined.in_slot(),
                    None if self.logs.len() + hits <= self.places => Change::SecondEntry(sliding, old),
                    None => return None,
                };
                (verdict, change)
            }
            Some((None, Some(place))) => {
                let log = &self.logs[place];
                used = log.used(now);
                let verdict = sliding.verdict(used, ask, |excess| log.leaving(now, excess).unwrap_or(now));
                let change = match sliding.growth(log, ask) {
                    _ if !takes(verdict) => Change::Words(Kind::Log, [left_at, place as u64]),
                    LogGrowth::Bytes => return None,
                    _ => Change::Log(sliding, place),
                };
                (verdict, change)
            }
            // Another algorithm has left its state there.
            Some((None, None)) => return None,
        };
        if takes(verdict) {
            used += ask.cost;
            left_at = left_at.max(new.leaves_at);
        }
        let decision = sliding.numbers_of(used, left_at, now).beside(verdict);
        Some((decision, Pending { class: decision.class(), change }))
    }

    /// Writes what is pending for a counter.
    #[inline(always)]
    fn commit(&mut self, pending: &Pending<'_>, found: Found, tag: Tag, limit: &Limit, ask: Ask) {
        let &Pending { class, ref change } = pending;
        let (kind, words) = match *change {
            Change::Nothing => return,
            Change::Words(kind, words) => (kind, words),
            Change::Log(sliding, place) => self.charge_log(sliding, place, ask),
            Change::SecondEntry(sliding, old) => self.charge_second(sliding, old, ask),
        };
        match found {
            Ok(index) => self.rewrite(index, kind, class, words),
            Err(index) => {
                let label = Label { mark: limit.algorithm() as u8, class };
                self.insert(index, Slot::of_words(tag, kind, label, words));
            }
        }
    }

    /// Charges a log that lies beside the table. Gives what its slot is to say.
    fn charge_log(&mut self, sliding: &Sliding, place: usize, ask: Ask) -> (Kind, [u64; 2]) {
        let log = &mut self.logs[place];
        sliding.charge(log, ask.now.as_nanos(), ask.cost);
        let last_leaves_at = log.last_leaves_at();
        match *log {
            Log::Many(_) => (Kind::Log, [last_leaves_at, place as u64]),
            Log::One(Entry { leaves_at, units }) => {
                self.logs.remove(place);
                (Kind::One, [leaves_at, units])
            }
        }
    }

    /// As [`Shard::charge_log`], for a log that had one entry.
    fn charge_second(&mut self, sliding: &Sliding, old: Entry, ask: Ask) -> (Kind, [u64; 2]) {
        let log = sliding.charged(Some(Log::One(old)), ask.now.as_nanos(), ask.cost, Charge::Counted);
        (Kind::Log, [log.last_leaves_at(), self.logs.insert(log) as u64])
    }

    /// Writes a state of the same kind.
    #[inline(always)]
    fn rewrite(&mut self, index: usize, kind: Kind, class: Class, words: [u64; 2]) {
        let slot = &mut self.slots[index];
        slot.rewrite(kind, class, words);
        let group = slot.group();
        self.mark_group(group);
    }

    /// Applies any operation to one counter that is two words.
    pub(in crate::memory) fn apply_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        let at = self.begin(ask.now, budget);
        let mut decision = self.decide_words(ask.at(at), tag, limit, budget);
        decision.count_from(ask.now, at);
        decision
    }

    /// A step of the sweep, and the instant to decide for.
    #[inline(always)]
    pub(in crate::memory) fn begin(&mut self, now: Time, budget: &Budget) -> Time {
        self.tick(now.as_nanos(), budget);
        now.max(Time::from_nanos(self.floor))
    }

    #[inline]
    fn decide_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        dispatch!(
            limit.law(),
            words meter => self.decide_meter(meter, ask, tag, limit, budget),
            Law::Unlimited | Law::Sliding(_) => unreachable!("not two words: the caller asked `is_words`")
        )
    }

    /// Compiled for each algorithm, so that it knows the kind of the slot.
    #[inline]
    fn decide_meter<M>(&mut self, meter: &M, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision
    where
        M: Meter<State: SlotWords>,
    {
        let (op, at, kind) = (ask.op, ask.now, M::State::KIND);
        let found = self.find(tag);
        let mut words = found.ok().and_then(|index| self.slots[index].words(kind));
        let (mut decision, class) = algorithm::apply_words(meter, ask, &mut words);
        let label = || Label { mark: limit.algorithm() as u8, class };
        match (found, words) {
            (Ok(index), words) if !self.slots[index].is(kind) => self.change_kind(index, kind, label(), words, budget),
            (Ok(index), Some(words)) if op == Op::Peek => self.slots[index].set_words(words),
            (Ok(index), Some(words)) => self.rewrite(index, kind, class, words),
            (Ok(index), None) => self.remove(index),
            (Err(index), Some(words)) => {
                let slot = Slot::of_words(tag, kind, label(), words);
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
            (Ok(index), Some(tat)) => self.rewrite(index, Kind::Throttle, label.class, [tat, 0]),
            (Ok(index), None) => self.remove(index),
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
        self.mark(index);
        self.settle(budget);
    }
}

impl Entry {
    #[inline(always)]
    fn in_slot<'l>(self) -> Change<'l> {
        Change::Words(Kind::One, [self.leaves_at, self.units])
    }
}
