//! Reading: the newest generation with a finished base and all after it.
//!
//! Rule       Only the records of whole blocks are read. Behind damage, reading goes on at the next block that is whole.
//! Rule       A block tells how many blocks before it were synced. What is not whole and was not synced, as far as the blocks tell, is
//!            a torn end: it was being written when the process or the machine died, and the disk writes in any order. What is not
//!            whole and was synced is damage, and so is all that is not whole before a block that does not tell.
//! Rule       Zeros at the end were written ahead of blocks: they are neither.
//! Rule       The times of a generation are never before those of the generations before it, unless the clock was put back and all
//!            states with it. Until the base of such a generation is finished, older ones hold all that it holds: it is skipped.
//! Bound      Reading holds 1 MiB of a file at a time.

use std::collections::VecDeque;
use std::io::{self, Read};

use flowgate::Time;
use flowgate::durable::{Record, Records};

use crate::block::{ALIGNMENT, Header, MAX_BLOCK_BYTES};
use crate::disk::Disk;

const FINISHED: &str = ".fgj";
const UNFINISHED: &str = ".fgj.part";

/// A record is prefetched this many records before it is read. A processor has about a dozen requests to memory under way at
/// most, and a record needs three.
const RECORDS_AHEAD: usize = 6;

/// Receives the records that are read.
pub trait Sink {
    /// A record. `since` is a time before the changes of this record and of all later ones, and after those of most
    /// earlier ones.
    fn record(&mut self, record: Record<'_>, since: Time);

    /// A record that comes soon, so that what it needs can be fetched into the cache meanwhile.
    fn comes_soon(&self, record: Record<'_>) {
        let _ = record;
    }

    /// `read` of `of` bytes are read: for a report of the progress.
    fn progress(&mut self, read: u64, of: u64) {
        let _ = (read, of);
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The generations that were read.
    pub generations: Vec<u64>,
    /// The newest generation that has a file, 0 if there is none. A new one begins behind it.
    pub newest: u64,
    /// Whole blocks.
    pub blocks: u64,
    /// Their records.
    pub records: u64,
    /// The bytes of all files that were read.
    pub bytes: u64,
    /// Stretches of damage: blocks that were synced and are not whole.
    pub damaged: u64,
    /// The bytes of blocks that are not whole and were not synced, without pages of zeros behind the last whole block.
    pub torn_bytes: u64,
    /// The latest time that a block tells: when the flush began that wrote it.
    pub written_at: Option<Time>,
    /// Whether the process that wrote the newest generation stopped in order.
    pub stopped: bool,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The disk fails.
    #[error("cannot read {name}")]
    Disk {
        /// The file, or what else was read.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// A file was written under another seed.
    #[error(
        "{name} was written with another seed: its keys cannot be told; restore the seed of this journal, or remove *.fgj and *.fgj.part to begin with empty counters"
    )]
    OtherSeed {
        /// The file.
        name: String,
    },
}

/// The name of a generation's file.
pub(crate) fn file_name(generation: u64, is_finished: bool) -> String {
    format!("{generation:08}{}", if is_finished { FINISHED } else { UNFINISHED })
}

/// The generation of a file, and whether its base is finished.
pub(crate) fn generation_of(name: &str) -> Option<(u64, bool)> {
    let (number, is_finished) = match name.strip_suffix(UNFINISHED) {
        Some(number) => (number, false),
        None => (name.strip_suffix(FINISHED)?, true),
    };
    let generation = number.parse().ok()?;
    (file_name(generation, is_finished) == name).then_some((generation, is_finished))
}

/// The generations on a disk, oldest first, and whether their bases are finished.
pub(crate) fn generations(disk: &impl Disk) -> Result<Vec<(u64, bool)>, ReadError> {
    let names = disk.list().map_err(|source| ReadError::Disk { name: "the directory".to_owned(), source })?;
    let mut generations: Vec<(u64, bool)> = names.iter().filter_map(|name| generation_of(name)).collect();
    generations.sort_unstable();
    Ok(generations)
}

/// Reads all that counts into `sink`.
///
/// # Errors
/// When a file cannot be read, or was written under a seed with another fingerprint. Damage is no error.
pub fn read(disk: &impl Disk, fingerprint: Option<u64>, sink: &mut impl Sink) -> Result<ReadReport, ReadError> {
    let generations = generations(disk)?;
    let first = generations.iter().rposition(|(_, is_finished)| *is_finished).unwrap_or(0);
    let mut report =
        ReadReport { newest: generations.last().map_or(0, |(newest, _)| *newest), ..ReadReport::default() };
    let names: Vec<(u64, String)> =
        generations[first..].iter().map(|&(number, is_finished)| (number, file_name(number, is_finished))).collect();
    let failed = |name: &str| {
        let name = name.to_owned();
        move |source| ReadError::Disk { name, source }
    };
    let mut total = 0;
    for (_, name) in &names {
        total += disk.length(name).map_err(failed(name))?;
    }
    let mut since = Time::from_nanos(0);
    for (generation, name) in &names {
        let file = disk.open(name).map_err(failed(name))?;
        let mut blocks = Blocks { file, buffer: Vec::new(), start: 0, is_over: false };
        report.generations.push(*generation);
        report.stopped = false;
        let (mut gaps, mut next_sequence, before) = (Gaps::default(), 0, report.written_at);
        loop {
            blocks.fill().map_err(failed(name))?;
            let bytes = blocks.bytes();
            if bytes.is_empty() {
                break;
            }
            let found = Header::read(bytes).and_then(|header| Some((header, header.records(bytes)?)));
            let Some((header, records)) = found else {
                gaps.skip(&bytes[..bytes.len().min(ALIGNMENT)]);
                blocks.skip(ALIGNMENT);
                continue;
            };
            if fingerprint.is_some_and(|expected| expected != header.fingerprint) {
                return Err(ReadError::OtherSeed { name: name.clone() });
            }
            if header.generation != *generation || header.sequence < next_sequence {
                // Undamaged, but in the wrong place: a copy, or a mistake of the file system.
                gaps.skip(&bytes[..bytes.len().min(ALIGNMENT)]);
                blocks.skip(ALIGNMENT);
                continue;
            }
            report.damaged += gaps.end_at(&header, next_sequence);
            next_sequence = header.sequence + 1;
            let has_moved_back = before.is_some_and(|before| header.written_at < before);
            // The records of this visit tell of changes since the visit before it.
            let last = report.written_at.unwrap_or_default();
            if header.written_at > last {
                since = last;
                report.written_at = Some(header.written_at);
            }
            let records = Records::new(if has_moved_back { &[] } else { records });
            let mut soon = records.clone();
            soon.by_ref().take(RECORDS_AHEAD).for_each(|record| sink.comes_soon(record));
            for record in records {
                if let Some(record) = soon.next() {
                    sink.comes_soon(record);
                }
                report.records += 1;
                sink.record(record, since);
            }
            report.blocks += 1;
            report.stopped = header.stopped;
            let length = header.padded();
            report.bytes += length.min(bytes.len()) as u64;
            blocks.skip(length);
            sink.progress(report.bytes, total);
        }
        report.torn_bytes += gaps.torn_bytes();
    }
    Ok(report)
}

/// The stretches of a file that are not whole, until it is known whether they were synced.
#[derive(Default)]
struct Gaps {
    /// Each stretch of which it is not known yet whether it was synced: the sequence of its first missing block, and its bytes.
    unsure: VecDeque<(u64, u64)>,
    /// The bytes behind the last whole block, and those of them that are not pages of zeros.
    bytes: u64,
    bytes_written: u64,
}

impl Gaps {
    /// Adds a page that is not of a whole block.
    fn skip(&mut self, page: &[u8]) {
        self.bytes += page.len() as u64;
        if page.iter().any(|byte| *byte != 0) {
            self.bytes_written += page.len() as u64;
        }
    }

