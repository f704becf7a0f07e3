//! The disk as the journal uses it: a few calls, so that a test can crash at each of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// A directory of the file system.
#[derive(Debug)]
pub struct FileDisk {
    directory: PathBuf,
}

/// A file of a [`FileDisk`].
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    written: AtomicU64,
    allocated: AtomicU64,
}

impl FileDisk {
    /// The files of a directory.
    pub fn new(directory: impl Into<PathBuf>) -> FileDisk {
        FileDisk { directory: directory.into() }
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}

impl Disk for FileDisk {
    type File = JournalFile;

    fn create(&self, name: &str) -> io::Result<JournalFile> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(self.directory.join(name))?;
        self.sync_directory()?;
        let [written, allocated] = [const { AtomicU64::new(0) }; 2];
        Ok(JournalFile { file, written, allocated })
    }

    fn append(&self, file: &JournalFile, bytes: &[u8]) -> io::Result<()> {
        let end = file.written.load(Relaxed) + bytes.len() as u64;
        if end > file.allocated.load(Relaxed) {
            let allocated = end.next_multiple_of(ALLOCATED_AHEAD_BYTES);
            allocate(&file.file, allocated)?;
            file.allocated.store(allocated, Relaxed);
        }
        (&file.file).write_all(bytes)?;
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
