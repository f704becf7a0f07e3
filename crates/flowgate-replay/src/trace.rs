//! The lines of the traces, and the times at which they are decided.
//!
//! Rule       A request is decided at the time of its line. Servers log a request when it ends, so times run back a
//!            little: lines are put in order within a window. A line that comes later than that is decided at the
//!            latest time seen. Lines of both kinds are counted, with the largest lateness.
//! Rule       A trace whose times run back by [`MAX_CLOCK_SKEW`] or more is noted. The most likely cause is traces in
//!            the wrong order, which decides all older lines at one instant.

use flowgate::{Span, Time};

use super::event::LineError;
use super::format;
use super::input::Source;
use super::reorder::Reorder;
use super::summary::{OutOfOrder, UnreadableLine, whole_seconds};

/// Unreadable lines that are kept with their reason.
const MAX_SKIPPED_LINES_SHOWN: usize = 5;
/// The longest requests take minutes, and the clocks of servers differ by less than an hour.
const MAX_CLOCK_SKEW: Span = Span::from_secs(3600);

/// The lines of all traces so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Lines, without empty ones.
    pub lines: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    /// The first lines that could not be read.
    pub unreadable: Vec<UnreadableLine>,
    /// Lines that are older than an earlier line and were put in order.
    pub reordered: u64,
    /// The largest lateness of a reordered line.
    pub reordered_by: Span,
    /// Lines that came too late to be put in order.
    pub late: u64,
    /// The largest lateness of a late line.
    pub late_by: Span,
    /// Places where the times run back by an hour or more.
    pub out_of_order: Vec<OutOfOrder>,
    /// Lines with an operation other than `take`.
    pub other_operations: u64,
    /// The earliest time at which a line is decided.
    pub first: Option<Time>,
    /// The latest time of a line.
    pub latest: Time,
    current: CurrentTrace,
    /// The number of traces so far.
    traces: u32,
}

/// The state of the trace that is being read.
#[derive(Debug, Default)]
struct CurrentTrace {
    has_begun: bool,
    has_jumped: bool,
}

impl Trace {
    /// Begins the next trace, and returns its number, from 0.
    pub(super) fn begin(&mut self) -> u32 {
        self.current = CurrentTrace::default();
        self.traces += 1;
        self.traces - 1
    }

    /// The time at which a request is decided.
    #[inline]
    pub(super) fn time(&mut self, written: Time, source: &Source, line: u64, reorder: &Reorder) -> Time {
        let mut time = written;
        if written < self.latest {
            let back = self.latest.since(written);
            if reorder.is_too_late(written, self.latest) {
                time = self.latest;
                self.late += 1;
                self.late_by = self.late_by.max(back);
            } else {
                self.reordered += 1;
                self.reordered_by = self.reordered_by.max(back);
            }
            if back >= MAX_CLOCK_SKEW && !self.current.has_jumped {
                self.note_jump(written, source, line);
            }
        }
        self.current.has_begun = true;
        self.latest = self.latest.max(written);
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        time
    }

    #[cold]
    fn note_jump(&mut self, begins: Time, source: &Source, line: u64) {
        let line = self.current.has_begun.then_some(line);
        self.current.has_jumped = true;
        self.out_of_order.push(OutOfOrder {
            trace: source.name(),
            line,
            begins: format::instant(begins),
            latest: format::instant(self.latest),
            back_seconds: whole_seconds(self.latest.since(begins)),
        });
    }

    #[cold]
    pub(super) fn skip(&mut self, source: &Source, line: u64, reason: LineError) {
        self.skipped += 1;
        if self.unreadable.len() < MAX_SKIPPED_LINES_SHOWN {
            self.unreadable.push(UnreadableLine { trace: source.name(), line, reason: reason.to_string() });
        }
    }
}
