//! Bans in a shard: the last ban of a subject, and the strikes that lead to the next.

use super::super::budget::Budget;
use super::super::slot::Label;
use super::Shard;
use crate::algorithm::State;
use crate::ban::{BanHit, Record};
use crate::class::Class;

impl Shard {
    /// The last ban and the strikes.
    pub(in crate::memory) const SLOTS_OF_BAN: usize = 2;

    /// Loads what is remembered of the subject of a ban.
    pub(in crate::memory) fn load_ban(&mut self, hit: &mut BanHit<'_>) {
        let tag = hit.key.tag();
        hit.no_room = false;
        hit.lost = false;
        if hit.watches {
            // A ban stays where it is.
            hit.record.last = match self.find(tag).map(|index| self.slots[index].take(&mut self.logs)) {
                Ok(State::Banned(last)) => Some(last),
                _ => None,
            };
            return;
        }
        if let State::Banned(last) = self.take(tag) {
            hit.record.last = Some(last);
        }
        if let State::Sliding(log) = self.take(tag.seen()) {
            hit.record.strikes = Some(log);
        }
    }

    /// The number of slots that the record of a loaded ban may need and does not have: one for the first strike. A ban uses
    /// the slot of its strikes.
    pub(in crate::memory) fn missing_ban(hit: &BanHit<'_>) -> usize {
        usize::from(hit.record.strikes.is_none() && !hit.watches)
    }

    /// Whether the plan only looks for these bans and none of them is remembered.
    #[inline]
    pub(in crate::memory) fn is_clear(&self, bans: &[BanHit<'_>]) -> bool {
        bans.iter().all(|ban| ban.watches && self.find(ban.key.tag()).is_err())
    }

    /// Keeps what is remembered of the subject of a ban. The strikes lie beside the ban as an `after=` counter lies
    /// beside its limit's own, and both are forgotten together.
    pub(in crate::memory) fn keep_ban(&mut self, hit: &mut BanHit<'_>, now: u64, budget: &Budget) {
        if hit.watches {
            return;
        }
        let tag = hit.key.tag();
        let Record { last, strikes } = std::mem::take(&mut hit.record);
        let label = |mark| Label { mark, class: Class::EXHAUSTED };
        // Without room, only what has a slot already is kept. The strikes come first: the ban that they lead to takes
        // their place.
        if !hit.no_room || self.find(tag.seen()).is_ok() {
            let slot =
                strikes.and_then(|strikes| self.slot(tag.seen(), State::Sliding(strikes), label(0), now, budget));
            self.put(tag.seen(), slot);
        }
        if !hit.no_room || self.find(tag).is_ok() {
            let slot = last.and_then(|last| self.slot(tag, State::Banned(last), label(last.level), now, budget));
            self.put(tag, slot);
        }
        self.settle(budget);
    }
}
