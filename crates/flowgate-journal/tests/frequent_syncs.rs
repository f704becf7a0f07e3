//! A journal for answers that wait for syncs: its files have zeros after the last block, and the reader treats them as
//! the end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::sync::Arc;

use flowgate::durable::Record;
use flowgate::{Ask, MemoryConfig, MemoryStore, Op, Seed, Span, Time};
use flowgate_journal::{Disk, FileDisk, NoCompanion, Sink, Writer, inspect, read};

const SEED: Seed = Seed([1, 2]);
const START: Time = Time::from_secs(1_700_000_000);

struct Counting(u64);

impl Sink for Counting {
    fn record(&mut self, _: Record<'_>, _: Time) {
        self.0 += 1;
    }
}

#[test]
fn flushes_overwrite_the_zeros_that_are_ahead() {
    let directory = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, seed: SEED, ..MemoryConfig::default() });
    memory.follow_changes();
    let disk = Arc::new(FileDisk::new(directory.path()).for_frequent_syncs());
    let mut writer = Writer::new(Arc::clone(&disk), SEED.fingerprint(), START).unwrap();
    writer.begin().unwrap();
    assert!(writer.write_base(&memory, &mut NoCompanion, 1 << 20).unwrap());
    let (counter, limit) = (memory.counter(b"c"), "fixed 5/1h".parse().unwrap());
    let (mut lengths, mut written) = (Vec::new(), Vec::new());
    for number in 0..300_u64 {
        let key = memory.subject(&number.to_le_bytes()).counter(counter);
        let now = START + Span::from_secs(number);
        assert!(memory.apply_one(Ask::new(Op::Take, 1, now), key, &limit).allowed());
        writer.flush(&memory, &mut NoCompanion, now).unwrap();
        disk.sync(&writer.file().unwrap()).unwrap();
        lengths.push(disk.length("00000001.fgj").unwrap());
        if number.is_multiple_of(32) {
            // A copy of the files, as a process that is killed now leaves them.
            written.push((number + 1, fs::read(directory.path().join("00000001.fgj")).unwrap()));
        }
    }
    assert!(lengths.iter().zip(1..).all(|(length, flushes)| *length >= 4096 * flushes), "{lengths:?}");
    lengths.dedup();
    assert!(lengths.len() <= 4, "300 flushes of 4 KiB changed the length {} times", lengths.len());
    for (flushes, bytes) in written {
        fs::write(directory.path().join("00000001.fgj"), bytes).unwrap();
        let mut counting = Counting(0);
        let report = read(&FileDisk::new(directory.path()), Some(SEED.fingerprint()), &mut counting).unwrap();
        assert_eq!((report.damaged, report.torn_bytes, report.blocks, counting.0), (0, 0, flushes, flushes));
    }
    assert_eq!(inspect(directory.path()).unwrap().report.torn_bytes, 0);
}

#[test]
fn zeros_lie_within_what_is_allocated_and_behind_short_writes() {
    const ALLOCATED: u64 = 16 << 20;
    const SHORT: usize = 64 << 10;
    let directory = tempfile::tempdir().unwrap();
    let disk = FileDisk::new(directory.path()).for_frequent_syncs();
    let append = |file: &_, length: usize| {
        disk.append(file, &vec![7; length]).unwrap();
        disk.length("a").unwrap()
    };
    let file = disk.create("a").unwrap();
    for written in (SHORT as u64..=ALLOCATED).step_by(SHORT) {
        let length = append(&file, SHORT);
        assert!((written..=ALLOCATED).contains(&length), "{written} bytes written, a length of {length}");
    }
    assert_eq!(append(&file, 4096), ALLOCATED + 4096 + (512 << 10));
    let file = disk.create("a").unwrap();
    assert_eq!(append(&file, 2 * SHORT), 2 * SHORT as u64, "a part of a base");
    assert_eq!(append(&file, 4096), 2 * SHORT as u64 + 4096 + (512 << 10));
}
