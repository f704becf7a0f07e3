//! The table from inside: its invariants after anything that can happen to it.

mod classes;
mod fast_path;

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::shards::Shards;
use super::super::slot::Kind;
use super::super::{Key, MemoryConfig, MemoryStore, Seed};
use super::*;
use crate::{Ask, Ban, BanHit, CounterId, Decision, Limit, Op, Plan, Span, Time};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

/// So many cases, times `FLOWGATE_CASES`.
fn cases(cases: u32) -> ProptestConfig {
    let times = std::env::var("FLOWGATE_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases * times) }
}

impl Shard {
    /// What holds between any two calls.
    fn check_invariants(&self) {
        let taken: Vec<(usize, &Slot)> = self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_empty()).collect();
        assert!(
            taken.windows(2).all(|pair| pair[0].1.tag() < pair[1].1.tag()),
            "the slots are sorted, no tag is twice"
        );
        for (index, slot) in &taken {
            let home = self.position(slot.home());
            assert!(home <= *index, "a slot lies at or after its home");
            assert!(self.slots[home..*index].iter().all(|slot| !slot.is_empty()), "with no gap in between");
        }
        assert!(self.slots.last().is_none_or(Slot::is_empty), "the last slot is empty");
        assert_eq!(self.live, taken.len());
        let logs: HashMap<usize, u64> =
            taken.iter().filter(|(_, slot)| slot.kind() == Kind::Log).map(|(_, slot)| slot.log()).collect();
        assert!(taken.iter().all(|(_, slot)| slot.kind() != Kind::Lent), "every log has come back");
        assert_eq!(self.logs.len(), logs.len(), "every log has its slot, every slot its log");
        for (index, forget_at) in logs {
            assert_eq!(self.logs[index].last_leaves_at(), forget_at);
        }
        assert_eq!(self.log_bytes, self.logs.iter().map(|(_, log)| log.heap_bytes()).sum::<usize>());
        assert_eq!(self.reserved, self.held(), "what is held is reserved");
    }
}

impl MemoryStore {
    fn check_invariants(&self) {
        let mut held = self.shards.len() * (Shards::BYTES_EACH + RESERVED_BYTES);
        for index in 0..self.shards.len() {
            let shard = self.lock(index);
            shard.check_invariants();
            held += shard.held();
            drop(shard);
            self.shards.check_outline(index);
        }
        let counters: usize = (0..self.shards.len()).map(|index| self.lock(index).live()).sum();
        assert_eq!(self.stats().counters, counters, "the counts beside the shards add up");
        assert_eq!(self.budget.used(), held, "the budget knows what is held");
        assert!(held <= self.budget.max_bytes(), "{held} bytes are held of {}", self.budget.max_bytes());
    }
}

/// A store and a model of it: what each key was charged, and when that is forgotten.
struct Modelled {
    memory: MemoryStore,
    limit: Limit,
    model: HashMap<u32, (u64, u64)>,
    now: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Charge(u32),
    Refund(u32),
    Reset(u32),
    Age(u64),
    Sweep,
}

const KEYS: u32 = 3_000;

fn change() -> impl Strategy<Value = Vec<Change>> {
    let key = 0..KEYS;
    let change = prop_oneof![
        12 => key.clone().prop_map(Change::Charge),
        2 => key.clone().prop_map(Change::Refund),
        2 => key.prop_map(Change::Reset),
        1 => (0..3 * SECOND).prop_map(Change::Age),
    ];
    // Whole phases of one kind fill and empty the table.
    let phase = prop_oneof![
        prop::collection::vec(change, 1..200),
        (0..KEYS, 1..KEYS).prop_map(|(from, len)| (from..(from + len).min(KEYS)).map(Change::Charge).collect()),
        (0..KEYS, 1..KEYS).prop_map(|(from, len)| (from..(from + len).min(KEYS)).map(Change::Reset).collect()),
        (0..90 * SECOND).prop_map(|nanos| vec![Change::Age(nanos)]),
        Just(vec![Change::Sweep]),
    ];
    prop::collection::vec(phase, 1..12).prop_map(|phases| phases.concat())
}

