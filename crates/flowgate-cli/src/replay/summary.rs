//! What a replay has found, as plain data: what is printed, written as JSON and drawn in the report is all of it from
//! here, so that they agree.

mod text;

use flowgate::{Span, Time};
use serde::Serialize;

use super::compare::{Changes, Side};
use super::figures;
use super::pass::Replay;
use super::tally::{RuleTally, Tally};
use super::timeline::{Slot, Worst};
use super::top::Top;
use super::what_if::{Measured, Spared};

/// So many subjects are listed.
const SUBJECTS: usize = 20;
/// So many bars are drawn at the most.
const BARS: usize = 180;

/// What a replay has found.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The traces.
    pub traces: Vec<String>,
    /// The policy.
    pub policy: String,
    /// Lines that were read, empty ones aside.
    pub lines: u64,
    /// Those that could not be read.
    pub skipped: u64,
    /// The first of those.
    pub unreadable: Vec<UnreadableLine>,
    /// Lines older than one before them, decided at the latest time seen.
    pub late: u64,
    /// By so many seconds at the most, rounded up.
    pub late_by_seconds: u64,
    /// Traces that seem to be given in the wrong order.
    pub out_of_order: Vec<OutOfOrder>,
    /// Lines that asked for something else than to take; they are in no count below.
    pub other_operations: u64,
    /// The time of the first request.
    pub first: Option<String>,
    /// The latest time.
    pub last: Option<String>,
    /// From the first to the last, in whole seconds.
    pub seconds: u64,
    /// What the policy did.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Counters that were forgotten early because `store.max_memory` was reached.
    pub evicted: u64,
    /// The other policy.
    pub compare: Option<Comparison>,
    /// What other counts would have done; only where a report was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Curves>,
}

/// A line that could not be read.
#[derive(Clone, Debug, Serialize)]
pub struct UnreadableLine {
    /// Of this trace.
    pub trace: String,
    /// Its number, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
}

/// A trace whose times run back by far.
#[derive(Clone, Debug, Serialize)]
pub struct OutOfOrder {
    /// Its name.
    pub trace: String,
    /// From which line on; `None` is from its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The time there.
    pub begins: String,
    /// The latest time in front of it.
    pub latest: String,
    /// By so many seconds its times run back.
    pub back_seconds: u64,
}

/// What a policy did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Requests.
    pub requests: u64,
    /// Those that passed.
    pub passed: u64,
    /// Those that were denied.
    pub denied: u64,
    /// Those that no rule matched.
    pub unmatched: u64,
    /// The rules, in order.
    pub rules: Vec<RuleOutcome>,
    /// Subjects that were denied at all.
    pub subjects_denied: SubjectCount,
    /// Those that were hit hardest.
    pub hardest_hit: Vec<Hit>,
    /// The minute with the most denials.
    pub worst_minute: Option<Period>,
    /// The hour with the most denials.
    pub worst_hour: Option<Period>,
    /// The width of a period of the timeline in seconds.
    pub period_seconds: u64,
    /// Passed and denied over time.
    pub timeline: Vec<Period>,
}

/// What a rule did.
#[derive(Clone, Debug, Serialize)]
pub struct RuleOutcome {
    /// Its name.
    pub name: String,
    /// Whether it never denies; its denials are then what it would have done.
    pub shadow: bool,
    /// Requests that it matched.
    pub seen: u64,
    /// Those that it let pass.
    pub passed: u64,
    /// Those that it denied.
    pub denied: u64,
    /// Those of them that its ban denied.
    pub banned: u64,
}

/// How many subjects.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SubjectCount {
    /// So many.
    pub count: u64,
    /// Or more: some were forgotten.
    pub at_least: bool,
}

/// A subject and what happened to it.
#[derive(Clone, Debug, Serialize)]
pub struct Hit {
    /// The rule that counts it.
    pub rule: String,
    /// Its values of the rule's `by`.
    pub subject: String,
    /// How often.
    pub count: u64,
    /// By so much the count may be too high.
    pub too_high_by: u64,
    /// When first.
    pub first: String,
    /// When last.
    pub last: String,
}

