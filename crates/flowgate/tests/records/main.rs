//! A table written as records and read back: the same states, in a table of any size.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod sizes;

use flowgate::durable::{LoadAt, LoadOutcome, Record, Records, VisitCursor};
use flowgate::{
    Ask, Ban, BanHit, Database, Hit, Key, Limit, MemoryConfig, MemoryStore, Op, Plan, Seed, Span, Throttle, Time,
};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;

/// The first byte of the record of a log.
const LOG_TYPE: u8 = 0x81;

fn store(max_bytes: usize) -> MemoryStore {
    let memory = MemoryStore::new(MemoryConfig { max_bytes, seed: Seed([1, 2]), ..MemoryConfig::default() });
    memory.follow_changes();
    memory
}

/// One of each kind of state, and a log of each form: of a few entries, of many, on a grid.
const LIMITS: [&str; 9] = [
    "bucket 30/60s burst=15",
    "pace 5/s max_wait=20s",
    "fixed 10/60s",
    "fixed 100/day tz=Asia/Shanghai",
    "3/10s",
    "200/60s",
    "5000/20s",
    "approx 1000/60s",
    "fixed 1/10s after=5/day tz=UTC",
];

#[derive(Clone, Debug)]
enum Step {
    Apply { op: Op, limit: usize, key: u8, cost: u64 },
    Throttle(u8),
    Strike(u8),
    Reset { limit: usize, key: u8 },
    Age(u64),
    Visit,
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![6 => Just(Op::Take), 1 => Just(Op::Record), 2 => Just(Op::Refund), 1 => Just(Op::Peek)];
    prop_oneof![
        12 => (op, 0..LIMITS.len(), 0..6_u8, 1..3_u64)
            .prop_map(|(op, limit, key, cost)| Step::Apply { op, limit, key, cost }),
        2 => (0..6_u8).prop_map(Step::Throttle),
        3 => (0..6_u8).prop_map(Step::Strike),
        1 => (0..LIMITS.len(), 0..6_u8).prop_map(|(limit, key)| Step::Reset { limit, key }),
        4 => (0..3 * SECOND).prop_map(Step::Age),
        2 => Just(Step::Visit),
    ]
}

/// What a journal holds of a visit.
struct Visit {
    /// The time of the visit before this one.
    since: u64,
    at: u64,
    changed: Vec<u8>,
    /// All states at that time, which no journal holds.
    all: Vec<u8>,
}

impl Visit {
    /// Whether the record of a log tells of one whose entries have all left by the time of the visit.
    fn is_of_log_that_is_over(&self, record: &[u8]) -> bool {
        // The bytes of the key, and the instant of the last entry, as the header of `record.rs` says.
        let key = |record: &[u8]| record[9..24].to_vec();
        let whole = split(&self.all).into_iter().find(|whole| whole[0] == LOG_TYPE && key(whole) == key(record));
        let last = whole.and_then(|whole| whole.last_chunk::<16>().copied()).unwrap();
        record[0] == LOG_TYPE && u64::from_le_bytes(std::array::from_fn(|index| last[index])) <= self.at
    }
}

/// A store, and what a journal of it would hold.
struct Journaled {
    memory: MemoryStore,
    limits: Vec<Limit>,
    ban: Ban,
    now: u64,
    visited_at: u64,
    journal: Vec<Visit>,
}

impl Journaled {
    fn new(max_bytes: usize) -> Journaled {
        let (memory, limits) = (store(max_bytes), LIMITS.iter().map(|text| text.parse().unwrap()).collect());
        memory.count_databases();
        let minutes = |number: u64| Span::from_secs(60 * number);
        let ban = Ban::new(3, minutes(1), &[minutes(1), minutes(5)], minutes(10)).unwrap();
        Journaled { memory, limits, ban, now: START, visited_at: START, journal: Vec::new() }
    }

    /// Each key in a database of its own.
    fn key(&self, name: &str, key: u8) -> Key {
        let database = Database::new(key * 3).unwrap();
        self.memory.subject(&[key]).counter(self.memory.counter(name.as_bytes())).in_database(database)
    }

    fn step(&mut self, step: &Step) {
        let now = Time::from_nanos(self.now);
        match *step {
            Step::Apply { op, limit, key, cost } => {
                let mut hits = [Hit::new(self.key(LIMITS[limit], key), &self.limits[limit])];
                self.memory.apply(&mut Plan::one(Ask::new(op, cost, now), &mut hits));
            }
            Step::Throttle(key) => {
                let throttle = Throttle::new(5, 10, 60).unwrap();
                self.memory.throttle(self.key("throttle", key), &throttle, now).unwrap();
            }
            Step::Strike(key) => {
                let limit = "1/1000s".parse().unwrap();
                let mut hits = [Hit::new(self.key("struck", key), &limit)];
                let mut bans = [BanHit::new(self.key("ban", key), &self.ban, 0)];
                self.memory.apply(&mut Plan::banning(Ask::new(Op::Take, 1, now), &mut hits, &mut bans));
            }
            Step::Reset { limit, key } => _ = self.memory.reset(self.key(LIMITS[limit], key)),
            Step::Age(nanos) => {
                // A refund must be visited before the counter expires and is dropped, which is a second later at the earliest.
                if self.now + nanos - self.visited_at > SECOND {
                    self.visit();
                }
                self.now += nanos;
            }
            Step::Visit => self.visit(),
        }
    }