impl Modelled {
    fn new(seed: [u64; 2]) -> Modelled {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: Seed(seed), ..MemoryConfig::default() });
        Modelled { memory, limit: "fixed 1000/60s".parse().unwrap(), model: HashMap::new(), now: START }
    }

    fn apply(&self, op: Op, key: u32) -> Decision {
        let key = self.memory.subject(&key.to_le_bytes()).counter(self.memory.counter(b""));
        let mut hits = [Hit::new(key, &self.limit)];
        self.memory.apply(&mut Plan::one(Ask::new(op, 1, Time::from_nanos(self.now)), &mut hits));
        *hits[0].outcome()
    }

    fn change(&mut self, change: &Change) {
        let now = self.now;
        match *change {
            Change::Charge(key) => {
                self.apply(Op::Take, key);
                let (count, ends_at) = self.model.entry(key).or_default();
                if now >= *ends_at {
                    (*count, *ends_at) = (0, now + 60 * SECOND);
                }
                *count += 1;
            }
            Change::Refund(key) => {
                self.apply(Op::Refund, key);
                if let Some((count, ends_at)) = self.model.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 || now >= *ends_at {
                        self.model.remove(&key);
                    }
                }
            }
            Change::Reset(key) => {
                let name = self.memory.subject(&key.to_le_bytes()).counter(self.memory.counter(b""));
                let had = self.memory.reset(name);
                let has = self.model.remove(&key).is_some_and(|(_, ends_at)| now < ends_at);
                assert!(had || !has, "what was counted was there");
            }
            Change::Age(nanos) => self.now += nanos,
            Change::Sweep => self.memory.sweep(Time::from_nanos(now)),
        }
    }

    fn check(&self) {
        self.memory.check_invariants();
        for key in 0..KEYS {
            let charged =
                self.model.get(&key).filter(|(_, ends_at)| self.now < *ends_at).map_or(0, |(count, _)| *count);
            assert_eq!(self.apply(Op::Peek, key).remaining, Some(1000 - charged), "of key {key}");
        }
        self.memory.check_invariants();
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn the_table_is_a_map_through_growth_and_shrinking(seed in any::<[u64; 2]>(), changes in change()) {
        let mut modelled = Modelled::new(seed);
        for (number, change) in changes.iter().enumerate() {
            modelled.change(change);
            if number % 50 == 0 {
                modelled.memory.check_invariants();
            }
        }
        modelled.check();
    }
}

/// Any operation on any of some keys under any of these limits.
#[derive(Clone, Debug)]
struct Call {
    op: Op,
    cost: u64,
    /// Subjects, each with the limit it meets.
    hits: Vec<(u32, usize)>,
    /// Whether the first subject may be banned.
    bans: bool,
    /// Whether it goes the short way for one limit.
    short: bool,
    later: u64,
}

const MIXED: [&str; 7] = [
    "sliding 50/60s",
    "sliding 5000/20s",
    "bucket 5/s",
    "fixed 10/5s",
    "approx 10/30s",
    "sliding 20/10s after=5/40s",
    "pace 5/s after=3/5s",
];

fn call(keys: u32) -> impl Strategy<Value = Call> {
    let op = prop_oneof![8 => Just(Op::Take), 2 => Just(Op::Record), 1 => Just(Op::Refund), 2 => Just(Op::Peek)];
    let several = prop::collection::vec((0..keys, 0..MIXED.len()), 1..4);
    let of_one = (0..keys, prop::sample::subsequence((0..MIXED.len()).collect::<Vec<_>>(), 1..=MIXED.len()));
    let of_one = of_one.prop_map(|(subject, limits)| limits.into_iter().map(|limit| (subject, limit)).collect());
    let later = prop_oneof![6 => 0..SECOND / 50, 1 => 0..10 * SECOND];
    (op, 1..4u64, prop_oneof![several, of_one], any::<bool>(), any::<bool>(), later)
        .prop_map(|(op, cost, hits, bans, short, later)| Call { op, cost, hits, bans, short, later })
}

