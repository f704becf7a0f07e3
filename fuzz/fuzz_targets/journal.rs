//! Whatever a file of the journal holds: it is read without a panic, and the store stays within its budget. The same bytes
//! are also read as the records of a block, behind the check.

#![no_main]

use std::io::{self, Read};

use flowgate::durable::{LoadAt, Record, Records, VisitCursor};
use flowgate::{MemoryConfig, MemoryStore, Seed, Span, Time};
use flowgate_journal::{Disk, Sink, read};
use libfuzzer_sys::fuzz_target;

const MAX_BYTES: usize = 1 << 20;

/// A directory with one file, which can only be read.
struct OneFile(Vec<u8>);

impl Disk for OneFile {
    type File = ();

    fn create(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn append(&self, (): &(), _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self, (): &()) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(vec!["00000001.fgj".to_owned()])
    }

    fn open(&self, _: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(io::Cursor::new(self.0.clone())))
    }

    fn length(&self, _: &str) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

struct Loading(MemoryStore);

impl Sink for Loading {
    fn record(&mut self, record: Record<'_>, since: Time) {
        record.describe();
        self.0.load(record, LoadAt { now: since, back: Span::ZERO });
    }

    fn progress(&mut self, read: u64, _: u64) {
        // Now too many, now too few.
        self.0.expect(read as usize % 8_191);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let store =
        || MemoryStore::new(MemoryConfig { max_bytes: MAX_BYTES, seed: Seed([1, 2]), ..MemoryConfig::default() });
    let mut loading = Loading(store());
    if let Ok(report) = read(&OneFile(bytes.to_vec()), None, &mut loading) {
        assert!(report.bytes <= bytes.len() as u64 && report.torn_bytes <= bytes.len() as u64);
    }
    check(&loading.0);
    let mut loading = Loading(store());
    loading.progress(bytes.len() as u64, 0);
    Records::new(bytes).for_each(|record| loading.record(record, Time::from_secs(1_700_000_000)));
    check(&loading.0);
});

/// The store stays within its budget, and what it holds can be written and forgotten.
fn check(memory: &MemoryStore) {
    assert!(memory.stats().bytes <= MAX_BYTES);
    let (mut cursor, mut out) = (VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut out) {}
    assert!(Records::new(&out).all(|record| record.describe().is_some()));
    memory.finish_load(Time::from_nanos(0));
    assert!(memory.stats().bytes <= MAX_BYTES);
    memory.sweep(Time::from_nanos(u64::MAX));
    assert_eq!(memory.stats().counters, 0);
}
