//! The sources of traces: files or standard input, plain or gzip, in a given or a guessed format.
//!
//! Rule       The first two bytes tell gzip from plain text; the name of the file does not matter.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flate2::read::MultiGzDecoder;

use super::event::{Event, Format, LineError};
use super::lines::Lines;

/// The number of lines from which the format is guessed.
const MAX_GUESS_LINES: usize = 20;

/// An open trace.
pub struct Input {
    /// The lines of the trace.
    pub lines: Lines<Box<dyn Read>>,
    /// The format of the lines.
    pub format: Format,
    /// Bytes read so far, still compressed if the trace is gzip.
    pub read: Arc<AtomicU64>,
    /// The size of the file in bytes; `None` if the source is a stream.
    pub size: Option<u64>,
}

/// Why a trace cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The operating system reports an error.
    #[error("cannot read {name}: {error}")]
    Unreadable {
        /// The name of the file.
        name: String,
        /// The reason.
        error: io::Error,
    },
    /// No format fits any of the first lines.
    #[error(
        "cannot tell the format of {name} from its first lines; the first, read as {}: {reason}. Say --format jsonl, \
         combined or common to see what is wrong with the others",
        .format.name()
    )]
    Unknown {
        /// The name of the file.
        name: String,
        /// The format that the first line resembles.
        format: Format,
        /// Why the first line does not have that format.
        reason: LineError,
    },
}

/// A file, standard input or memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `-`
    Stdin,
    /// A path.
    File(PathBuf),
    /// Lines in memory.
    Memory(Arc<[u8]>),
}

impl Source {
    /// The source at a path; `-` is standard input.
    pub fn new(path: &Path) -> Source {
        if path == Path::new("-") { Source::Stdin } else { Source::File(path.to_owned()) }
    }

    /// The name for messages and reports.
    pub fn name(&self) -> String {
        match self {
            Source::Stdin => "standard input".to_owned(),
            Source::File(path) => path.display().to_string(),
            Source::Memory(_) => "memory".to_owned(),
        }
    }

    /// Opens the source, and guesses the format of its lines if none is given.
    ///
    /// # Errors
    /// If the source cannot be read, or its format cannot be guessed.
    pub fn open(&self, format: Option<Format>) -> Result<Input, InputError> {
        let failed = |error| InputError::Unreadable { name: self.name(), error };
        let (reader, size): (Box<dyn Read>, _) = match self {
            Source::Stdin => (Box::new(io::stdin().lock()), None),
            Source::Memory(lines) => (Box::new(io::Cursor::new(Arc::clone(lines))), Some(lines.len() as u64)),
            Source::File(path) => {
                let file = File::open(path).map_err(failed)?;
                let data = file.metadata().map_err(failed)?;
                // The length of a pipe is reported as zero.
                (Box::new(file), data.is_file().then_some(data.len()))
            }
        };
        let read = Arc::new(AtomicU64::new(0));
        let counting = CountingReader { reader, read: Arc::clone(&read) };
        let mut lines = Lines::new(unpacked(counting).map_err(failed)?);
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

/// The format of a trace with this start, or the error in its first line. For an empty trace any format is right.
fn guess(start: &[u8]) -> Result<Format, (Format, LineError)> {
    let text = String::from_utf8_lossy(start);
    let lines = text.lines().map(|line| line.trim_start_matches('\u{feff}'));
    let mut lines = lines.filter(|line| !line.trim().is_empty()).take(MAX_GUESS_LINES).peekable();
    let Some(&first) = lines.peek() else { return Ok(Format::Jsonl) };
    Format::guess(lines).ok_or_else(|| {
        let format = if first.trim_start().starts_with('{') { Format::Jsonl } else { Format::Common };
        let reason = format.read(first, &mut Event::default()).err();
        (format, reason.unwrap_or(LineError::NotText))
    })
}

/// The bytes of the reader, decompressed if they begin with the magic number of gzip.
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

struct CountingReader<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.read.fetch_add(length as u64, Relaxed);
        Ok(length)
    }
}
