//! The fast path: takes from counters where they lie in the table, without taking them out.
//!
//! Rule       It repeats the rule of `plan::take` for plain rules: look at every counter, and if all let the request
//!            pass, charge every counter.
//! Rule       It changes nothing and leaves the plan to the slow path where a counter is not as usual: there is no room
//!            for a new one, another algorithm has left its own, or a log needs more memory or less.
//! Invariant  It answers as the slow path does, which `memory/shard/tests/fast_path.rs` and the property tests check.

use std::sync::atomic::Ordering::Relaxed;

use super::super::OtherAlgorithm;
use super::super::budget::{Budget, WhenFull};
use super::super::expiry::GRACE_NANOS;
use super::super::key::Tag;
use super::super::slot::{Kind, Label, Slot, SlotWords, THROTTLE_MARK};
use super::Shard;
use crate::algorithm::{self, Charge, Entry, Law, Log, LogGrowth, Meter, Sliding, Words, dispatch};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::Decision;
use crate::limit::Limit;
use crate::plan::{self, Hit};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::Time;

/// A longer plan takes the slow path.
const MAX_HITS: usize = 16;

/// What a look at a counter tells.
struct Look {
    verdict: crate::decision::Verdict,
    /// Whether a charge needs a place for a log beside the table.
    needs_place: bool,
}

