//! The progress of a replay, shown if standard error is a terminal.

use std::io::{self, IsTerminal, Write};

use flowgate::{Clock, Span, Time};
use flowgate_replay::Progress;
use flowgate_replay::format::grouped;

/// People cannot read a line that changes more often.
const REFRESH_INTERVAL: Span = Span::from_millis(100);
const BAR_WIDTH_CHARS: u64 = 24;

/// A line on standard error that each refresh overwrites.
pub(super) struct Bar {
    clock: Option<Clock>,
    traces: usize,
    number: usize,
    started: Time,
    shown: Option<Time>,
}

impl Bar {
    /// The bar of a replay of this many traces.
    pub(super) fn new(traces: usize) -> Bar {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let clock = (io::stderr().is_terminal() && !is_dumb).then_some(Clock::System);
        let started = clock.as_ref().map_or(Time::EPOCH, Clock::now);
        Bar { clock, traces, number: 0, started, shown: None }
    }

    /// Begins the next trace.
    pub(super) fn next(&mut self) {
        self.number += 1;
    }

    pub(super) fn show(&mut self, progress: Progress) {
        let Some(now) = self.clock.as_ref().map(Clock::now) else { return };
        if now.since(self.shown.unwrap_or(self.started)) < REFRESH_INTERVAL {
            return;
        }
        self.shown = Some(now);
        let millis = now.since(self.started).as_millis_ceil().max(1);
        let rate = grouped(progress.lines.saturating_mul(1000) / millis);
        let which = if self.traces > 1 { format!("  {} of {}", self.number, self.traces) } else { String::new() };
        let line = format!("{}  {} lines  {rate}/s{which}", bar(&progress), grouped(progress.lines));
        // A failed write loses one refresh, and the replay goes on.
        let _ = write!(io::stderr(), "\r\x1b[2K{line}");
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

/// `[=====     ]  45 %`; empty if the size of the trace is unknown.
fn bar(progress: &Progress) -> String {
    let Some(size) = progress.size.filter(|size| *size > 0) else { return String::new() };
    let done = progress.read.min(size);
    let full = usize::try_from(done * BAR_WIDTH_CHARS / size).unwrap_or(0);
    let rest = BAR_WIDTH_CHARS as usize - full;
    format!("[{}{}] {:>3} %", "=".repeat(full), " ".repeat(rest), done * 100 / size)
}
