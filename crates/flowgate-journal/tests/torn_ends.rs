//! What is a torn end and what is damage: blocks of a flush that was not synced may be missing in any order, blocks that were synced may
//! not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use flowgate::durable::Record;
use flowgate::{Ask, MemoryConfig, MemoryStore, Op, Seed, Span, Time};
use flowgate_journal::{FileDisk, NoCompanion, ReadReport, Sink, Writer, read};
use tempfile::TempDir;

const SEED: Seed = Seed([1, 2]);
const START: Time = Time::from_secs(1_700_000_000);

struct Counting(u64);

impl Sink for Counting {
    fn record(&mut self, _: Record<'_>, _: Time) {
        self.0 += 1;
    }
}

/// A journal with a finished base, and flushes after it.
struct Written {
    directory: TempDir,
    memory: MemoryStore,
    writer: Writer<FileDisk>,
    flushes: u64,
}

impl Written {
    fn new() -> Written {
        let directory = tempfile::tempdir().unwrap();
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 16 << 20, seed: SEED, ..MemoryConfig::default() });
        memory.follow_changes();
        let disk = Arc::new(FileDisk::new(directory.path()));
        let writer = Writer::new(disk, SEED.fingerprint(), START).unwrap();
        let mut written = Written { directory, memory, writer, flushes: 0 };
        written.take(10);
        written.writer.begin().unwrap();
        assert!(written.writer.write_base(&written.memory, &mut NoCompanion, 1 << 20).unwrap());
        written
    }

    /// Takes a unit from each of `number` new counters.
    fn take(&mut self, counters: u64) {
        self.flushes += 1;
        let (counter, limit) = (self.memory.counter(b"c"), "fixed 5/1h".parse().unwrap());
        for number in 0..counters {
            let key = self.memory.subject(format!("{}:{number}", self.flushes).as_bytes()).counter(counter);
            assert!(self.memory.apply_one(Ask::new(Op::Take, 1, self.now()), key, &limit).allowed());
        }
    }

    fn flush(&mut self, counters: u64) {
        self.take(counters);
        let now = self.now();
        self.writer.flush(&self.memory, &mut NoCompanion, now).unwrap();
    }

    fn now(&self) -> Time {
        START + Span::from_secs(self.flushes)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("00000001.fgj")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn read(&self, bytes: &[u8]) -> ReadReport {
        fs::write(self.path(), bytes).unwrap();
        read(&FileDisk::new(self.directory.path()), Some(SEED.fingerprint()), &mut Counting(0)).unwrap()
    }
}

/// Where the blocks of a file are.
fn blocks(file: &[u8]) -> Vec<Range<usize>> {
    let (mut blocks, mut start) = (Vec::new(), 0);
    while file.get(start..start + 4) == Some(b"FGJ1") {
        let length = u32::from_le_bytes(file[start + 40..start + 44].try_into().unwrap()) as usize;
        blocks.push(start..start + (48 + length).next_multiple_of(4096));
        start = blocks.last().unwrap().end;
    }
    blocks
}

/// The file without some blocks, as a disk that did not write them shows them: zeros, or the first page alone.
fn without(file: &[u8], missing: &[&Range<usize>], is_torn: bool) -> Vec<u8> {
    let mut file = file.to_vec();
    for block in missing {
        file[block.start + if is_torn { 4096 } else { 0 }..block.end].fill(0);
    }
    file
}

#[test]
fn any_blocks_of_a_flush_that_was_not_synced_may_be_missing() {
    let mut written = Written::new();
    written.flush(10);
    written.writer.sync().unwrap();
    let synced = blocks(&written.bytes()).len();
    written.flush(12_000);
    let file = written.bytes();
    let all = blocks(&file);
    let flush = &all[synced..];
    assert!((4..=8).contains(&flush.len()), "{} blocks", flush.len());
    for subset in 1..1_usize << flush.len() {
        for is_torn in [false, true] {
            let missing: Vec<_> =
                (0..flush.len()).filter(|index| subset >> index & 1 == 1).map(|index| &flush[index]).collect();
            let report = written.read(&without(&file, &missing, is_torn));
            assert_eq!(report.damaged, 0, "blocks {missing:?} of {flush:?}: {report:?}");
            assert_eq!(report.blocks as usize, all.len() - missing.len(), "all others are read");
            // Zeros after the last whole block may have been written ahead.
            let is_between =
                missing.iter().any(|block| block.end < file.len() && !missing.contains(&&flush[flush.len() - 1]));
            assert!(report.torn_bytes > 0 || !is_torn && !is_between, "{missing:?}: {report:?}");
        }
    }
}

#[test]
fn a_synced_block_that_is_missing_is_damage() {
    let mut written = Written::new();
    for _ in 0..3 {
        written.flush(6_000);
        written.writer.sync().unwrap();
    }
    let now = written.now();
    written.writer.stop(&written.memory, &mut NoCompanion, now).unwrap();
    let file = written.bytes();
    let all = blocks(&file);
    let (last, others) = all.split_last().unwrap();
    assert!(others.len() > 8, "{} blocks", others.len());
    for (block, is_torn) in others.iter().flat_map(|block| [(block, false), (block, block.len() > 4096)]) {
        let report = written.read(&without(&file, &[block], is_torn));
        assert_eq!((report.damaged, report.torn_bytes), (1, 0), "{block:?}: {report:?}");
    }
    assert_eq!(written.read(&without(&file, &[&others[1], &others[3]], false)).damaged, 2);
    assert_eq!(written.read(&without(&file, &[last], false)).damaged, 0);
    let cut_out = [&file[..others[1].start], &file[others[1].end..]].concat();
    assert_eq!(written.read(&cut_out).damaged, 1, "no write takes bytes away");
}

#[test]
fn damage_of_a_base_is_told_even_if_nothing_changed_after_it() {
    let written = Written::new();
    let file = written.bytes();
    let report = written.read(&without(&file, &[&blocks(&file)[0]], false));
    assert_eq!((report.damaged, report.torn_bytes), (1, 0), "{report:?}");
}

/// A copy made while blocks were written over zeros may lack synced blocks. It looks the same as a disk that lost them.
#[test]
fn a_copy_with_zeros_in_place_of_synced_blocks_is_damaged() {
    let mut written = Written::new();
    for _ in 0..8 {
        written.flush(10);
        written.writer.sync().unwrap();
    }
    let file = written.bytes();
    let all = blocks(&file);
    let report = written.read(&without(&file, &[&all[4], &all[5], &all[6]], false));
    assert_eq!((report.damaged, report.blocks as usize), (1, all.len() - 3), "{report:?}");
}