fn apply(memory: &MemoryStore, limits: &[Limit], ban: &Ban, call: &Call, now: u64) {
    let &Call { op, cost, ref hits, bans, short, .. } = call;
    let key = |subject: u32, name: &[u8]| memory.subject(&subject.to_le_bytes()).counter(memory.counter(name));
    let counter = |&(subject, limit): &(u32, usize)| key(subject, &limit.to_le_bytes());
    let now = Time::from_nanos(now);
    if short {
        memory.apply_one(Ask::new(op, cost, now), counter(&hits[0]), &limits[hits[0].1]);
        return;
    }
    let mut bans = if bans { vec![BanHit::new(key(hits[0].0, b"ban"), ban, 0)] } else { Vec::new() };
    let hit = |hit: &(u32, usize)| Hit::new(counter(hit), &limits[hit.1]);
    let mut hits: Vec<Hit<'_>> = hits.iter().map(hit).collect();
    memory.apply(&mut Plan::banning(Ask::new(op, cost, now), &mut hits, &mut bans));
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn no_more_is_held_than_may_be(
        seed in any::<[u64; 2]>(),
        max_kib in 12..200usize,
        when_full in prop::sample::select(vec![WhenFull::Evict, WhenFull::Deny]),
        calls in prop::collection::vec(call(400), 1..1500),
    ) {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: max_kib << 10, when_full, seed: Seed(seed) });
        let limits = MIXED.map(|limit| limit.parse().unwrap());
        let [within, length, forget] = [20, 5, 60].map(Span::from_secs);
        let ban = Ban::new(4, within, &[length], forget).unwrap();
        let (mut now, empty) = (START, memory.stats().bytes);
        for call in &calls {
            now += call.later;
            apply(&memory, &limits, &ban, call, now);
            memory.check_invariants();
        }
        memory.sweep(Time::from_nanos(now + 1_000 * SECOND));
        memory.check_invariants();
        prop_assert_eq!(memory.stats().counters, 0);
        prop_assert_eq!(memory.stats().bytes, empty, "all memory is given back");
    }
}

/// The smallest store: seven slots a shard, one of them kept for bans in one that denies.
fn smallest(when_full: WhenFull) -> MemoryStore {
    MemoryStore::new(MemoryConfig { max_bytes: 0, when_full, seed: Seed([1, 2]) })
}

/// Keys that live in the first shard.
fn neighbours(memory: &MemoryStore) -> impl Iterator<Item = Key> {
    let key = |number: u32| memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
    (0..).map(key).filter(|key| key.shard(memory.shards.len()) == 0)
}

fn take(memory: &MemoryStore, key: Key, limit: &str, now: u64) -> Decision {
    let limit = limit.parse().unwrap();
    let mut hits = [Hit::new(key, &limit)];
    memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(now)), &mut hits));
    memory.check_invariants();
    *hits[0].outcome()
}

fn holds(memory: &MemoryStore, key: Key) -> bool {
    memory.lock(0).find(key.tag()).is_ok()
}

#[test]
fn what_is_closest_to_never_used_goes_first() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(14).collect();
    let lives = [40, 10, 70, 60, 20, 50, 30];
    for (key, secs) in keys.iter().zip(lives) {
        take(&memory, *key, &format!("fixed 5/{secs}s"), START);
    }
    assert!(keys[..7].iter().all(|&key| holds(&memory, key)));
    // Who comes next lives long, so of the old ones the shortest lived goes.
    let mut order: Vec<usize> = (0..7).collect();
    order.sort_by_key(|&index| lives[index]);
    for (count, (&newcomer, &goes)) in keys[7..].iter().zip(&order).enumerate() {
        take(&memory, newcomer, "fixed 5/day", START);
        assert!(holds(&memory, newcomer) && !holds(&memory, keys[goes]), "the {count}th");
        assert_eq!(memory.stats().counters, 7);
        assert_eq!(memory.stats().evicted, count as u64 + 1);
    }
}

#[test]
fn what_has_expired_goes_before_anybody_is_evicted() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(10).collect();
    for (index, &key) in keys[..7].iter().enumerate() {
        take(&memory, key, if index < 3 { "fixed 5/10s" } else { "fixed 5/60s" }, START);
    }
    // Expired, though too lately to be swept.
    let now = START + 10 * SECOND + 1;
    for &newcomer in &keys[7..] {
        assert!(take(&memory, newcomer, "fixed 5/5s", now).allowed());
    }
    assert!(keys[3..].iter().all(|&key| holds(&memory, key)));
    assert_eq!(memory.stats().evicted, 0);
    // A time from before what was forgotten is decided at that instant: stricter, and the waits say so.
    let late = take(&memory, keys[9], "fixed 1/5s", START);
    assert_eq!(late.retry_after().map(|wait| wait.as_nanos()), Some(15 * SECOND + 1));
}

