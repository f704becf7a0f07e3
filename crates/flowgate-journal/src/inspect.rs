//! What a journal holds, without its keys.

use std::collections::BTreeMap;
use std::path::Path;

use flowgate::{LoadAt, LoadOutcome, MemoryConfig, MemoryStore, Record, Records, Span, Time, VisitCursor};

use crate::disk::{Disk, FileDisk};
use crate::reader::{ReadError, ReadReport, Sink, generation_of, generations, read};

/// What a journal holds.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The journal's files with their sizes in bytes, oldest first.
    pub files: Vec<(String, u64)>,
    /// What was read.
    pub report: ReadReport,
    /// The states that would be loaded, by what they are.
    pub states: BTreeMap<&'static str, u64>,
    /// Records beside those of counters.
    pub foreign: u64,
    /// Records of kinds that this version does not know.
    pub unknown: u64,
}

/// Looks into the journal of a directory. Changes nothing, and needs neither lock nor seed.
///
/// # Errors
/// When a file cannot be read.
pub fn inspect(directory: &Path) -> Result<Inspection, ReadError> {
    let disk = FileDisk::new(directory);
    let mut files = Vec::new();
    for (generation, is_finished) in generations(&disk)? {
        let name = crate::reader::file_name(generation, is_finished);
        let length = disk.length(&name).map_err(|source| ReadError::Disk { name: name.clone(), source })?;
        debug_assert!(generation_of(&name).is_some());
        files.push((name, length));
    }
    let bytes: u64 = files.iter().map(|(_, length)| length).sum();
    // A table holds a record in little more than its bytes.
    let max_bytes = usize::try_from(bytes.saturating_mul(4)).unwrap_or(usize::MAX).max(64 << 20);
    let mut counting = Counting {
        memory: MemoryStore::new(MemoryConfig { max_bytes, ..MemoryConfig::default() }),
        foreign: 0,
        unknown: 0,
    };
    let report = read(&disk, None, &mut counting)?;
    let Counting { memory, foreign, unknown } = counting;
    let (mut states, mut cursor, mut out) = (BTreeMap::new(), VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut out) {
        Records::new(&out)
            .filter_map(|record| record.describe())
            .for_each(|name| *states.entry(name).or_default() += 1);
        out.clear();
    }
    Ok(Inspection { files, report, states, foreign, unknown })
}

struct Counting {
    memory: MemoryStore,
    foreign: u64,
    unknown: u64,
}

impl Sink for Counting {
    fn record(&mut self, record: Record<'_>, since: Time) {
        if record.foreign().is_some() {
            self.foreign += 1;
        } else if self.memory.load(record, LoadAt { now: since, back: Span::ZERO }) == LoadOutcome::Unknown {
            self.unknown += 1;
        }
    }
}