    fn visit(&mut self) {
        let all = all(&self.memory);
        let (mut cursor, mut changed) = (VisitCursor::default(), Vec::new());
        while self.memory.changed(&mut cursor, &mut changed) {}
        assert!(!cursor.lost_track());
        let since = std::mem::replace(&mut self.visited_at, self.now);
        self.journal.push(Visit { since, at: self.now, changed, all });
    }

    /// Every record is used, but for those of a log that is over: a look at such a log writes what it continues, and the reader
    /// may have dropped that by then.
    fn read_back(&self, max_bytes: usize) -> MemoryStore {
        let memory = store(max_bytes);
        for visit in &self.journal {
            let at = LoadAt { now: Time::from_nanos(visit.since), back: Span::ZERO };
            for bytes in split(&visit.changed) {
                let record = Records::new(bytes).next().unwrap();
                match memory.load(record, at) {
                    LoadOutcome::Kept | LoadOutcome::Gone => {}
                    LoadOutcome::Orphan if visit.is_of_log_that_is_over(bytes) => {}
                    outcome => panic!("{record:?}: {outcome:?}"),
                }
            }
        }
        memory
    }
}

fn load(memory: &MemoryStore, bytes: &[u8], now: u64, back: u64) {
    let at = LoadAt { now: Time::from_nanos(now), back: Span::from_nanos(back) };
    let mut records = Records::new(bytes);
    for record in &mut records {
        assert!(matches!(memory.load(record, at), LoadOutcome::Kept | LoadOutcome::Gone), "{record:?}");
    }
    assert!(records.rest().is_empty());
}

/// The records of all states.
fn all(memory: &MemoryStore) -> Vec<u8> {
    let (mut cursor, mut bytes) = (VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut bytes) {}
    bytes
}

/// The bytes of each record.
fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
    let (mut records, mut split) = (Records::new(bytes), Vec::new());
    while records.next().is_some() {
        split.push(&bytes[..bytes.len() - records.rest().len()]);
        bytes = records.rest();
    }
    split
}

/// All states that are not over, in the order of their bytes.
fn states(memory: &MemoryStore, now: u64) -> Vec<Vec<u8>> {
    memory.sweep(Time::from_nanos(now + SECOND));
    let mut states: Vec<Vec<u8>> = split(&all(memory)).into_iter().map(<[u8]>::to_vec).collect();
    states.sort();
    states
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn what_is_visited_is_read_back_into_a_table_of_any_size(steps in prop::collection::vec(step(), 1..400)) {
        let mut journaled = Journaled::new(8 << 20);
        steps.iter().for_each(|step| journaled.step(step));
        journaled.visit();
        for max_bytes in [1 << 20, 256 << 20] {
            let back = journaled.read_back(max_bytes);
            prop_assert_eq!(states(&back, journaled.now), states(&journaled.memory, journaled.now));
            let (mut cursor, mut bytes) = (VisitCursor::default(), Vec::new());
            while back.changed(&mut cursor, &mut bytes) {}
            prop_assert!(bytes.is_empty(), "what was read need not be written");
        }
    }

    #[test]
    fn bytes_of_any_kind_are_refused_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let memory = store(1 << 20);
        let at = LoadAt { now: Time::from_nanos(START), back: Span::ZERO };
        for record in Records::new(&bytes) {
            record.describe();
            memory.load(record, at);
        }
        let limit: Limit = "3/10s".parse().unwrap();
        let key = memory.subject(b"k").counter(memory.counter(b"c"));
        prop_assert!(memory.apply_one(Ask::new(Op::Take, 1, Time::from_nanos(START)), key, &limit).allowed());
    }
}

