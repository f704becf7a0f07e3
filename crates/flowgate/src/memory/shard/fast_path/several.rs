//! Takes from several counters of one subject, which lie side by side in the table.
//!
//! Rule       One search finds all of them. One pass decides each counter and writes its slot at once, as mostly every counter
//!            lets the request pass. Where one does not, the slots are put back as they were.
//! Rule       A counter that is new, and one whose log lies beside the table, is only looked at by that pass. It is charged
//!            once all others have let the request pass.

use std::ops::Range;

use smallvec::SmallVec;

use super::super::super::budget::{Budget, WhenFull};
use super::super::super::slot::Slot;
use super::super::Shard;
use super::{Rest, take_from_new};
use crate::ask::{Ask, Op};
use crate::plan::Hit;
use crate::time::Time;

/// The counters of a subject that are taken from without an allocation.
const INLINE_SLOTS: usize = 16;

/// The most hits of a plan, and counters of its subject, that have a bit each in a word.
const MOST: usize = u64::BITS as usize;

/// What one pass over the counters has found.
struct Pass {
    /// Whether every counter lets the request pass.
    allowed: bool,
    /// How many counters are not there.
    missing: usize,
    /// The hits that are yet to be charged, a bit each.
    uncharged: u64,
    /// Where the counter of each hit lies behind the subject's first one.
    offsets: [u8; MOST],
}

impl Shard {
    /// Takes from all counters or from none; false when nothing was done. All hits are of one subject.
    pub(super) fn take_several(&mut self, cost: u64, now: Time, hits: &mut [Hit<'_>], budget: &Budget) -> bool {
        let Some(tag) = hits.first().map(|hit| hit.key.tag()) else { return false };
        let at = self.begin(now, budget);
        let ask = Ask::new(Op::Take, cost, at);
        let subject = self.counters_at_home(tag);
        if hits.len() > MOST || subject.len() > MOST {
            return false;
        }
        let before: SmallVec<[Slot; INLINE_SLOTS]> = SmallVec::from_slice(&self.slots[subject.clone()]);
        let pass = self.take_each(subject.clone(), hits, ask);
        let has_room = |pass: &Pass| cost == 0 || self.has_room_for(hits, pass.missing, &before, at, budget);
        let pass = pass.filter(|pass| pass.missing == 0 || has_room(pass));
        match pass {
            Some(Pass { allowed: true, uncharged: 0, .. }) => {}
            Some(pass @ Pass { allowed: true, .. }) => self.charge_rest(subject.start, hits, &pass, ask),
            Some(Pass { allowed: false, .. }) => {
                self.slots[subject.clone()].copy_from_slice(&before);
                self.deny_each(subject, hits, ask);
            }
            None => {
                self.slots[subject].copy_from_slice(&before);
                return false;
            }
        }
        self.mark_group(tag.group());
        if at != now {
            hits.iter_mut().for_each(|hit| hit.outcome.count_from(now, at));
        }
        true
    }

    /// Takes from each counter as if it were alone, but for those that are left `uncharged`. `None` where the slow path must
    /// decide.
    #[inline(always)]
    fn take_each(&mut self, subject: Range<usize>, hits: &mut [Hit<'_>], ask: Ask) -> Option<Pass> {
        let mut pass = Pass { allowed: true, missing: 0, uncharged: 0, offsets: [0; MOST] };
        let (mut named, number) = (0_u64, hits.len());
        for (bit, hit) in hits.iter_mut().enumerate() {
            if !hit.is_usual() {
                return None;
            }
            let name = hit.key.tag().name;
            match self.slots[subject.clone()].iter().position(|slot| slot.name() == name) {
                // A counter that is named twice.
                Some(offset) if named >> offset & 1 == 1 => return None,
                Some(offset) => {
                    named |= 1 << offset;
                    pass.offsets[bit] = offset as u8;
                    let rest = self.take_at_slot(subject.start + offset, hit.limit, ask, number, &mut hit.outcome)?;
                    pass.uncharged |= u64::from(rest == Rest::Log) << bit;
                }
                None => {
                    take_from_new(hit.key.tag(), hit.limit, ask, &mut hit.outcome)?;
                    pass.missing += 1;
                    pass.uncharged |= 1 << bit;
                }
            }
            pass.allowed &= hit.outcome.allowed();
        }
        Some(pass)
    }

    /// Charges the counters that a pass has only looked at.
    fn charge_rest(&mut self, first: usize, hits: &mut [Hit<'_>], pass: &Pass, ask: Ask) {
        let mut uncharged = pass.uncharged;
        while uncharged > 0 {
            let number = uncharged.trailing_zeros() as usize;
            uncharged &= uncharged - 1;
            let hit = &mut hits[number];
            let tag = hit.key.tag();
            // An insert moves other counters.
            let found = if pass.missing == 0 { Ok(first + usize::from(pass.offsets[number])) } else { self.find(tag) };
            match found {
                Ok(index) => self.charge_beside(index, hit.limit, ask, hit.outcome.class()),
                Err(index) => {
                    if let Some(Some(slot)) = take_from_new(tag, hit.limit, ask, &mut hit.outcome) {
                        self.insert(index, slot);
                    }
                }
            }
        }
    }

    /// Answers a request that a counter denies: the verdicts stay, and nothing is taken from the counters that would let it
    /// pass.
    fn deny_each(&mut self, subject: Range<usize>, hits: &mut [Hit<'_>], ask: Ask) {
        let number = hits.len();
        for hit in hits {
            let (verdict, tag) = (hit.outcome.verdict, hit.key.tag());
            let ask = if verdict.allowed() { ask.of(0) } else { ask };
            match self.find_from(subject.start, tag) {
                Ok(index) => _ = self.take_at_slot(index, hit.limit, ask, number, &mut hit.outcome),
                Err(_) => _ = take_from_new(tag, hit.limit, ask, &mut hit.outcome),
            }
            hit.outcome.verdict = verdict;
        }
    }

    /// Whether there is as much room as the slow path would make, and no new counter is named twice.
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
