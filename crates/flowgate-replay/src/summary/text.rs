//! The summary for a terminal, in aligned columns.

use flowgate::Span;

use super::{Change, Comparison, MissingField, OutOfOrder, Outcome, Period, SubjectCount, Summary};
use crate::event::QUERY_PREFIX;
use crate::format::{clock, grouped, length, percent, printable};

/// The most subjects in a printed list. The JSON and the report have more.
const MAX_SUBJECTS_PRINTED: usize = 10;

pub(super) fn write(summary: &Summary) -> String {
    let mut out = String::new();
    head(&mut out, summary);
    notes(&mut out, summary);
    rules(&mut out, &summary.outcome);
    advice(&mut out, summary);
    let Outcome { hardest_hit, shadow_hits, subjects_denied, .. } = &summary.outcome;
    hits(&mut out, &format!("hit hardest, of {}", subjects(*subjects_denied)), hardest_hit, "denied");
    hits(&mut out, "shadow rules would hit hardest", shadow_hits, "would deny");
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
    if summary.reordered > 0 {
        let by = length(Span::from_secs(summary.reordered_by_seconds));
        lines
            .push(format!("{} older than one before, by at most {by}, and put in order", lines_are(summary.reordered)));
    }
    if summary.late > 0 && !summary.out_of_order.is_empty() {
        lines.push(late(summary));
    }
    let missing: Vec<&String> = summary.missing_fields.iter().flat_map(|field| &field.unmatched_rules).collect();
    for rule in &summary.outcome.rules {
        if rule.seen == 0 && !missing.contains(&&rule.name) {
            lines.push(format!("rule \"{}\" matched no request, though lines have its fields", rule.name));
        }
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

/// How to read the advice where there are several limits.
pub(crate) const ADVICE_IS_FOR_EACH_ALONE: &str =
    "Each limit was tried alone, as if there were no other: whom one count spares, another limit may still deny.";

pub(super) fn no_rules(policy: &str) -> String {
    format!("there are no rules in {}, so all requests pass; give --config FILE", printable(policy))
}

/// The sentence about lines that came too late to be put in order.
pub(super) fn late(summary: &Summary) -> String {
    let window = length(Span::from_secs(summary.reorder_seconds));
    let by = length(Span::from_secs(summary.late_by_seconds));
    let late = format!("{} of {} lines came", grouped(summary.late), grouped(summary.lines - summary.skipped));
    let reason = match summary.reorder_was_full {
        true => {
            format!("{late} too late to be put in order, by up to {by}: there was no memory to hold all of {window}")
        }
        false => format!(
            "{late} more than {window} late, by up to {by}; try --reorder {}",
            round_up(summary.late_by_seconds)
        ),
    };
    format!("{reason}. They were decided at the latest time seen, so too much may be denied")
}

/// A number of whole minutes or hours that is at least this long, as `--reorder` takes it.
fn round_up(seconds: u64) -> String {
    match seconds {
        ..=3600 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{}h", seconds.div_ceil(3600)),
    }
}

/// The sentence about a field that no line has.
pub(super) fn missing_field(missing: &MissingField) -> String {
    let MissingField { field, rules, unmatched_rules, nearest, fields, log } = missing;
    let field = printable(field);
    let names = |rules: &[String]| {
        let quoted: Vec<String> = rules.iter().map(|rule| format!("\"{rule}\"")).collect();
        format!("{} {}", if rules.len() == 1 { "rule" } else { "rules" }, quoted.join(", "))
    };
    // A log can have this field although none of its lines has it.
    let is_possible = fields.contains(&field);
    let have = if log.is_some() || is_possible { "can have" } else { "have" };
    let has = match log {
        Some(log) if !is_possible && !field.starts_with(QUERY_PREFIX) && field != "host" => {
            format!("{log} cannot have the field \"{field}\"")
        }
        _ => format!("no line has the field \"{field}\""),
    };
    let effect = match unmatched_rules.is_empty() {
        true => format!("this replay cannot show what {} does where requests have it", names(rules)),
        false => format!("{} matched no request", names(unmatched_rules)),
    };
    let hint = match nearest {
        Some(nearest) => format!("did you mean \"{}\"?", printable(nearest)),
        None if fields.is_empty() => "lines have no fields at all".to_owned(),
        None => format!("lines {have} {}", fields.iter().map(|field| printable(field)).collect::<Vec<_>>().join(", ")),
    };
    format!("{has}, so {effect}; {hint}")
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
            let share = percent(rule.would_deny, rule.seen);
            remarks.push(format!("shadow: would deny {}, {share}", grouped(rule.would_deny)));
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

/// The advice of the curves, one line for each limit.
fn advice(out: &mut String, summary: &Summary) {
    let Some(curves) = summary.what_if.as_ref().filter(|curves| !curves.curves.is_empty()) else { return };
    let mut table = Table::new("lll");
    for curve in &curves.curves {
        let case = curve.case.as_ref().map(|case| format!(" ({})", printable(case))).unwrap_or_default();
        table.row([curve.rule.clone() + &case, curve.limit.clone(), curve.advice.clone()]);
    }
    *out += "\n";
    table.write(out);
    if curves.are_several() {
        *out += &format!("{ADVICE_IS_FOR_EACH_ALONE}\n");
    }
}

/// The list of the subjects with the most denials, below a title.
fn hits(out: &mut String, title: &str, hits: &[super::Hit], what: &str) {
    if hits.is_empty() {
        return;
    }
    *out += &format!("\n{title}:\n\n");
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
    hits(out, &format!("{what} most, of {}", subjects(change.subjects)), &change.most, "requests");
}

fn subjects(count: SubjectCount) -> String {
    let number = grouped(count.count);
    match count {
        SubjectCount { at_least: true, .. } => format!("at least {number} subjects"),
        SubjectCount { count: 1, .. } => "1 subject".to_owned(),
        _ => format!("{number} subjects"),
    }
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