/// The two counters of a limit with `after=` are one: it is as close to never used as the one that is less so.
#[test]
fn the_two_parts_of_a_counter_live_and_die_together() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(10).collect();
    let both = |key: Key| {
        let shard = memory.lock(0);
        [key.tag(), key.tag().seen()].map(|tag| shard.find(tag).is_ok())
    };
    // What was seen is soon forgotten, what the limit counted is not.
    for &key in &keys[..2] {
        take(&memory, key, "fixed 5/1h after=1/1s", START);
    }
    for &key in &keys[2..5] {
        take(&memory, key, "fixed 5/60s", START);
    }
    assert_eq!(memory.stats().counters, 7);
    // While others are closer to never used, they go.
    for &key in &keys[5..8] {
        take(&memory, key, "fixed 5/day", START + 2 * SECOND);
    }
    assert!(keys[..2].iter().all(|&key| both(key) == [true; 2]));
    assert!(keys[2..5].iter().all(|&key| both(key) == [false; 2]));
    assert_eq!(memory.stats().evicted, 3);
    // Then one goes, and it goes whole.
    take(&memory, keys[8], "fixed 5/day", START + 2 * SECOND);
    let left: Vec<[bool; 2]> = keys[..2].iter().map(|&key| both(key)).collect();
    assert!(left.contains(&[true; 2]) && left.contains(&[false; 2]), "{left:?}");
    assert_eq!(memory.stats().evicted, 4);
}

/// Neither a look nor a refund nor what is denied needs room, also where a limit is put under `after=` later on.
#[test]
fn what_takes_nothing_inserts_nothing() {
    for when_full in [WhenFull::Deny, WhenFull::Evict] {
        let memory = smallest(when_full);
        let full = if when_full == WhenFull::Deny { 6 } else { 7 };
        let keys: Vec<Key> = neighbours(&memory).take(full).collect();
        for &key in &keys {
            assert!(take(&memory, key, "fixed 5/60s", START).allowed());
        }
        let (before, later) = (memory.stats(), "fixed 5/60s after=2/60s".parse().unwrap());
        for (op, cost) in [(Op::Peek, 1), (Op::Take, 0), (Op::Refund, 0), (Op::Peek, 9)] {
            for &key in &keys {
                let mut hits = [Hit::new(key, &later)];
                memory.apply(&mut Plan::one(Ask::new(op, cost, Time::from_nanos(START)), &mut hits));
                memory.check_invariants();
            }
        }
        assert_eq!(memory.stats(), before);
    }
}

/// Also where the next few slots are all in use and what has expired lies elsewhere.
#[test]
fn a_few_that_have_expired_are_found_before_anybody_is_evicted() {
    let store =
        || MemoryStore::new(MemoryConfig { max_bytes: 64 << 10, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let name = |memory: &MemoryStore, number: u32| memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
    let life = |number: u32| if number.is_multiple_of(50) { "fixed 5/10s" } else { "fixed 5/1h" };
    let in_first = |memory: &MemoryStore, number: u32| name(memory, number).shard(memory.shards.len()) == 0;
    // How many of some keys a store holds without an eviction, once it holds those before.
    let fit = |before: &[u32], keys: &mut dyn Iterator<Item = u32>| {
        let memory = store();
        let take = |number: u32| take(&memory, name(&memory, number), life(number), START);
        before.iter().for_each(|&number| _ = take(number));
        keys.take_while(|&number| take(number).allowed() && memory.stats().evicted == 0).collect::<Vec<u32>>()
    };
    // All shards together fill the store, then the first one fills its own table.
    let mut fits = fit(&[], &mut (0..));
    let memory = store();
    fits.extend(fit(&fits, &mut (5_000..).filter(|&number| in_first(&memory, number))));
    for &number in &fits {
        take(&memory, name(&memory, number), life(number), START);
    }
    assert_eq!((memory.stats().counters, memory.stats().evicted), (fits.len(), 0));
    let expired = fits.iter().filter(|&&number| number.is_multiple_of(50) && in_first(&memory, number)).count();
    assert!(expired > 0);
    let now = START + 12 * SECOND;
    for number in (10_000..).filter(|&number| in_first(&memory, number)).take(expired) {
        take(&memory, name(&memory, number), "fixed 5/1h", now);
    }
    assert_eq!(memory.stats().evicted, 0);
}

const KINDS: [&str; 7] = [
    "sliding 3/2s",
    "sliding 2000/3s",
    "bucket 2/s burst=3",
    "pace 2/s max_wait=10s",
    "fixed 3/2s",
    "approx 3/2s",
    "fixed 1/3s after=2/2s",
];

/// A call on one of a few counters, at a time that lies back behind the latest.
fn late_call() -> impl Strategy<Value = (Op, u32, u64, u64)> {
    let op = prop_oneof![6 => Just(Op::Take), 1 => Just(Op::Record), 1 => Just(Op::Refund), 2 => Just(Op::Peek)];
    let later = prop_oneof![3 => 0..SECOND / 4, 1 => 0..5 * SECOND];
    let back = prop_oneof![4 => Just(0), 4 => 0..=super::super::expiry::GRACE, 2 => 0..60 * SECOND];
    (op, 0..40u32, later, back)
}

proptest! {
    #![proptest_config(cases(150))]

    /// Forgetting is not noticed: the answers are those of counters that are never forgotten. Only a time further
    /// back than the grace may be decided at a later instant, that up to which the shard has forgotten.
    #[test]
    fn what_is_forgotten_is_not_missed(calls in prop::collection::vec(late_call(), 1..600)) {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: Seed([3, 4]), ..MemoryConfig::default() });
        let limits = KINDS.map(|limit| limit.parse::<Limit>().unwrap());
        let mut counters: HashMap<u32, Counter> = HashMap::new();
        let mut latest = START;
        for (op, number, later, back) in calls {
            latest += later;
            let now = latest - back;
            let limit = &limits[number as usize % limits.len()];
            let key = memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
            let floor = || memory.lock(key.shard(memory.shards.len())).floor;
            let before = floor();
            let found = memory.apply_one(Ask::new(op, 1, Time::from_nanos(now)), key, limit);
            prop_assert!(floor() <= latest - super::super::expiry::GRACE);
            // A step of the sweep comes first, so the floor may have been raised before the decision or after it.
            let counter = counters.entry(number).or_default();
            let decided = [before, floor()].map(|floor| {
                let (at, mut counter) = (now.max(floor), counter.clone());
                let mut decision = limit.apply(Ask::new(op, 1, Time::from_nanos(at)), &mut counter);
                decision.count_from(Time::from_nanos(now), Time::from_nanos(at));
                (decision, counter)
            });
            let matching = decided.iter().find(|(decision, _)| *decision == found);
            prop_assert!(matching.is_some(), "{} {op:?}: {found:?} is neither of {decided:?}", limit);
            *counter = matching.unwrap().1.clone();
        }
        memory.check_invariants();
    }
}

