//! The journal of version 1 in `testdata/journal/`, which every later version must read. The README there describes the files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use flowgate::durable::{LoadAt, LoadOutcome, Record, Records, VisitCursor};
use flowgate::{
    Ask, Ban, BanHit, Database, Hit, Key, Limit, MemoryConfig, MemoryStore, Op, Plan, Seed, Span, Throttle, Time,
};
use flowgate_journal::{Companion, FileDisk, ReadReport, Sink, Writer, read};
use flowgate_testkit::files::repository;

const START: Time = Time::from_secs(1_700_000_000);
const SEED: Seed = Seed([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
const FILES: [&str; 2] = ["00000001.fgj", "00000002.fgj.part"];

/// Two forms. Slots with whole words and blocks that do not say what is synced: these are only read. And the form that
/// is written today.
const WHOLE: &str = "testdata/journal";
const SHORT: &str = "testdata/journal/short";
const WRITTEN: &str = "testdata/journal/synced";

/// For each counter: its limit, which is also its name, the units taken in the first second, and the units taken in the
/// third second.
const COUNTERS: [(&str, u64, u64); 9] = [
    ("bucket 30/1h burst=15", 4, 2),
    ("funnel 10/1h burst=5", 2, 0),
    ("pace 60/1h", 1, 0),
    ("fixed 100/1h", 7, 3),
    ("fixed 100/day tz=UTC", 40, 0),
    ("fixed 2/1h after=5/day tz=UTC", 6, 1),
    ("sliding 50/1h", 3, 0),
    ("sliding 5000/2h", 3, 5),
    ("approx 1000/1h", 100, 11),
];

fn second(number: u64) -> Time {
    START + Span::from_secs(number)
}

fn store(max_bytes: usize) -> MemoryStore {
    MemoryStore::new(MemoryConfig { max_bytes, seed: SEED, ..MemoryConfig::default() })
}

fn key(memory: &MemoryStore, database: u8, subject: &str, counter: &str) -> Key {
    let counter = memory.counter(counter.as_bytes());
    memory.subject(subject.as_bytes()).counter(counter).in_database(Database::new(database).unwrap())
}

fn ban() -> Ban {
    let minutes = |number: u64| Span::from_secs(60 * number);
    Ban::new(2, minutes(10), &[minutes(30), minutes(60)], minutes(120)).unwrap()
}

fn throttle() -> Throttle {
    Throttle::new(5, 10, 3600).unwrap()
}

/// What the ban says of a subject after a request.
fn request(memory: &MemoryStore, op: Op, subject: &str, now: Time) -> String {
    let (limit, ban): (Limit, Ban) = ("1/2h".parse().unwrap(), ban());
    let mut hits = [Hit::new(key(memory, 0, subject, "strict"), &limit)];
    let mut bans = [BanHit::new(key(memory, 0, subject, "ban"), &ban, 0)];
    memory.apply(&mut Plan::banning(Ask::new(op, 1, now), &mut hits, &mut bans));
    format!("{:?}", bans[0].standing())
}

fn take(memory: &MemoryStore, database: u8, limit: &str, units: u64, now: Time) {
    let ask = |at| Ask::new(Op::Record, 1, at);
    for unit in 0..units {
        let at = now + Span::from_millis(unit);
        memory.apply_one(ask(at), key(memory, database, "anna", limit), &limit.parse().unwrap());
    }
}

/// Records of a later version and of another writer.
struct Strangers;

impl Companion for Strangers {
    fn changed(&mut self, _: &mut Vec<u8>) {}

    fn all(&mut self, out: &mut Vec<u8>) {
        // A long record of a type that no store writes, and a slot of an unknown kind.
        out.extend_from_slice(&[0x85, 0, 2, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        out.extend_from_slice(&[0x0f; 32]);
        assert!(Record::write_foreign(9, b"of another writer", out));
    }
}

/// Writes the journal: a finished base, changes after it, and a second generation whose base is not finished.
fn write(directory: &Path) -> MemoryStore {
    let memory = store(1 << 20);
    memory.follow_changes();
    let disk = Arc::new(FileDisk::new(directory));
    let mut writer = Writer::new(Arc::clone(&disk), SEED.fingerprint(), START).unwrap();
    for (limit, first, _) in COUNTERS {
        take(&memory, 0, limit, first, second(0));
    }
    take(&memory, 3, COUNTERS[0].0, 9, second(0));
    take(&memory, 0, "fixed 8/1h", 8, second(0));
    memory.throttle(key(&memory, 0, "anna", "throttle"), &throttle(), second(0)).unwrap();
    for (subject, requests) in [("banned", 3), ("struck", 2)] {
        (0..requests).for_each(|number| _ = request(&memory, Op::Take, subject, second(0) + Span::from_millis(number)));
    }
    writer.begin().unwrap();
    while !writer.write_base(&memory, &mut Strangers, 1 << 20).unwrap() {}
    writer.flush(&memory, &mut Strangers, second(1)).unwrap();

    assert!(memory.reset(key(&memory, 0, "anna", "fixed 8/1h")));
    for (limit, _, third) in COUNTERS {
        take(&memory, 0, limit, third, second(2));
    }
    writer.flush(&memory, &mut Strangers, second(3)).unwrap();

    writer.begin().unwrap();
    assert!(!writer.write_base(&memory, &mut Strangers, 1).unwrap(), "the base is not finished");
    take(&memory, 0, "sliding 5000/2h", 2, second(4));
    memory.throttle(key(&memory, 0, "anna", "throttle"), &throttle(), second(4)).unwrap();
    writer.stop(&memory, &mut Strangers, second(5)).unwrap();
    memory
}

/// What a store answers of every counter, a line each.
fn answers(memory: &MemoryStore) -> String {
    let mut text = String::new();
    let limits = COUNTERS.map(|(limit, _, _)| (0, limit)).into_iter();
    for (database, limit) in limits.chain([(3, COUNTERS[0].0), (3, COUNTERS[3].0), (0, "fixed 8/1h")]) {
        let ask = Ask::new(Op::Peek, 1, second(6));
        let decision = memory.apply_one(ask, key(memory, database, "anna", limit), &limit.parse().unwrap());
        let (left, reset) = (decision.remaining.unwrap(), decision.reset_after.as_nanos());
        writeln!(text, "database {database}, {limit}: {left} left, all back in {reset} ns").unwrap();
    }
    let peek = throttle().quantity(0).unwrap();
    let reply = memory.throttle(key(memory, 0, "anna", "throttle"), &peek, second(6)).unwrap();
    writeln!(text, "throttle: {:?}", reply.numbers()).unwrap();
    for subject in ["banned", "struck", "unknown"] {
        writeln!(text, "{subject}: {}", request(memory, Op::Peek, subject, second(6))).unwrap();
    }
    // The strike that was kept and this one make a ban, and a second ban is longer than the first.
    writeln!(text, "struck again: {}", request(memory, Op::Take, "struck", second(7))).unwrap();
    for minute in [31, 32] {
        let now = second(60 * minute);
        writeln!(text, "banned, minute {minute}: {}", request(memory, Op::Take, "banned", now)).unwrap();
    }
    text
}

/// The records of all states.
fn states(memory: &MemoryStore) -> BTreeSet<Vec<u8>> {
    let (mut cursor, mut bytes) = (VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut bytes) {}
    let (mut states, mut rest) = (BTreeSet::new(), bytes.as_slice());
    let mut records = Records::new(rest);
    while records.next().is_some() {
        let (record, behind) = rest.split_at(rest.len() - records.rest().len());
        states.insert(record.to_vec());
        rest = behind;
    }
    states
}

struct Loading {
    memory: MemoryStore,
    outcomes: [u64; 4],
}

impl Sink for Loading {
    fn record(&mut self, record: Record<'_>, since: Time) {
        let outcome = match record.foreign() {
            Some(found) => {
                assert_eq!(found, (9, &b"of another writer"[..]));
                3
            }
            None => match self.memory.load(record, LoadAt { now: since, back: Span::ZERO }) {
                LoadOutcome::Kept => 0,
                LoadOutcome::Gone => 1,
                LoadOutcome::Unknown => 2,
                other @ (LoadOutcome::Orphan | LoadOutcome::NoRoom) => panic!("{other:?}: {:?}", record.describe()),
            },
        };
        self.outcomes[outcome] += 1;
    }
}

fn load(directory: &str, max_bytes: usize) -> (Loading, ReadReport) {
    let mut loading = Loading { memory: store(max_bytes), outcomes: [0; 4] };
    let disk = FileDisk::new(repository(directory));
    let report = read(&disk, Some(SEED.fingerprint()), &mut loading).unwrap();
    (loading, report)
}

#[test]
fn the_journal_of_version_1_is_read_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let written = write(directory.path());
    let expected = fs::read_to_string(repository("testdata/journal/answers.txt")).unwrap();
    for (directory, max_bytes) in
        [WHOLE, SHORT, WRITTEN].into_iter().flat_map(|name| [(name, 1 << 20), (name, 64 << 20)])
    {
        let (loading, report) = load(directory, max_bytes);
        let [kept, gone, unknown, foreign] = loading.outcomes;
        // The counter that is reset, and the strikes that became a ban.
        assert_eq!((gone, unknown, foreign), (2, 2, 1));
        assert_eq!((report.generations.as_slice(), report.records), (&[1, 2][..], kept + 5));
        assert_eq!((report.damaged, report.torn_bytes, report.stopped), (0, 0, true));
        assert_eq!(report.written_at, Some(second(5)));
        assert_eq!(loading.memory.counters_in(Database::new(3).unwrap()), 1);
        assert_eq!(states(&loading.memory), states(&written), "{directory} in a table of {max_bytes} bytes");
        assert_eq!(answers(&loading.memory), expected, "{directory} in a table of {max_bytes} bytes");
    }
}

#[test]
fn the_writer_writes_the_journal_of_version_1() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path());
    for name in FILES {
        let golden = fs::read(repository(WRITTEN).join(name)).unwrap();
        assert!(fs::read(directory.path().join(name)).unwrap() == golden, "{name} is written with other bytes");
    }
}

/// Writes `testdata/journal/synced/`.
#[test]
#[ignore = "writes files of the repository"]
fn write_the_golden_files() {
    let (directory, golden) = (tempfile::tempdir().unwrap(), repository(WRITTEN));
    write(directory.path());
    for name in FILES {
        fs::write(golden.join(name), fs::read(directory.path().join(name)).unwrap()).unwrap();
    }
}