impl Shard {
    /// Decides about one counter that is two words: the fast path for the many requests that meet one limit.
    #[inline(always)]
    pub(in crate::memory) fn apply_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        let at = self.begin(ask.now, budget);
        let mut decision = self.decide_words(ask.at(at), tag, limit, budget);
        decision.count_from(ask.now, at);
        decision
    }

    /// Takes from all counters or from none; false when nothing was done.
    #[inline]
    pub(in crate::memory) fn take_fast(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let is_usual = |hit: &Hit<'_>| hit.is_plain() && hit.limit.has_one_state();
        if let [hit] = hits
            && is_usual(hit)
            && let Law::Sliding(sliding) = hit.limit.law()
        {
            return self.take_log(cost, now, hit, sliding, budget);
        }
        hits.len() <= MAX_HITS && hits.iter().all(is_usual) && self.take_in_place(cost, now, hits, budget)
    }

    fn take_in_place(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let ask = Ask::new(Op::Take, cost, at);
        let mut indices = [0; MAX_HITS];
        let (mut passes, mut missing, mut new_logs, mut expired) = (true, 0, 0, 0);
        for number in 0..hits.len() {
            let (key, limit) = (hits[number].key, hits[number].limit);
            let found = self.find(key.tag());
            let (Ok(index) | Err(index)) = found;
            if (0..number).any(|before| indices[before] == index && hits[before].key == key) {
                return false;
            }
            indices[number] = index;
            let slot = found.ok().map(|index| &self.slots[index]);
            let Some(Look { verdict, needs_place }) = self.look(slot, limit, ask) else { return false };
            passes &= verdict.allowed();
            hits[number].outcome.verdict = verdict;
            missing += usize::from(slot.is_none());
            new_logs += usize::from(needs_place);
            expired +=
                usize::from(slot.is_some_and(|slot| slot.forget_at() < at.as_nanos().saturating_sub(GRACE_NANOS)));
        }
        if missing > 0 && cost > 0 {
            // As much as the slow path would make room for.
            let inserts = if budget.when_full == WhenFull::Evict { hits.len() } else { missing + expired };
            if !self.has_room(budget.room(missing, inserts)) {
                return false;
            }
        }
        if new_logs > 0 && self.logs.len() + new_logs > self.places {
            return false;
        }
        let units = if passes { cost } else { 0 };
        for (hit, index) in hits.iter_mut().zip(indices) {
            // An insert moves other counters.
            let found = if missing == 0 { Ok(index) } else { self.find(hit.key.tag()) };
            hit.outcome = self.charge(found, hit, units, at.as_nanos());
            hit.outcome.count_from(now, at);
        }
        true
    }

    /// As [`Shard::take_in_place`], for one sliding log, the most frequent plan: it needs no list of places and no
    /// dispatch.
    fn take_log(&mut self, cost: u64, now: Time, hit: &mut Hit<'_>, sliding: &Sliding, budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let found = self.find(hit.key.tag());
        let slot = found.ok().map(|index| &self.slots[index]);
        let Some(Look { verdict, needs_place }) = self.look_at_log(sliding, slot, Ask::new(Op::Take, cost, at)) else {
            return false;
        };
        let needs_slot = slot.is_none() && cost > 0;
        if needs_slot && !self.has_room(budget.room(1, 1)) || needs_place && self.logs.len() >= self.places {
            return false;
        }
        hit.outcome.verdict = verdict;
        let units = if verdict.allowed() { cost } else { 0 };
        hit.outcome = self.charge_log(sliding, found, hit, units, at.as_nanos());
        hit.outcome.count_from(now, at);
        true
    }

    /// Whether the counter in `slot` would let the request pass; `None` where the slow path must decide.
    #[inline]
    fn look(&self, slot: Option<&Slot>, limit: &Limit, ask: Ask) -> Option<Look> {
        dispatch!(
            limit.law(),
            words meter => look_at_words(meter, slot, ask),
            Law::Sliding(sliding) => self.look_at_log(sliding, slot, ask),
            Law::Unlimited => None
        )
    }

    #[inline]
    fn look_at_log(&self, sliding: &Sliding, slot: Option<&Slot>, ask: Ask) -> Option<Look> {
        let one;
        let log = match slot.map(|slot| (slot.kind(), slot.log_index(), slot.words(Kind::One))) {
            None => return Some(Look { verdict: algorithm::check(sliding, None, ask), needs_place: false }),
            Some((_, Some(place), _)) => &self.logs[place],
            Some((_, _, Some([leaves_at, units]))) => {
                one = Log::One(Entry { leaves_at, units });
                &one
            }
            Some(_) => return None,
        };
        let verdict = algorithm::check(sliding, Some(log), ask);
        let growth = if verdict.allowed() && ask.cost > 0 { sliding.growth(log, ask) } else { LogGrowth::None };
        (growth != LogGrowth::Bytes).then_some(Look { verdict, needs_place: growth == LogGrowth::Place })
    }

    /// Charges `units` to the counter that was found, or inserts one, and gives the outcome with the verdict that is
    /// in.
    #[inline]
    fn charge(&mut self, found: Result<usize, usize>, hit: &Hit<'_>, units: u64, now: u64) -> Decision {
        dispatch!(
            hit.limit.law(),
            words meter => self.charge_words(meter, found, hit, units, now),
            Law::Sliding(sliding) => self.charge_log(sliding, found, hit, units, now),
            Law::Unlimited => unreachable!("has no state: `look` has left it to the slow path")
        )
    }

    #[inline]
    fn charge_words<M>(
        &mut self,
        meter: &M,
        found: Result<usize, usize>,
        hit: &Hit<'_>,
        units: u64,
        now: u64,
    ) -> Decision
    where
        M: Meter<State: SlotWords>,
    {
        let kind = M::State::KIND;
        let mut state = found.ok().and_then(|index| self.slots[index].words(kind)).map(Words::unpack);
        if units > 0 {
            state = Some(meter.charged(state, now, units, Charge::Counted));
        }
        let decision = meter.numbers(state.as_ref(), now).beside(hit.outcome.verdict);
        let class = meter.class(&decision);
        match (found, state.as_ref().map(Words::pack)) {
            (Ok(index), Some(words)) => self.rewrite(index, kind, class, words),
            (Err(index), Some(words)) => {
                let label = Label { mark: hit.limit.algorithm() as u8, class };
                self.insert(index, Slot::of_words(hit.key.tag(), kind, label, words));
            }
            (_, None) => {}
        }
        decision
    }

    #[inline]
    fn charge_log(
        &mut self,
        sliding: &Sliding,
        found: Result<usize, usize>,
        hit: &Hit<'_>,
        units: u64,
        now: u64,
    ) -> Decision {
        let place = found.ok().and_then(|index| self.slots[index].log_index());
        let Some(place) = place else { return self.charge_one(sliding, found, hit, units, now) };
        let (Ok(index) | Err(index)) = found;
        let log = &mut self.logs[place];
        if units > 0 {
            sliding.charge(log, now, units);
        }
        let decision = sliding.numbers(Some(log), now).beside(hit.outcome.verdict);
        let (class, last_leaves_at) = (decision.class(), log.last_leaves_at());
        if let Log::One(Entry { leaves_at, units }) = *log {
            self.logs.remove(place);
            self.rewrite(index, Kind::One, class, [leaves_at, units]);
        } else {
            self.rewrite(index, Kind::Log, class, [last_leaves_at, place as u64]);
        }
        decision
    }

    /// A log of a single entry, which lies in the slot, or a new one.
    fn charge_one(
        &mut self,
        sliding: &Sliding,
        found: Result<usize, usize>,
        hit: &Hit<'_>,
        units: u64,
        now: u64,
    ) -> Decision {
        let kept = found.ok().and_then(|index| self.slots[index].words(Kind::One));
        let mut log = kept.map(|[leaves_at, units]| Log::One(Entry { leaves_at, units }));
        if units > 0 {
            log = Some(sliding.charged(log, now, units, Charge::Counted));
        }
        let decision = sliding.numbers(log.as_ref(), now).beside(hit.outcome.verdict);
        let class = decision.class();
        match (found, log) {
            (Ok(index), Some(Log::One(Entry { leaves_at, units }))) => {
                self.rewrite(index, Kind::One, class, [leaves_at, units]);
            }
            (Ok(index), Some(log)) => {
                let leaves_at = log.last_leaves_at();
                let place = self.logs.insert(log) as u64;
                self.rewrite(index, Kind::Log, class, [leaves_at, place]);
            }
            (Err(index), Some(Log::One(Entry { leaves_at, units }))) => {
                let label = Label { mark: hit.limit.algorithm() as u8, class };
                self.insert(index, Slot::of_words(hit.key.tag(), Kind::One, label, [leaves_at, units]));
            }
            // A new log has one entry.
            (Err(_), _) | (_, None) => {}
        }
        decision
    }

    /// Writes a state of the same kind.
    #[inline(always)]
    fn rewrite(&mut self, index: usize, kind: Kind, class: Class, words: [u64; 2]) {
        let slot = &mut self.slots[index];
        slot.rewrite(kind, class, words);
        let group = slot.group();
        self.mark_group(group);
    }

    /// A step of the sweep, and the instant to decide for.
    #[inline(always)]
    pub(in crate::memory) fn begin(&mut self, now: Time, budget: &Budget) -> Time {
        self.tick(now.as_nanos(), budget);
        now.max(Time::from_nanos(self.floor))
    }

    #[inline(always)]
    pub(in crate::memory) fn decide_words(&mut self, ask: Ask, tag: Tag, limit: &Limit, budget: &Budget) -> Decision {
        dispatch!(
            limit.law(),
            words meter => self.decide_meter(meter, ask, tag, limit, budget),
            Law::Unlimited | Law::Sliding(_) => unreachable!("not two words: the caller asked `is_words`")
        )
    }

    /// Compiled for each algorithm, so that it knows the kind of the slot.
    #[inline(always)]
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

#[inline]
fn look_at_words<M>(meter: &M, slot: Option<&Slot>, ask: Ask) -> Option<Look>
where
    M: Meter<State: SlotWords>,
{
    let state = match slot {
        None => None,
        Some(slot) => Some(Words::unpack(slot.words(M::State::KIND)?)),
    };
    Some(Look { verdict: algorithm::check(meter, state.as_ref(), ask), needs_place: false })
}
