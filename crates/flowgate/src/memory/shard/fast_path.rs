//! The fast path: takes from counters where they lie in the table, without taking them out.
//!
//! Rule       It repeats the rule of `plan::take` for plain rules: if every counter lets the request pass, all are charged,
//!            else none. [`several`] does so for the counters of one subject.
//! Rule       It changes nothing and leaves the plan to the slow path where a counter is not as usual: there is no room
//!            for a new one, another algorithm has left its own, or a log needs memory that the budget does not have.
//! Invariant  It answers as the slow path does, which `memory/shard/tests/fast_path.rs` and the property tests check.

mod several;

use std::sync::atomic::Ordering::Relaxed;

use super::super::OtherAlgorithm;
use super::super::budget::Budget;
use super::super::key::Tag;
use super::super::slot::{Kind, Label, Slot, SlotWords, THROTTLE_MARK};
use super::Shard;
use crate::algorithm::{self, Charge, Entries, Entry, Law, Log, Meter, Sliding, UsualCharge, dispatch};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::{Decision, Verdict};
use crate::limit::Limit;
use crate::plan::{self, Hit};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::Time;

/// What is left to do for a counter once the whole plan passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Nothing: the slot is written.
    Nothing,
    /// The units go into the log beside the table, which needs so many bytes more, or make one of the slot's only entry.
    Charge { lacking: usize },
}

/// A log beside the table that was charged, and by what.
struct ChargedLog {
    place: usize,
    charge: UsualCharge,
}

