//! Writing: the changes since the last flush, and the base of a generation between flushes. A state machine without threads.

use std::io;
use std::sync::Arc;

use flowgate::durable::VisitCursor;
use flowgate::{Clock, MemoryStore, Span, Time};

use crate::block::{Header, MAX_RECORD_BYTES};
use crate::disk::Disk;
use crate::reader::{file_name, generation_of};
use crate::sync_turns::SyncTurns;

/// Bytes are handed to the disk when there are this many. To copy a megabyte takes the system as long as a few hundred decisions.
const WRITE_BYTES: usize = 128 << 10;

/// A flush pauses after it has held locks for this long. On a server with one processor a flush adds about one and a half times
/// this to the latency of a request.
const PIECE_TIME: Span = Span::from_micros(30);

/// A new generation begins when a file exceeds twice the live states and this.
const MIN_GENERATION_BYTES: u64 = 64 << 20;

/// The fewest bytes of a counter, for an estimate of the live states. Logs take more: the size of the last base shows how much.
const COUNTER_BYTES: u64 = 25;

/// Writes further records, such as those of bans, beside those of the counters.
pub trait Companion: Send {
    /// Appends the records of what has changed since the last call.
    fn changed(&mut self, out: &mut Vec<u8>);

    /// Appends the records of everything.
    fn all(&mut self, out: &mut Vec<u8>);
}

/// For a journal of counters alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCompanion;

impl Companion for NoCompanion {
    fn changed(&mut self, _: &mut Vec<u8>) {}
    fn all(&mut self, _: &mut Vec<u8>) {}
}

/// Called with the time for which a step of a walk through the counters has held the lock of a shard.
pub type OnLock = Box<dyn Fn(Span) + Send>;

/// Called between the pieces of a flush with the number of shards that are visited and of all. True: write what was visited now.
pub(crate) type Rest<'a> = &'a mut dyn FnMut(usize, usize) -> bool;

/// Writes the journal of a store.
pub struct Writer<D: Disk> {
    disk: Arc<D>,
    fingerprint: u64,
    generation: u64,
    /// `None`: the disk has failed, and the next generation has not begun.
    file: Option<Arc<D::File>>,
    sync_turns: Arc<SyncTurns>,
    /// The files of earlier generations, which go when the base is finished.
    older: Vec<String>,
    sequence: u64,
    /// The base, while it is being written.
    base: Option<VisitCursor>,
    /// Whether the file has the name of a finished base.
    is_finished: bool,
    /// When the last flush began. The blocks of the base have this time, too: a change that the next flush writes is later.
    flushed_at: Time,
    /// The bytes in the file, and those of them that were there once its base was finished.
    file_bytes: u64,
    base_bytes: u64,
    written_bytes: u64,
    /// Blocks that are not handed to the disk yet, and the records of the next block.
    blocks: Vec<u8>,
    records: Vec<u8>,
    /// True if too many counters have vanished to be listed one by one.
    lost_track: bool,
    /// True if the file in use was created after a failure, and no base was finished since.
    is_attempt: bool,
    on_lock: OnLock,
}

impl<D: Disk> Writer<D> {
    /// A writer behind the newest generation that has a file. Nothing is written until [`Writer::begin`].
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn new(disk: Arc<D>, fingerprint: u64, now: Time) -> io::Result<Writer<D>> {
        let older: Vec<String> = disk.list()?.into_iter().filter(|name| generation_of(name).is_some()).collect();
        let newest = older.iter().filter_map(|name| generation_of(name)).map(|(generation, _)| generation).max();
        Ok(Writer {
            disk,
            fingerprint,
            generation: newest.unwrap_or(0),
            file: None,
            sync_turns: Arc::default(),
            older,
            sequence: 0,
            base: None,
            is_finished: false,
            flushed_at: now,
            file_bytes: 0,
            base_bytes: 0,
            written_bytes: 0,
            blocks: Vec::new(),
            records: Vec::new(),
            lost_track: false,
            is_attempt: false,
            on_lock: Box::new(|_| ()),
        })
    }

