//! Decision lines: the request as the trace gives it, and the decision as the HTTP API gives it.
//!
//! ```text
//! {"ts":"17/May/2015:10:05:03 +0000","line":1,"fields":{"ip":"203.0.113.7","path":"/a"},"allowed":true,..}
//! ```
//!
//! Rule       `ts` is the text of the trace. The fields are those that the rules see. `file` is present if the replay
//!            reads several traces.

use std::io::{self, Write};

use flowgate_api::Decision;
use flowgate_engine::Request;

use super::event::Format;
use super::input::Source;

/// Writes each decision as one line of JSON.
pub struct DecisionWriter<'a> {
    out: &'a mut dyn Write,
    names_files: bool,
    traces: Vec<TraceOfDecisions>,
    line: Vec<u8>,
}

/// What the decision lines of a trace have in common.
struct TraceOfDecisions {
    /// The member `file` with its comma; empty if the replay reads one trace.
    file: Vec<u8>,
    format: Format,
}

/// A line of a trace and its decision.
pub(crate) struct DecisionLine<'a, 'q> {
    /// The number of the trace, from 0.
    pub(crate) source: u32,
    pub(crate) number: u64,
    /// The time as the line gives it.
    pub(crate) time: &'a str,
    pub(crate) request: &'a Request<'q>,
    pub(crate) decision: &'a flowgate_engine::Decision,
}

impl<'a> DecisionWriter<'a> {
    /// A writer for the decisions on this number of traces.
    pub fn new(out: &'a mut dyn Write, traces: usize) -> DecisionWriter<'a> {
        DecisionWriter { out, names_files: traces > 1, traces: Vec::new(), line: Vec::new() }
    }

    /// Begins the next trace.
    pub(crate) fn begin(&mut self, source: &Source, format: Format) -> io::Result<()> {
        let mut file = Vec::new();
        if self.names_files {
            file.extend_from_slice(b"\"file\":");
            write_text(&mut file, &source.name())?;
            file.push(b',');
        }
        self.traces.push(TraceOfDecisions { file, format });
        Ok(())
    }

    pub(crate) fn write(&mut self, decision_line: DecisionLine<'_, '_>) -> io::Result<()> {
        let DecisionLine { source, number, time, request, decision } = decision_line;
        // Every trace was begun before its first line.
        let Some(TraceOfDecisions { file, format }) = self.traces.get(source as usize) else { return Ok(()) };
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"ts\":");
        match format {
            // The text is a JSON value.
            Format::Jsonl => line.extend_from_slice(time.as_bytes()),
            Format::Combined | Format::Common => write_text(line, time)?,
        }
        line.push(b',');
        line.extend_from_slice(file);
        line.extend_from_slice(b"\"line\":");
        serde_json::to_writer(&mut *line, &number)?;
        line.extend_from_slice(b",\"fields\":{");
        for (index, (name, value)) in request.fields().enumerate() {
            if index > 0 {
                line.push(b',');
            }
            write_text(line, name)?;
            line.push(b':');
            write_text(line, value)?;
        }
        line.extend_from_slice(b"},");
        Decision::from(decision).write_members(line)?;
        line.extend_from_slice(b"}\n");
        self.out.write_all(line)
    }
}

/// Appends a text as JSON. Most texts need no escape, so one check of all bytes comes first.
fn write_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    // Without a branch for each byte the compiler checks many bytes at once.
    let needs_escape = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    if text.bytes().fold(false, |found, byte| found | needs_escape(byte)) {
        return Ok(serde_json::to_writer(out, text)?);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}
