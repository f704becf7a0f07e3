//! The portable form of `fixed`, and of the windows of `after=`.

use smallvec::SmallVec;

use super::{Fixed, Window, WindowCount};
use crate::ask::Ask;
use crate::calendar::Calendar;
use crate::limit::Unit;
use crate::portable::{Arguments, Portable};
use crate::time::NANOS_PER_MICRO;

/// A call carries the ends of calendar periods for differences of up to this span between the clocks of the script and
/// the caller. If the difference is larger, the script asks for other ends.
const MAX_CLOCK_SKEW_NANOS: u64 = 60 * 1_000_000_000;

impl Portable for Fixed {
    const LETTER: u8 = b'f';

    fn write_terms(&self, ask: Ask, args: &mut impl Arguments) {
        args.number(self.count);
        self.window.write_terms(ask.now.as_nanos(), args);
    }

    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<WindowCount>> {
        WindowCount::read(reply)
    }

    fn write_undo(&self, window: &WindowCount, _: Ask, args: &mut impl Arguments) {
        args.letter(b'f');
        args.number(window.ends_at / NANOS_PER_MICRO);
    }
}

impl WindowCount {
    pub(crate) fn read(reply: &mut impl Iterator<Item = u64>) -> Option<Option<WindowCount>> {
        let [ends_at, count] = [reply.next()?, reply.next()?];
        Some((ends_at > 0).then(|| WindowCount { ends_at: ends_at * NANOS_PER_MICRO, count }))
    }
}

impl Window {
    /// Writes how windows end around an instant.
    pub(crate) fn write_terms(&self, around: u64, args: &mut impl Arguments) {
        match self {
            Window::Plain(length) => {
                args.letter(b'p');
                args.number(length / NANOS_PER_MICRO);
            }
            Window::Calendar(calendar) => match calendar.unit {
                // Zones differ from each other by whole seconds, so shorter units are the same in all of them.
                Unit::Microsecond | Unit::Millisecond | Unit::Second => {
                    args.letter(b'c');
                    args.number(calendar.unit.nanos().map_or(1, |nanos| nanos / NANOS_PER_MICRO));
                }
                _ => write_ends(calendar, around, args),
            },
        }
    }
}

/// Writes the ends of the calendar periods around an instant: the time from which the list is valid, the number of ends, and
/// the ends.
fn write_ends(calendar: &Calendar, around: u64, args: &mut impl Arguments) {
    let from = around.saturating_sub(MAX_CLOCK_SKEW_NANOS) / NANOS_PER_MICRO;
    let mut ends = SmallVec::<[u64; 4]>::new();
    let mut end = calendar.end(from * NANOS_PER_MICRO);
    ends.push(end);
    while end <= around + MAX_CLOCK_SKEW_NANOS {
        end = calendar.end(end);
        ends.push(end);
    }
    args.letter(b'l');
    args.number(from);
    args.number(ends.len() as u64);
    ends.into_iter().for_each(|end| args.number(end / NANOS_PER_MICRO));
}
