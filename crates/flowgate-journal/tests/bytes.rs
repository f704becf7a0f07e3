//! Any bytes as a journal: reading them never fails by a panic, and a store that has read them answers within its
//! bounds. The fuzz target `journal` does the same with inputs that coverage guides.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use flowgate::durable::{LoadAt, Record, VisitCursor};
use flowgate::{Ask, MemoryConfig, MemoryStore, Op, Seed, Span, Time};
use flowgate_journal::{FileDisk, ReadReport, Sink, inspect, read};
use flowgate_testkit::files::repository;
use proptest::prelude::*;

const MAX_BYTES: usize = 1 << 20;
const SEED: Seed = Seed([0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
const BLOCK_BYTES: usize = 4 << 10;
const HEADER_BYTES: usize = 48;

/// The counters of the golden journal.
const LIMITS: [&str; 6] = [
    "bucket 30/1h burst=15",
    "fixed 100/1h",
    "fixed 2/1h after=5/day tz=UTC",
    "sliding 50/1h",
    "sliding 5000/2h",
    "approx 1000/1h",
];

struct Loading(MemoryStore);

impl Sink for Loading {
    fn record(&mut self, record: Record<'_>, since: Time) {
        self.0.load(record, LoadAt { now: since, back: Span::ZERO });
    }
}

/// Reads a file as a journal, and uses the store.
fn read_file(bytes: &[u8]) -> ReadReport {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("00000001.fgj"), bytes).unwrap();
    let memory = MemoryStore::new(MemoryConfig { max_bytes: MAX_BYTES, seed: SEED, ..MemoryConfig::default() });
    let mut loading = Loading(memory);
    let report = read(&FileDisk::new(directory.path()), None, &mut loading).unwrap();
    assert!(report.bytes <= bytes.len() as u64 && report.torn_bytes <= bytes.len() as u64, "{report:?}");
    use_store(&loading.0);
    check_inspection(directory.path(), &report);
    report
}

fn use_store(memory: &MemoryStore) {
    assert!(memory.stats().bytes <= MAX_BYTES, "{:?}", memory.stats());
    for second in [1_700_000_006, 1_700_003_700, 1_800_000_000] {
        let now = Time::from_secs(second);
        for text in LIMITS {
            let (limit, key) =
                (text.parse().unwrap(), memory.subject(b"anna").counter(memory.counter(text.as_bytes())));
            for op in [Op::Peek, Op::Take, Op::Refund, Op::Record] {
                let decision = memory.apply_one(Ask::new(op, 1, now), key, &limit);
                assert!(decision.remaining <= decision.limit, "{text}: {decision:?}");
            }
        }
        let (mut cursor, mut out) = (VisitCursor::default(), Vec::new());
        while memory.changed(&mut cursor, &mut out) {}
        memory.sweep(now);
    }
    assert!(memory.stats().bytes <= MAX_BYTES, "{:?}", memory.stats());
}

fn check_inspection(directory: &Path, report: &ReadReport) {
    let inspection = inspect(directory).unwrap();
    assert_eq!(&inspection.report, report);
    assert!(inspection.states.values().sum::<u64>() + inspection.unknown + inspection.foreign <= report.records);
}

fn golden() -> Vec<u8> {
    fs::read(repository("testdata/journal/00000001.fgj")).unwrap()
}

/// Puts the right check into each block of a file whose blocks have 4 KiB, as if it had been written so.
fn with_checks(mut file: Vec<u8>) -> Vec<u8> {
    for block in file.chunks_exact_mut(BLOCK_BYTES) {
        let length = u32::from_le_bytes(block[40..44].try_into().unwrap()) as usize;
        if let Some(checked) = block.get(8..HEADER_BYTES + length) {
            let check = crc32fast::hash(checked);
            block[4..8].copy_from_slice(&check.to_le_bytes());
        }
    }
    file
}

/// A block with these records.
fn block(records: &[u8]) -> Vec<u8> {
    let mut block = golden()[..HEADER_BYTES].to_vec();
    block[40..44].copy_from_slice(&(records.len() as u32).to_le_bytes());
    block.extend_from_slice(records);
    block.resize(BLOCK_BYTES, 0);
    with_checks(block)
}

#[test]
fn checks_that_are_written_anew_are_those_that_were_there() {
    assert!(with_checks(golden()) == golden());
    let report = read_file(&golden());
    assert_eq!(read_file(&block(&golden()[HEADER_BYTES..HEADER_BYTES + 64])).records, 2);
    assert!(report.records > 10 && report.damaged == 0, "{report:?}");
}

#[test]
fn zeros_behind_the_blocks_are_the_end_and_zeros_between_them_are_damage() {
    let (whole, page) = (read_file(&golden()), vec![0; BLOCK_BYTES]);
    assert_eq!(read_file(&[golden(), page.repeat(3), vec![0; 7]].concat()), whole);
    let between = [&golden()[..BLOCK_BYTES], &page, &golden()[BLOCK_BYTES..]].concat();
    assert_eq!(read_file(&between), ReadReport { damaged: 1, ..whole.clone() });
    let in_place_of_one = [&golden()[..BLOCK_BYTES], &page, &golden()[2 * BLOCK_BYTES..]].concat();
    assert_eq!(read_file(&in_place_of_one).damaged, 1);
    let torn = read_file(&[golden(), page.repeat(2), vec![7; 9]].concat());
    assert_eq!(torn, ReadReport { torn_bytes: 9, ..whole });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_bytes_are_no_records(bytes in prop::collection::vec(any::<u8>(), 0..20_000)) {
        prop_assert_eq!(read_file(&bytes).records, 0);
    }

    #[test]
    fn changed_bytes_lose_records_and_add_none(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        kept in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let (mut bytes, records) = (golden(), read_file(&golden()).records);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(kept.index(bytes.len()));
        }
        prop_assert!(read_file(&bytes).records <= records);
    }

    /// The checksums are right and the records are not: another writer had a defect, or a person made the file.
    #[test]
    fn changed_records_of_whole_blocks_are_no_danger(
        changes in prop::collection::vec((0_usize..3, 0_usize..1024, any::<u8>()), 1..12),
    ) {
        let mut bytes = golden();
        for (number, at, byte) in changes {
            let block = &mut bytes[number * BLOCK_BYTES..][..BLOCK_BYTES];
            block[HEADER_BYTES + at] = byte;
        }
        prop_assert_eq!(read_file(&with_checks(bytes)).blocks, 3);
    }

    #[test]
    fn any_records_of_a_whole_block_are_no_danger(
        records in prop::collection::vec(any::<u8>(), 0..BLOCK_BYTES - HEADER_BYTES),
    ) {
        prop_assert_eq!(read_file(&block(&records)).blocks, 1);
    }
}
