//! What a journal holds, without its keys.

use std::collections::BTreeMap;
use std::path::Path;

use flowgate::durable::{LoadAt, LoadOutcome, Record, Records, VisitCursor};
use flowgate::{MemoryConfig, MemoryStore, Seed, Span, Time};

use crate::directory::{DirectoryError, find_seed};
use crate::disk::{Disk, FileDisk};
use crate::reader::{ReadError, ReadReport, Sink, generation_of, generations, read};

/// What a journal holds.
#[derive(Debug, Default)]
pub struct Inspection {
    /// The journal's files with their sizes in bytes, oldest first.
    pub files: Vec<(String, u64)>,
    /// What was read.
    pub report: ReadReport,
    /// The states that would be loaded, counted by kind.
    pub states: BTreeMap<&'static str, u64>,
    /// The number of records that are not of counters, such as those of bans.
    pub foreign: u64,
    /// The number of records of kinds that this version does not know.
    pub unknown: u64,
    /// Why a server would refuse to start with this directory. Damage alone is not a reason.
    pub refusal: Option<Refusal>,
}

/// Why a server refuses to start with a directory.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum Refusal {
    /// The seed is missing or damaged, or cannot be read.
    Seed(#[from] DirectoryError),
    /// The journal was written with another seed.
    Journal(#[from] ReadError),
}

/// Reads the journal of a directory. Changes nothing and needs no lock. A missing seed, or one that the journal was not
/// written with, does not stop the reading: [`Inspection::refusal`] then says why a server would not start.
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
    // A counter takes little more memory than its record takes in the journal.
    let max_bytes = usize::try_from(bytes.saturating_mul(4)).unwrap_or(usize::MAX).max(64 << 20);
    let count = |fingerprint| {
        let memory = MemoryStore::new(MemoryConfig { max_bytes, ..MemoryConfig::default() });
        let mut counting = Counting { memory, foreign: 0, unknown: 0 };
        Ok((read(&disk, fingerprint, &mut counting)?, counting))
    };
    let (seed, mut refusal) = match find_seed(directory) {
        Ok(seed) => (seed, None),
        Err(error) => (None, Some(Refusal::from(error))),
    };
    let (report, counting) = match count(seed.map(Seed::fingerprint)) {
        Err(error @ ReadError::OtherSeed { .. }) => {
            refusal = Some(error.into());
            count(None)?
        }
        other => other?,
    };
    let Counting { memory, foreign, unknown } = counting;
    let (mut states, mut cursor, mut out) = (BTreeMap::new(), VisitCursor::default(), Vec::new());
    while memory.all(&mut cursor, &mut out) {
        Records::new(&out)
            .filter_map(|record| record.describe())
            .for_each(|name| *states.entry(name).or_default() += 1);
        out.clear();
    }
    Ok(Inspection { files, report, states, foreign, unknown, refusal })
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
