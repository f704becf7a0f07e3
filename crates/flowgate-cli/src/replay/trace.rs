//! What was read of the traces, and when it happened.
//!
//! Rule       The time of a request is what its line says, but never before the latest time seen: logs are written
//!            when requests end, so times run back a little. How many did is counted, and how far at the most.
//! Rule       A trace whose times run back by far, at its beginning or within, is noted: most likely traces were given or
//!            put together in the wrong order, and then all that is older would be decided at one instant.

use flowgate::{Span, Time};

use super::event::Unreadable;
use super::input::Place;

/// So many lines that cannot be read are shown.
const SHOWN_SKIPPED: usize = 5;
/// Logs are written when requests end, which takes minutes at the most; servers whose clocks differ by an hour are none.
const BACK: Span = Span::from_secs(3600);

/// What was read of the traces.
#[derive(Debug, Default)]
pub struct Trace {
    /// Lines, empty ones aside.
    pub lines: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    /// The first of them.
    pub shown: Vec<Skipped>,
    /// Lines older than one before them.
    pub late: u64,
    /// By so much at the most.
    pub late_by: Span,
    /// Traces that seem to be given in the wrong order.
    pub out_of_order: Vec<OutOfOrder>,
    /// Lines that asked for something else than to take.
    pub other_operations: u64,
    /// The time of the first request that was decided.
    pub first: Option<Time>,
    /// The latest time.
    pub latest: Time,
    present: Present,
}

/// A line that could not be read.
#[derive(Debug)]
pub struct Skipped {
    /// Of this trace.
    pub trace: String,
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: Unreadable,
}

/// What is known of the present trace.
#[derive(Debug, Default)]
struct Present {
    has_begun: bool,
    is_noted: bool,
}

/// A trace whose times run back by far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// Its name.
    pub trace: String,
    /// From which line on; `None` is from its beginning.
    pub line: Option<u64>,
    /// The time there.
    pub begins: Time,
    /// The latest time in front of it.
    pub latest: Time,
}

impl Trace {
    /// Another trace begins.
    pub(super) fn begin(&mut self) {
        self.present = Present::default();
    }

    /// The time at which a request is decided.
    #[inline]
    pub(super) fn time(&mut self, written: Time, place: &Place, line: u64) -> Time {
        if written < self.latest {
            let back = self.latest.since(written);
            self.late += 1;
            self.late_by = self.late_by.max(back);
            if back >= BACK && !self.present.is_noted {
                self.note(written, place, line);
            }
        }
        self.present.has_begun = true;
        self.latest = self.latest.max(written);
        self.first.get_or_insert(self.latest);
        self.latest
    }

    #[cold]
    fn note(&mut self, begins: Time, place: &Place, line: u64) {
        let line = self.present.has_begun.then_some(line);
        self.present.is_noted = true;
        self.out_of_order.push(OutOfOrder { trace: place.name(), line, begins, latest: self.latest });
    }

    #[cold]
    pub(super) fn skip(&mut self, place: &Place, line: u64, reason: Unreadable) {
        self.skipped += 1;
        if self.shown.len() < SHOWN_SKIPPED {
            self.shown.push(Skipped { trace: place.name(), line, reason });
        }
    }
}
