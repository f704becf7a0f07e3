//! Bans that rules have imposed, by name: the store knows them only by the hash of their subject.
//!
//! State      The newest [`MAX_NOTED`] bans, each with the key of its record in the store.
//! Rule       A ban is noted when it starts. Whether it is still in force is the store's word, not this list's.
//! Invariant  Nothing here decides anything: what is dropped from the list is in force all the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowgate::{Key, Memory, Time};

use crate::rules::Rule;

/// Beyond so many, the oldest are no longer listed.
const MAX_NOTED: usize = 10_000;

/// A ban that a rule has imposed.
#[derive(Clone, Debug)]
pub struct RuleBan {
    /// Identifies it until it ends.
    pub id: u64,
    /// The rule.
    pub rule: Arc<Rule>,
    /// Whom: the names and values of the rule's `by` fields.
    pub subject: Vec<(String, String)>,
    /// When it ends.
    pub until: Time,
    pub(crate) place: RuleBanPlace,
}

/// Where the record of a ban is kept.
#[derive(Clone, Debug)]
pub(crate) enum RuleBanPlace {
    Memory(Key),
    /// What follows the prefix in its key.
    #[cfg(feature = "redis")]
    Redis(Box<[u8]>),
}

impl RuleBan {
    /// Whether the store still knows of it. Redis is not asked: there, one that was lifted elsewhere stays listed.
    fn is_kept(&self, memory: &Memory, now: Time) -> bool {
        match &self.place {
            RuleBanPlace::Memory(key) => memory.lifetime(*key, now).is_some(),
            #[cfg(feature = "redis")]
            RuleBanPlace::Redis(_) => true,
        }
    }
}

/// What is known of the bans that rules have imposed.
#[derive(Debug, Default)]
pub(crate) struct ImposedBans {
    noted: Mutex<VecDeque<RuleBan>>,
}

impl ImposedBans {
    /// Notes a ban that has just started.
    pub(crate) fn note(&self, ban: RuleBan) {
        let mut noted = self.lock();
        if noted.len() >= MAX_NOTED {
            noted.pop_front();
        }
        noted.push_back(ban);
    }

    /// The bans in force, oldest first.
    pub(crate) fn list(&self, memory: &Memory, now: Time) -> Vec<RuleBan> {
        let mut noted = self.lock();
        noted.retain(|ban| now < ban.until && ban.is_kept(memory, now));
        noted.iter().cloned().collect()
    }

    /// Lifts a ban: the store forgets it, and that there ever was one.
    pub(crate) fn lift(&self, id: u64, memory: &Memory, now: Time) -> bool {
        match self.take(id, now).map(|ban| ban.place) {
            Some(RuleBanPlace::Memory(key)) => memory.reset(key),
            _ => false,
        }
    }

    /// Strikes a ban from the list.
    pub(crate) fn take(&self, id: u64, now: Time) -> Option<RuleBan> {
        let mut noted = self.lock();
        let index = noted.iter().position(|ban| ban.id == id && now < ban.until)?;
        noted.remove(index)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<RuleBan>> {
        // A list that lost or kept one entry too many is still a list.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
