//! The disk as the journal uses it: a few calls, so that a test can crash at each of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::block::{ALIGNMENT, MAX_BLOCK_BYTES};

/// A directory of files.
pub trait Disk: Send + Sync + 'static {
    /// An open file to write to.
    type File: Send + Sync;

    /// Creates a file, or replaces the file of that name.
    ///
    /// # Errors
    /// An I/O error.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Appends `bytes` to a file.
    ///
    /// # Errors
    /// An I/O error. Some of the bytes may have been written.
    fn append(&self, file: &Self::File, bytes: &[u8]) -> io::Result<()>;

    /// Returns once everything that was written before is on the disk.
    ///
    /// # Errors
    /// An I/O error. What was written before may be lost, even if a later call succeeds.
    fn sync(&self, file: &Self::File) -> io::Result<()>;

    /// Renames a file, and returns once the new name is on the disk.
    ///
    /// # Errors
    /// An I/O error.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// An I/O error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names of all files.
    ///
    /// # Errors
    /// An I/O error.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Reads a file from its beginning.
    ///
    /// # Errors
    /// An I/O error.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read>>;

    /// The length of a file in bytes.
    ///
    /// # Errors
    /// An I/O error.
    fn length(&self, name: &str) -> io::Result<u64>;
}

/// This many bytes are allocated ahead, so that a full disk is noticed early.
const ALLOCATED_AHEAD_BYTES: u64 = 16 << 20;

/// Where answers wait for syncs, this many zeros are written ahead. A sync then finds the file's length and its list of
/// blocks unchanged, and does not write them: on ext4 that saves one of three requests to the disk.
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
    /// The end of the zeros that were written ahead, and the buffer for writes that bypass the page cache.
    zeroed: AtomicU64,
    aligned: Mutex<AlignedBytes>,
}

impl FileDisk {
    /// Gives access to the files of a directory.
    pub fn new(directory: impl Into<PathBuf>) -> FileDisk {
        FileDisk { directory: directory.into(), syncs_often: false }
    }

    /// For answers that wait for syncs: writes zeros ahead, which makes files longer, and bypasses the page cache. On
    /// ext4 a sync then takes a third less time.
    #[must_use]
    pub fn for_frequent_syncs(self) -> FileDisk {
        FileDisk { syncs_often: true, ..self }
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

impl JournalFile {
    /// Appends `bytes`, which end at the offset `end` of the file. Writes zeros after them if there are none yet, but
    /// only within the allocated bytes, for which the disk has room. Writes no zeros after more than one block, because
    /// zeros would double the writes of a base.
    fn append_aligned(&self, bytes: &[u8], end: u64) -> io::Result<()> {
        let mut aligned = self.aligned.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(unix)]
        if end > self.zeroed.load(Relaxed) && bytes.len() <= MAX_BLOCK_BYTES {
            let zeros = self.allocated.load(Relaxed).saturating_sub(end).min(ZEROS_AHEAD_BYTES);
            // `zeros` is at most 512 KiB, so it fits a `usize`.
            std::os::unix::fs::FileExt::write_all_at(&self.file, aligned.zeros(zeros as usize), end)?;
            self.zeroed.store(end + zeros, Relaxed);
        }
        (&self.file).write_all(aligned.copy(bytes))
    }
}

/// A buffer that begins at a multiple of a page, which writes that bypass the page cache need.
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

    /// The offset of the first byte that is at a multiple of a page. Reserves room for `length` bytes after it, so that
    /// the buffer does not move later.
    fn start(&mut self, length: usize) -> usize {
        self.0.clear();
        self.0.reserve(length + ALIGNMENT);
        let start = self.0.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        self.0.resize(start, 0);
        start
    }
}

/// The file, opened to bypass the page cache; `None` if the file system cannot do that. Some file systems report this
/// only at the first write.
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
        // A file that was removed is an error: the system would sync it, but nothing could ever read it.
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
            // All file names of the journal are UTF-8.
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

/// Allocates blocks of the disk without changing the file's length. On a file system that cannot do that, nothing is
/// allocated ahead.
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
