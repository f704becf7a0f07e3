//! Requests that wait to be decided. A batch keeps of each line only what its decision needs.
//!
//! Invariant  All texts of a batch stand in one buffer, so a line costs no allocation of its own.

use flowgate::Time;
use flowgate_api::Operation;
use flowgate_engine::Request;

use super::event::{Event, FieldName, TextRange, WantedFields};

/// Requests of one slot of time.
#[derive(Debug)]
pub(crate) struct Batch {
    text: String,
    fields: Vec<(FieldName, TextRange)>,
    pub(crate) lines: Vec<HeldLine>,
    is_sorted: bool,
}

/// A line that waits to be decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldLine {
    /// The time at which the request is decided.
    pub(crate) time: Time,
    /// The index of the trace.
    pub(crate) source: u32,
    /// The number of the line, from 1.
    pub(crate) number: u64,
    pub(crate) operation: Operation,
    cost: u64,
    /// The ranges of the fields as the first and as the second policy read the line. The second is empty if it equals
    /// the first.
    fields: (u32, u32),
    second_fields: (u32, u32),
    time_text: TextRange,
}

/// A line as it was read.
pub(crate) struct ReadLine<'a> {
    pub(crate) time: Time,
    pub(crate) source: u32,
    pub(crate) number: u64,
    pub(crate) text: &'a str,
    pub(crate) event: &'a Event,
    /// The line as the second policy reads it, if the two policies read it differently.
    pub(crate) second_event: Option<&'a Event>,
    /// Whether the text of the time is kept, for a decision line.
    pub(crate) keeps_time_text: bool,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch { text: String::new(), fields: Vec::new(), lines: Vec::new(), is_sorted: true }
    }
}

impl Batch {
    /// Adds a line, and returns the bytes that it takes.
    #[inline]
    pub(crate) fn add(&mut self, line: &ReadLine<'_>) -> usize {
        let before = self.bytes();
        let fields = self.copy_fields(line.event, line.text);
        let second_fields = line.second_event.map_or((0, 0), |event| self.copy_fields(event, line.text));
        let time_text = if line.keeps_time_text {
            self.copy(&line.text[line.event.time_range.clone()])
        } else {
            TextRange::new(0..0)
        };
        self.is_sorted &= self.lines.last().is_none_or(|last| last.time <= line.time);
        let &ReadLine { time, source, number, event: Event { operation, cost, .. }, .. } = line;
        let (operation, cost) = (*operation, *cost);
        self.lines.push(HeldLine { time, source, number, operation, cost, fields, second_fields, time_text });
        self.bytes() - before
    }

    #[inline]
    fn copy_fields(&mut self, event: &Event, line: &str) -> (u32, u32) {
        let start = self.fields.len() as u32;
        for (name, value) in &event.fields {
            let name = match *name {
                FieldName::Read(range) => FieldName::Read(self.copy(event.text(range, line))),
                known => known,
            };
            let value = self.copy(event.text(*value, line));
            self.fields.push((name, value));
        }
        (start, self.fields.len() as u32)
    }

    #[inline]
    fn copy(&mut self, text: &str) -> TextRange {
        let start = self.text.len();
        self.text.push_str(text);
        TextRange::new(start..self.text.len())
    }

    /// Puts the lines in the order of their times. Lines of the same time stay in the order in which they were added.
    pub(crate) fn sort(&mut self) {
        if !self.is_sorted {
            self.lines.sort_by_key(|line| line.time);
            self.is_sorted = true;
        }
    }

    /// The fields of a line, each with its value. A decision line shows all of them.
    pub(crate) fn fields(&self, line: &HeldLine) -> impl Iterator<Item = (FieldName, &str)> {
        let (start, end) = line.fields;
        let fields = self.fields[start as usize..end as usize].iter();
        fields.map(|(name, value)| (*name, value.within(&self.text)))
    }

    /// The name of a field of a line.
    #[inline]
    pub(crate) fn name<'a>(&'a self, name: FieldName, wanted: &'a WantedFields) -> &'a str {
        match name {
            FieldName::Log(field) => field.name(),
            FieldName::Query(index) => wanted.queries.get(index as usize).map_or("", |name| name),
            FieldName::Read(range) => range.within(&self.text),
        }
    }

    /// The request of a line. Of an access log it has the wanted fields only.
    #[inline]
    pub(crate) fn request<'a>(&'a self, line: &HeldLine, wanted: &'a WantedFields) -> Request<'a> {
        self.with_fields(line, line.fields, wanted)
    }

    /// The request of a line as the second policy reads it; `None` if both policies read the same.
    pub(crate) fn second_request<'a>(&'a self, line: &HeldLine, wanted: &'a WantedFields) -> Option<Request<'a>> {
        let differs = line.second_fields.1 > 0;
        differs.then(|| self.with_fields(line, line.second_fields, wanted))
    }

    #[inline]
    fn with_fields<'a>(&'a self, line: &HeldLine, (start, end): (u32, u32), wanted: &'a WantedFields) -> Request<'a> {
        let mut request = Request::new();
        request.cost = line.cost;
        for (name, value) in &self.fields[start as usize..end as usize] {
            if !matches!(name, FieldName::Log(field) if !wanted.has(*field)) {
                request.push(self.name(*name, wanted), value.within(&self.text));
            }
        }
        request
    }

    /// The time of a line as the trace writes it.
    pub(crate) fn time_text(&self, line: &HeldLine) -> &str {
        line.time_text.within(&self.text)
    }

    /// The bytes that the batch takes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.fields) + size_of_val(&*self.lines)
    }

    /// Forgets all lines and keeps the memory for others.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.fields.clear();
        self.lines.clear();
        self.is_sorted = true;
    }
}
