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
use super::super::key::Tag;
use super::super::slot::{Kind, Label, Slot, SlotWords, THROTTLE_MARK};
use super::Shard;
use crate::algorithm::{self, Charge, Entry, Law, Log, LogGrowth, Meter, Sliding, Words, dispatch};
use crate::ask::{Ask, Op};
use crate::class::Class;
use crate::decision::{Decision, Verdict};
use crate::limit::Limit;
use crate::plan::{self, Hit};
use crate::redis_cell::{Throttle, ThrottleError, ThrottleReply};
use crate::time::Time;

/// A longer plan takes the slow path.
const MAX_HITS: usize = 16;

/// Where the log of a sliding limit lies.
#[derive(Clone, Copy)]
enum LogPlace {
    Nowhere,
    /// Its only entry, in the slot.
    InSlot(Entry),
    /// The place beside the table.
    Beside(usize),
}

impl Shard {
    /// Takes from all counters or from none; false when nothing was done.
    #[inline]
    pub(in crate::memory) fn take_fast(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let is_usual = |hit: &Hit<'_>| hit.is_plain() && hit.limit.has_one_state();
        match hits {
            [hit] if is_usual(hit) => {
                let taken = self.take_one(cost, now, hit.key.tag(), hit.limit, budget);
                hit.outcome = taken.unwrap_or(hit.outcome);
                taken.is_some()
            }
            _ => hits.len() <= MAX_HITS && hits.iter().all(is_usual) && self.take_several(cost, now, hits, budget),
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
        let units = |verdict: Verdict| if verdict.allowed() { cost } else { 0 };
        let mut decision = dispatch!(
            limit.law(),
            words meter => {
                let verdict = self.look_at_words(meter, found, ask)?;
                self.charge_words(meter, found, (tag, limit), ask.of(units(verdict)), verdict)
            },
            Law::Sliding(sliding) => {
                let verdict = self.look_at_log(sliding, found, ask, 1)?;
                self.charge_log(sliding, found, (tag, limit), ask.of(units(verdict)), verdict)
            },
            Law::Unlimited => return None
        );
        decision.count_from(now, at);
        Some(decision)
    }

    fn take_several(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let at = self.begin(now, budget);
        let ask = Ask::new(Op::Take, cost, at);
        let (mut indices, mut places, mut subject) = ([0; MAX_HITS], 0_u64, None);
        let (mut passes, mut missing, number) = (true, 0, hits.len());
        for (hit, index) in hits.iter_mut().zip(&mut indices) {
            let tag = hit.key.tag();
            let first = match subject {
                // Mostly all counters are of one subject, and lie side by side.
                Some((home, first)) if home == tag.home => first,
                _ => self.first_at_home(tag),
            };
            subject = Some((tag.home, first));
            let found = self.find_from(first, tag);
            match found {
                Ok(place) => {
                    *index = place;
                    // A counter that is named twice, or one that lies 64 slots away from another.
                    if places & 1 << (place % 64) != 0 {
                        return false;
                    }
                    places |= 1 << (place % 64);
                }
                Err(_) => missing += 1,
            }
            let verdict = dispatch!(
                hit.limit.law(),
                words meter => self.look_at_words(meter, found, ask),
                Law::Sliding(sliding) => self.look_at_log(sliding, found, ask, number),
                Law::Unlimited => None
            );
            let Some(verdict) = verdict else { return false };
            passes &= verdict.allowed();
            hit.outcome.verdict = verdict;
        }
        if missing > 0 && cost > 0 && !self.has_room_for(hits, missing, at, budget) {
            return false;
        }
        let charged = ask.of(if passes { cost } else { 0 });
        for (hit, index) in hits.iter_mut().zip(indices) {
            // An insert moves other counters.
            let found = if missing == 0 { Ok(index) } else { self.find(hit.key.tag()) };
            let (counter, verdict) = ((hit.key.tag(), hit.limit), hit.outcome.verdict);
            hit.outcome = dispatch!(
                hit.limit.law(),
                words meter => self.charge_words(meter, found, counter, charged, verdict),
                Law::Sliding(sliding) => self.charge_log(sliding, found, counter, charged, verdict),
                Law::Unlimited => unreachable!("has no state: the look has left it to the slow path")
            );
            hit.outcome.count_from(now, at);
        }
        true
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

    /// Whether the counter that was found would let the request pass; `None` where the slow path must decide.
    #[inline(always)]
    fn look_at_words<M>(&self, meter: &M, found: Result<usize, usize>, ask: Ask) -> Option<Verdict>
    where
        M: Meter<State: SlotWords>,
    {
        let state = match found {
            Ok(index) => Some(Words::unpack(self.slots[index].words(M::State::KIND)?)),
            Err(_) => None,
        };
        Some(algorithm::check(meter, state.as_ref(), ask))
    }

    /// The same for a log. A plan may need as many places for logs as it has `hits`.
    #[inline(always)]
    fn look_at_log(&self, sliding: &Sliding, found: Result<usize, usize>, ask: Ask, hits: usize) -> Option<Verdict> {
        let now = ask.now.as_nanos();
        if ask.cost == 0 {
            return self.log_place(found).map(|_| Verdict::PASS);
        }
        let (verdict, fits) = match self.log_place(found)? {
            LogPlace::Nowhere => (sliding.verdict(0, ask, |_| now), true),
            LogPlace::InSlot(entry) => {
                let joined = entry.joined(sliding.entry(now, ask.cost), now, sliding.count);
                let verdict = sliding.verdict(entry.used(now), ask, |_| entry.leaves_at);
                (verdict, joined.is_some() || self.logs.len() + hits <= self.places)
            }
            LogPlace::Beside(place) => {
                let log = &self.logs[place];
                (sliding.check(Some(log), ask), sliding.growth(log, ask) != LogGrowth::Bytes)
            }
        };
        (fits || !verdict.allowed()).then_some(verdict)
    }

    /// Where the log of a counter lies; `None` if another algorithm has left its state there.
    #[inline(always)]
    fn log_place(&self, found: Result<usize, usize>) -> Option<LogPlace> {
        let Ok(index) = found else { return Some(LogPlace::Nowhere) };
        let slot = &self.slots[index];
        if let Some([leaves_at, units]) = slot.words(Kind::One) {
            return Some(LogPlace::InSlot(Entry { leaves_at, units }));
        }
        slot.log_index().map(LogPlace::Beside)
    }

    /// Charges `ask.cost` units to the counter that was found, or inserts it, and gives its outcome.
    #[inline(always)]
    fn charge_words<M>(
        &mut self,
        meter: &M,
        found: Result<usize, usize>,
        (tag, limit): (Tag, &Limit),
        ask: Ask,
        verdict: Verdict,
    ) -> Decision
    where
        M: Meter<State: SlotWords>,
    {
        let (kind, now) = (M::State::KIND, ask.now.as_nanos());
        let mut state = found.ok().and_then(|index| self.slots[index].words(kind)).map(Words::unpack);
        if ask.cost > 0 {
            state = Some(meter.charged(state, now, ask.cost, Charge::Counted));
        }
        let decision = meter.numbers(state.as_ref(), now).beside(verdict);
        if let Some(state) = state {
            self.write_words(found, (tag, limit), kind, meter.class(&decision), state.pack());
        }
        decision
    }

    #[inline(always)]
    fn charge_log(
        &mut self,
        sliding: &Sliding,
        found: Result<usize, usize>,
        counter: (Tag, &Limit),
        ask: Ask,
        verdict: Verdict,
    ) -> Decision {
        let now = ask.now.as_nanos();
        let new = (ask.cost > 0).then(|| sliding.entry(now, ask.cost));
        let only = match (self.log_place(found), new) {
            (Some(LogPlace::Beside(place)), _) => return self.charge_beside(sliding, found, place, ask, verdict),
            (Some(LogPlace::InSlot(old)), Some(new)) => match old.joined(new, now, sliding.count) {
                Some(joined) => Some(joined),
                None => return self.charge_second(sliding, found, old, ask, verdict),
            },
            (Some(LogPlace::InSlot(old)), None) => Some(old),
            (_, new) => new,
        };
        let Entry { leaves_at, units } = only.unwrap_or_default();
        let used = Entry { leaves_at, units }.used(now);
        let decision = sliding.numbers_of(used, leaves_at, now).beside(verdict);
        if only.is_some() {
            self.write_words(found, counter, Kind::One, decision.class(), [leaves_at, units]);
        }
        decision
    }

    /// Charges a log that lies beside the table.
    fn charge_beside(
        &mut self,
        sliding: &Sliding,
        found: Result<usize, usize>,
        place: usize,
        ask: Ask,
        verdict: Verdict,
    ) -> Decision {
        let (Ok(index) | Err(index), now) = (found, ask.now.as_nanos());
        let log = &mut self.logs[place];
        if ask.cost > 0 {
            sliding.charge(log, now, ask.cost);
        }
        let decision = sliding.numbers(Some(log), now).beside(verdict);
        let (class, last_leaves_at) = (decision.class(), log.last_leaves_at());
        if let Log::One(Entry { leaves_at, units }) = *log {
            self.logs.remove(place);
            self.rewrite(index, Kind::One, class, [leaves_at, units]);
        } else {
            self.rewrite(index, Kind::Log, class, [last_leaves_at, place as u64]);
        }
        decision
    }

    /// Charges a second entry to a log of one, which then lies beside the table.
    fn charge_second(
        &mut self,
        sliding: &Sliding,
        found: Result<usize, usize>,
        old: Entry,
        ask: Ask,
        verdict: Verdict,
    ) -> Decision {
        let (Ok(index) | Err(index), now) = (found, ask.now.as_nanos());
        let log = sliding.charged(Some(Log::One(old)), now, ask.cost, Charge::Counted);
        let decision = sliding.numbers(Some(&log), now).beside(verdict);
        let leaves_at = log.last_leaves_at();
        let place = self.logs.insert(log) as u64;
        self.rewrite(index, Kind::Log, decision.class(), [leaves_at, place]);
        decision
    }

    /// Writes a state of the same kind, or inserts the first one.
    #[inline(always)]
    fn write_words(
        &mut self,
        found: Result<usize, usize>,
        (tag, limit): (Tag, &Limit),
        kind: Kind,
        class: Class,
        words: [u64; 2],
    ) {
        match found {
            Ok(index) => self.rewrite(index, kind, class, words),
            Err(index) => {
                let label = Label { mark: limit.algorithm() as u8, class };
                self.insert(index, Slot::of_words(tag, kind, label, words));
            }
        }
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
