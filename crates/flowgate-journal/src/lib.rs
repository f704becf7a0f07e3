//! Counters that outlive a restart: a journal of changed *states* in checked blocks.
//!
//! ```text
//! dir/lock               locked while a process uses the directory; holds its process id
//! dir/seed               the secret of the hash, and a check
//! dir/00000012.fgj       a generation whose base is finished
//! dir/00000013.fgj.part  a generation whose base is not
//!
//! file   = blocks, each from 4 KiB to 64 KiB
//! block  = "FGJ1" | crc32 | fingerprint of the seed | generation | sequence | written_at | length | flags | records | zeros
//! record = as [`flowgate::Record`]: a counter, a log, a counter that is gone, or a record of another writer
//! ```
//!
//! Rule       Records are states, so reading is idempotent: of the records of a key the last one counts. A lost block loses the latest
//!            states of some keys and nothing else.
//! Rule       A generation begins with a file of its own, into which changes go at once. All states, the *base*, are written between
//!            them. When the base is finished and synced, the file is renamed, and older ones are removed.
//! Rule       After any failure of the disk a new generation begins, which writes all states again.
//! Rule       One thread writes. A caller waits for the disk only if it asks for that.
//!
//! [`Directory`] locks the directory and keeps the seed, [`read`] reads what is there, and [`Journal`] writes.

mod block;
mod directory;
mod disk;
mod inspect;
mod journal;
mod reader;
mod status;
mod writer;

pub use directory::{Directory, DirectoryError};
pub use disk::{Disk, FileDisk};
pub use inspect::{Inspection, Refusal, inspect};
pub use journal::{Journal, JournalSettings};
pub use reader::{ReadError, ReadReport, Sink, read};
pub use status::{JournalStatus, SyncStatus};
pub use writer::{Companion, NoCompanion, OnLock, Writer};