/// A stretch of time.
#[derive(Clone, Debug, Serialize)]
pub struct Period {
    /// When it began.
    pub start: String,
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
}

/// The same traffic under another policy.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The other policy.
    pub policy: String,
    /// What it did.
    pub outcome: Outcome,
    /// Passed under both.
    pub passed_by_both: u64,
    /// Denied under both.
    pub denied_by_both: u64,
    /// Denied by the other only.
    pub newly_denied: Change,
    /// Denied by the first only.
    pub newly_passed: Change,
}

/// A change in one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// So many requests.
    pub requests: u64,
    /// Their subjects.
    pub subjects: SubjectCount,
    /// The rules that made the difference, on the side that denies.
    pub rules: Vec<RuleChange>,
    /// The subjects that it concerns most.
    pub most: Vec<Hit>,
}

/// The requests on which a rule made the difference.
#[derive(Clone, Debug, Serialize)]
pub struct RuleChange {
    /// The rule.
    pub rule: String,
    /// So many.
    pub requests: u64,
}

/// What other counts would have done.
#[derive(Clone, Debug, Serialize)]
pub struct Curves {
    /// One for each limit that saw a request.
    pub curves: Vec<Curve>,
    /// Limits that are left out, because there are too many.
    pub left_out: usize,
}

/// One limit at other counts.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// The rule.
    pub rule: String,
    /// The value of `limits_by`.
    pub case: Option<String>,
    /// The limit as it is configured.
    pub limit: String,
    /// Requests that it saw.
    pub requests: u64,
    /// Subjects that it saw.
    pub subjects: u64,
    /// One subject in so many was looked at.
    pub one_in: u64,
    /// Counters that were forgotten early.
    pub evicted: u64,
    /// Each count.
    pub points: Vec<Point>,
    /// Which of the points is the configured one.
    pub configured: usize,
    /// Which of the points is the smallest that spares 99.9 % of the subjects.
    pub spares: Option<usize>,
}

/// A count and what it would have done.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The count.
    pub count: String,
    /// The count in millionths.
    pub millionths: u64,
    /// The limit with that count.
    pub limit: String,
    /// Requests that would have been denied.
    pub requests: u64,
    /// Subjects that would have been denied something.
    pub subjects: u64,
}

/// What the policies and the traces are called.
#[derive(Clone, Debug)]
pub struct Names {
    /// The traces.
    pub traces: Vec<String>,
    /// The policy.
    pub policy: String,
    /// The other policy.
    pub compare: String,
}

impl Summary {
    /// Of a replay that has ended.
    pub fn new(replay: &Replay<'_>, names: Names) -> Summary {
        let trace = &replay.trace;
        let skipped = trace.shown.iter().map(|skipped| UnreadableLine {
            trace: skipped.trace.clone(),
            line: skipped.line,
            reason: skipped.reason.to_string(),
        });
        let out_of_order = trace.out_of_order.iter().map(|found| OutOfOrder {
            trace: found.trace.clone(),
            line: found.line,
            begins: figures::instant(found.begins),
            latest: figures::instant(found.latest),
            back_seconds: seconds(found.latest.since(found.begins)),
        });
        let compare = replay.compared().map(|(other, changes)| {
            let Changes { passed, denied, newly_denied, newly_passed } = changes;
            Comparison {
                policy: names.compare,
                outcome: outcome(other),
                passed_by_both: *passed,
                denied_by_both: *denied,
                newly_denied: change(newly_denied, &other.rules),
                newly_passed: change(newly_passed, &replay.tally().rules),
            }
        });
        let what_if = replay.what_if().map(|what_if| Curves {
            curves: what_if.curves().into_iter().map(|measured| curve(measured, &replay.tally().rules)).collect(),
            left_out: what_if.left_out(),
        });
        Summary {
            traces: names.traces,
            policy: names.policy,
            lines: trace.lines,
            skipped: trace.skipped,
            unreadable: skipped.collect(),
            late: trace.late,
            late_by_seconds: trace.late_by.as_nanos().div_ceil(1_000_000_000),
            out_of_order: out_of_order.collect(),
            other_operations: trace.other_operations,
            first: trace.first.map(figures::instant),
            last: trace.first.map(|_| figures::instant(trace.latest)),
            seconds: trace.first.map_or(0, |first| seconds(trace.latest.since(first))),
            outcome: outcome(replay.tally()),
            evicted: replay.memory().evicted,
            compare,
            what_if,
        }
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// What makes the figures doubtful, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let no_rules = self.outcome.rules.is_empty().then(|| text::no_rules(&self.policy));
        no_rules.into_iter().chain(self.out_of_order.iter().map(text::out_of_order)).collect()
    }
}

