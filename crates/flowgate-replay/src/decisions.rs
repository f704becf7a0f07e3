//! Decision lines: the request as the trace gives it, and the decision as the HTTP API gives it.
//!
//! ```text
//! {"ts":"17/May/2015:10:05:03 +0000","line":1,"fields":{"ip":"203.0.113.7","path":"/a"},"allowed":true,..}
//! ```
//!
//! Rule       `ts` is the text of the trace. The fields are those that the rules see. `file` is present if the replay
//!            reads several traces.

use std::io::{self, Write};

use flowgate_api::{Decision, write_text};
use flowgate_engine::field_name::canonical;

use super::batch::{Batch, HeldLine};
use super::event::{FieldName, Format, LogField, WantedFields};
use super::input::Source;

/// Writes each decision as one line of JSON.
pub struct DecisionWriter<'a> {
    out: &'a mut dyn Write,
    names_files: bool,
    traces: Vec<TraceOfDecisions>,
    /// The names of the fields of access logs as keys of an object, by [`LogField`].
    log_keys: [String; LogField::ALL.len()],
    line: Vec<u8>,
}

/// What the decision lines of a trace have in common.
struct TraceOfDecisions {
    /// The member `file` with its comma; empty if the replay reads one trace.
    file: Vec<u8>,
    format: Format,
}

/// A line of a trace and its decision.
pub(crate) struct DecisionLine<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) line: &'a HeldLine,
    pub(crate) wanted: &'a WantedFields,
    pub(crate) decision: &'a flowgate_engine::Decision,
}

impl<'a> DecisionWriter<'a> {
    /// A writer for the decisions on this number of traces.
    pub fn new(out: &'a mut dyn Write, traces: usize) -> DecisionWriter<'a> {
        let log_keys = LogField::ALL.map(|field| format!("\"{}\":", field.name()));
        DecisionWriter { out, names_files: traces > 1, traces: Vec::new(), log_keys, line: Vec::new() }
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

    pub(crate) fn write(&mut self, decision_line: &DecisionLine<'_>) -> io::Result<()> {
        let DecisionLine { batch, line: held, wanted, decision } = *decision_line;
        // Every trace is begun before its first line.
        let Some(TraceOfDecisions { file, format }) = self.traces.get(held.source as usize) else { return Ok(()) };
        let time = batch.time_text(held);
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
        serde_json::to_writer(&mut *line, &held.number)?;
        line.extend_from_slice(b",\"fields\":{");
        for (index, (name, value)) in batch.fields(held).enumerate() {
            if index > 0 {
                line.push(b',');
            }
            match name {
                FieldName::Log(field) => line.extend_from_slice(self.log_keys[field as usize].as_bytes()),
                name => {
                    write_text(line, canonical(batch.name(name, wanted)))?;
                    line.push(b':');
                }
            }
            write_text(line, value)?;
        }
        line.extend_from_slice(b"},");
        Decision::from(decision).write_members(line)?;
        line.extend_from_slice(b"}\n");
        self.out.write_all(line)
    }
}
