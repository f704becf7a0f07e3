//! Where traces come from: files or standard input, plain or gzip, in a format that is told or guessed.
//!
//! Rule       Gzip is known by its first two bytes, whatever the file is called. Files are read one after the other, in
//!            the order in which they are given.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flate2::read::MultiGzDecoder;

use super::event::{Event, Format, Unreadable};
use super::lines::Lines;

/// So many lines are looked at to tell a format.
const GUESSED_BY: usize = 20;

/// A trace that is open.
pub struct Input {
    /// Its lines.
    pub lines: Lines<Box<dyn Read>>,
    /// How it is written.
    pub format: Format,
    /// How much of it has been read, before it was unpacked.
    pub read: Arc<AtomicU64>,
    /// How much there is; `None` where nobody knows.
    pub size: Option<u64>,
}

/// Why a trace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system says so.
    #[error("cannot read {name}: {error}")]
    Unreadable {
        /// The file.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// No format reads any of its first lines.
    #[error(
        "cannot tell the format of {name} from its first lines; the first, read as {}: {reason}. Say --format jsonl, \
         combined or common to see what is wrong with the others",
        .format.name()
    )]
    Unknown {
        /// The file.
        name: String,
        /// What its first line looks like.
        format: Format,
        /// Why it is none.
        reason: Unreadable,
    },
}

/// A file, or standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `-`
    Stdin,
    /// A path.
    File(PathBuf),
}

impl Place {
    /// `-` is standard input.
    pub fn new(path: &Path) -> Place {
        if path == Path::new("-") { Place::Stdin } else { Place::File(path.to_owned()) }
    }

    /// For people.
    pub fn name(&self) -> String {
        match self {
            Place::Stdin => "standard input".to_owned(),
            Place::File(path) => path.display().to_string(),
        }
    }

    /// Opens it. An empty trace has whatever format was asked for.
    ///
    /// # Errors
    /// When it cannot be read, or its format is neither told nor to be guessed.
    pub fn open(&self, format: Option<Format>) -> Result<Input, InputError> {
        let failed = |error| InputError::Unreadable { name: self.name(), error };
        let (reader, size): (Box<dyn Read>, _) = match self {
            Place::Stdin => (Box::new(io::stdin().lock()), None),
            Place::File(path) => {
                let file = File::open(path).map_err(failed)?;
                let data = file.metadata().map_err(failed)?;
                // A pipe has a length of zero.
                (Box::new(file), data.is_file().then_some(data.len()))
            }
        };
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { reader, read: Arc::clone(&read) };
        let mut lines = Lines::new(unpacked(counted).map_err(failed)?);
        let format = match format {
            Some(format) => format,
            None => {
                let start = lines.peek().map_err(failed)?;
                guess(start).map_err(|(format, reason)| InputError::Unknown { name: self.name(), format, reason })?
            }
        };
        Ok(Input { lines, format, read, size })
    }
}

/// The format of a trace that begins like this, or what is wrong with its first line. One without lines has any.
fn guess(start: &[u8]) -> Result<Format, (Format, Unreadable)> {
    let text = String::from_utf8_lossy(start);
    let lines = text.lines().map(|line| line.trim_start_matches('\u{feff}'));
    let mut lines = lines.filter(|line| !line.trim().is_empty()).take(GUESSED_BY).peekable();
    let Some(&first) = lines.peek() else { return Ok(Format::Jsonl) };
    Format::guess(lines).ok_or_else(|| {
        let format = if first.trim_start().starts_with('{') { Format::Jsonl } else { Format::Common };
        let reason = format.read(first, &mut Event::default()).err();
        (format, reason.unwrap_or(Unreadable::NotText))
    })
}

/// What the reader gives, unpacked if it begins as gzip does.
fn unpacked(mut reader: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let mut magic = [0; 2];
    let mut length = 0;
    while length < magic.len() {
        match reader.read(&mut magic[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let whole = io::Cursor::new(magic).take(length as u64).chain(reader);
    Ok(if magic == [0x1f, 0x8b] { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) })
}

struct Counted<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.read.fetch_add(length as u64, Relaxed);
        Ok(length)
    }
}