fn seconds(span: Span) -> u64 {
    span.as_nanos() / 1_000_000_000
}

fn outcome(tally: &Tally) -> Outcome {
    let rule = |rule: &RuleTally| RuleOutcome {
        name: rule.name.clone(),
        shadow: rule.shadow,
        seen: rule.seen,
        passed: rule.passed(),
        denied: rule.denied,
        banned: rule.banned,
    };
    let worst = |worst: &Worst| worst.found().map(|(start, slot)| period(start, &slot));
    let (width, slots) = tally.timeline.slots(BARS);
    Outcome {
        requests: tally.requests(),
        passed: tally.passed,
        denied: tally.denied,
        unmatched: tally.unmatched,
        rules: tally.rules.iter().map(rule).collect(),
        subjects_denied: subject_count(&tally.top),
        hardest_hit: hits(&tally.top, &tally.rules),
        worst_minute: worst(&tally.minute),
        worst_hour: worst(&tally.hour),
        period_seconds: seconds(width),
        timeline: slots.iter().map(|(start, slot)| period(*start, slot)).collect(),
    }
}

fn period(start: Time, slot: &Slot) -> Period {
    Period { start: figures::instant(start), passed: slot.passed, denied: slot.denied }
}

fn subject_count(top: &Top) -> SubjectCount {
    let (count, at_least) = top.subjects();
    SubjectCount { count: count as u64, at_least }
}

fn hits(top: &Top, rules: &[RuleTally]) -> Vec<Hit> {
    let hit = |entry: &super::top::Entry| Hit {
        rule: name(rules, entry.rule),
        subject: entry.subject.clone(),
        count: entry.count,
        too_high_by: entry.credit,
        first: figures::instant(entry.first),
        last: figures::instant(entry.last),
    };
    top.largest(SUBJECTS).into_iter().map(hit).collect()
}

fn name(rules: &[RuleTally], position: usize) -> String {
    rules.get(position).map(|rule| rule.name.clone()).unwrap_or_default()
}

fn change(side: &Side, rules: &[RuleTally]) -> Change {
    let changed = side.rules.iter().enumerate().filter(|(_, requests)| **requests > 0);
    Change {
        requests: side.requests,
        subjects: subject_count(&side.top),
        rules: changed.map(|(rule, requests)| RuleChange { rule: name(rules, rule), requests: *requests }).collect(),
        most: hits(&side.top, rules),
    }
}

fn curve(measured: &Measured, rules: &[RuleTally]) -> Curve {
    let point = |point: super::what_if::Point| Point {
        count: figures::count(point.micros),
        millionths: point.micros,
        limit: point.limit.to_string(),
        requests: point.requests,
        subjects: point.subjects,
    };
    Curve {
        rule: name(rules, measured.rule),
        case: measured.case.clone(),
        limit: measured.limit.to_string(),
        requests: measured.requests(),
        subjects: measured.subjects_seen(),
        one_in: measured.one_in(),
        evicted: measured.evicted(),
        points: measured.points().into_iter().map(point).collect(),
        configured: measured.configured(),
        spares: match measured.spared() {
            Spared::At(index) => Some(index),
            Spared::Beyond => None,
        },
    }
}
