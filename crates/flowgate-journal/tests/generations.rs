//! When a new generation is due.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{self, Read};
use std::sync::Arc;

use flowgate::durable::{LoadAt, LoadOutcome, Record, Records, VisitCursor};
use flowgate::{Ask, MemoryConfig, MemoryStore, Op, Seed, Span, Time};
use flowgate_journal::{Disk, FileDisk, NoCompanion, Sink, Writer, read};

const START: Time = Time::from_secs(1_700_000_000);

/// A disk that forgets all that is written.
struct NullDisk;

impl Disk for NullDisk {
    type File = ();

    fn create(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn append(&self, (): &(), _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, (): &()) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(io::empty()))
    }

    fn length(&self, _: &str) -> io::Result<u64> {
        Ok(0)
    }
}

/// A store of `number` logs of a thousand entries each, 16 kB a log.
fn long_logs(number: u64) -> MemoryStore {
    let config = MemoryConfig { max_bytes: 1 << 30, seed: Seed([1, 2]), ..MemoryConfig::default() };
    let (one, all) = (MemoryStore::new(config), MemoryStore::new(config));
    let (key, limit) = (one.subject(b"s").counter(one.counter(b"c")), "1000/1h".parse().unwrap());
    for second in 0..1_000 {
        one.apply_same(Ask::new(Op::Take, 1, START + Span::from_secs(second)), key, &limit).unwrap();
    }
    let (mut cursor, mut record) = (VisitCursor::default(), Vec::new());
    while one.all(&mut cursor, &mut record) {}
    for number in 0..number {
        // The place of the key's home in a record: after the head, the kind and the mark.
        record[10..16].copy_from_slice(&(number << 32 | number).to_le_bytes()[..6]);
        let loaded = all.load(Records::new(&record).next().unwrap(), LoadAt { now: START, back: Span::ZERO });
        assert_eq!(loaded, LoadOutcome::Kept);
    }
    assert_eq!(all.stats().counters as u64, number);
    all
}

#[test]
fn a_base_of_long_logs_is_not_written_again_at_once() {
    let memory = long_logs(5_000);
    let mut writer = Writer::new(Arc::new(NullDisk), 1, START).unwrap();
    writer.begin().unwrap();
    while !writer.write_base(&memory, &mut NoCompanion, 16 << 20).unwrap() {}
    assert!(writer.file_bytes() > 64 << 20, "{} bytes", writer.file_bytes());
    writer.flush(&memory, &mut NoCompanion, START).unwrap();
    assert!(!writer.needs_generation(&memory), "after {} bytes", writer.file_bytes());
}

#[test]
fn no_generation_is_due_while_there_is_no_file() {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, ..MemoryConfig::default() });
    memory.follow_changes();
    let mut writer = Writer::new(Arc::new(NullDisk), 1, START).unwrap();
    writer.begin().unwrap();
    while !writer.write_base(&memory, &mut NoCompanion, 16 << 20).unwrap() {}
    let (counter, limit) = (memory.counter(b"c"), "1/1h".parse().unwrap());
    // More counters vanish than all shards can list.
    for number in 0..200_000_u32 {
        let key = memory.subject(&number.to_le_bytes()).counter(counter);
        memory.apply_same(Ask::new(Op::Take, 1, START), key, &limit).unwrap();
        memory.reset(key);
    }
    writer.flush(&memory, &mut NoCompanion, START).unwrap();
    assert!(writer.needs_generation(&memory), "all states must be written anew");
    writer.give_up();
    assert!(!writer.needs_generation(&memory), "the next generation begins with the recovery");
}

struct Counting(u64);

impl Sink for Counting {
    fn record(&mut self, _: Record<'_>, _: Time) {
        self.0 += 1;
    }
}

/// The states of this generation were moved back with the clock. Read together with older generations, they would be
/// moved back again.
#[test]
fn a_base_that_is_not_finished_and_older_than_what_is_before_it_is_not_read() {
    const COUNTERS: u64 = 20_000;
    let directory = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 64 << 20, ..MemoryConfig::default() });
    let (counter, limit) = (memory.counter(b"c"), "1/1h".parse().unwrap());
    for number in 0..COUNTERS {
        let key = memory.subject(&number.to_le_bytes()).counter(counter);
        memory.apply_same(Ask::new(Op::Take, 1, START), key, &limit).unwrap();
    }
    let writer = |now| {
        let mut writer = Writer::new(Arc::new(FileDisk::new(directory.path())), 1, now).unwrap();
        writer.begin().unwrap();
        writer
    };
    assert!(writer(START).write_base(&memory, &mut NoCompanion, u64::MAX >> 1).unwrap());
    let unfinished = |now| assert!(!writer(now).write_base(&memory, &mut NoCompanion, 300_000).unwrap());
    let read_all = || {
        let mut counting = Counting(0);
        let report = read(&FileDisk::new(directory.path()), Some(1), &mut counting).unwrap();
        assert_eq!((report.damaged, report.written_at), (0, Some(START)));
        counting.0
    };
    unfinished(Time::from_secs(1_600_000_000));
    assert_eq!(read_all(), COUNTERS);
    unfinished(START);
    assert!(read_all() > COUNTERS, "a base that goes on where the one before it ended is read");
}
