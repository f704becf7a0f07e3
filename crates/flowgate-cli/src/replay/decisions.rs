//! Decision lines: whose decision it is, and the decision as the HTTP API gives it.
//!
//! ```text
//! {"ts":"17/May/2015:10:05:03 +0000","line":1,"fields":{"ip":"203.0.113.7","path":"/a"},"allowed":true,..}
//! ```
//!
//! Rule       The time is as the trace wrote it, the fields are as rules see them, and `file` is there where there are
//!            several traces.

use std::io::{self, Write};

use flowgate_engine::{Decision, Request};
use flowgate_server::decision_json::{write_members, write_number, write_text};

use super::event::Format;
use super::input::Place;

/// Where decisions are written.
pub struct Decisions<'a> {
    out: &'a mut dyn Write,
    names_files: bool,
    /// The member `file` of the present trace, with its comma; or nothing.
    file: Vec<u8>,
    line: Vec<u8>,
}

/// A line of a trace that was decided.
pub(super) struct Decided<'a, 'q> {
    pub(super) number: u64,
    /// The time as the line gives it.
    pub(super) time: &'a str,
    pub(super) format: Format,
    pub(super) request: &'a Request<'q>,
    pub(super) decision: &'a Decision,
}

impl<'a> Decisions<'a> {
    /// Of so many traces.
    pub fn new(out: &'a mut dyn Write, traces: usize) -> Decisions<'a> {
        Decisions { out, names_files: traces > 1, file: Vec::new(), line: Vec::new() }
    }

    /// Another trace begins.
    pub(super) fn begin(&mut self, place: &Place) {
        if self.names_files {
            self.file.clear();
            self.file.extend_from_slice(b"\"file\":");
            write_text(&mut self.file, &place.name());
            self.file.push(b',');
        }
    }

    pub(super) fn write(&mut self, decided: Decided<'_, '_>) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"ts\":");
        match decided.format {
            // A JSON value already.
            Format::Jsonl => line.extend_from_slice(decided.time.as_bytes()),
            Format::Combined | Format::Common => write_text(line, decided.time),
        }
        line.push(b',');
        line.extend_from_slice(&self.file);
        line.extend_from_slice(b"\"line\":");
        write_number(line, decided.number);
        line.extend_from_slice(b",\"fields\":{");
        for (index, (name, value)) in decided.request.fields().enumerate() {
            if index > 0 {
                line.push(b',');
            }
            write_text(line, name);
            line.push(b':');
            write_text(line, value);
        }
        line.extend_from_slice(b"},");
        write_members(line, decided.decision);
        line.extend_from_slice(b"}\n");
        self.out.write_all(line)
    }
}
