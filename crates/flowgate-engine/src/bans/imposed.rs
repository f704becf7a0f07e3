//! The list of bans by rules, with their subjects: the store knows only the hash of a subject.
//!
//! State      The newest bans, at most [`MAX_LISTED_BANS`] with subjects of [`MAX_LISTED_BYTES`] in all, each with the
//!            key of its record in the store.
//! Rule       Bans are listed in the order in which they started, those of earlier processes first. An id does not show
//!            which of two processes was first, so the list numbers its bans.
//! Rule       A ban is listed when it starts. The store decides whether it is still in force. The values of a subject
//!            are cut to [`MAX_VALUE_BYTES`] bytes, with a `…` at the cut.
//! Invariant  The list has no effect on decisions: a ban that is dropped from it stays in force.
//! Bound      Noting and lifting take time in the logarithm of the number of bans.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowgate::{Key, MemoryStore, Time};
use hashbrown::HashMap;

use super::{BanId, BanIds, BanKind};
use crate::rules::Rule;

/// The largest number of bans in the list. The oldest bans leave it first.
const MAX_LISTED_BANS: usize = 10_000;

/// The largest size of all subjects' names and values together, in bytes.
const MAX_LISTED_BYTES: usize = 4 << 20;

/// The most bytes of one value. Clients choose values, so long ones must not push other bans off the list.
const MAX_VALUE_BYTES: usize = 256;

/// A ban that a rule has imposed.
#[derive(Clone, Debug)]
pub struct RuleBan {
    /// The unique id of the ban.
    pub id: BanId,
    /// The rule.
    pub rule: Arc<Rule>,
    /// The names and values of the rule's `by` fields. A value longer than 256 bytes is cut, with a `…` at the cut.
    pub subject: Vec<(String, String)>,
    /// When it ends.
    pub until: Time,
    pub(crate) place: RuleBanPlace,
}

/// The place of a ban's record.
#[derive(Clone, Debug)]
pub(crate) enum RuleBanPlace {
    Memory(Key),
    /// In Redis, under the hash tag of its subject.
    #[cfg(feature = "redis")]
    Redis(Box<[u8]>),
}

impl RuleBan {
    /// True if the store still has its record. Redis is not asked: a ban that another node lifted stays listed.
    fn is_kept(&self, memory: &MemoryStore, now: Time) -> bool {
        match &self.place {
            RuleBanPlace::Memory(key) => memory.lifetime(*key, now).is_some(),
            #[cfg(feature = "redis")]
            RuleBanPlace::Redis(_) => true,
        }
    }

