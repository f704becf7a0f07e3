//! Writing: the changes since the last flush, and the base of a generation between flushes. A state machine without threads.

use std::io;
use std::sync::Arc;

use flowgate::durable::VisitCursor;
use flowgate::{Clock, MemoryStore, Span, Time};

use crate::block::{Header, MAX_RECORD_BYTES};
use crate::disk::Disk;
use crate::reader::{file_name, generation_of};
use crate::sync_turns::SyncTurns;

/// Bytes are handed to the disk in pieces of about this size. The system needs as long to copy a megabyte as for a few
/// hundred decisions.
const WRITE_BYTES: usize = 128 << 10;

/// A flush pauses after it has held locks for this long. On a server with one processor, a flush adds about 1.5 times
/// this span to the latency of a request.
const PIECE_TIME: Span = Span::from_micros(30);

/// A new generation begins when a file is longer than twice the live states plus this many bytes.
const MIN_GENERATION_BYTES: u64 = 64 << 20;

/// The smallest record of a counter in bytes, for an estimate of the live states. Logs are larger; the size of the last
/// base shows by how much.
const COUNTER_BYTES: u64 = 25;

/// Writes records that are not of counters, such as those of bans, into the same journal.
pub trait Companion: Send {
    /// Appends a record for each state that has changed since the last call.
    fn changed(&mut self, out: &mut Vec<u8>);

    /// Appends a record for every state.
    fn all(&mut self, out: &mut Vec<u8>);
}

/// The companion of a journal that holds only counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCompanion;

impl Companion for NoCompanion {
    fn changed(&mut self, _: &mut Vec<u8>) {}
    fn all(&mut self, _: &mut Vec<u8>) {}
}

/// Called after each step of a walk through the counters, with the time for which the step held the lock of a shard.
pub type OnLock = Box<dyn Fn(Span) + Send>;

/// Called between the pieces of a flush with two numbers: shards that are visited, and all shards. Returns true to
/// write the visited changes now.
pub(crate) type Rest<'a> = &'a mut dyn FnMut(usize, usize) -> bool;

/// The writer of a store's journal.
pub struct Writer<D: Disk> {
    disk: Arc<D>,
    fingerprint: u64,
    generation: u64,
    /// `None`: the disk has failed, and the next generation has not begun.
    file: Option<Arc<D::File>>,
    sync_turns: Arc<SyncTurns>,
    /// The files of earlier generations. They are removed when the base is finished.
    older: Vec<String>,
    sequence: u64,
    /// The base, while it is being written.
    base: Option<VisitCursor>,
    /// Whether the file has the name of a finished base.
    is_finished: bool,
    /// The start of the last flush. The blocks of the base have this time, too, since the changes of the next flush are
    /// later.
    flushed_at: Time,
    /// The length of the file in bytes: now, and at the time when its base was finished.
    file_bytes: u64,
    base_bytes: u64,
    written_bytes: u64,
    /// The blocks that were not yet handed to the disk, and the records of the next block.
    blocks: Vec<u8>,
    records: Vec<u8>,
    /// True if too many counters have vanished to be listed one by one.
    lost_track: bool,
    /// True if the file in use was created after a failure, and no base was finished since.
    is_attempt: bool,
    on_lock: OnLock,
}

impl<D: Disk> Writer<D> {
    /// A writer for the generation after the newest one that has a file. It writes nothing until [`Writer::begin`].
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

    /// Sets the function that is told how long each step holds the lock of a shard.
    pub fn on_lock(&mut self, on_lock: OnLock) {
        self.on_lock = on_lock;
    }

    /// Begins a generation, whose base [`Writer::write_base`] writes.
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

    /// Begins a generation after a failure. If that also fails, its file is removed, because the next generation will
    /// hold all its states.
    ///
    /// # Errors
    /// The same as for [`Writer::begin`].
    pub fn begin_again(&mut self) -> io::Result<()> {
        let begun = self.begin();
        self.is_attempt = true;
        begun.inspect_err(|_| self.give_up())
    }

    /// Gives up the file in use after a failure: what it holds is not certain any more.
    pub fn give_up(&mut self) {
        self.blocks.clear();
        self.records.clear();
        let name = file_name(self.generation, self.is_finished);
        self.file = None;
        if self.is_attempt {
            // If the removal fails, a reader also reads this file. That does no harm: the records of the next
            // generation are newer.
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

    /// Like [`Writer::flush`], but calls `rest` after every piece.
    ///
    /// # Errors
    /// The same as for [`Writer::flush`].
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

    /// Writes about `bytes` of the base. Returns true once the base is written and synced and older generations are
    /// removed.
    ///
    /// # Errors
    /// The same as for [`Writer::flush`].
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

    /// Writes and syncs the last changes, then a block that says that everything before it is synced and that the
    /// process stopped cleanly.
    ///
    /// # Errors
    /// The same as for [`Writer::flush`].
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
    /// An I/O error. [`Writer::give_up`] must follow.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| self.sync_turns.sync(&*self.disk, file))
    }

    /// Whether the base is being written.
    pub fn writes_base(&self) -> bool {
        self.base.is_some()
    }

    /// Whether a new generation is due: the file is far longer than the states need, or more counters have vanished
    /// than it can list.
    pub fn needs_generation(&self, memory: &MemoryStore) -> bool {
        let is_whole = self.file.is_some() && self.base.is_none();
        let exceeds = |live: u64| self.file_bytes > 2 * live + MIN_GENERATION_BYTES;
        // Counting the counters takes some microseconds, which would delay an answer that waits for the disk.
        let is_long = || exceeds(self.base_bytes) && exceeds(memory.stats().counters as u64 * COUNTER_BYTES);
        is_whole && (self.lost_track || is_long())
    }

    /// The generation that is being written.
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

    /// Runs the syncs of the file in use one after the other.
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
        // The records fit a block, so their length is at most `MAX_RECORD_BYTES`.
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

    /// Writes a block without records that says that the base is synced. Damage of the base is then not taken for a
    /// torn end, even if nothing changes afterwards.
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
