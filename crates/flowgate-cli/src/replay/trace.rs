//! What was read of the traces, and when it happened.
//!
//! Rule       The time of a request is what its line says, but never before the latest time seen: logs are written
//!            when requests end, so times run back a little. How many did is counted.
//! Rule       A trace that begins long before the one in front of it has ended is noted: most likely they were given in
//!            the wrong order, and then all of it would be decided at one instant.

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
    /// Traces that seem to be given in the wrong order.
    pub out_of_order: Vec<OutOfOrder>,
    /// Lines that asked for something else than to take.
    pub other_operations: u64,
    /// The time of the first request that was decided.
    pub first: Option<Time>,
    /// The latest time.
    pub latest: Time,
    /// Whether the present trace has not given a time yet.
    is_new: bool,
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

/// A trace that begins long before those in front of it have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// Its name.
    pub trace: String,
    /// When it begins.
    pub begins: Time,
    /// The latest time of those in front of it.
    pub latest: Time,
}

impl Trace {
    /// Another trace begins.
    pub(super) fn begin(&mut self) {
        self.is_new = true;
    }

    /// The time at which a request is decided.
    #[inline]
    pub(super) fn time(&mut self, written: Time, place: &Place) -> Time {
        if std::mem::take(&mut self.is_new) {
            self.check_order(written, place);
        }
        self.late += u64::from(written < self.latest);
        self.latest = self.latest.max(written);
        self.first.get_or_insert(self.latest);
        self.latest
    }

    #[cold]
    fn check_order(&mut self, begins: Time, place: &Place) {
        let latest = self.latest;
        if latest.since(begins) >= BACK {
            self.out_of_order.push(OutOfOrder { trace: place.name(), begins, latest });
        }
    }

    #[cold]
    pub(super) fn skip(&mut self, place: &Place, line: u64, reason: Unreadable) {
        self.skipped += 1;
        if self.shown.len() < SHOWN_SKIPPED {
            self.shown.push(Skipped { trace: place.name(), line, reason });
        }
    }
}