/// Whoever is decided for at a later instant is held from its own time until its turn.
#[test]
fn a_delay_counts_from_the_time_of_the_call() {
    let memory = smallest(WhenFull::Evict);
    let keys: Vec<Key> = neighbours(&memory).take(2).collect();
    let limit = "pace 1/s max_wait=60s";
    take(&memory, keys[0], "fixed 5/1s", START);
    // What expired at START + 1 s is forgotten, so no time before that is decided for.
    memory.sweep(Time::from_nanos(START + 10 * SECOND));
    let forgotten = START + SECOND + 1;
    let leaves = |now: u64| now + take(&memory, keys[1], limit, now).delay().as_nanos();
    assert_eq!(leaves(forgotten), forgotten);
    assert_eq!(leaves(START), forgotten + SECOND);
    assert_eq!(leaves(forgotten), forgotten + 2 * SECOND);
}

/// However many keys expire at once, a call looks at a few slots, but for the one that lays the table out anew.
#[test]
fn a_call_forgets_a_few_at_a_time() {
    for (text, keys, times) in [("bucket 1/s", 60_000, 1), ("2/1s", 30_000, 2)] {
        let memory =
            MemoryStore::new(MemoryConfig { max_bytes: 4 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
        let limit: Limit = text.parse().unwrap();
        let apply = |op, number: u32, now| {
            let key = memory.subject(&number.to_le_bytes()).counter(memory.counter(b""));
            memory.apply_one(Ask::new(op, 1, Time::from_nanos(now)), key, &limit);
        };
        for step in 0..times {
            (0..keys).for_each(|number| apply(Op::Take, number, START + step));
        }
        let look = || {
            let shard = memory.lock(0);
            (shard.touched, shard.slots.len())
        };
        let (mut most, mut laid_out) = (0, 0);
        for number in 0..200_000 {
            let (before, slots) = look();
            apply(Op::Peek, number, START + 10 * SECOND);
            let (after, slots_after) = look();
            let touched = after - before;
            if slots_after == slots {
                most = most.max(touched);
            } else {
                laid_out += 1;
                assert!(touched <= 2 * slots, "a table of {slots} is gone through once, and once more for its logs");
            }
        }
        // Those of its step of the sweep, and those behind it that move up to close the gaps.
        assert!(most < 500, "{text}: {most} slots");
        assert!((1..30).contains(&laid_out), "{text}: laid out anew {laid_out} times");
        assert_eq!(memory.stats().counters, 0);
    }
}

/// The counters of one subject lie side by side, also where its home is the last position of the table.
#[test]
fn a_large_plan_fits_at_the_end_of_a_table() {
    for plain in [0, 5, 100] {
        let memory =
            MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
        let limit: Limit = "sliding 5/60s after=2/60s".parse().unwrap();
        for key in neighbours(&memory).take(plain) {
            take(&memory, key, "5/60s", START);
        }
        let subjects = (0..5_000u32).map(|number| memory.subject(&number.to_le_bytes()));
        let in_shard = subjects.filter(|subject| subject.counter(memory.counter(b"")).shard(memory.shards.len()) == 0);
        let last = in_shard.max_by_key(|subject| subject.counter(memory.counter(b"")).tag()).unwrap();
        let key = |number: u32| last.counter(memory.counter(&number.to_le_bytes()));
        let mut hits: Vec<Hit<'_>> = (0..20).map(|number| Hit::new(key(number), &limit)).collect();
        for _ in 0..2 {
            memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut hits));
            memory.check_invariants();
        }
        assert_eq!(memory.stats().counters, plain + 40);
    }
}

