//! Reading: the newest generation with a finished base, and all generations after it.
//!
//! Rule       Only the records of whole blocks are read. After damage, reading goes on at the next whole block.
//! Rule       A block says how many blocks before it were synced. A block that is not whole and was not synced is a
//!            torn end: it was being written when the process or the machine died, and the disk writes in any order. A
//!            block that is not whole and was synced is damage. Before a block that does not say what was synced, every
//!            block that is not whole is damage.
//! Rule       Zeros at the end of a file were written ahead of blocks: they are neither damage nor a torn end.
//! Rule       The times of a generation are never before those of earlier generations, unless the clock was put back
//!            and all states were moved back with it. Such a generation is skipped until its base is finished, because
//!            the older generations hold everything that it holds.
//! Bound      Reading holds 1 MiB of a file at a time.

use std::collections::VecDeque;
use std::io::{self, Read};

use flowgate::Time;
use flowgate::durable::{Record, Records};

use crate::block::{ALIGNMENT, Header, MAX_BLOCK_BYTES};
use crate::disk::Disk;

const FINISHED: &str = ".fgj";
const UNFINISHED: &str = ".fgj.part";

/// A record is prefetched this many records before it is read. A processor has at most about a dozen memory requests
/// under way, and a record needs three.
const RECORDS_AHEAD: usize = 6;

/// Receives the records that are read.
pub trait Sink {
    /// Takes a record. `since` is a time before the changes of this record and of all later records, and after the
    /// changes of most earlier records.
    fn record(&mut self, record: Record<'_>, since: Time);

    /// Announces a record that follows soon, so that the sink can prefetch the memory that the record needs.
    fn comes_soon(&self, record: Record<'_>) {
        let _ = record;
    }

    /// Reports the progress: `read` of `of` bytes are read.
    fn progress(&mut self, read: u64, of: u64) {
        let _ = (read, of);
    }
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// The generations that were read.
    pub generations: Vec<u64>,
    /// The newest generation that has a file, 0 if there is none. The next generation has the number after it.
    pub newest: u64,
    /// The number of whole blocks.
    pub blocks: u64,
    /// The number of records in whole blocks.
    pub records: u64,
    /// The bytes of all files that were read.
    pub bytes: u64,
    /// The number of damaged stretches: runs of blocks that were synced and are not whole.
    pub damaged: u64,
    /// The bytes of blocks that are not whole and were not synced. Pages of zeros after the last whole block do not
    /// count.
    pub torn_bytes: u64,
    /// The latest `written_at` of all blocks: the start of a flush.
    pub written_at: Option<Time>,
    /// Whether the process that wrote the newest generation stopped cleanly.
    pub stopped: bool,
}

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The disk fails.
    #[error("cannot read {name}")]
    Disk {
        /// The file, or the directory, that was read.
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

/// Passes every record that counts to `sink`.
///
/// # Errors
/// When a file cannot be read, or was written under a seed with another fingerprint. Damage is reported, not returned
/// as an error.
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
                // The block is undamaged but in the wrong place: it is a copy, or the file system has made a mistake.
                gaps.skip(&bytes[..bytes.len().min(ALIGNMENT)]);
                blocks.skip(ALIGNMENT);
                continue;
            }
            report.damaged += gaps.end_at(&header, next_sequence);
            next_sequence = header.sequence + 1;
            let has_moved_back = before.is_some_and(|before| header.written_at < before);
            // The records of this visit hold the changes since the visit before it.
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

/// The stretches of a file that are not whole, kept until a later block says whether they were synced.
#[derive(Default)]
struct Gaps {
    /// The stretches that may or may not have been synced. Each has the sequence of its first missing block and its
    /// length in bytes.
    unsure: VecDeque<(u64, u64)>,
    /// The number of bytes after the last whole block. `bytes_written` leaves out pages of zeros.
    bytes: u64,
    bytes_written: u64,
}

impl Gaps {
    /// Adds a page that is not part of a whole block.
    fn skip(&mut self, page: &[u8]) {
        self.bytes += page.len() as u64;
        if page.iter().any(|byte| *byte != 0) {
            self.bytes_written += page.len() as u64;
        }
    }

    /// Called for the next whole block. After the block before it, one with the sequence `expected` was due. Returns
    /// the number of stretches that this block proves to be damage.
    fn end_at(&mut self, header: &Header, expected: u64) -> u64 {
        let (bytes, synced) = (std::mem::take(&mut self.bytes), header.synced.unwrap_or(header.sequence));
        self.bytes_written = 0;
        let mut damaged = 0;
        if header.sequence != expected && bytes > 0 {
            self.unsure.push_back((expected, bytes));
        } else if header.sequence != expected || bytes > 0 {
            // An interrupted write neither adds nor removes bytes, so this is damage.
            damaged += 1;
        }
        while self.unsure.pop_front_if(|(first, _)| *first < synced).is_some() {
            damaged += 1;
        }
        damaged
    }

    /// The bytes of all stretches that no block proves to have been synced, including what was written after the last
    /// whole block.
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
    /// The bytes that were read and not skipped. They hold at least the longest block, unless the file ends.
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads on if fewer bytes than the longest block has are in memory.
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
