//! The start: locks the directory and reads the counters.
//!
//! Rule       A wall clock that is behind the newest block by up to an hour: the process's clock starts at that block's time and goes
//!            at half speed. By more: all states move back with it.

use std::io;
use std::path::{Path, PathBuf};

use flowgate::durable::{LoadAt, LoadOutcome, Record};
use flowgate::{Clock, MemoryConfig, MemoryStore, Span, Time};
use flowgate_engine::config::{Config, OnDamage};
use flowgate_journal::{Directory, DirectoryError, ReadError, ReadReport, Sink, read};

/// How far the clock may start ahead of the wall clock.
const MAX_AHEAD: Span = Span::from_secs(3600);

/// How much longer than `server.drain` the start waits for another server that stops.
const LOCK_GRACE: Span = Span::from_secs(5);

/// The time between two log lines about the progress.
const PROGRESS_INTERVAL: Span = Span::from_secs(1);

/// After each so many bytes, the start estimates anew how many counters will follow.
const ESTIMATE_BYTES: u64 = 1 << 20;

/// Why durable counters cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// No directory is set, and there is no state directory.
    #[error("store.durable needs a directory: set store.dir, or STATE_DIRECTORY, XDG_STATE_HOME or HOME")]
    NoDirectory,
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The journal cannot be read.
    #[error(
        "cannot read the counters in {path}; restore the files from one backup, or remove *.fgj and *.fgj.part to begin with empty counters"
    )]
    Read {
        /// The directory.
        path: PathBuf,
        /// The error of the reader.
        source: ReadError,
    },
    /// The journal is damaged, and `on_damage = "refuse"`.
    #[error(
        "the journal in {path} is damaged (parts: {damaged}), and store.on_damage is \"refuse\": restore a backup, or set it to \"salvage\" to go on without what is damaged"
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// The number of damaged stretches.
        damaged: u64,
    },
    /// The journal cannot be written.
    #[error("cannot write the counters in {path}")]
    Write {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Counters that were read, and a directory that is locked.
pub(crate) struct OpenJournal {
    pub(crate) directory: Directory,
    pub(crate) memory: MemoryStore,
    /// Records of bans, in the order in which they were written.
    pub(crate) bans: Vec<(u8, Box<[u8]>)>,
    pub(crate) read: ReadReport,
    /// How far all states were moved back.
    pub(crate) back: Span,
}

/// Reads the counters of the configured directory, or of the state directory.
pub(crate) fn open(
    config: &Config,
    state: Option<&Path>,
    memory: MemoryConfig,
    clock: &Clock,
) -> Result<OpenJournal, DurableError> {
    let durable = &config.store.durable;
    let path = durable.dir.as_deref().or(state).ok_or(DurableError::NoDirectory)?;
    let drain = Span::from_nanos(u64::try_from(config.server.drain.as_nanos()).unwrap_or(u64::MAX));
    let directory = lock(path, drain + LOCK_GRACE)?;
    let memory = MemoryConfig { seed: directory.seed(), ..memory };
    let began = clock.monotonic();
    let mut loading = Loading::new(memory, clock, Span::ZERO);
    let read_all = |loading: &mut Loading<'_>| {
        read(&directory.disk(), Some(directory.seed().fingerprint()), loading)
            .map_err(|source| DurableError::Read { path: path.to_owned(), source })
    };
    let mut read = read_all(&mut loading)?;
    let ahead = read.written_at.map_or(Span::ZERO, |written_at| written_at.since(clock.now()));
    if ahead > MAX_AHEAD {
        tracing::warn!(
            %ahead,
            "the clock was put back since the counters were written: all counters move back with it; a calendar window may open once more"
        );
        loading = Loading::new(memory, clock, ahead);
        read = read_all(&mut loading)?;
    } else if let Some(written_at) = read.written_at {
        if !ahead.is_zero() {
            tracing::warn!(%ahead, "the clock was put back since the counters were written: it goes at half speed until it has caught up");
        }
        clock.not_before(written_at);
    }
    loading.memory.finish_load(clock.now());
    let ReadReport { damaged, torn_bytes, bytes, .. } = read;
    if damaged > 0 && durable.on_damage == OnDamage::Refuse {
        return Err(DurableError::Damaged { path: path.to_owned(), damaged });
    }
    if damaged > 0 {
        tracing::error!(
            damaged,
            "parts of the journal are damaged: some counters and bans are older or missing; restore a backup if that matters"
        );
    }
    if torn_bytes > 0 {
        tracing::info!(torn_bytes, "the journal ends within a block: the last changes before a crash are lost");
    }
    let Loading { memory, bans, unknown, no_room, .. } = loading;
    if unknown > 0 {
        tracing::warn!(unknown, "the journal has records that this version does not know: they are skipped");
    }
    if no_room > 0 {
        tracing::warn!(no_room, "store.max_memory has no room for all counters of the journal");
    }
    let (counters, took) = (memory.stats().counters, clock.monotonic().since(began));
    tracing::info!(counters, bytes, %took, directory = %path.display(), "counters read");
    Ok(OpenJournal { directory, memory, bans, read, back: loading.back })
}