fn take_all(memory: &MemoryStore, limit: &Limit, subject: u32, ids: &[CounterId]) -> bool {
    let subject = memory.subject(&subject.to_le_bytes());
    let hit = |&id| Hit::new(subject.counter(id), limit);
    let mut hits: Vec<Hit<'_>> = ids.iter().map(hit).collect();
    memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut hits));
    Decision::from_hits(&hits).allowed()
}

/// The counters of one subject lie side by side, also where its home is the last of the table.
#[test]
fn a_subject_may_have_many_counters() {
    for text in ["fixed 5/60s", "sliding 5/60s", "bucket 5/60s after=2/60s"] {
        let limit: Limit = text.parse().unwrap();
        for (max_kib, when_full) in [(1024, WhenFull::Evict), (12, WhenFull::Evict), (12, WhenFull::Deny)] {
            for many in [8, 9, 10, 12, 40_u32] {
                let memory =
                    MemoryStore::new(MemoryConfig { max_bytes: max_kib << 10, when_full, ..Default::default() });
                let ids: Vec<_> = (0..many).map(|id| memory.counter(&id.to_le_bytes())).collect();
                for subject in 0..500 {
                    take_all(&memory, &limit, subject, &ids);
                }
                memory.check_invariants();
            }
        }
    }
}

/// Also where the memory was spent on subjects with few.
#[test]
fn a_full_store_that_evicts_makes_room_for_many_counters() {
    let limit: Limit = "fixed 5/60s".parse().unwrap();
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 128 << 10, ..Default::default() });
    let ids: Vec<_> = (0..40_u32).map(|id| memory.counter(&id.to_le_bytes())).collect();
    assert!((0..5_000).all(|subject| take_all(&memory, &limit, subject, &ids[..1])));
    for subject in 5_000..6_000 {
        assert!(take_all(&memory, &limit, subject, &ids));
        memory.check_invariants();
    }
    assert_eq!(memory.stats().refused, 0);
}

/// Each allocation that a table leaves behind is a hole in the heap that few others fit in.
#[test]
fn a_growing_table_is_allocated_a_few_times_only() {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 8 << 20, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let limit: Limit = "bucket 5/d".parse().unwrap();
    let (mut moves, mut before) = (0, std::ptr::null());
    for key in 0..150_000u32 {
        let key = memory.subject(&key.to_le_bytes()).counter(CounterId::default());
        memory.apply_one(Ask::new(Op::Take, 1, Time::from_secs(1_700_000_000)), key, &limit);
        let shard = memory.lock(0);
        let table = shard.slots.as_ptr();
        moves += usize::from(shard.slots.len() > 128 && table != std::mem::replace(&mut before, table));
    }
    memory.check_invariants();
    assert!(memory.lock(0).slots.len() > 8_000, "{}", memory.lock(0).slots.len());
    assert!((1..=2).contains(&moves), "{moves}");
}

#[test]
fn counters_are_counted_while_a_shard_is_locked() {
    let memory = MemoryStore::default();
    let limit: Limit = "bucket 5/d".parse().unwrap();
    for key in 0..100u32 {
        let key = memory.subject(&key.to_le_bytes()).counter(CounterId::default());
        memory.apply_one(Ask::new(Op::Take, 1, Time::from_secs(1_700_000_000)), key, &limit);
    }
    let _locked: Vec<_> = (0..memory.shards.len()).map(|index| memory.lock(index)).collect();
    assert_eq!(memory.stats().counters, 100);
}
