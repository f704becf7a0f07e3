//! The directory of a journal: locked by one process, with the seed of its keys.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowgate::{Clock, Seed, Span};

use crate::disk::{Disk, FileDisk};
use crate::reader::generation_of;

/// The pause between two attempts to lock the directory.
const LOCK_INTERVAL: Duration = Duration::from_millis(50);

const SEED_BYTES: usize = 16;

/// The directory, locked until this is dropped.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    seed: Seed,
    _lock: File,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory or a file in it cannot be made, read or written.
    #[error("cannot use {path} for the counters")]
    Disk {
        /// The directory, or the file in it.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process uses the directory.
    #[error(
        "{path} is in use by {holder}: two servers cannot share a journal; stop that one, or give this one another store.dir"
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The id of that process, if it could be read.
        holder: String,
    },
    /// The file of the seed is missing or damaged, and the directory already has journals.
    #[error(
        "{path} is {problem}, and the journals beside it cannot be read without it; restore it, or remove *.fgj and *.fgj.part to begin with empty counters"
    )]
    Seed {
        /// The file.
        path: PathBuf,
        /// `missing` or `damaged`.
        problem: &'static str,
    },
}

impl Directory {
    /// Locks a directory, which is made if it is missing, and reads its seed, or makes one. Waits up to `patience` for a
    /// process that is about to stop.
    ///
    /// # Errors
    /// When the directory cannot be used, another process uses it, or journals have no seed.
    pub fn open(path: &Path, patience: Span) -> Result<Directory, DirectoryError> {
        let failed = |source| DirectoryError::Disk { path: path.to_owned(), source };
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
        let lock = lock(path, patience)?;
        let seed = obtain_seed(path)?;
        Ok(Directory { path: path.to_owned(), seed, _lock: lock })
    }

    /// The key of the hash of all keys in the journal.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// The files of the directory.
    pub fn disk(&self) -> FileDisk {
        FileDisk::new(&self.path)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn lock(directory: &Path, patience: Span) -> Result<File, DirectoryError> {
    let path = directory.join("lock");
    let failed = |source| DirectoryError::Disk { path: path.clone(), source };
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    let deadline = Clock::System.monotonic() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if Clock::System.monotonic() >= deadline => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = match holder.trim() {
                    "" => "another process".to_owned(),
                    pid => format!("process {pid}"),
                };
                return Err(DirectoryError::InUse { path: directory.to_owned(), holder });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
        }
    }
    // The file holds the process id only to show it to people; the operating system holds the lock. On a full disk the
    // id is missing.
    let _ = file.set_len(0).and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
    Ok(file)
}

fn obtain_seed(directory: &Path) -> Result<Seed, DirectoryError> {
    if let Some(seed) = find_seed(directory)? {
        return Ok(seed);
    }
    let (path, seed) = (directory.join("seed"), Seed::random());
    make_seed(directory, &path, seed).map_err(|source| DirectoryError::Disk { path, source })?;
    Ok(seed)
}

/// The seed of a directory; `None` if the seed cannot be read and no journal needs it.
pub(crate) fn find_seed(directory: &Path) -> Result<Option<Seed>, DirectoryError> {
    let path = directory.join("seed");
    let failed = |source| DirectoryError::Disk { path: path.clone(), source };
    let mut bytes = Vec::new();
    let problem = match File::open(&path).and_then(|file| file.take(64).read_to_end(&mut bytes)) {
        Ok(_) => match read_seed(&bytes) {
            Some(seed) => return Ok(Some(seed)),
            None => "damaged",
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => "missing",
        Err(error) => return Err(failed(error)),
    };
    let names = FileDisk::new(directory).list().map_err(failed)?;
    if names.iter().any(|name| generation_of(name).is_some()) {
        return Err(DirectoryError::Seed { path, problem });
    }
    Ok(None)
}

fn read_seed(bytes: &[u8]) -> Option<Seed> {
    let (seed, check) = bytes.split_at_checked(SEED_BYTES)?;
    let (words, _) = seed.as_chunks();
    let &[first, second] = words else { return None };
    (check == crc32fast::hash(seed).to_le_bytes()).then(|| Seed([first, second].map(u64::from_le_bytes)))
}

/// Writes the seed under another name first, so that a crash leaves the whole seed or no seed.
fn make_seed(directory: &Path, path: &Path, Seed(words): Seed) -> io::Result<()> {
    let mut bytes = words.map(u64::to_le_bytes).concat();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    let new = directory.join("seed.new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}
