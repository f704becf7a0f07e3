//! The summary for a terminal, in aligned columns.

use flowgate::Span;

use super::{Change, Comparison, OutOfOrder, Outcome, Period, SubjectCount, Summary};
use crate::format::{grouped, length, percent, printable};

/// Subjects in a printed list; the JSON and the report have more.
const MAX_SUBJECTS_PRINTED: usize = 10;

pub(super) fn write(summary: &Summary) -> String {
    let mut out = String::new();
    head(&mut out, summary);
    notes(&mut out, summary);
    rules(&mut out, &summary.outcome);
    hardest_hit(&mut out, &summary.outcome);
    worst(&mut out, &summary.outcome);
    if let Some(comparison) = &summary.compare {
        compare(&mut out, summary, comparison);
    }
    out
}

fn head(out: &mut String, summary: &Summary) {
    let Outcome { requests, passed, denied, unmatched, .. } = summary.outcome;
    let mut table = Table::new("lrl");
    let when = match (&summary.first, &summary.last) {
        (Some(first), Some(last)) => {
            format!("{} to {} UTC ({})", clock(first), clock(last), length(Span::from_secs(summary.seconds)))
        }
        _ => String::new(),
    };
    table.row([String::from("requests"), grouped(requests), when]);
    table.row([String::from("passed"), grouped(passed), percent(passed, requests)]);
    table.row([String::from("denied"), grouped(denied), percent(denied, requests)]);
    if unmatched > 0 {
        let share = format!("{}: no rule matched, so they passed", percent(unmatched, requests));
        table.row([String::from("unmatched"), grouped(unmatched), share]);
    }
    table.write(out);
}

fn notes(out: &mut String, summary: &Summary) {
    let mut lines: Vec<String> = summary.warnings().iter().map(|warning| format!("warning: {warning}")).collect();
    if summary.late > 0 {
        let by = length(Span::from_secs(summary.late_by_seconds));
        let late = lines_are(summary.late);
        lines.push(format!("{late} older than one before, by at most {by}, decided at the latest time seen"));
    }
    if summary.other_operations > 0 {
        lines.push(format!("{} no take and in no count", lines_are(summary.other_operations)));
    }
    if summary.evicted > 0 {
        let evicted = grouped(summary.evicted);
        lines.push(format!("{evicted} counters were forgotten early: store.max_memory was reached"));
    }
    if summary.skipped > 0 {
        let (noun, were) = if summary.skipped == 1 { ("line", "was") } else { ("lines", "were") };
        let skipped = grouped(summary.skipped);
        lines.push(format!("{skipped} {noun} could not be read and {were} skipped:"));
        for skipped in &summary.unreadable {
            lines.push(format!("  {}:{}: {}", printable(&skipped.trace), skipped.line, skipped.reason));
        }
        if summary.skipped > summary.unreadable.len() as u64 {
            lines.push("  ..".to_owned());
        }
    }
    if !lines.is_empty() {
        *out += "\n";
    }
    for line in lines {
        *out += &line;
        *out += "\n";
    }
}

pub(super) fn no_rules(policy: &str) -> String {
    format!("there are no rules in {}, so all requests pass; give --config FILE", printable(policy))
}

pub(super) fn out_of_order(found: &OutOfOrder) -> String {
    let OutOfOrder { trace, line, begins, latest, back_seconds } = found;
    let place = match line {
        None => format!("{} begins at", printable(trace)),
        Some(line) => format!("{}:{line} runs back to", printable(trace)),
    };
    format!(
        "{place} {}, {} before the latest time in front of it, {}: were the traces given in the wrong order? \
         All that is older is decided at that one instant, so too much is denied; give the oldest trace first",
        clock(begins),
        length(Span::from_secs(*back_seconds)),
        clock(latest),
    )
}

fn lines_are(count: u64) -> String {
    if count == 1 { "1 line was".to_owned() } else { format!("{} lines were", grouped(count)) }
}

fn rules(out: &mut String, outcome: &Outcome) {
    if outcome.rules.is_empty() {
        return;
    }
    let mut table = Table::new("lrrrrl");
    table.row(["rule", "seen", "passed", "denied", "share", ""]);
    for rule in &outcome.rules {
        let mut remarks = Vec::new();
        if rule.shadow {
            remarks.push("shadow: would have denied".to_owned());
        }
        if rule.banned > 0 {
            remarks.push(format!("{} of them by its ban", grouped(rule.banned)));
        }
        table.row([
            rule.name.clone(),
            grouped(rule.seen),
            grouped(rule.passed),
            grouped(rule.denied),
            percent(rule.denied, rule.seen),
            remarks.join(", "),
        ]);
    }
    *out += "\n";
    table.write(out);
}

