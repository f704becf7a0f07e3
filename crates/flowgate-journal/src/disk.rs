//! The disk as the journal uses it: a few calls, so that a test can crash at each of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::block::{ALIGNMENT, MAX_BLOCK_BYTES};

/// A directory of files.
pub trait Disk: Send + Sync + 'static {
    /// A file that is being written.
    type File: Send + Sync;

    /// A new file, in place of one of that name.
    ///
    /// # Errors
    /// As the system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Writes at the end.
    ///
    /// # Errors
    /// As the system says. Some of the bytes may be written then.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Returns once all that was written before is on the disk.
    ///
    /// # Errors
    /// As the system says. What was written before may be lost then, even if a later call succeeds.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Gives a file another name, and returns once that is on the disk.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files.
    ///
    /// # Errors
    /// As the system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Reads a file from its beginning.
    ///
    /// # Errors
    /// As the system says.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read>>;

    /// The length of a file in bytes.
    ///
    /// # Errors
    /// As the system says.
    fn length(&self, name: &str) -> io::Result<u64>;
}

/// The bytes that are allocated ahead, so that a full disk shows early.
const ALLOCATED_AHEAD_BYTES: u64 = 16 << 20;

/// The zeros that are written ahead where answers wait for syncs: a sync need not write the length and the blocks of the file if both
/// are as they were. On ext4 that saves one of three requests to the disk.
const ZEROS_AHEAD_BYTES: u64 = 512 << 10;

/// A directory of the file system.
#[derive(Debug)]
pub struct FileDisk {
    directory: PathBuf,
    /// Answers wait for syncs.
    syncs_often: bool,
}

/// A file of a [`FileDisk`].
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    written: AtomicU64,
    allocated: AtomicU64,
    /// The end of the zeros, and what is written where the cache of the system is not used.
    zeroed: AtomicU64,
    aligned: Mutex<AlignedBytes>,
}

impl FileDisk {
    /// The files of a directory.
    pub fn new(directory: impl Into<PathBuf>) -> FileDisk {
        FileDisk { directory: directory.into(), syncs_often: false }
    }

    /// For answers that wait for syncs. Files are longer by zeros that are written ahead, and the cache of the system is not used: on
    /// ext4 a sync takes a third less time.
    #[must_use]
    pub fn for_frequent_syncs(self) -> FileDisk {
        FileDisk { syncs_often: true, ..self }
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

impl JournalFile {
    /// Writes `bytes` up to `end`, and zeros behind them where there are none: within what is allocated, so that a disk has room for
    /// them. Behind more than a block they would double what is written of a base.
    fn append_aligned(&self, bytes: &[u8], end: u64) -> io::Result<()> {
        let mut aligned = self.aligned.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(unix)]
        if end > self.zeroed.load(Relaxed) && bytes.len() <= MAX_BLOCK_BYTES {
            let zeros = self.allocated.load(Relaxed).saturating_sub(end).min(ZEROS_AHEAD_BYTES);
            // At most 512 KiB.
            std::os::unix::fs::FileExt::write_all_at(&self.file, aligned.zeros(zeros as usize), end)?;
            self.zeroed.store(end + zeros, Relaxed);
        }
        (&self.file).write_all(aligned.copy(bytes))
    }
}

/// Bytes that begin at a multiple of a page, as the disk takes them without the cache of the system.
#[derive(Debug, Default)]
struct AlignedBytes(Vec<u8>);

impl AlignedBytes {
    fn copy(&mut self, bytes: &[u8]) -> &[u8] {
        let start = self.start(bytes.len());
        self.0.extend_from_slice(bytes);
        &self.0[start..]
    }

    #[cfg(unix)]
    fn zeros(&mut self, length: usize) -> &[u8] {
        let start = self.start(length);
        self.0.resize(start + length, 0);
        &self.0[start..]
    }

    /// Where `length` bytes are to begin. There is room for them, so that they do not move.
    fn start(&mut self, length: usize) -> usize {
        self.0.clear();
        self.0.reserve(length + ALIGNMENT);
        let start = self.0.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        self.0.resize(start, 0);
        start
    }
}

/// The file without the cache of the system; `None` if the file system cannot do that, which some tell at the first write.
#[cfg(target_os = "linux")]
fn open_direct(options: &OpenOptions, path: &Path) -> Option<File> {
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    let flag = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let file = options.clone().custom_flags(flag).open(path).ok()?;
    let is_written = file.write_all_at(AlignedBytes::default().zeros(ALIGNMENT), 0).is_ok();
    is_written.then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_: &OpenOptions, _: &Path) -> Option<File> {
    None
}

impl Disk for FileDisk {
    type File = JournalFile;

    fn create(&self, name: &str) -> io::Result<JournalFile> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let path = self.directory.join(name);
        let direct = if self.syncs_often { open_direct(&options, &path) } else { None };
        let file = direct.map_or_else(|| options.open(&path), Ok)?;
        self.sync_directory()?;
        let [written, allocated, zeroed] = [const { AtomicU64::new(0) }; 3];
        Ok(JournalFile { file, written, allocated, zeroed, aligned: Mutex::default() })
    }

    fn append(&self, file: &JournalFile, bytes: &[u8]) -> io::Result<()> {
        let end = file.written.load(Relaxed) + bytes.len() as u64;
        if end > file.allocated.load(Relaxed) {
            let allocated = end.next_multiple_of(ALLOCATED_AHEAD_BYTES);
            allocate(&file.file, allocated)?;
            file.allocated.store(allocated, Relaxed);
        }
        if self.syncs_often {
            file.append_aligned(bytes, end)?;
        } else {
            (&file.file).write_all(bytes)?;
        }
        file.written.store(end, Relaxed);
        Ok(())
    }

    fn sync(&self, file: &JournalFile) -> io::Result<()> {
        // The system goes on writing a file that has no name any more, and nobody would ever read it.
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&file.file.metadata()?) == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the journal was removed"));
        }
        file.file.sync_data()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))?;
        self.sync_directory()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.directory.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // The journal's own names are all UTF-8.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(self.directory.join(name))?))
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.directory.join(name))?.len())
    }
}

/// Allocates blocks of the disk without a change of the length. A file system that cannot do that is used without.
#[cfg(target_os = "linux")]
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;

    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        Err(error) if matches!(error, Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO | Errno::ROFS) => {
            Err(error.into())
        }
        _ => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}
