//! A disk that crashes at every call, tears and reorders what was not synced, fails, and flips bits. In every case each
//! counter is read back with a state that it really had. After a crash that state is not older than the last synced
//! one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex};

use flowgate::durable::{LoadAt, Record, Records, VisitCursor};
use flowgate::{
    Ask, Ban, BanHit, Database, Hit, Limit, MemoryConfig, MemoryStore, Op, Plan, Seed, Span, Throttle, Time,
};
use flowgate_journal::{Disk, NoCompanion, ReadReport, Sink, Writer, read};

const START: u64 = 1_700_000_000_000_000_000;
const SEED: Seed = Seed([1, 2]);
const PAGE: usize = 4096;

/// A file: what is on the disk for sure, and what was written since.
#[derive(Clone, Default)]
struct TestFile {
    bytes: Vec<u8>,
    synced: usize,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Arc<Mutex<TestFile>>>,
    calls: usize,
    crash_at: Option<usize>,
    fail_at: std::ops::Range<usize>,
}

#[derive(Default)]
struct TestDisk(Mutex<State>);

impl TestDisk {
    /// Counts a call, and fails it where that was asked for. After a crash every call fails.
    fn call(&self) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.0.lock().unwrap();
        state.calls += 1;
        let number = state.calls;
        if state.crash_at.is_some_and(|at| number >= at) || state.fail_at.contains(&number) {
            return Err(io::Error::other("the disk fails"));
        }
        Ok(state)
    }

    /// The bytes on the disk after a loss of power: everything that was synced, and a random part of the other pages.
    /// The last page is torn.
    fn survive(&self, random: &mut u64) -> TestDisk {
        let survivor = TestDisk::default();
        for (name, file) in &self.0.lock().unwrap().files {
            let mut file = file.lock().unwrap().clone();
            let kept = file.synced + next(random) as usize % (file.bytes.len() - file.synced + 1);
            file.bytes.truncate(kept);
            for page in file.synced.div_ceil(PAGE)..file.bytes.len() / PAGE {
                if next(random).is_multiple_of(4) {
                    file.bytes[page * PAGE..(page + 1) * PAGE].fill(0);
                }
            }
            survivor.0.lock().unwrap().files.insert(name.clone(), Arc::new(Mutex::new(file)));
        }
        survivor
    }
}

impl Disk for TestDisk {
    type File = Arc<Mutex<TestFile>>;

    fn create(&self, name: &str) -> io::Result<Self::File> {
        let file = Self::File::default();
        self.call()?.files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()> {
        let failed = self.call().err();
        // A write that fails may have written some of its bytes.
        let written = if failed.is_some() { bytes.len() / 2 } else { bytes.len() };
        file.lock().unwrap().bytes.extend_from_slice(&bytes[..written]);
        failed.map_or(Ok(()), Err)
    }

    fn sync(&self, file: &Self::File) -> io::Result<()> {
        drop(self.call()?);
        let mut file = file.lock().unwrap();
        file.synced = file.bytes.len();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.call()?;
        let file = state.files.remove(from).unwrap();
        state.files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call()?.files.remove(name);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().unwrap().files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        let bytes = self.0.lock().unwrap().files[name].lock().unwrap().bytes.clone();
        Ok(Box::new(Cursor::new(bytes)))
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().files[name].lock().unwrap().bytes.len() as u64)
    }
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

fn store() -> MemoryStore {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: SEED, ..MemoryConfig::default() });
    memory.count_databases();
    memory.follow_changes();
    memory
}

/// The state of each counter, by its key.
fn states(memory: &MemoryStore) -> HashMap<Vec<u8>, Vec<u8>> {
    let (mut cursor, mut bytes) = (VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut bytes) {}
    let (mut states, mut rest) = (HashMap::new(), bytes.as_slice());
    let mut records = Records::new(rest);
    while records.next().is_some() {
        let record = &rest[..rest.len() - records.rest().len()];
        rest = records.rest();
        let key = if record[0] < 0x80 { &record[2..16] } else { &record[10..24] };
        states.insert(key.to_vec(), record.to_vec());
    }
    states
}

struct Loading(MemoryStore);

impl Sink for Loading {
    fn record(&mut self, record: Record<'_>, since: Time) {
        self.0.load(record, LoadAt { now: since, back: Span::ZERO });
    }
}

fn read_back(disk: &TestDisk) -> (HashMap<Vec<u8>, Vec<u8>>, ReadReport) {
    let mut loading = Loading(store());
    let report = read(disk, Some(SEED.fingerprint()), &mut loading).unwrap();
    (states(&loading.0), report)
}

/// A trace: takes of every algorithm, bans, resets, refunds; flushes, syncs and generations between them. Notes the states
/// after each step, and the last step that was synced.
struct Trace {
    memory: MemoryStore,
    history: Vec<HashMap<Vec<u8>, Vec<u8>>>,
    synced: usize,
}

const LIMITS: [&str; 6] = [
    "bucket 30/1h burst=15",
    "fixed 100/day tz=UTC",
    "50/1h",
    "5000/2h",
    "approx 1000/1h",
    "fixed 1/1h after=5/day tz=UTC",
];