#[test]
fn a_look_at_a_log_that_is_over_brings_nothing_back() {
    let mut journaled = Journaled::new(1 << 20);
    let apply =
        |op| Step::Apply { op, limit: LIMITS.iter().position(|text| *text == "5000/20s").unwrap(), key: 1, cost: 1 };
    for _ in 0..4 {
        journaled.step(&apply(Op::Take));
        journaled.step(&Step::Age(20_000_000));
    }
    // The reader makes room for another counter of the shard, and drops the log then.
    for _ in 0..9 {
        journaled.step(&Step::Age(3 * SECOND - 1));
        journaled.step(&Step::Throttle(1));
    }
    journaled.step(&apply(Op::Peek));
    journaled.visit();
    let back = journaled.read_back(1 << 20);
    assert_eq!(states(&back, journaled.now), states(&journaled.memory, journaled.now));
    journaled.step(&apply(Op::Take));
    journaled.visit();
    let back = journaled.read_back(1 << 20);
    assert_eq!(states(&back, journaled.now), states(&journaled.memory, journaled.now));
}

#[test]
fn a_log_writes_what_is_new() {
    let mut journaled = Journaled::new(1 << 20);
    let take = Step::Apply { op: Op::Take, limit: 5, key: 0, cost: 1 };
    for _ in 0..100 {
        journaled.step(&Step::Age(1));
        journaled.step(&take);
    }
    journaled.visit();
    let whole = journaled.journal[0].changed.len();
    assert!(whole > 1600, "{whole}");
    journaled.step(&Step::Age(1));
    journaled.step(&take);
    journaled.visit();
    assert_eq!(journaled.journal[1].changed.len(), 8 + 48 + 16);
    let without_the_first = store(1 << 20);
    let at = LoadAt { now: Time::from_nanos(START), back: Span::ZERO };
    let record = Records::new(&journaled.journal[1].changed).next().unwrap();
    assert_eq!(without_the_first.load(record, at), LoadOutcome::Orphan);
    assert_eq!(without_the_first.stats().counters, 0);
}

#[test]
fn a_shard_that_forgets_more_than_it_can_list_says_so() {
    let memory = store(1 << 20);
    let limit: Limit = "fixed 3/10s".parse().unwrap();
    let keys: Vec<Key> =
        (0..20_000_u32).map(|key| memory.subject(&key.to_le_bytes()).counter(memory.counter(b"c"))).collect();
    let now = Time::from_nanos(START);
    let visit = || {
        let (mut cursor, mut bytes) = (VisitCursor::default(), Vec::new());
        while memory.changed(&mut cursor, &mut bytes) {}
        cursor.lost_track()
    };
    keys.iter().for_each(|key| _ = memory.apply_one(Ask::new(Op::Take, 1, now), *key, &limit));
    assert!(!visit());
    keys.iter().for_each(|key| assert!(memory.reset(*key)));
    assert!(visit());
    assert!(!visit(), "it begins anew");
}

#[test]
fn a_visit_looks_up_64_vanished_counters_at_a_time() {
    let memory = store(1 << 20);
    let limit: Limit = "fixed 3/10s".parse().unwrap();
    let ask = Ask::new(Op::Take, 1, Time::from_nanos(START));
    let keys: Vec<Key> =
        (0..4_000_u32).map(|key| memory.subject(&key.to_le_bytes()).counter(memory.counter(b"c"))).collect();
    keys.iter().for_each(|key| _ = memory.apply_one(ask, *key, &limit));
    keys.iter().for_each(|key| assert!(memory.reset(*key)));
    let (back, gone) = keys.split_at(1_000);
    back.iter().for_each(|key| _ = memory.apply_one(ask, *key, &limit));
    let (mut cursor, mut step, mut written) = (VisitCursor::default(), Vec::new(), 0);
    while memory.changed(&mut cursor, &mut step) {
        let vanished = Records::new(&step).filter(|record| record.describe() == Some("gone")).count();
        assert!(vanished <= 64, "{vanished} in one step");
        written += vanished;
        step.clear();
    }
    assert_eq!(written, gone.len());
    assert!(!cursor.lost_track());
}

#[test]
fn a_visit_of_changes_locks_the_shards_that_have_some() {
    let memory = store(1 << 30);
    let limit: Limit = "fixed 10/60s".parse().unwrap();
    let key = |number: u32| memory.subject(&number.to_be_bytes()).counter(memory.counter(b"limit"));
    let take = |number: u32| {
        let mut hits = [Hit::new(key(number), &limit)];
        memory.apply(&mut Plan::one(Ask::new(Op::Take, 1, Time::from_nanos(START)), &mut hits));
    };
    let visit = || {
        let (mut cursor, mut bytes, mut steps) = (VisitCursor::default(), Vec::new(), 0);
        while memory.changed(&mut cursor, &mut bytes) {
            steps += 1;
        }
        (steps, Records::new(&bytes).count())
    };
    (0..100).for_each(take);
    assert_eq!(visit().1, 100);
    assert_eq!(visit(), (0, 0));
    take(7);
    take(7);
    assert_eq!(visit(), (1, 1));
    assert!(memory.reset(key(8)));
    let (steps, records) = visit();
    assert!(steps <= 2 && records == 1, "the counter that vanished, then the slots of its shard: {steps} steps");
    take(8);
    // A visit that is not finished leaves what it has not seen to the next one.
    memory.changed(&mut VisitCursor::default(), &mut Vec::new());
    (0..100).for_each(take);
    memory.changed(&mut VisitCursor::default(), &mut Vec::new());
    assert!(visit().1 >= 98);
}

