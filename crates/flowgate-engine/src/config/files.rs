//! Reading files whose size and kind nobody vouches for.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::origin::Origin;
use super::report::Report;

/// The largest configuration file. Rules are written by people; this is far beyond what they write.
pub(crate) const LARGEST_CONFIG: u64 = 16 << 20;

/// Why a file could not be read, in words that fit behind a colon.
#[derive(Debug)]
pub(crate) enum Unreadable {
    Io(io::Error),
    NotAFile,
    TooLarge(u64),
    NotUtf8 { line: usize, column: usize },
}

impl Unreadable {
    /// Whether there is nothing of that name.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Unreadable::Io(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Io(error) => match error.kind() {
                io::ErrorKind::NotFound => f.write_str("there is no such file"),
                io::ErrorKind::PermissionDenied => f.write_str("permission denied"),
                _ => error.fmt(f),
            },
            Unreadable::NotAFile => f.write_str("it is not a regular file"),
            Unreadable::TooLarge(most) => write!(f, "it is larger than {most} bytes"),
            Unreadable::NotUtf8 { line, column } => write!(f, "it is not UTF-8 at line {line}, column {column}"),
        }
    }
}

/// Reads a text of at most `most` bytes and notes it, or that it is not there, among what was read. Pipes and
/// devices are refused: they may never end.
pub(crate) fn read(report: &mut Report, path: &Path, most: u64) -> Result<String, Unreadable> {
    let bytes = read_bytes(path, most);
    report.add_origin(Origin::file(path, most, bytes.as_deref().ok()));
    let bytes = bytes?;
    if bytes.len() as u64 > most {
        return Err(Unreadable::TooLarge(most));
    }
    String::from_utf8(bytes).map_err(|error| {
        let right = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let column = right.chars().rev().take_while(|&char| char != '\n').count() + 1;
        Unreadable::NotUtf8 { line: right.matches('\n').count() + 1, column }
    })
}

fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
    check(path)?;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(Unreadable::Io)?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(Unreadable::Io)?;
    Ok(bytes)
}

/// Whether there is a file to read.
pub(crate) fn check(path: &Path) -> Result<(), Unreadable> {
    let is_file = fs::metadata(path).map_err(Unreadable::Io)?.is_file();
    if is_file { Ok(()) } else { Err(Unreadable::NotAFile) }
}

/// A path for a message.
pub(crate) fn shown(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

/// The directory of a file; that of a bare name is the current one, written as nothing.
pub(crate) fn directory(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}