fn run(disk: &Arc<TestDisk>, random: &mut u64) -> Trace {
    let mut trace = Trace { memory: store(), history: Vec::new(), synced: 0 };
    let limits: Vec<Limit> = LIMITS.iter().map(|text| text.parse().unwrap()).collect();
    let hour = Span::from_secs(3600);
    let ban = Ban::new(2, hour, &[hour], hour).unwrap();
    let strict: Limit = "1/2h".parse().unwrap();
    let mut writer = Writer::new(Arc::clone(disk), SEED.fingerprint(), Time::from_nanos(START)).unwrap();
    let mut is_working = writer.begin().is_ok();
    trace.history.push(HashMap::new());
    for step in 1..120_u64 {
        let now = Time::from_nanos(START + step * 1_000_000);
        let memory = &trace.memory;
        let database = Database::new((next(random) % 16) as u8).unwrap();
        let key = |name: &str, subject: u64| {
            memory.subject(&(subject % 2).to_le_bytes()).counter(memory.counter(name.as_bytes())).in_database(database)
        };
        let (which, subject) = (next(random) as usize, next(random));
        let name = LIMITS[which % LIMITS.len()];
        match next(random) % 12 {
            0 => _ = memory.reset(key(name, subject)),
            1 => _ = memory.throttle(key("throttle", subject), &Throttle::new(5, 10, 60).unwrap(), now).unwrap(),
            2 | 3 => {
                let mut hits = [Hit::new(key("strict", subject), &strict)];
                let mut bans = [BanHit::new(key("ban", subject), &ban, 0)];
                memory.apply(&mut Plan::banning(Ask::new(Op::Take, 1, now), &mut hits, &mut bans));
            }
            kind => {
                let op = if kind == 4 { Op::Refund } else { Op::Take };
                let mut hits = [Hit::new(key(name, subject), &limits[which % LIMITS.len()])];
                memory.apply(&mut Plan::one(Ask::new(op, 1, now), &mut hits));
            }
        }
        trace.history.push(states(memory));
        if !step.is_multiple_of(7) {
            continue;
        }
        let mut work = || {
            if !is_working {
                writer.begin_again()?;
                while !writer.write_base(memory, &mut NoCompanion, 600)? {}
            } else if step == 70 {
                writer.begin()?;
            }
            writer.flush(memory, &mut NoCompanion, now)?;
            writer.write_base(memory, &mut NoCompanion, 600)?;
            writer.sync()
        };
        match work() {
            Ok(()) => (is_working, trace.synced) = (true, step as usize),
            Err(_) => {
                writer.give_up();
                is_working = false;
            }
        }
    }
    trace
}

#[test]
fn after_a_crash_at_any_call_every_counter_has_a_state_that_is_no_older_than_the_last_synced_one() {
    let calls = {
        let disk = Arc::new(TestDisk::default());
        run(&disk, &mut 1);
        disk.0.lock().unwrap().calls
    };
    assert!(calls > 40, "{calls} calls");
    for crash_at in 1..=calls + 1 {
        for round in 0..4_u64 {
            let disk = Arc::new(TestDisk::default());
            disk.0.lock().unwrap().crash_at = Some(crash_at);
            let trace = run(&disk, &mut 1);
            let mut random = round * 1000 + crash_at as u64;
            let (found, report) = read_back(&disk.survive(&mut random));
            assert_eq!(report.damaged, 0, "crash at call {crash_at}, round {round}: a loss of power is not damage");
            let keys = found.keys().chain(trace.history.last().unwrap().keys());
            for key in keys {
                let had = &trace.history[trace.synced..];
                assert!(
                    had.iter().any(|states| states.get(key) == found.get(key)),
                    "crash at call {crash_at}, round {round}, synced at step {}: {:?}",
                    trace.synced,
                    found.get(key)
                );
            }
        }
    }
}

/// A disk is full for a while, or a sync fails. Everything is written once the disk works again.
#[test]
fn after_failures_of_any_call_all_is_written_once_there_is_room() {
    for fail_at in 2..30 {
        for length in [1, 2, 7] {
            let disk = Arc::new(TestDisk::default());
            disk.0.lock().unwrap().fail_at = fail_at..fail_at + length;
            let trace = run(&disk, &mut 2);
            let (found, report) = read_back(&disk);
            assert_eq!(report.damaged, 0, "calls {fail_at} and {length} more");
            assert!(trace.synced >= 112, "the last flushes work: {}", trace.synced);
            assert_eq!(found, trace.history[119], "calls {fail_at} and {length} more");
        }
    }
}

#[test]
fn a_flipped_bit_loses_states_and_makes_none_up() {
    let disk = Arc::new(TestDisk::default());
    let trace = run(&disk, &mut 3);
    let mut random = 5;
    let mut damaged = 0;
    for _ in 0..300 {
        let copy = disk.survive(&mut { 0 });
        let files: Vec<_> = copy.0.lock().unwrap().files.values().cloned().collect();
        let mut file = files[next(&mut random) as usize % files.len()].lock().unwrap();
        let at = next(&mut random) as usize % file.bytes.len();
        file.bytes[at] ^= 1 << (next(&mut random) % 8);
        drop(file);
        let mut loading = Loading(store());
        let report = read(&copy, Some(SEED.fingerprint()), &mut loading).unwrap();
        damaged += report.damaged;
        for (key, state) in states(&loading.0) {
            assert!(trace.history.iter().any(|states| states.get(&key) == Some(&state)));
        }
    }
    assert!(damaged > 0);
}

#[test]
fn a_journal_of_another_seed_is_refused() {
    let disk = Arc::new(TestDisk::default());
    run(&disk, &mut 1);
    let error = read(&*disk, Some(SEED.fingerprint() + 1), &mut Loading(store())).unwrap_err();
    let expected = "was written with another seed: its keys cannot be told; restore the seed of this journal, or remove \
                    *.fgj and *.fgj.part to begin with empty counters";
    assert!(error.to_string().ends_with(expected), "{error}");
}
