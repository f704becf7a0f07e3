//! Reads files of unknown size and kind. Only this module opens files of the configuration.
//!
//! Rule       Only regular files are read. A FIFO, a device or a directory is an error at once: to open or read it
//!            could block forever.
//! Bound      Each caller passes the largest number of bytes that it accepts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::origin::Origin;
use super::report::Report;

/// The largest configuration file in bytes. Files that people write are far smaller.
pub const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// Why a file could not be read. Its text is written to follow a colon.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system refused.
    #[error("{}", shown_cause(.0))]
    Io(io::Error),
    /// A FIFO, a device, a directory or a socket.
    #[error("it is not a regular file")]
    NotAFile,
    /// The file has more bytes than this.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The file is not UTF-8 from this position on.
    #[error("it is not UTF-8 at line {line}, column {column}")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
    },
}

impl Unreadable {
    /// True if no file has that name.
    pub fn is_absence(&self) -> bool {
        matches!(self, Unreadable::Io(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}

fn shown_cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

impl From<Unreadable> for io::Error {
    fn from(unreadable: Unreadable) -> io::Error {
        match unreadable {
            Unreadable::Io(error) => error,
            Unreadable::NotAFile => io::Error::new(io::ErrorKind::InvalidInput, unreadable),
            Unreadable::TooLarge(_) | Unreadable::NotUtf8 { .. } => {
                io::Error::new(io::ErrorKind::InvalidData, unreadable)
            }
        }
    }
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// When the file cannot be read, is not a regular file, or is larger.
pub fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
    let bytes = read_beyond(path, most)?;
    if bytes.len() as u64 > most { Err(Unreadable::TooLarge(most)) } else { Ok(bytes) }
}

/// Like [`read_file`], for a text.
///
/// # Errors
/// The same as for [`read_file`], and when the file is not UTF-8.
pub fn read_text_file(path: &Path, most: u64) -> Result<String, Unreadable> {
    text(read_file(path, most)?)
}

/// Reads a text of at most `most` bytes, and adds the file to the report's origins, also if it is missing.
pub fn read(report: &mut Report, path: &Path, most: u64) -> Result<String, Unreadable> {
    let bytes = read_beyond(path, most);
    report.add_origin(Origin::file(path, most, bytes.as_deref().ok()));
    let bytes = bytes?;
    if bytes.len() as u64 > most {
        return Err(Unreadable::TooLarge(most));
    }
    text(bytes)
}

fn text(bytes: Vec<u8>) -> Result<String, Unreadable> {
    String::from_utf8(bytes).map_err(|error| {
        let right = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let column = right.chars().rev().take_while(|&char| char != '\n').count() + 1;
        Unreadable::NotUtf8 { line: right.matches('\n').count() + 1, column }
    })
}

/// Reads at most one byte more than `most`, which shows that the file is larger.
fn read_beyond(path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    Ok(bytes)
}

/// Opens a regular file to read it.
pub(crate) fn open(path: &Path) -> Result<File, Unreadable> {
    // Opening a device can have effects, so the kind of file is checked first.
    check(path)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // Another file may have replaced the one that was checked. With these flags, opening a FIFO without a writer does
    // not block, and a terminal does not become the controlling one.
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32);
    }
    let file = options.open(path).map_err(Unreadable::Io)?;
    let is_file = file.metadata().map_err(Unreadable::Io)?.is_file();
    if is_file { Ok(file) } else { Err(Unreadable::NotAFile) }
}

/// Checks that there is a file to read.
pub(crate) fn check(path: &Path) -> Result<(), Unreadable> {
    let is_file = fs::metadata(path).map_err(Unreadable::Io)?.is_file();
    if is_file { Ok(()) } else { Err(Unreadable::NotAFile) }
}

/// A path for a message.
pub(crate) fn shown(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

/// The directory of a file; the empty path, the current directory, for a bare name.
pub fn directory(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    use super::*;

    /// The kind of file is checked before and after it is opened.
    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [fifo.as_path(), Path::new("/dev/zero"), directory.path()] {
            assert!(matches!(open(path), Err(Unreadable::NotAFile)), "{}", path.display());
            assert!(matches!(read_text_file(path, 10), Err(Unreadable::NotAFile)), "{}", path.display());
        }
        let file = directory.path().join("file");
        fs::write(&file, "text").unwrap();
        assert_eq!(read_text_file(&file, 4).unwrap(), "text");
        assert_eq!(read_text_file(&file, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        fs::write(&file, b"a\n\xff").unwrap();
        assert_eq!(read_text_file(&file, 3).unwrap_err().to_string(), "it is not UTF-8 at line 2, column 1");
    }
}
