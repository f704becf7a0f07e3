//! The names of the fields that the lines of the traces have.
//!
//! Bound      [`MAX_NAMES`] names. Of a trace with more names, every field is assumed to be there.

use super::event::{Event, FieldName, Format, LogField};

/// The largest number of names that are kept. Real traces have fewer.
const MAX_NAMES: usize = 256;

/// The fields that at least one line has.
#[derive(Debug, Default)]
pub(crate) struct FieldsSeen {
    /// One bit for each [`LogField`].
    log: u8,
    /// One bit for each wanted parameter of a query.
    queries: u64,
    /// The names in JSON lines.
    names: Vec<String>,
    /// The positions in `names` of the fields of the latest line, by the number of the field: consecutive lines mostly
    /// have the same fields.
    expected: Vec<usize>,
    /// Whether `names` is incomplete.
    has_more: bool,
    formats: Vec<Format>,
}

impl FieldsSeen {
    /// Begins a trace of this format.
    pub(crate) fn begin(&mut self, format: Format) {
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
    }

    /// Notes the fields of a line.
    #[inline]
    pub(crate) fn note(&mut self, event: &Event, line: &str) {
        for (index, (name, _)) in event.fields.iter().enumerate() {
            match *name {
                FieldName::Log(field) => self.log |= 1 << field as u8,
                FieldName::Query(number) => self.queries |= 1 << number.min(63),
                FieldName::Read(range) => {
                    let name = event.text(range, line);
                    let expected = self.expected.get(index).and_then(|position| self.names.get(*position));
                    if expected.is_none_or(|expected| expected != name) {
                        self.note_name(index, name);
                    }
                }
            }
        }
    }

    #[cold]
    fn note_name(&mut self, index: usize, name: &str) {
        let position = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            if self.names.len() < MAX_NAMES {
                self.names.push(name.to_owned());
            } else {
                self.has_more = true;
            }
            self.names.len() - 1
        });
        self.expected.resize(self.expected.len().max(index + 1), 0);
        self.expected[index] = position;
    }

    /// Whether a line has the field. If names were dropped, a line may have it, too.
    pub(crate) fn has(&self, field: &str, queries: &[Box<str>]) -> bool {
        let canonical = flowgate_engine::field_name::canonical;
        let query = queries.iter().position(|name| **name == *field);
        self.has_more
            || self.log_fields().any(|seen| seen.name() == field)
            || self.names.iter().any(|name| canonical(name) == field)
            || query.is_some_and(|number| self.queries & 1 << number.min(63) != 0)
    }

    fn log_fields(&self) -> impl Iterator<Item = LogField> {
        LogField::ALL.into_iter().filter(|field| self.log & 1 << *field as u8 != 0)
    }

    /// The fields that lines of these traces have or can have, the most important first.
    pub(crate) fn possible(&self) -> Vec<String> {
        let is_possible = |field: &LogField| {
            let has_headers = self.formats.contains(&Format::Combined);
            let is_header = matches!(field, LogField::Referer | LogField::UserAgent);
            let is_log = has_headers || self.formats.contains(&Format::Common);
            let is_seen = self.log & 1 << *field as u8 != 0;
            is_seen || is_log && (has_headers || !is_header) && *field != LogField::Host
        };
        let log = LogField::ALL.into_iter().filter(is_possible).map(|field| field.name().to_owned());
        log.chain(self.names.iter().cloned()).collect()
    }

    /// The kind of all traces in words: `a log in the combined format`; `None` if a trace can have any field.
    pub(crate) fn log_kind(&self) -> Option<&'static str> {
        match self.formats.as_slice() {
            [Format::Combined] => Some("a log in the combined format"),
            [Format::Common] => Some("a log in the common format"),
            formats if formats.contains(&Format::Jsonl) => None,
            _ => Some("an access log"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(seen: &mut FieldsSeen, name: &str) {
        let (line, mut event) = (format!(r#"{{"ts":1,"fields":{{"a":1,"{name}":2}}}}"#), Event::default());
        Format::Jsonl.read(&line, &mut event).unwrap();
        seen.note(&event, &line);
    }

    #[test]
    fn more_names_than_fit_are_not_missing() {
        let mut seen = FieldsSeen::default();
        seen.begin(Format::Jsonl);
        for number in 1..MAX_NAMES {
            note(&mut seen, &format!("n{number}"));
            note(&mut seen, "ua");
        }
        assert!(seen.has("a", &[]) && seen.has("n7", &[]) && seen.has("header.user-agent", &[]));
        assert!(seen.has("other", &[]), "it may have been among those that are forgotten");
        assert_eq!(seen.possible().len(), MAX_NAMES);
        let mut few = FieldsSeen::default();
        note(&mut few, "b");
        assert!(!few.has("other", &[]));
    }
}
