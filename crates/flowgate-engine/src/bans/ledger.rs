//! The bans by hand as changes see them: by name, by id, by age, and by their end.
//!
//! Bound      Every step takes time in the logarithm of the number of bans.
//! Invariant  A ban is in all four maps or in none. `bytes` is the sum of the texts of all bans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flowgate::Time;
use hashbrown::HashMap;

use super::{BanBounds, BanId, BanOrderError, ManualBan};

#[derive(Debug, Default)]
pub(super) struct Ledger {
    by_order: BTreeMap<u64, LedgerEntry>,
    by_name: HashMap<Arc<str>, u64>,
    by_id: HashMap<BanId, u64>,
    by_end: BTreeSet<(Time, u64)>,
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct LedgerEntry {
    name: Arc<str>,
    ban: Arc<ManualBan>,
}

impl Ledger {
    pub(super) fn named(&self, name: &str) -> Option<&Arc<ManualBan>> {
        Some(&self.by_order.get(self.by_name.get(name)?)?.ban)
    }

    pub(super) fn with_id(&self, id: BanId) -> Option<&Arc<ManualBan>> {
        Some(&self.by_order.get(self.by_id.get(&id)?)?.ban)
    }

    /// All bans, oldest first, with those that have ended and are not dropped yet.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ManualBan>> {
        self.by_order.values().map(|entry| &entry.ban)
    }

    #[cfg(feature = "redis")]
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_order.values().map(|entry| &entry.name)
    }

    /// The number of bans in force.
    pub(super) fn number_in_force(&self, now: Time) -> usize {
        let ended = self.by_end.range(..=(now, u64::MAX)).count();
        self.by_order.len() - ended
    }

    /// Adds a ban as the newest. One with the same name must have been removed.
    pub(super) fn insert(&mut self, name: Arc<str>, ban: Arc<ManualBan>) {
        self.last += 1;
        self.bytes += ban.bytes();
        self.by_name.insert(Arc::clone(&name), self.last);
        self.by_id.insert(ban.id, self.last);
        self.by_end.insert((ban.until, self.last));
        self.by_order.insert(self.last, LedgerEntry { name, ban });
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<ManualBan>> {
        let order = self.by_name.remove(name)?;
        let ban = self.by_order.remove(&order)?.ban;
        self.by_id.remove(&ban.id);
        self.by_end.remove(&(ban.until, order));
        self.bytes -= ban.bytes();
        Some(ban)
    }

    /// Makes room for a ban of `bytes` in place of the one called `name`, by removing bans that have ended, which go to
    /// `dropped`.
    ///
    /// # Errors
    /// When there is no room.
    pub(super) fn make_room(
        &mut self,
        bounds: BanBounds,
        (name, bytes): (&str, usize),
        now: Time,
        mut dropped: impl FnMut(&ManualBan),
    ) -> Result<(), BanOrderError> {
        loop {
            let (added, freed) = self.named(name).map_or((1, 0), |replaced| (0, replaced.bytes()));
            let too_many = self.by_order.len() + added > bounds.bans;
            if !too_many && self.bytes - freed + bytes <= bounds.bytes {
                return Ok(());
            }
            match self.drop_ended(now) {
                Some(ban) => dropped(&ban),
                None if too_many => return Err(BanOrderError::Full),
                None => return Err(BanOrderError::TooMuchText),
            }
        }
    }

    /// Removes the ban that ended first.
    pub(super) fn drop_ended(&mut self, now: Time) -> Option<Arc<ManualBan>> {
        let (_, order) = self.by_end.first().filter(|(end, _)| *end <= now)?;
        let name = Arc::clone(&self.by_order.get(order)?.name);
        self.remove(&name)
    }
}