#[test]
fn states_move_back_with_the_clock() {
    let mut journaled = Journaled::new(1 << 20);
    for key in 0..6 {
        for limit in 0..LIMITS.len() {
            (0..3).for_each(|_| journaled.step(&Step::Apply { op: Op::Take, limit, key, cost: 1 }));
            journaled.step(&Step::Age(1));
        }
        (0..4).for_each(|_| journaled.step(&Step::Strike(key)));
        journaled.step(&Step::Throttle(key));
    }
    journaled.visit();
    let back = 7200 * SECOND;
    let moved = store(1 << 20);
    load(&moved, &journaled.journal[0].changed, START - back, back);
    let lifetimes = |memory: &MemoryStore, now: u64| -> Vec<Option<Span>> {
        let names = LIMITS.into_iter().chain(["throttle", "ban"]);
        let keys = names.flat_map(|name| (0..6).map(move |key| (name, key)));
        keys.map(|(name, key)| memory.lifetime(journaled.key(name, key), Time::from_nanos(now))).collect()
    };
    let expected = lifetimes(&journaled.memory, journaled.now);
    assert!(expected.iter().all(Option::is_some));
    assert_eq!(lifetimes(&moved, journaled.now - back), expected);
}

#[test]
fn records_of_others_are_kept_to_the_byte_and_unknown_ones_are_skipped() {
    let mut bytes = Vec::new();
    for length in [0, 1, 7, 8, 9, 1000] {
        assert!(Record::write_foreign(length as u8 % 64, &vec![7; length], &mut bytes));
    }
    assert!(!Record::write_foreign(1, &[0; 40_000], &mut bytes));
    // A kind of slot that this version does not know, and a long record.
    bytes.extend_from_slice(&[[0x0f; 1].as_slice(), &[1; 31]].concat());
    bytes.extend_from_slice(&[0xbf, 0, 2, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let found: Vec<Option<(u8, usize)>> =
        Records::new(&bytes).map(|record| record.foreign().map(|(kind, body)| (kind, body.len()))).collect();
    let lengths = [Some((0, 0)), Some((1, 1)), Some((7, 7)), Some((8, 8)), Some((9, 9)), Some((40, 1000)), None, None];
    assert_eq!(found, lengths);
    let memory = store(1 << 20);
    let at = LoadAt { now: Time::from_nanos(START), back: Span::ZERO };
    assert!(Records::new(&bytes).all(|record| memory.load(record, at) == LoadOutcome::Unknown));
}

/// The units of a log whose entries are in the wrong order add up in one entry, which the table could not write again.
#[test]
fn a_log_of_more_units_than_any_limit_is_refused() {
    let most = (1 << 53) - 1;
    for (second, outcome) in [(most - 1, LoadOutcome::Kept), (most, LoadOutcome::Orphan)] {
        let mut record = vec![LOG_TYPE, 0, 11, 0, 0, 0, 0, 0];
        let head = [4, 1, 0, START + SECOND, 1, 0];
        let entries = [START + SECOND, 1, START, second];
        head.iter().chain(&entries).for_each(|word: &u64| record.extend_from_slice(&word.to_le_bytes()));
        let memory = store(1 << 20);
        let at = LoadAt { now: Time::from_nanos(START), back: Span::ZERO };
        assert_eq!(memory.load(Records::new(&record).next().unwrap(), at), outcome, "{second}");
        let written = all(&memory);
        assert!(Records::new(&written).all(|record| record.describe().is_some()));
        assert_eq!(Records::new(&written).count(), usize::from(outcome == LoadOutcome::Kept));
    }
}

#[test]
fn a_refund_that_was_visited_is_read_back_though_the_counter_expires() {
    let mut journaled = Journaled::new(1 << 20);
    let apply = |op| Step::Apply { op, limit: 4, key: 0, cost: 1 };
    journaled.step(&apply(Op::Take));
    journaled.step(&Step::Age(5 * SECOND));
    journaled.step(&apply(Op::Take));
    journaled.visit();
    journaled.step(&apply(Op::Refund));
    journaled.step(&Step::Age(6 * SECOND + SECOND / 2));
    journaled.memory.sweep(Time::from_nanos(journaled.now));
    journaled.visit();
    assert!(states(&journaled.memory, journaled.now).is_empty());
    assert!(states(&journaled.read_back(1 << 20), journaled.now).is_empty());
}