    /// Tells how long the walks of this writer hold the locks of shards.
    pub fn on_lock(&mut self, on_lock: OnLock) {
        self.on_lock = on_lock;
    }

    /// Begins a generation: its base is to be written.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn begin(&mut self) -> io::Result<()> {
        // Changes since the last sync are in this file alone until the base is finished.
        self.sync()?;
        if self.file.take().is_some() {
            self.older.push(file_name(self.generation, self.is_finished));
        }
        self.generation += 1;
        (self.is_attempt, self.is_finished) = (false, false);
        let file = self.disk.create(&file_name(self.generation, false))?;
        (self.file, self.sync_turns) = (Some(Arc::new(file)), Arc::default());
        (self.sequence, self.file_bytes, self.lost_track) = (0, 0, false);
        self.base = Some(VisitCursor::timed_by(Clock::System));
        Ok(())
    }

    /// Begins a generation after a failure. If that fails, too, its file is removed: the next one will hold all that it holds.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    pub fn begin_again(&mut self) -> io::Result<()> {
        let begun = self.begin();
        self.is_attempt = true;
        begun.inspect_err(|_| self.give_up())
    }

    /// Notes that the file in use cannot be trusted any more.
    pub fn give_up(&mut self) {
        self.blocks.clear();
        self.records.clear();
        let name = file_name(self.generation, self.is_finished);
        self.file = None;
        if self.is_attempt {
            // A file that stays is read back: its records are older than those of the next generation.
            let _ = self.disk.remove(&name);
            self.is_attempt = false;
        } else if !self.older.contains(&name) {
            self.older.push(name);
        }
        self.base = None;
    }

    /// Writes the changes since the last flush.
    ///
    /// # Errors
    /// If the disk fails. Changes that were visited are then missing in the file, so [`Writer::give_up`] must follow.
    pub fn flush(&mut self, memory: &MemoryStore, companion: &mut dyn Companion, now: Time) -> io::Result<()> {
        self.flush_in_pieces(memory, companion, now, &mut |_, _| false)
    }

    /// As [`Writer::flush`], with a rest after every piece.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub(crate) fn flush_in_pieces(
        &mut self,
        memory: &MemoryStore,
        companion: &mut dyn Companion,
        now: Time,
        rest: Rest<'_>,
    ) -> io::Result<()> {
        self.flushed_at = now;
        let mut cursor = VisitCursor::timed_by(Clock::System);
        let (mut step, mut held) = (Vec::new(), Span::ZERO);
        while memory.changed(&mut cursor, &mut step) {
            (self.on_lock)(cursor.held());
            self.add(&mut step)?;
            held = held + cursor.held();
            if held >= PIECE_TIME {
                held = Span::ZERO;
                let (visited, shards) = memory.visited(&cursor);
                if rest(visited, shards) {
                    self.hand_over()?;
                }
            }
        }
        companion.changed(&mut step);
        self.add_records(&step)?;
        self.lost_track |= cursor.lost_track();
        self.hand_over()
    }

    /// Writes some of the base, about `bytes`; true once all of it is written, synced, and older generations are gone.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn write_base(&mut self, memory: &MemoryStore, companion: &mut dyn Companion, bytes: u64) -> io::Result<bool> {
        let Some(mut cursor) = self.base.take() else { return Ok(true) };
        let (until, mut step) = (self.written_bytes + bytes, Vec::new());
        while self.written_bytes + ((self.blocks.len() + self.records.len()) as u64) < until {
            if !memory.all(&mut cursor, &mut step) {
                companion.all(&mut step);
                self.add_records(&step)?;
                self.hand_over()?;
                return self.finish_base().map(|()| true);
            }
            (self.on_lock)(cursor.held());
            self.add(&mut step)?;
        }
        self.base = Some(cursor);
        self.hand_over()?;
        Ok(false)
    }

    fn finish_base(&mut self) -> io::Result<()> {
        self.sync()?;
        if self.file.is_some() {
            self.disk.rename(&file_name(self.generation, false), &file_name(self.generation, true))?;
            (self.is_attempt, self.is_finished) = (false, true);
        }
        self.base_bytes = self.file_bytes;
        // A file that cannot be removed stays in the list and is tried again. It is older than a finished base, so it is never read.
        self.older.retain(|name| self.disk.remove(name).is_err_and(|error| error.kind() != io::ErrorKind::NotFound));
        self.tell_synced()
    }

    /// Writes the last changes and that the process stops, and syncs both: the last block tells that all before it is synced.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn stop(&mut self, memory: &MemoryStore, companion: &mut dyn Companion, now: Time) -> io::Result<()> {
        self.flush(memory, companion, now)?;
        self.sync()?;
        self.seal(true);
        self.append()?;
        self.sync()
    }

    /// Syncs the file in use.
    ///
    /// # Errors
    /// As the system says. [`Writer::give_up`] must follow.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| self.sync_turns.sync(&*self.disk, file))
    }

    /// Whether the base is being written.
    pub fn writes_base(&self) -> bool {
        self.base.is_some()
    }

    /// Whether a new generation is due: the file is far longer than the states need, or cannot tell what is gone.
    pub fn needs_generation(&self, memory: &MemoryStore) -> bool {
        let is_whole = self.file.is_some() && self.base.is_none();
        let exceeds = |live: u64| self.file_bytes > 2 * live + MIN_GENERATION_BYTES;
        // To count the counters takes some microseconds, which an answer that waits for the disk would notice.
        let is_long = || exceeds(self.base_bytes) && exceeds(memory.stats().counters as u64 * COUNTER_BYTES);
        is_whole && (self.lost_track || is_long())
    }

    /// The generation that is written.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The bytes written since the start.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// The bytes of the file in use.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The file in use, for a sync.
    pub fn file(&self) -> Option<Arc<D::File>> {
        self.file.clone()
    }

    /// The turns in which the file in use is synced.
    pub(crate) fn sync_turns(&self) -> &Arc<SyncTurns> {
        &self.sync_turns
    }

    /// The disk.
    pub fn disk(&self) -> &Arc<D> {
        &self.disk
    }

    /// Adds the records of a step of a visit, which fit in a block.
    fn add(&mut self, step: &mut Vec<u8>) -> io::Result<()> {
        if self.records.len() + step.len() > MAX_RECORD_BYTES {
            self.seal(false);
        }
        self.records.append(step);
        if self.blocks.len() >= WRITE_BYTES { self.append() } else { Ok(()) }
    }

    /// Adds any number of records.
    fn add_records(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut records, mut rest) = (flowgate::durable::Records::new(bytes), bytes);
        while records.next().is_some() {
            let (record, behind) = rest.split_at(rest.len() - records.rest().len());
            self.add(&mut record.to_vec())?;
            rest = behind;
        }
        Ok(())
    }

    /// Makes a block of the records.
    fn seal(&mut self, stopped: bool) {
        let (fingerprint, generation, sequence) = (self.fingerprint, self.generation, self.sequence);
        // They fit a block, so they are fewer than `MAX_RECORD_BYTES`.
        let length = self.records.len() as u32;
        let (written_at, synced) = (self.flushed_at, Some(self.sync_turns.synced()));
        let header = Header { fingerprint, generation, sequence, written_at, length, stopped, synced };
        header.write(&self.records, &mut self.blocks);
        self.records.clear();
        self.sequence += 1;
    }

    /// Hands all records to the disk.
    fn hand_over(&mut self) -> io::Result<()> {
        if !self.records.is_empty() {
            self.seal(false);
        }
        self.append()
    }

    /// Writes a block without records, which tells that the base is synced: damage of the base is then not taken for a torn end, even if
    /// nothing changes afterwards.
    fn tell_synced(&mut self) -> io::Result<()> {
        if self.sequence > 0 {
            self.seal(false);
        }
        self.append()
    }

    fn append(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.as_ref().filter(|_| !self.blocks.is_empty()) {
            self.disk.append(file, &self.blocks)?;
            self.sync_turns.note_written(self.sequence);
            self.file_bytes += self.blocks.len() as u64;
            self.written_bytes += self.blocks.len() as u64;
        }
        self.blocks.clear();
        Ok(())
    }
}