    /// A whole block follows, where a block of the sequence `expected` would follow the last whole one. Gives the number of stretches of
    /// which it is known now that they are damage.
    fn end_at(&mut self, header: &Header, expected: u64) -> u64 {
        let (bytes, synced) = (std::mem::take(&mut self.bytes), header.synced.unwrap_or(header.sequence));
        self.bytes_written = 0;
        let mut damaged = 0;
        if header.sequence != expected && bytes > 0 {
            self.unsure.push_back((expected, bytes));
        } else if header.sequence != expected || bytes > 0 {
            // No write that was interrupted adds bytes, or takes them away.
            damaged += 1;
        }
        while self.unsure.pop_front_if(|(first, _)| *first < synced).is_some() {
            damaged += 1;
        }
        damaged
    }

    /// The bytes of the stretches that no block proves to have been synced, and what was written behind the last whole block.
    fn torn_bytes(&self) -> u64 {
        self.bytes_written + self.unsure.iter().map(|(_, bytes)| bytes).sum::<u64>()
    }
}

/// Reads a file block by block, with at least one block of it in memory.
struct Blocks {
    file: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    is_over: bool,
}

impl Blocks {
    /// The bytes that are read and not skipped: at least as many as the longest block has, unless the file ends.
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads until a whole block is there.
    fn fill(&mut self) -> io::Result<()> {
        if self.is_over || self.bytes().len() >= MAX_BLOCK_BYTES {
            return Ok(());
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        let missing = 16 * MAX_BLOCK_BYTES - self.buffer.len();
        let read = (&mut self.file).take(missing as u64).read_to_end(&mut self.buffer)?;
        self.is_over = read < missing;
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.buffer.len());
    }
}
