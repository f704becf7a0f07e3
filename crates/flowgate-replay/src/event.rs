//! The content of one line of a trace: time, operation, cost and fields. The fields borrow from the line where
//! possible.
//!
//! Invariant  An [`Event`] is made once and filled again for every line. Reading a line allocates only if the line has
//!            escapes to resolve, or more fields than every earlier line.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use flowgate::Time;
use flowgate_api::Operation;
use flowgate_engine::field_name::{REFERER, USER_AGENT};
use flowgate_engine::{Request, http::PathSpelling};

use super::timestamp::LastOfLog;
use super::{access_log, jsonl};

/// The prefix of the fields of a query's parameters.
pub(crate) const QUERY_PREFIX: &str = "query.";

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// The access log of most web servers: `Common`, then referrer and user agent.
    Combined,
    /// The older access log: address, user, time, request, status, size.
    Common,
}

impl Format {
    /// Every format, in the order in which a guess tries them.
    pub const ALL: [Format; 3] = [Format::Jsonl, Format::Combined, Format::Common];

    /// Reads a line into `event`.
    ///
    /// # Errors
    /// The place and the text that was expected there. The content of `event` is then unspecified.
    #[inline]
    pub fn read(self, line: &str, event: &mut Event) -> Result<(), LineError> {
        event.clear();
        match self {
            Format::Jsonl => jsonl::read(line, event),
            Format::Combined => access_log::read(line, access_log::LastField::UserAgent, event),
            Format::Common => access_log::read(line, access_log::LastField::Size, event),
        }
    }

    /// The first format that can read one of these lines.
    pub fn guess<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<Format> {
        let mut event = Event::default();
        lines.find_map(|line| Format::ALL.into_iter().find(|format| format.read(line, &mut event).is_ok()))
    }

    /// The name of the format on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Combined => "combined",
            Format::Common => "common",
        }
    }
}

/// The content of a line.
#[derive(Debug)]
pub struct Event {
    /// The time that the line gives.
    pub time: Time,
    /// The range of the time in the line: a JSON value with its quotes, or the text between an access log's brackets.
    pub time_range: Range<usize>,
    /// The operation.
    pub operation: Operation,
    /// The cost in units.
    pub cost: u64,
    /// The fields, with names and values as ranges.
    pub(crate) fields: Vec<(FieldName, TextRange)>,
    /// The fields of access logs to read.
    pub(crate) wanted: WantedFields,
    /// The spelling that paths of access logs get.
    pub(crate) spelling: PathSpelling,
    /// The time of the latest line of an access log.
    pub(crate) last_of_log: LastOfLog,
    /// Texts that differ from their spelling in the line, such as those with escapes.
    scratch: String,
}

/// A field that access logs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogField {
    Ip,
    Host,
    User,
    Method,
    Path,
    Status,
    Referer,
    UserAgent,
}

impl LogField {
    pub(crate) const ALL: [LogField; 8] = [
        LogField::Ip,
        LogField::Host,
        LogField::User,
        LogField::Method,
        LogField::Path,
        LogField::Status,
        LogField::Referer,
        LogField::UserAgent,
    ];

    /// The name of the field in rules. It is the same as behind a gateway.
    pub(crate) fn name(self) -> &'static str {
        const NAMES: [&str; 8] = ["ip", "host", "user", "method", "path", "status", REFERER, USER_AGENT];
        NAMES[self as usize]
    }
}

/// The fields of access logs that the rules use. The others are skipped.
#[derive(Clone, Debug)]
pub(crate) struct WantedFields {
    /// One bit for each [`LogField`].
    log: u8,
    /// The parameters of the query, by the names of their fields: `query.page`.
    pub(crate) queries: Arc<[Box<str>]>,
}

impl WantedFields {
    /// Wants only the fields of these names.
    pub(crate) fn named(names: &[&str]) -> WantedFields {
        let wanted = LogField::ALL.into_iter().filter(|field| names.contains(&field.name()));
        WantedFields { log: wanted.fold(0, |bits, field| bits | 1 << field as u8), queries: queries(names) }
    }

    #[inline]
    pub(crate) fn has(&self, field: LogField) -> bool {
        self.log & 1 << field as u8 != 0
    }
}

/// The name of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldName {
    Log(LogField),
    /// The index of a wanted parameter.
    Query(u32),
    Read(TextRange),
}

/// A range of the line, or of the scratch text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextRange {
    start: u32,
    end: u32,
    is_scratch: bool,
}

