//! The results of a replay as plain data. The text, the JSON and the report are all made from it, so they agree.

mod advice;
mod comparison;
mod curves;
mod outcome;
mod text;
mod unmatched;

use flowgate::Span;
use serde::Serialize;

pub use self::comparison::{Change, Comparison, RuleChange};
pub use self::curves::{Curve, Curves, Point};
pub use self::outcome::{Hit, Outcome, Period, RuleOutcome, SubjectCount};
pub(crate) use self::text::ADVICE_IS_FOR_EACH_ALONE;
pub use self::unmatched::MissingField;
use super::format;
use super::run::Replay;

/// The results of a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The names of the traces.
    pub traces: Vec<String>,
    /// The name of the policy.
    pub policy: String,
    /// Lines, without empty ones.
    pub lines: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    /// The first lines that could not be read.
    pub unreadable: Vec<UnreadableLine>,
    /// Lines older than an earlier line that were put in order.
    pub reordered: u64,
    /// The largest lateness of these in seconds, rounded up.
    pub reordered_by_seconds: u64,
    /// The window in which lines are put in order, in seconds, rounded up.
    pub reorder_seconds: u64,
    /// Whether the window was shorter for a while, because memory was short.
    pub reorder_was_full: bool,
    /// Lines that come too late to be put in order. They are decided at the latest time of the lines before them.
    pub late: u64,
    /// The largest lateness of these in seconds, rounded up.
    pub late_by_seconds: u64,
    /// Fields that rules look at and no line has.
    pub missing_fields: Vec<MissingField>,
    /// Traces that are probably in the wrong order.
    pub out_of_order: Vec<OutOfOrder>,
    /// Lines with an operation other than `take`. The counts below leave them out.
    pub other_operations: u64,
    /// The time of the first request.
    pub first: Option<String>,
    /// The time of the latest request.
    pub last: Option<String>,
    /// Whole seconds from the first to the latest time.
    pub seconds: u64,
    /// The results of the policy.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Counters that the store evicted because `store.max_memory` was reached.
    pub evicted: u64,
    /// The results of the second policy.
    pub compare: Option<Comparison>,
    /// The results at other counts; present if a report was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Curves>,
}

/// A line that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadableLine {
    /// The name of the trace.
    pub trace: String,
    /// The number of the line, from 1.
    pub line: u64,
    /// Why the line could not be read.
    pub reason: String,
}

/// A place where the times of a trace run back by an hour or more.
#[derive(Clone, Debug, Serialize)]
pub struct OutOfOrder {
    /// The name of the trace.
    pub trace: String,
    /// The number of the line that is out of order; `None`: it is the first line of the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The time of that line.
    pub begins: String,
    /// The latest time before that line.
    pub latest: String,
    /// The distance between the two times in seconds.
    pub back_seconds: u64,
}

/// The names of the traces and policies.
#[derive(Clone, Debug)]
pub struct Names {
    /// The names of the traces.
    pub traces: Vec<String>,
    /// The name of the policy.
    pub policy: String,
    /// The name of the second policy.
    pub compare: String,
}

impl Summary {
    /// The results of a replay that has ended.
    pub(super) fn new(replay: &Replay<'_>, names: Names) -> Summary {
        let (trace, first) = (&replay.trace, &replay.first.result);
        let comparison = replay
            .second
            .as_ref()
            .map(|(second, changes)| Comparison::new(names.compare, &second.result, &first.rules, changes));
        Summary {
            traces: names.traces,
            policy: names.policy,
            lines: trace.lines,
            skipped: trace.skipped,
            unreadable: trace.unreadable.clone(),
            reordered: trace.reordered,
            reordered_by_seconds: trace.reordered_by.as_secs_ceil(),
            reorder_seconds: replay.reorder.window.as_secs_ceil(),
            reorder_was_full: replay.reorder.was_full(),
            late: trace.late,
            late_by_seconds: trace.late_by.as_secs_ceil(),
            missing_fields: MissingField::find(replay),
            out_of_order: trace.out_of_order.clone(),
            other_operations: trace.other_operations,
            first: trace.first.map(format::instant),
            last: trace.first.map(|_| format::instant(trace.latest)),
            seconds: trace.first.map_or(0, |first| whole_seconds(trace.latest.since(first))),
            outcome: Outcome::new(first),
            evicted: replay.first.engine.memory().stats().evicted,
            compare: comparison,
            what_if: replay.what_if.as_ref().map(|what_if| Curves::new(what_if, &first.rules)),
        }
    }

    /// The summary for a terminal.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// The reasons to doubt the results, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.outcome.rules.is_empty() {
            warnings.push(text::no_rules(&self.policy));
        }
        // If the traces are in the wrong order, that explains the late lines.
        if self.late > 0 && self.out_of_order.is_empty() {
            warnings.push(text::late(self));
        }
        warnings.extend(self.out_of_order.iter().map(text::out_of_order));
        warnings.extend(self.missing_fields.iter().map(text::missing_field));
        warnings
    }
}

pub(crate) fn whole_seconds(span: Span) -> u64 {
    span.as_nanos() / 1_000_000_000
}
