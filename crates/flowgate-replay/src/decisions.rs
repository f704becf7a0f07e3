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

/// Appends a text as JSON. Most texts need no escape, so a check of all bytes comes first.
fn write_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    if needs_escape(text.as_bytes()) {
        return Ok(serde_json::to_writer(out, text)?);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

/// Whether JSON escapes one of the bytes. Most texts are short, so eight bytes are checked at a time, as one number.
fn needs_escape(text: &[u8]) -> bool {
    let (words, _) = text.as_chunks::<8>();
    let last = match text.last_chunk() {
        // The last word overlaps the word before it, so some bytes are checked twice.
        Some(last) => u64::from_ne_bytes(*last),
        None => text.iter().fold(ONES * u64::from(b' '), |word, byte| word << 8 | u64::from(*byte)),
    };
    words.iter().fold(escaped(last), |found, word| found | escaped(u64::from_ne_bytes(*word))) != 0
}

/// Eight bytes of 1.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

/// Nonzero if one of the eight bytes of a word is a control character, a quote or a backslash.
fn escaped(word: u64) -> u64 {
    const HIGH_BITS: u64 = ONES << 7;
    // A byte below `bound` borrows from its high bit, which was not set before. A borrow from a lower byte changes nothing:
    // that byte is below the bound, too.
    let is_below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGH_BITS;
    let is = |byte: u8| is_below(word ^ (ONES * u64::from(byte)), 1);
    is_below(word, u64::from(b' ')) | is(b'"') | is(b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_json_escapes_is_found_at_every_place() {
        for length in 0..=25 {
            assert!(!needs_escape(&vec![b'a'; length]));
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'a'; length];
                    text[place] = byte;
                    let expected = byte < b' ' || byte == b'"' || byte == b'\\';
                    assert_eq!(needs_escape(&text), expected, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn texts_are_written_as_serde_json_writes_them() {
        for text in [
            "",
            "/a",
            "with \"quotes\"",
            "back\\slash",
            "line\nend",
            "\u{7f}\u{80}\u{4e2d}\u{1f600}",
            "\u{1}",
            "12345678\"",
        ] {
            let mut out = Vec::new();
            write_text(&mut out, text).unwrap();
            assert_eq!(out, serde_json::to_vec(text).unwrap(), "{text}");
        }
    }
}
