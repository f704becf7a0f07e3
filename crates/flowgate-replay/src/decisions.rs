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
use serde::{Serialize, Serializer};

use super::event::Format;
use super::input::Source;

/// Writes each decision as one line of JSON.
pub struct DecisionWriter<'a> {
    out: &'a mut dyn Write,
    names_files: bool,
    /// The name of the current trace, if the replay reads several traces.
    file: Option<String>,
    line: Vec<u8>,
}

/// A line of a trace and its decision.
pub(crate) struct DecisionLine<'a, 'q> {
    pub(crate) number: u64,
    /// The time as the line gives it.
    pub(crate) time: &'a str,
    pub(crate) format: Format,
    pub(crate) request: &'a Request<'q>,
    pub(crate) decision: &'a Decision,
}

/// The members after `ts`.
#[derive(Serialize)]
struct Members<'a, 'q> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    line: u64,
    #[serde(serialize_with = "serialize_fields")]
    fields: &'a Request<'q>,
    #[serde(flatten)]
    decision: flowgate_api::Decision<'a>,
}

impl<'a> DecisionWriter<'a> {
    /// A writer for the decisions on this number of traces.
    pub fn new(out: &'a mut dyn Write, traces: usize) -> DecisionWriter<'a> {
        DecisionWriter { out, names_files: traces > 1, file: None, line: Vec::new() }
    }

    /// Begins the next trace.
    pub(crate) fn begin(&mut self, source: &Source) {
        self.file = if self.names_files { Some(source.name()) } else { None };
    }

    pub(crate) fn write(&mut self, decision_line: DecisionLine<'_, '_>) -> io::Result<()> {
        let DecisionLine { number, time, format, request, decision } = decision_line;
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"ts\":");
        match format {
            // The text is a JSON value.
            Format::Jsonl => line.extend_from_slice(time.as_bytes()),
            Format::Combined | Format::Common => serde_json::to_writer(&mut *line, time)?,
        }
        let members = Members { file: self.file.as_deref(), line: number, fields: request, decision: decision.into() };
        let members_start = line.len();
        serde_json::to_writer(&mut *line, &members)?;
        // The members join the object that `ts` began.
        line[members_start] = b',';
        line.push(b'\n');
        self.out.write_all(line)
    }
}

fn serialize_fields<S: Serializer>(request: &Request<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(request.fields())
}
