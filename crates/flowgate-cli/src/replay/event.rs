//! One line of a trace, read: when, what was asked, and the fields, borrowed from the line wherever it can be.
//!
//! Invariant  An [`Event`] is made once and filled anew for every line: reading a line allocates nothing unless it
//!            has escapes to resolve or more fields than any before it.

use std::fmt;
use std::ops::Range;

use flowgate::Time;
use flowgate_engine::{PathSpelling, Request};
use flowgate_server::Operation;

use super::timestamp::LastOfLog;
use super::{access_log, jsonl};

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// The access log that most web servers write: that of `Common`, referrer and user agent.
    Combined,
    /// The older access log: address, user, time, request, status, size.
    Common,
}

impl Format {
    /// Reads a line into `event`.
    ///
    /// # Errors
    /// What was expected where; `event` is then of no use.
    #[inline]
    pub fn read(self, line: &str, event: &mut Event) -> Result<(), Unreadable> {
        event.clear();
        match self {
            Format::Jsonl => jsonl::read(line, event),
            Format::Combined => access_log::read(line, access_log::Ends::AfterUserAgent, event),
            Format::Common => access_log::read(line, access_log::Ends::AfterSize, event),
        }
    }

    /// The format that fits the first lines of a trace: the first that can read one of them.
    pub fn guess<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<Format> {
        let mut event = Event::default();
        lines.find_map(|line| {
            let formats = [Format::Jsonl, Format::Combined, Format::Common];
            formats.into_iter().find(|format| format.read(line, &mut event).is_ok())
        })
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Combined => "combined",
            Format::Common => "common",
        }
    }
}

/// A line that was read.
#[derive(Debug)]
pub struct Event {
    /// When it happened, as the line says.
    pub time: Time,
    /// The time as it was written: a JSON value (with its quotes) or the words between an access log's brackets.
    pub given: Range<usize>,
    /// What was asked.
    pub operation: Operation,
    /// How much.
    pub cost: u64,
    fields: Vec<(Name, Piece)>,
    /// Which fields of access logs to read.
    wanted: Wanted,
    /// How the paths of access logs are spelled.
    pub(crate) spelling: PathSpelling,
    /// The time that an access log gave last.
    pub(crate) last_of_log: LastOfLog,
    /// Texts that do not stand in the line as they are meant.
    scratch: String,
}

/// The fields of access logs that somebody asks for: the others need not be looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) ip: bool,
    pub(crate) host: bool,
    pub(crate) user: bool,
    pub(crate) method: bool,
    pub(crate) path: bool,
    pub(crate) status: bool,
    pub(crate) ua: bool,
}

/// The name of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Fixed(&'static str),
    Read(Piece),
}

/// A text: a part of the line, or of what was written aside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    start: u32,
    end: u32,
    aside: bool,
}

impl Default for Event {
    fn default() -> Event {
        let (fields, scratch) = (Vec::new(), String::new());
        let wanted = Wanted { ip: true, host: true, user: true, method: true, path: true, status: true, ua: true };
        let last_of_log = LastOfLog::default();
        Event {
            time: Time::EPOCH,
            given: 0..0,
            operation: Operation::Take,
            cost: 1,
            fields,
            wanted,
            spelling: PathSpelling::default(),
            last_of_log,
            scratch,
        }
    }
}

impl Event {
    /// An event into which access logs give only the fields of these names.
    pub fn with_fields(names: &[&str]) -> Event {
        let has = |name: &str| names.contains(&name);
        let wanted = Wanted {
            ip: has("ip"),
            host: has("host"),
            user: has("user"),
            method: has("method"),
            path: has("path"),
            status: has("status"),
            ua: has("ua"),
        };
        Event { wanted, ..Event::default() }
    }

    /// The same, with paths in the spelling of these rules.
    pub(crate) fn spelled(self, spelling: PathSpelling) -> Event {
        Event { spelling, ..self }
    }

    #[inline]
    pub(crate) fn wanted(&self) -> Wanted {
        self.wanted
    }

    fn clear(&mut self) {
        self.operation = Operation::Take;
        self.cost = 1;
        self.fields.clear();
        self.scratch.clear();
    }

    /// The request, of the line that was read into this event.
    #[inline]
    pub fn request<'a>(&'a self, line: &'a str) -> Request<'a> {
        let mut request = Request::new();
        request.set_cost(self.cost);
        for (name, value) in &self.fields {
            let name = match *name {
                Name::Fixed(name) => name,
                Name::Read(piece) => self.text(piece, line),
            };
            request.push(name, self.text(*value, line));
        }
        request
    }

    #[inline]
    fn text<'a>(&'a self, piece: Piece, line: &'a str) -> &'a str {
        let Piece { start, end, aside } = piece;
        let whole = if aside { &self.scratch } else { line };
        // Pieces are made at boundaries of characters, of the same line.
        whole.get(start as usize..end as usize).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn push(&mut self, name: Name, value: Piece) {
        self.fields.push((name, value));
    }

    /// Whether a field of this name was read from the line already.
    #[inline]
    pub(crate) fn has(&self, name: Piece, line: &str) -> bool {
        let name = self.text(name, line);
        self.fields.iter().any(|(other, _)| match *other {
            Name::Fixed(other) => other == name,
            Name::Read(other) => self.text(other, line) == name,
        })
    }

    /// A part of the line. Lines are shorter than 4 GiB by far.
    #[inline]
    pub(crate) fn part(range: Range<usize>) -> Piece {
        Piece { start: range.start as u32, end: range.end as u32, aside: false }
    }

    /// A text that is written aside by `write`.
    pub(crate) fn aside<E>(&mut self, write: impl FnOnce(&mut String) -> Result<(), E>) -> Result<Piece, E> {
        let start = self.scratch.len() as u32;
        write(&mut self.scratch)?;
        Ok(Piece { start, end: self.scratch.len() as u32, aside: true })
    }
}

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Something else was expected.
    Expected {
        /// Where, in bytes from the start of the line.
        at: usize,
        /// What.
        what: &'static str,
    },
    /// It is longer than any line of a trace.
    TooLong,
    /// It is no UTF-8.
    NotText,
}

impl Unreadable {
    #[inline]
    pub(crate) fn expected(what: &'static str, at: usize) -> Unreadable {
        Unreadable::Expected { at, what }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Expected { at, what } => write!(f, "column {}: expected {what}", at + 1),
            Unreadable::TooLong => write!(f, "longer than {} bytes", super::lines::MAX_LINE),
            Unreadable::NotText => f.write_str("not UTF-8"),
        }
    }
}
