//! Decision lines: the request as the trace gives it, and the decision as the HTTP API gives it.
//!
//! ```text
//! {"ts":"17/May/2015:10:05:03 +0000","line":1,"fields":{"ip":"203.0.113.7","path":"/a"},"allowed":true,..}
//! ```
//!
//! Rule       `ts` is the text of the trace. The fields are those that the rules see. `file` is present if the replay
//!            reads several traces.

use std::io::{self, Write};

use flowgate_engine::{Decision, Request};
use flowgate_server::decision_json::{write_members, write_number, write_text};

use super::event::Format;
use super::input::Source;

/// Writes each decision as one line of JSON.
pub struct DecisionWriter<'a> {
    out: &'a mut dyn Write,
    names_files: bool,
    /// The member `file` of the current trace with its comma; empty if the replay reads one trace.
    file: Vec<u8>,
    line: Vec<u8>,
}

/// A line of a trace and its decision.
pub(super) struct DecisionLine<'a, 'q> {
    pub(super) number: u64,
    /// The time as the line gives it.
    pub(super) time: &'a str,
    pub(super) format: Format,
    pub(super) request: &'a Request<'q>,
    pub(super) decision: &'a Decision,
}

impl<'a> DecisionWriter<'a> {
    /// A writer for the decisions on this number of traces.
    pub fn new(out: &'a mut dyn Write, traces: usize) -> DecisionWriter<'a> {
        DecisionWriter { out, names_files: traces > 1, file: Vec::new(), line: Vec::new() }
    }

    /// Begins the next trace.
    pub(super) fn begin(&mut self, source: &Source) {
        if self.names_files {
            self.file.clear();
            self.file.extend_from_slice(b"\"file\":");
            write_text(&mut self.file, &source.name());
            self.file.push(b',');
        }
    }

    pub(super) fn write(&mut self, decision_line: DecisionLine<'_, '_>) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"ts\":");
        match decision_line.format {
            // The text is a JSON value.
            Format::Jsonl => line.extend_from_slice(decision_line.time.as_bytes()),
            Format::Combined | Format::Common => write_text(line, decision_line.time),
        }
        line.push(b',');
        line.extend_from_slice(&self.file);
        line.extend_from_slice(b"\"line\":");
        write_number(line, decision_line.number);
        line.extend_from_slice(b",\"fields\":{");
        for (index, (name, value)) in decision_line.request.fields().enumerate() {
            if index > 0 {
                line.push(b',');
            }
            write_text(line, name);
            line.push(b':');
            write_text(line, value);
        }
        line.extend_from_slice(b"},");
        write_members(line, decision_line.decision);
        line.extend_from_slice(b"}\n");
        self.out.write_all(line)
    }
}