    fn bytes(&self) -> usize {
        self.subject.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

/// The bans that rules have imposed.
#[derive(Debug, Default)]
pub(crate) struct ImposedBans {
    list: Mutex<BanList>,
}

/// The bans in the order in which they started.
#[derive(Debug, Default)]
struct BanList {
    bans: BTreeMap<u64, RuleBan>,
    /// The number of each ban, which is its key in `bans`.
    numbers: HashMap<BanId, u64>,
    last_number: u64,
    /// The number of the last ban of an earlier process.
    last_restored: u64,
    bytes: usize,
}

impl BanList {
    /// Adds a ban at the end of the list.
    fn insert(&mut self, mut ban: RuleBan) {
        ban.subject.iter_mut().for_each(|(_, value)| shorten(value));
        // The journal may hold a ban twice: as a change, and in a base that was written at the same time. The later
        // record counts.
        self.remove(ban.id);
        self.bytes += ban.bytes();
        self.last_number += 1;
        self.numbers.insert(ban.id, self.last_number);
        self.bans.insert(self.last_number, ban);
        while self.bans.len() > MAX_LISTED_BANS || self.bytes > MAX_LISTED_BYTES {
            let Some(oldest) = self.bans.first_key_value().map(|(_, ban)| ban.id) else { break };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, id: BanId) -> Option<RuleBan> {
        let ban = self.numbers.remove(&id).and_then(|number| self.bans.remove(&number))?;
        self.bytes -= ban.bytes();
        Some(ban)
    }

    fn retain(&mut self, mut stays: impl FnMut(&RuleBan) -> bool) {
        let gone: Vec<BanId> = self.bans.values().filter(|ban| !stays(ban)).map(|ban| ban.id).collect();
        gone.into_iter().for_each(|id| _ = self.remove(id));
    }
}

impl ImposedBans {
    /// Notes a ban that has just started. Its id is drawn while the list is locked, so that bans are listed in the order of
    /// their ids.
    pub(crate) fn note(&self, ids: &BanIds, ban: impl FnOnce(BanId) -> RuleBan) {
        let mut list = self.lock();
        list.insert(ban(ids.next(BanKind::Rule)));
    }

    /// Adds a ban of an earlier process, which has an id already. All calls come before the first call of
    /// [`ImposedBans::note`].
    pub(crate) fn restore(&self, ban: RuleBan) {
        let mut list = self.lock();
        list.insert(ban);
        list.last_restored = list.last_number;
    }

    /// The bans of this process after the one with this number, each with its own number.
    pub(crate) fn noted_after(&self, number: u64) -> Vec<(u64, RuleBan)> {
        let list = self.lock();
        let first = number.max(list.last_restored) + 1;
        list.bans.range(first..).map(|(number, ban)| (*number, ban.clone())).collect()
    }

    /// The bans in force, oldest first.
    pub(crate) fn list(&self, memory: &MemoryStore, now: Time) -> Vec<RuleBan> {
        self.in_force(memory, now).bans.values().cloned().collect()
    }

    /// The number of bans in force.
    pub(crate) fn number(&self, memory: &MemoryStore, now: Time) -> usize {
        self.in_force(memory, now).bans.len()
    }

    /// Drops the bans that are no longer in force.
    fn in_force(&self, memory: &MemoryStore, now: Time) -> MutexGuard<'_, BanList> {
        let mut list = self.lock();
        list.retain(|ban| now < ban.until && ban.is_kept(memory, now));
        list
    }

    /// Lifts a ban: the store forgets it, and the earlier bans of its subject.
    pub(crate) fn lift(&self, id: BanId, memory: &MemoryStore, now: Time) -> bool {
        match self.take(id, now).map(|ban| ban.place) {
            Some(RuleBanPlace::Memory(key)) => memory.reset(key),
            _ => false,
        }
    }

    /// A ban of the list.
    #[cfg(feature = "redis")]
    pub(crate) fn find(&self, id: BanId, now: Time) -> Option<RuleBan> {
        let list = self.lock();
        list.numbers.get(&id).and_then(|number| list.bans.get(number)).filter(|ban| now < ban.until).cloned()
    }

    /// Removes a ban from the list.
    pub(crate) fn take(&self, id: BanId, now: Time) -> Option<RuleBan> {
        self.lock().remove(id).filter(|ban| now < ban.until)
    }

    fn lock(&self) -> MutexGuard<'_, BanList> {
        // A list with one entry too many or too few is still valid.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cuts a long value at the end of a character.
fn shorten(value: &mut String) {
    if value.len() > MAX_VALUE_BYTES {
        value.truncate(value.floor_char_boundary(MAX_VALUE_BYTES));
        value.push('…');
        value.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::{Policy, RuleDef, RuleSet};

    const NOW: Time = Time::from_secs(1000);

    fn list(bans: &ImposedBans, memory: &MemoryStore) -> Vec<(BanId, String)> {
        bans.list(memory, NOW).into_iter().map(|ban| (ban.id, ban.subject[0].1.clone())).collect()
    }

    #[test]
    fn the_list_is_bounded_in_number_and_in_bytes_and_the_oldest_leave_it() {
        let memory = MemoryStore::default();
        let policy = Policy { rules: vec![RuleDef::named("r")], ..Policy::default() };
        let rules = RuleSet::compile(&policy, &memory).unwrap();
        let (bans, ids) = (ImposedBans::default(), BanIds::default());
        let key = memory.subject(b"s").counter(memory.counter(b"c"));
        memory.apply_same(flowgate::Ask::new(flowgate::Op::Record, 1, NOW), key, &"1/1h".parse().unwrap()).unwrap();
        let note = |value: String| {
            let (until, place) = (Time::from_secs(2000), RuleBanPlace::Memory(key));
            let subject = vec![("x".to_owned(), value.clone()), ("y".to_owned(), value)];
            bans.note(&ids, |id| RuleBan { id, rule: Arc::clone(rules.rule(0)), subject, until, place });
            bans.lock().bans.last_key_value().unwrap().1.id
        };
        let first = note("é".repeat(500_000));
        assert_eq!(list(&bans, &memory), [(first, format!("{}…", "é".repeat(128)))]);
        for number in 1..MAX_LISTED_BANS + 10 {
            note(number.to_string());
        }
        let list = list(&bans, &memory);
        assert_eq!((list.len(), list[0].1.as_str()), (MAX_LISTED_BANS, "10"));
        let long = "x".repeat(1000);
        (0..MAX_LISTED_BANS).for_each(|_| _ = note(long.clone()));
        let list = bans.list(&memory, NOW);
        let bytes: usize = list.iter().map(RuleBan::bytes).sum();
        assert!(bytes <= MAX_LISTED_BYTES && bytes > MAX_LISTED_BYTES - 600, "{bytes} in {}", list.len());
        assert!(bans.take(list[0].id, NOW).is_some() && bans.take(list[0].id, NOW).is_none());
    }

    #[test]
    fn the_oldest_bans_of_earlier_processes_leave_the_list_first() {
        let memory = MemoryStore::default();
        let policy = Policy { rules: vec![RuleDef::named("r")], ..Policy::default() };
        let rules = RuleSet::compile(&policy, &memory).unwrap();
        let (bans, ids) = (ImposedBans::default(), BanIds::default());
        let key = memory.subject(b"s").counter(memory.counter(b"c"));
        memory.apply_same(flowgate::Ask::new(flowgate::Op::Record, 1, NOW), key, &"1/1h".parse().unwrap()).unwrap();
        let ban = |id| {
            let (until, place) = (Time::from_secs(2000), RuleBanPlace::Memory(key));
            RuleBan { id, rule: Arc::clone(rules.rule(0)), subject: Vec::new(), until, place }
        };
        // The first process has the greater random number in its ids, so ids alone would give the wrong order.
        let id = |start: &str, number: usize| format!("r-{}-{number}", start.repeat(10)).parse::<BanId>().unwrap();
        let half = MAX_LISTED_BANS / 2;
        (0..half).for_each(|number| bans.restore(ban(id("v", number))));
        (0..half).for_each(|number| bans.restore(ban(id("0", number))));
        // A base repeats the last bans.
        (half - 2..half).for_each(|number| bans.restore(ban(id("0", number))));
        assert!(bans.noted_after(0).is_empty(), "bans of earlier processes are written with the base");
        (0..3).for_each(|_| bans.note(&ids, ban));
        let listed: Vec<BanId> = bans.list(&memory, NOW).iter().map(|ban| ban.id).collect();
        let expected = (3..half).map(|number| id("v", number)).chain((0..half).map(|number| id("0", number)));
        assert_eq!(listed[..MAX_LISTED_BANS - 3], expected.collect::<Vec<_>>());
        assert_eq!(
            bans.noted_after(0).iter().map(|(_, ban)| ban.id).collect::<Vec<_>>(),
            listed[MAX_LISTED_BANS - 3..]
        );
        assert_eq!(bans.lock().numbers.len(), MAX_LISTED_BANS);
    }

    #[test]
    fn a_reader_that_goes_on_behind_the_last_id_misses_none_of_two_threads() {
        const EACH: usize = 200;
        let memory = MemoryStore::default();
        let policy = Policy { rules: vec![RuleDef::named("r")], ..Policy::default() };
        let rules = RuleSet::compile(&policy, &memory).unwrap();
        let (bans, ids) = (ImposedBans::default(), BanIds::default());
        let place = || RuleBanPlace::Memory(memory.subject(b"s").counter(memory.counter(b"c")));
        let note = || {
            for _ in 0..EACH {
                let (rule, until) = (Arc::clone(rules.rule(0)), Time::from_secs(2000));
                bans.note(&ids, |id| {
                    // Stands for a thread that is stopped between its id and its place in the list.
                    std::thread::sleep(Duration::from_micros(50));
                    RuleBan { id, rule, subject: Vec::new(), until, place: place() }
                });
            }
        };
        let mut read = Vec::new();
        std::thread::scope(|scope| {
            let threads = [scope.spawn(note), scope.spawn(note)];
            let mut is_over = false;
            while !is_over {
                is_over = threads.iter().all(|thread| thread.is_finished());
                let after = read.last().copied().unwrap_or_default();
                read.extend(bans.noted_after(after).iter().map(|(number, _)| *number));
            }
        });
        assert_eq!(read.len(), 2 * EACH);
    }
}