/// Locks the directory. Waits for a server that holds it, since that server may be about to stop, and says so.
fn lock(path: &Path, patience: Span) -> Result<Directory, DirectoryError> {
    match Directory::open(path, Span::ZERO) {
        Err(DirectoryError::InUse { holder, .. }) => {
            tracing::warn!("waiting up to {patience} for {holder}, which holds {}", path.display());
            Directory::open(path, patience)
        }
        done => done,
    }
}

struct Loading<'a> {
    memory: MemoryStore,
    back: Span,
    bans: Vec<(u8, Box<[u8]>)>,
    unknown: u64,
    no_room: u64,
    clock: &'a Clock,
    told_at: Time,
    /// The bytes that were read when the counters were last estimated, and the counters at that time.
    estimated_at: (u64, usize),
}

impl Loading<'_> {
    fn new(memory: MemoryConfig, clock: &Clock, back: Span) -> Loading<'_> {
        let memory = MemoryStore::new(memory);
        let (bans, told_at) = (Vec::new(), clock.monotonic());
        Loading { memory, back, bans, unknown: 0, no_room: 0, clock, told_at, estimated_at: (0, 0) }
    }

    /// Tells the table how many counters it will hold, if the remaining bytes bring counters at the rate of the last
    /// ones.
    fn estimate(&mut self, read: u64, of: u64) {
        let (bytes, counters) = (read - self.estimated_at.0, self.memory.stats().counters);
        let gained = counters.saturating_sub(self.estimated_at.1);
        let more = u128::from(of.saturating_sub(read)) * gained as u128 / u128::from(bytes);
        self.memory.expect(counters.saturating_add(usize::try_from(more).unwrap_or(usize::MAX)));
        self.estimated_at = (read, counters);
    }
}

impl Sink for Loading<'_> {
    fn record(&mut self, record: Record<'_>, since: Time) {
        if let Some((kind, body)) = record.foreign() {
            return self.bans.push((kind, body.into()));
        }
        let now = Time::from_nanos(since.as_nanos().saturating_sub(self.back.as_nanos()));
        match self.memory.load(record, LoadAt { now, back: self.back }) {
            LoadOutcome::Kept | LoadOutcome::Gone | LoadOutcome::Orphan => {}
            LoadOutcome::Unknown => self.unknown += 1,
            LoadOutcome::NoRoom => self.no_room += 1,
        }
    }

    fn comes_soon(&self, record: Record<'_>) {
        self.memory.prefetch_load(record);
    }

    fn progress(&mut self, read: u64, of: u64) {
        if read >= self.estimated_at.0 + ESTIMATE_BYTES {
            self.estimate(read, of);
        }
        let now = self.clock.monotonic();
        if now.since(self.told_at) >= PROGRESS_INTERVAL {
            self.told_at = now;
            tracing::info!(read, of, "reading the counters");
        }
    }
}
