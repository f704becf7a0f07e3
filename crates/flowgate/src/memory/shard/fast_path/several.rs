//! Takes from several counters of one subject, which lie side by side in the table.
//!
//! Rule       One search finds all of them. One pass decides each counter and charges it at once, as mostly every counter
//!            lets the request pass. Where one does not, slots and logs are put back as they were.
//! Rule       A counter that is new, and a log that needs more than the usual charge, is only looked at by that pass. It is
//!            charged once all others have let the request pass.

use smallvec::SmallVec;

use super::super::super::budget::{Budget, WhenFull};
use super::super::super::slot::Slot;
use super::super::Shard;
use super::{ChargedLog, Rest, take_from_new};
use crate::ask::{Ask, Op};
use crate::plan::Hit;
use crate::time::Time;

/// The counters of a subject that are taken from without an allocation.
const INLINE_SLOTS: usize = 16;

/// The most hits of a plan, and counters of its subject, that have a bit each in a word.
const MOST: usize = u64::BITS as usize;

/// A subject's counters before a take, as far as it has changed them.
struct Before {
    first: usize,
    slots: SmallVec<[Slot; INLINE_SLOTS]>,
    logs: SmallVec<[ChargedLog; INLINE_SLOTS]>,
}

impl Shard {
    /// Takes from all counters or from none; false when nothing was done. All hits are of one subject.
    pub(super) fn take_several(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let Some(tag) = hits.first().map(|hit| hit.key.tag()) else { return false };
        let at = self.begin(now, budget);
        let ask = Ask::new(Op::Take, cost, at);
        let (subject, number) = (self.counters_at_home(tag), hits.len());
        if number > MOST || subject.len() > MOST {
            return false;
        }
        let mut before = Before { first: subject.start, slots: SmallVec::new(), logs: SmallVec::new() };
        // `from_slice` would copy its whole buffer.
        before.slots.extend_from_slice(&self.slots[subject.clone()]);
        let mut allowed = true;
        // A bit for each counter that a hit has named, for each hit whose log is yet to be charged, and for each new counter.
        let (mut named, mut logs, mut new) = (0_u64, 0_u64, 0_u64);
        let mut lacking_bytes = 0;
        for (bit, hit) in hits.iter_mut().enumerate() {
            let name = hit.key.tag().name;
            let taken = match self.slots[subject.clone()].iter().position(|slot| slot.name() == name) {
                _ if !hit.is_usual() => None,
                // A counter that is named twice.
                Some(offset) if named >> offset & 1 == 1 => None,
                Some(offset) => {
                    named |= 1 << offset;
                    hit.slot = (subject.start + offset) as u32;
                    let note = |log| before.logs.push(log);
                    self.take_at_slot(subject.start + offset, hit.limit, ask, number, &mut hit.outcome, note)
                }
                None => {
                    new |= 1 << bit;
                    take_from_new(hit.key.tag(), hit.limit, ask, &mut hit.outcome).map(|_| Rest::Nothing)
                }
            };
            match taken {
                Some(Rest::Nothing) => {}
                Some(Rest::Charge { lacking }) => {
                    logs |= 1 << bit;
                    lacking_bytes += lacking;
                }
                None => return self.give_up(&before),
            }
            allowed &= hit.outcome.allowed();
        }
        if new > 0 && cost > 0 && !self.has_room_for(hits, new.count_ones() as usize, &before.slots, at, budget) {
            return self.give_up(&before);
        }
        if !allowed {
            self.put_back(&before);
            self.deny_each(subject.start, hits, ask);
        } else if lacking_bytes > 0 && !self.reserve(self.held() + lacking_bytes, budget) {
            return self.give_up(&before);
        } else if logs | new > 0 {
            self.charge_rest(hits, logs, new, ask, budget);
        }
        self.mark_group(tag.group());
        if at != now {
            hits.iter_mut().for_each(|hit| hit.outcome.count_from(now, at));
        }
        true
    }

    /// Leaves the plan to the slow path, with the subject's counters as they were.
    #[cold]
    fn give_up(&mut self, before: &Before) -> bool {
        self.put_back(before);
        false
    }

    fn put_back(&mut self, before: &Before) {
        self.slots[before.first..][..before.slots.len()].copy_from_slice(&before.slots);
        for ChargedLog { place, charge } in &before.logs {
            self.logs[*place].undo_usual(charge);
        }
    }

    /// Charges the logs that the pass has only looked at, and then inserts new counters, which moves others.
    fn charge_rest(&mut self, hits: &mut [Hit<'_>], logs: u64, new: u64, ask: Ask, budget: &Budget) {
        let mut gives_back = false;
        for hit in hits_of(logs, hits) {
            gives_back |= self.charge_beside(hit.slot as usize, hit.limit, ask);
        }
        if gives_back {
            self.settle(budget);
        }
        for hit in hits_of(new, hits) {
            let tag = hit.key.tag();
            let (Ok(index) | Err(index)) = self.find(tag);
            if let Some(Some(slot)) = take_from_new(tag, hit.limit, ask, &mut hit.outcome) {
                self.insert(index, slot);
            }
        }
    }

    /// Answers a request that a counter denies: the verdicts stay, and nothing is taken from the counters that would let it
    /// pass.
    fn deny_each(&mut self, first: usize, hits: &mut [Hit<'_>], ask: Ask) {
        let number = hits.len();
        for hit in hits {
            let (verdict, tag) = (hit.outcome.verdict, hit.key.tag());
            let ask = if verdict.allowed() { ask.of(0) } else { ask };
            match self.find_from(first, tag) {
                Ok(index) => _ = self.take_at_slot(index, hit.limit, ask, number, &mut hit.outcome, |_| ()),
                Err(_) => _ = take_from_new(tag, hit.limit, ask, &mut hit.outcome),
            }
            hit.outcome.verdict = verdict;
        }
    }

    /// Whether there is the room that the slow path would make, and the plan names no new counter twice.
    #[cold]
    fn has_room_for(&self, hits: &[Hit<'_>], missing: usize, before: &[Slot], at: Time, budget: &Budget) -> bool {
        let inserts = match budget.when_full {
            WhenFull::Evict => hits.len(),
            WhenFull::Deny => {
                let is_hit = |slot: &Slot| hits.iter().any(|hit| slot.tag().is_part_of(hit.key.tag()));
                missing + before.iter().filter(|slot| slot.has_expired(at.as_nanos()) && is_hit(slot)).count()
            }
        };
        let is_named_before =
            |(number, hit): (usize, &Hit<'_>)| hits[..number].iter().any(|before| before.key == hit.key);
        self.has_room(budget.room(missing, inserts)) && !hits.iter().enumerate().any(is_named_before)
    }
}

/// The hits whose bits are set.
fn hits_of<'h, 'a>(bits: u64, hits: &'h mut [Hit<'a>]) -> impl Iterator<Item = &'h mut Hit<'a>> {
    hits.iter_mut().enumerate().filter(move |(bit, _)| bits >> bit & 1 == 1).map(|(_, hit)| hit)
}