impl TextRange {
    /// The text of this range in a batch's text, which holds all values of the batch.
    #[inline]
    pub(crate) fn within(self, batch: &str) -> &str {
        batch.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// A range of the line, or of a text that holds many values. A line is shorter than
    /// [`MAX_LINE_BYTES`](super::lines::MAX_LINE_BYTES), so `u32` is enough.
    #[inline]
    pub(crate) fn new(range: Range<usize>) -> TextRange {
        TextRange { start: range.start as u32, end: range.end as u32, is_scratch: false }
    }
}

impl Default for Event {
    /// An event that takes every field but the parameters of queries from access logs.
    fn default() -> Event {
        Event::with_all_fields(&[])
    }
}

impl Event {
    /// An event that takes only the fields of these names from access logs.
    pub fn with_fields(names: &[&str]) -> Event {
        Event::new(WantedFields::named(names))
    }

    /// An event that takes every field from access logs, and of the parameters of queries those of these names.
    pub(crate) fn with_all_fields(names: &[&str]) -> Event {
        Event::new(WantedFields { log: u8::MAX, queries: queries(names) })
    }

    fn new(wanted: WantedFields) -> Event {
        Event {
            time: Time::EPOCH,
            time_range: 0..0,
            operation: Operation::Take,
            cost: 1,
            fields: Vec::new(),
            wanted,
            spelling: PathSpelling::default(),
            last_of_log: LastOfLog::default(),
            scratch: String::new(),
        }
    }

    /// The event with this spelling of paths.
    pub(crate) fn with_spelling(self, spelling: PathSpelling) -> Event {
        Event { spelling, ..self }
    }

    fn clear(&mut self) {
        self.operation = Operation::Take;
        self.cost = 1;
        self.fields.clear();
        self.scratch.clear();
    }

    /// The request of the line that this event was read from.
    #[inline]
    pub fn request<'a>(&'a self, line: &'a str) -> Request<'a> {
        let mut request = Request::new();
        request.cost = self.cost;
        for (name, value) in &self.fields {
            request.push(self.name(*name, line), self.text(*value, line));
        }
        request
    }

    #[inline]
    fn name<'a>(&'a self, name: FieldName, line: &'a str) -> &'a str {
        match name {
            FieldName::Log(field) => field.name(),
            FieldName::Query(index) => self.wanted.queries.get(index as usize).map_or("", |name| name),
            FieldName::Read(range) => self.text(range, line),
        }
    }

    #[inline]
    pub(crate) fn text<'a>(&'a self, range: TextRange, line: &'a str) -> &'a str {
        let TextRange { start, end, is_scratch } = range;
        let whole = if is_scratch { &self.scratch } else { line };
        // Every range begins and ends between two characters.
        whole.get(start as usize..end as usize).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn push(&mut self, name: FieldName, value: TextRange) {
        self.fields.push((name, value));
    }

    /// Whether the event already has a field of this name.
    #[inline]
    pub(crate) fn has(&self, name: TextRange, line: &str) -> bool {
        let name = self.text(name, line);
        self.fields.iter().any(|(other, _)| self.name(*other, line) == name)
    }

    /// The range of a text that `write` appends to the scratch text.
    pub(crate) fn in_scratch<E>(&mut self, write: impl FnOnce(&mut String) -> Result<(), E>) -> Result<TextRange, E> {
        let start = self.scratch.len() as u32;
        write(&mut self.scratch)?;
        Ok(TextRange { start, end: self.scratch.len() as u32, is_scratch: true })
    }
}

/// The names among these that are parameters of a query.
fn queries(names: &[&str]) -> Arc<[Box<str>]> {
    names.iter().filter(|name| name.starts_with(QUERY_PREFIX)).map(|name| Box::from(*name)).collect()
}

/// Why a line cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// The line has an unexpected text.
    Expected {
        /// The place, in bytes from the start of the line.
        at: usize,
        /// The text that was expected there.
        what: &'static str,
    },
    /// The line is longer than [`MAX_LINE_BYTES`](super::lines::MAX_LINE_BYTES).
    TooLong,
    /// The line is not UTF-8.
    NotText,
}

impl LineError {
    #[inline]
    pub(crate) fn expected(what: &'static str, at: usize) -> LineError {
        LineError::Expected { at, what }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Expected { at, what } => write!(f, "column {}: expected {what}", at + 1),
            LineError::TooLong => write!(f, "longer than {} bytes", super::lines::MAX_LINE_BYTES),
            LineError::NotText => f.write_str("not UTF-8"),
        }
    }
}
