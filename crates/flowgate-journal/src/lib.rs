//! Counters that outlive a restart: a journal of changed *states* in checked blocks.
//!
//! [`Directory`] locks a directory and keeps the seed of its keys, [`read`] reads the counters that are there, and
//! [`Journal`] writes the changes from then on. [`inspect`] looks into a journal without a lock.
//!
//! ```
//! use std::{error::Error, path::Path, sync::Arc, time::Duration};
//!
//! use flowgate::durable::{LoadAt, Record};
//! use flowgate::{Ask, Clock, CounterId, Limit, MemoryConfig, MemoryStore, Op, Span, Time};
//! use flowgate_journal::{Directory, Journal, JournalSettings, NoCompanion, Sink, Writer, read};
//!
//! struct Loader(Arc<MemoryStore>);
//!
//! impl Sink for Loader {
//!     fn record(&mut self, record: Record<'_>, since: Time) {
//!         self.0.load(record, LoadAt { now: since, back: Span::ZERO });
//!     }
//! }
//!
//! /// Starts with the counters of `path`, takes one unit, and returns what is left.
//! fn run(path: &Path) -> Result<Option<u64>, Box<dyn Error>> {
//!     let directory = Directory::open(path, Span::ZERO)?;
//!     let memory = Arc::new(MemoryStore::new(MemoryConfig { seed: directory.seed(), ..MemoryConfig::default() }));
//!     let (disk, fingerprint) = (directory.disk(), directory.seed().fingerprint());
//!     read(&disk, Some(fingerprint), &mut Loader(Arc::clone(&memory)))?;
//!     let writer = Writer::new(Arc::new(disk), fingerprint, Clock::System.now())?;
//!     let (flush, clock) = (Duration::from_millis(250), Clock::System);
//!     let settings = JournalSettings { flush, clock, report: Box::new(|_| ()) };
//!     let journal = Journal::start(writer, Arc::clone(&memory), Box::new(NoCompanion), settings)?;
//!     let (limit, key): (Limit, _) = ("5/1h".parse()?, memory.subject(b"user:42").counter(CounterId::default()));
//!     let decision = memory.apply_one(Ask::new(Op::Take, 1, Clock::System.now()), key, &limit);
//!     journal.stop();
//!     Ok(decision.remaining)
//! }
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! assert_eq!(run(path)?, Some(4));
//! assert_eq!(run(path)?, Some(3));
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! # On the disk
//!
//! ```text
//! dir/lock               locked while a process uses the directory; holds its process id
//! dir/seed               the secret of the hash, and a checksum
//! dir/00000012.fgj       a generation whose base is finished
//! dir/00000013.fgj.part  a generation whose base is not finished
//!
//! file   = blocks, each from 4 KiB to 64 KiB
//! block  = "FGJ1" | crc32 | fingerprint of the seed | generation | sequence | written_at | length | flags | records | zeros
//! record = as in flowgate::durable::Record: a counter, a log, a counter that is gone, or a record of another writer
//! ```
//!
//! * **Records are states**, so reading is idempotent: the last record of a key is the one that counts. A lost block
//!   loses the latest states of some keys and nothing else.
//! * **A block tells which blocks before it were synced.** A synced block that is not whole is damage. A block that was
//!   not synced and is not whole is a torn end.
//! * **A generation is a file of its own**, into which changes go at once. Between them the writer writes all states,
//!   the *base*. When the base is finished and synced, the file is renamed and older files are removed.
//! * **After any failure of the disk** a new generation begins, which writes all states again.
//! * **One thread writes.** A caller waits for the disk only if it asks for that.

mod block;
mod directory;
mod disk;
mod inspect;
mod journal;
mod reader;
mod status;
mod sync_turns;
mod writer;

pub use directory::{Directory, DirectoryError};
pub use disk::{Disk, FileDisk};
pub use inspect::{Inspection, Refusal, inspect};
pub use journal::{Journal, JournalSettings};
pub use reader::{ReadError, ReadReport, Sink, read};
pub use status::{JournalStatus, SyncStatus};
pub use writer::{Companion, NoCompanion, OnLock, Writer};
