//! The recorded traces of `testdata/vectors/` on a store that is written and read back after every step: no answer changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex};

use flowgate::durable::{LoadAt, LoadOutcome, Record};
use flowgate::{Ask, Decision, Hit, Limit, MemoryConfig, MemoryStore, Plan, RuleFlags, Seed, Span, Throttle, Time};
use flowgate_journal::{Disk, NoCompanion, Sink, Writer, read};
use flowgate_testkit::vectors::{limits, throttle};
use flowgate_testkit::{numbers, op};

const SEED: Seed = Seed([1, 2]);

/// A generation begins after this many restarts, as it does when a process starts. Between them the file goes on, so
/// that a store is read from a base and the changes after it.
const RESTARTS_PER_GENERATION: usize = 3;

type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files in memory.
#[derive(Default)]
struct MemoryDisk(Mutex<BTreeMap<String, Bytes>>);

impl Disk for MemoryDisk {
    type File = Bytes;

    fn create(&self, name: &str) -> io::Result<Bytes> {
        let file = Bytes::default();
        self.0.lock().unwrap().insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn append(&self, file: &Bytes, bytes: &[u8]) -> io::Result<()> {
        file.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, _: &Bytes) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.0.lock().unwrap();
        let file = files.remove(from).unwrap();
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(Cursor::new(self.0.lock().unwrap()[name].lock().unwrap().clone())))
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(self.0.lock().unwrap()[name].lock().unwrap().len() as u64)
    }
}

struct Loading(MemoryStore);

impl Sink for Loading {
    fn record(&mut self, record: Record<'_>, since: Time) {
        let loaded = self.0.load(record, LoadAt { now: since, back: Span::ZERO });
        assert!(matches!(loaded, LoadOutcome::Kept | LoadOutcome::Gone), "{loaded:?}: {:?}", record.describe());
    }
}

/// A store and its journal.
struct Durable {
    memory: MemoryStore,
    disk: Arc<MemoryDisk>,
    writer: Writer<MemoryDisk>,
    restarts: usize,
}

impl Durable {
    fn new() -> Durable {
        let disk = Arc::new(MemoryDisk::default());
        let writer = Writer::new(Arc::clone(&disk), SEED.fingerprint(), Time::default()).unwrap();
        Durable { memory: store(), disk, writer, restarts: 0 }
    }

    /// Writes what has changed, and continues with a store that was read back.
    fn restart(&mut self, now: Time) {
        if self.restarts.is_multiple_of(RESTARTS_PER_GENERATION) {
            self.writer = Writer::new(Arc::clone(&self.disk), SEED.fingerprint(), now).unwrap();
            self.writer.begin().unwrap();
            while !self.writer.write_base(&self.memory, &mut NoCompanion, 1 << 20).unwrap() {}
        }
        self.restarts += 1;
        self.writer.flush(&self.memory, &mut NoCompanion, now).unwrap();
        let mut loading = Loading(store());
        let report = read(&*self.disk, Some(SEED.fingerprint()), &mut loading).unwrap();
        assert_eq!((report.damaged, report.torn_bytes), (0, 0));
        self.memory = loading.0;
    }
}

fn store() -> MemoryStore {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: SEED, ..MemoryConfig::default() });
    memory.follow_changes();
    memory
}

#[test]
fn restarts_between_requests_change_no_recorded_answer() {
    let mut restarts = 0;
    for trace in limits::traces() {
        let parsed: Vec<Limit> = trace.limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let flags = RuleFlags { count_denied: trace.count_denied, shadow: false };
        let mut durable = Durable::new();
        for (number, step) in trace.steps.iter().enumerate() {
            let (memory, now) = (&durable.memory, Time::from_micros(step.at_us));
            let subject = memory.subject(trace.case.as_bytes());
            let key = |index: usize| subject.counter(memory.counter(&index.to_le_bytes()));
            let hit = |(index, limit)| Hit::new(key(index), limit).in_rule(0, flags);
            let mut hits: Vec<Hit<'_>> = parsed.iter().enumerate().map(hit).collect();
            memory.apply(&mut Plan::one(Ask::new(op!(flowgate, step.op), step.cost, now), &mut hits));
            trace.check(number, numbers!(Decision::from_hits(&hits)));
            durable.restart(now);
        }
        restarts += durable.restarts;
    }
    assert!(restarts > 4_000, "{restarts} restarts");
}

#[test]
fn restarts_between_calls_of_throttle_change_no_recorded_reply() {
    for case in throttle::calls().chunk_by(|a, b| a.case == b.case) {
        let (mut durable, mut latest) = (Durable::new(), Time::default());
        for (number, call) in case.iter().enumerate() {
            let (memory, now) = (&durable.memory, Time::from_nanos(call.now_ns));
            let key = memory.subject(call.key.as_bytes()).counter(memory.counter(b"cell"));
            let throttle = Throttle::new(call.max_burst, call.count, call.period).unwrap();
            let reply = memory.throttle(key, &throttle.quantity(call.quantity).unwrap(), now).unwrap();
            assert_eq!(reply.numbers(), call.reply, "case {} call {number}", call.case);
            latest = latest.max(now);
            durable.restart(latest);
        }
    }
}