impl Shard {
    /// Takes from all counters of one subject or from none; false when nothing was done.
    #[inline]
    pub(in crate::memory) fn take_fast(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        match hits {
            [hit] if hit.is_usual() => match self.take_one(cost, now, hit.key.tag(), hit.limit, budget) {
                Some(decision) => {
                    hit.outcome = decision;
                    true
                }
                None => false,
            },
            _ => self.take_several(cost, now, hits, budget),
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
        let mut decision = Decision::UNLIMITED;
        match self.find(tag) {
            Ok(index) => {
                if let Rest::Charge { lacking } = self.take_at_slot(index, limit, ask, 1, &mut decision, |_| ())? {
                    if lacking > 0 && !self.reserve(self.held() + lacking, budget) {
                        self.undo_look(index);
                        return None;
                    }
                    if self.charge_beside(index, limit, ask) {
                        self.settle(budget);
                    }
                }
                self.mark_group(tag.group());
            }
            Err(_) if cost > 0 && !self.has_room(budget.room(1, 1)) => return None,
            Err(index) => {
                if let Some(slot) = take_from_new(tag, limit, ask, &mut decision)? {
                    self.insert(index, slot);
                }
            }
        }
        decision.count_from(now, at);
        Some(decision)
    }

    /// Takes from the counter at `index` and writes the slot. `None` where the slow path must decide: nothing has changed then.
    /// `hits` is the number of hits of the plan: each may need a place for a log. If this call charges a log, it passes `note` what
    /// undoes the charge.
    // The answer goes to where it is needed: from the registers of each algorithm, without a copy.
    #[inline(always)]
    fn take_at_slot(
        &mut self,
        index: usize,
        limit: &Limit,
        ask: Ask,
        hits: usize,
        outcome: &mut Decision,
        note: impl FnMut(ChargedLog),
    ) -> Option<Rest> {
        dispatch!(
            limit.law(),
            words meter => self.take_words(meter, index, ask, outcome),
            Law::Sliding(sliding) => self.take_sliding(sliding, index, ask, hits, outcome, note),
            Law::Unlimited => None
        )
    }

    #[inline(always)]
    fn take_words<M>(&mut self, meter: &M, index: usize, ask: Ask, outcome: &mut Decision) -> Option<Rest>
    where
        M: Meter<State: SlotWords>,
    {
        let (kind, slot) = (M::State::KIND, &mut self.slots[index]);
        let mut words = Some(slot.words(kind)?);
        let (decision, class) = algorithm::apply_words(meter, ask, &mut words);
        // A take leaves a state where there was one.
        slot.rewrite(kind, class, words?);
        *outcome = decision;
        Some(Rest::Nothing)
    }

    #[inline(always)]
    fn take_sliding(
        &mut self,
        sliding: &Sliding,
        index: usize,
        ask: Ask,
        hits: usize,
        outcome: &mut Decision,
        note: impl FnMut(ChargedLog),
    ) -> Option<Rest> {
        let slot = &mut self.slots[index];
        let Some([leaves_at, units]) = slot.words(Kind::One) else {
            return self.take_from_log(sliding, index, ask, outcome, note);
        };
        let (now, old, new) =
            (ask.now.as_nanos(), Entry { leaves_at, units }, sliding.entry(ask.now.as_nanos(), ask.cost));
        let (mut used, mut left_at, mut kept) = (old.used(now), leaves_at, Some(old));
        let verdict = sliding.verdict(used, ask, |_| leaves_at);
        if verdict.allowed() && ask.cost > 0 {
            kept = old.joined(new, now, sliding.count);
            if kept.is_none() && (self.logs.len() + hits > self.places || !Entries::lie_inline(old, new)) {
                return None;
            }
            used += ask.cost;
            left_at = leaves_at.max(new.leaves_at);
        }
        *outcome = sliding.numbers_of(used, left_at, now).beside(verdict);
        let Entry { leaves_at, units } = kept.unwrap_or(old);
        slot.rewrite(Kind::One, outcome.class(), [leaves_at, units]);
        Some(if kept.is_some() { Rest::Nothing } else { Rest::Charge { lacking: 0 } })
    }

    /// As [`Shard::take_sliding`], for a log that lies beside the table. Mostly the request passes, and the log is charged.
    #[inline]
    fn take_from_log(
        &mut self,
        sliding: &Sliding,
        index: usize,
        ask: Ask,
        outcome: &mut Decision,
        mut note: impl FnMut(ChargedLog),
    ) -> Option<Rest> {
        // Else another algorithm has left its state there.
        let [last_leaves_at, place] = self.slots[index].words(Kind::Log)?;
        let place = place as usize;
        let Some(charge) = sliding.take_usual(&mut self.logs[place], ask, last_leaves_at) else {
            return self.look_at_log(sliding, index, ask, outcome);
        };
        let left_at = sliding.entry(ask.now.as_nanos(), ask.cost).leaves_at;
        *outcome = sliding.numbers_of(charge.used, left_at, ask.now.as_nanos()).beside(Verdict::PASS);
        self.slots[index].rewrite(Kind::Log, outcome.class(), [left_at, place as u64]);
        note(ChargedLog { place, charge });
        Some(Rest::Nothing)
    }

    /// Looks at a log whose charge is not the usual one, or which denies.
    #[inline(never)]
    fn look_at_log(&mut self, sliding: &Sliding, index: usize, ask: Ask, outcome: &mut Decision) -> Option<Rest> {
        let place = self.slots[index].log_index()?;
        let log = &self.logs[place];
        let (now, mut left_at) = (ask.now.as_nanos(), self.slots[index].forget_at());
        let mut used = log.used(now);
        let verdict = sliding.verdict(used, ask, |excess| log.leaving(now, excess).unwrap_or(now));
        let mut rest = Rest::Nothing;
        if verdict.allowed() && ask.cost > 0 {
            let new = sliding.entry(now, ask.cost);
            rest = Rest::Charge { lacking: log.lacking_bytes(new, now, sliding.count) };
            used += ask.cost;
            left_at = left_at.max(new.leaves_at);
        }
        *outcome = sliding.numbers_of(used, left_at, now).beside(verdict);
        self.slots[index].rewrite(Kind::Log, outcome.class(), [left_at, place as u64]);
        Some(rest)
    }

    /// Restores the instant that [`Shard::look_at_log`] has written for a charge that is not made. The class and the changed
    /// bit stay, because the slow path writes them again. It may lock the shard anew, and a visit may come in between.
    #[cold]
    fn undo_look(&mut self, index: usize) {
        if let Some(place) = self.slots[index].log_index() {
            self.slots[index].set_words([self.logs[place].last_leaves_at(), place as u64]);
            self.mark(index);
        }
    }

    /// Charges the log that lies beside the table, or makes one of the slot's only entry. The slot has its class already.
    /// The bytes that the log lacks are reserved. True if it holds fewer now, which the caller is to [settle](Shard::settle).
    #[inline(never)]
    fn charge_beside(&mut self, index: usize, limit: &Limit, ask: Ask) -> bool {
        let Law::Sliding(sliding) = limit.law() else { return false };
        let (now, slot) = (ask.now.as_nanos(), &mut self.slots[index]);
        if let Some(place) = slot.log_index() {
            let log = &mut self.logs[place];
            let held = log.heap_bytes();
            sliding.charge(log, now, ask.cost);
            let holds = log.heap_bytes();
            if let Log::One(Entry { leaves_at, units }) = *log {
                self.logs.remove(place);
                slot.rewrite(Kind::One, slot.class(), [leaves_at, units]);
            }
            self.log_bytes = self.log_bytes - held + holds;
            return holds < held;
        }
        if let Some([leaves_at, units]) = slot.words(Kind::One) {
            let log = sliding.charged(Some(Log::One(Entry { leaves_at, units })), now, ask.cost, Charge::Counted);
            slot.rewrite(Kind::Log, slot.class(), [log.last_leaves_at(), self.logs.insert(log) as u64]);
        }
        false
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

    /// Whether the counter of `tag` is there and has this mark. Both parts of a counter with `after=` have the same.
    #[inline]
    pub(in crate::memory) fn is_marked(&self, tag: Tag, mark: u8) -> bool {
        self.find(tag).is_ok_and(|index| self.slots[index].mark() == mark)
    }

    /// Removes an expired counter of another algorithm, in whose place a limit will count.
    pub(in crate::memory) fn give_up_to(
        &mut self,
        limit: &Limit,
        tag: Tag,
        now: Time,
        budget: &Budget,
    ) -> Result<(), OtherAlgorithm> {
        match self.owner(tag) {
            Some((forget_at, mark)) if mark != limit.algorithm() as u8 => {
                if now.as_nanos() < forget_at {
                    return Err(OtherAlgorithm);
                }
                self.forget(tag, budget);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Removes an expired counter of a limit.
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

/// Takes from a counter that is not there, and gives its slot; `None` where the slow path must decide.
#[inline(always)]
fn take_from_new(tag: Tag, limit: &Limit, ask: Ask, outcome: &mut Decision) -> Option<Option<Slot>> {
    let slot = |kind, class, words| Slot::of_words(tag, kind, Label { mark: limit.algorithm() as u8, class }, words);
    dispatch!(
        limit.law(),
        words meter => {
            let mut words = None;
            let (decision, class) = algorithm::apply_words(meter, ask, &mut words);
            *outcome = decision;
            Some(words.map(|words| slot(kind_of(meter), class, words)))
        },
        Law::Sliding(sliding) => {
            let (now, new) = (ask.now.as_nanos(), sliding.entry(ask.now.as_nanos(), ask.cost));
            let verdict = sliding.verdict(0, ask, |_| now);
            let takes = verdict.allowed() && ask.cost > 0;
            let (used, left_at) = if takes { (ask.cost, new.leaves_at) } else { (0, 0) };
            *outcome = sliding.numbers_of(used, left_at, now).beside(verdict);
            Some(takes.then(|| slot(Kind::One, outcome.class(), [new.leaves_at, new.units])))
        },
        Law::Unlimited => None
    )
}

fn kind_of<M: Meter<State: SlotWords>>(_: &M) -> Kind {
    M::State::KIND
}