fn hardest_hit(out: &mut String, outcome: &Outcome) {
    if outcome.hardest_hit.is_empty() {
        return;
    }
    *out += &format!("\nhit hardest, of {}:\n\n", subjects(outcome.subjects_denied));
    hits(out, &outcome.hardest_hit, "denied");
}

fn hits(out: &mut String, hits: &[super::Hit], what: &str) {
    let mut table = Table::new("llrll");
    table.row(["rule", "subject", what, "first", "last"]);
    for hit in hits.iter().take(MAX_SUBJECTS_PRINTED) {
        let about = if hit.too_high_by > 0 { "≤ " } else { "" };
        table.row([
            hit.rule.clone(),
            printable(&hit.subject),
            format!("{about}{}", grouped(hit.count)),
            clock(&hit.first),
            clock(&hit.last),
        ]);
    }
    table.write(out);
}

fn worst(out: &mut String, outcome: &Outcome) {
    let mut table = Table::new("lll");
    for (what, period) in [("minute", &outcome.worst_minute), ("hour", &outcome.worst_hour)] {
        if let Some(Period { start, passed, denied }) = period {
            let start = clock(start);
            let minute = start.get(..16).unwrap_or(&start).to_owned();
            let counts = format!("{} denied of {}", grouped(*denied), grouped(passed + denied));
            table.row([format!("worst {what}"), minute, counts]);
        }
    }
    if !table.rows.is_empty() {
        *out += "\n";
        table.write(out);
    }
}

fn compare(out: &mut String, summary: &Summary, comparison: &Comparison) {
    let Comparison { policy, outcome, newly_denied, newly_passed, .. } = comparison;
    let requests = outcome.requests;
    *out += &format!("\nunder {} instead of {}:\n\n", printable(policy), printable(&summary.policy));
    let mut table = Table::new("lrl");
    let mut row = |what: &str, count: u64| table.row([what.to_owned(), grouped(count), percent(count, requests)]);
    row("denied", outcome.denied);
    row("newly denied", newly_denied.requests);
    row("newly passed", newly_passed.requests);
    row("unchanged", comparison.passed_by_both + comparison.denied_by_both);
    table.write(out);
    change(out, newly_denied, "newly denied", policy);
    change(out, newly_passed, "newly passed", &summary.policy);
}

fn change(out: &mut String, change: &Change, what: &str, denying: &str) {
    if change.requests == 0 {
        return;
    }
    *out += &format!("\n{what}, by the rule of {} that denies:\n\n", printable(denying));
    let mut table = Table::new("lr");
    for rule in &change.rules {
        table.row([rule.rule.clone(), grouped(rule.requests)]);
    }
    table.write(out);
    *out += &format!("\n{what} most, of {}:\n\n", subjects(change.subjects));
    hits(out, &change.most, "requests");
}

fn subjects(count: SubjectCount) -> String {
    let number = grouped(count.count);
    match count {
        SubjectCount { at_least: true, .. } => format!("at least {number} subjects"),
        SubjectCount { count: 1, .. } => "1 subject".to_owned(),
        _ => format!("{number} subjects"),
    }
}

/// `2015-05-17 10:05:03`
fn clock(instant: &str) -> String {
    instant.trim_end_matches('Z').replace('T', " ")
}

/// A table whose columns are as wide as their widest cell. `sides` aligns each column left (`l`) or right (`r`).
struct Table {
    sides: &'static str,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(sides: &'static str) -> Table {
        Table { sides, rows: Vec::new() }
    }

    fn row<const N: usize>(&mut self, cells: [impl Into<String>; N]) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    fn write(&self, out: &mut String) {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.sides.len()).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), side) in row.iter().zip(&widths).zip(self.sides.chars()) {
                let pad = " ".repeat(width - cell.chars().count());
                let (before, after) = if side == 'r' { (pad.as_str(), "") } else { ("", pad.as_str()) };
                line += &format!("{before}{cell}{after}  ");
            }
            *out += line.trim_end();
            *out += "\n";
        }
    }
}
