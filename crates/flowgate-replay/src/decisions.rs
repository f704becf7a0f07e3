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
use serde::Serialize;

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
pub(crate) struct DecisionLine<'a, 'q> {
    pub(crate) number: u64,
    /// The time as the line gives it.
    pub(crate) time: &'a str,
    pub(crate) format: Format,
    pub(crate) request: &'a Request<'q>,
    pub(crate) decision: &'a flowgate_engine::Decision,
}

impl<'a> DecisionWriter<'a> {
    /// A writer for the decisions on this number of traces.
    pub fn new(out: &'a mut dyn Write, traces: usize) -> DecisionWriter<'a> {
        DecisionWriter { out, names_files: traces > 1, file: Vec::new(), line: Vec::new() }
    }

    /// Begins the next trace.
    pub(crate) fn begin(&mut self, source: &Source) -> io::Result<()> {
        if self.names_files {
            self.file.clear();
            self.file.extend_from_slice(b"\"file\":");
            write_text(&mut self.file, &source.name())?;
            self.file.push(b',');
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, decision_line: DecisionLine<'_, '_>) -> io::Result<()> {
        let DecisionLine { number, time, format, request, decision } = decision_line;
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"ts\":");
        match format {
            // The text is a JSON value.
            Format::Jsonl => line.extend_from_slice(time.as_bytes()),
            Format::Combined | Format::Common => write_text(line, time)?,
        }
        line.push(b',');
        line.extend_from_slice(&self.file);
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
        line.push(b'}');
        write_members(line, &decision.into())?;
        line.extend_from_slice(b"}\n");
        self.out.write_all(line)
    }
}

/// Appends the members of a decision, each after a comma. serde_json checks every key for escapes, which takes a sixth of
/// the time of a replay that writes its decisions, so the keys are written directly.
fn write_members(out: &mut Vec<u8>, decision: &Decision<'_>) -> io::Result<()> {
    // A new member of the decision fails to compile here.
    let Decision {
        allowed,
        action,
        rule,
        matched,
        code,
        message,
        limit,
        remaining,
        retry_after,
        never,
        reset_after,
        delay,
        exceeded,
        shadow,
        banned_until,
        degraded,
    } = decision;
    write_member(out, ",\"allowed\":", allowed)?;
    write_member(out, ",\"action\":", action)?;
    write_member(out, ",\"rule\":", rule)?;
    write_member(out, ",\"matched\":", matched)?;
    if let Some(code) = code {
        write_member(out, ",\"code\":", code)?;
    }
    if let Some(message) = message {
        write_member(out, ",\"message\":", message)?;
    }
    write_member(out, ",\"limit\":", limit)?;
    write_member(out, ",\"remaining\":", remaining)?;
    write_member(out, ",\"retry_after\":", retry_after)?;
    if *never {
        write_member(out, ",\"never\":", never)?;
    }
    write_member(out, ",\"reset_after\":", reset_after)?;
    write_member(out, ",\"delay\":", delay)?;
    write_member(out, ",\"exceeded\":", exceeded)?;
    write_member(out, ",\"shadow\":", shadow)?;
    write_member(out, ",\"banned_until\":", banned_until)?;
    write_member(out, ",\"degraded\":", degraded)
}

fn write_member(out: &mut Vec<u8>, key: &'static str, value: &impl Serialize) -> io::Result<()> {
    out.extend_from_slice(key.as_bytes());
    Ok(serde_json::to_writer(out, value)?)
}

/// Appends a text as JSON. Most texts need no escape, so one check of all bytes comes first.
fn write_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    let needs_escape = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    if text.as_bytes().iter().any(needs_escape) {
        return Ok(serde_json::to_writer(out, text)?);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use flowgate_api::{Exceeded, Millis};

    use super::*;

    #[test]
    fn members_are_those_of_the_api() {
        let allowed = Decision { allowed: true, action: "allow".into(), limit: Some(5), ..Decision::default() };
        let denied = Decision {
            action: "ban \"x\"".into(),
            rule: Some("per\\user".into()),
            matched: true,
            code: Some(-7),
            message: Some("slow\ndown".into()),
            remaining: Some(0),
            retry_after: Some(Millis(1_250)),
            reset_after: Millis(60_001),
            exceeded: vec![Exceeded { limit: "1/s".into(), never: true, ..Exceeded::default() }],
            shadow: vec!["all".into()],
            banned_until: Some(Millis(1_700_000_000_500)),
            degraded: true,
            ..Decision::default()
        };
        for decision in [allowed, Decision { never: true, ..denied.clone() }, denied] {
            let mut members = Vec::new();
            write_members(&mut members, &decision).unwrap();
            let members = String::from_utf8(members).unwrap();
            assert_eq!(format!("{{{}}}", &members[1..]), serde_json::to_string(&decision).unwrap());
        }
    }
}
