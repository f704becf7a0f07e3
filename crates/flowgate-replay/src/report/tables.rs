//! The tables of the report.

use std::fmt::Write;

use super::at_least;
use super::html::Text;
use crate::format::{clock, grouped, percent};
use crate::summary::{Change, Comparison, Curve, Hit, Outcome, RuleOutcome, Summary};

/// The results of each rule.
pub(super) fn rules(out: &mut String, outcome: &Outcome) {
    if outcome.rules.is_empty() {
        return;
    }
    *out += "<h2>Rules</h2>\n<p class=\"about\">What each rule saw, top to bottom, and what it did about it.</p>\n\
             <div class=\"card scroll\"><table data-table=\"rules\">\n<thead><tr><th>rule</th><th class=\"right\">seen</th>\
             <th class=\"right\">passed</th><th class=\"right\">denied</th><th class=\"right\">share</th><th class=\"wide\"></th></tr></thead>\n<tbody>\n";
    for rule in &outcome.rules {
        let RuleOutcome { name, seen, passed, denied, banned, .. } = rule;
        let mut tags = String::new();
        if rule.shadow {
            let share = percent(rule.would_deny, *seen);
            let _ = write!(tags, "<span class=\"tag\">shadow: would deny {}, {share}</span>", grouped(rule.would_deny));
        }
        if *banned > 0 {
            let _ = write!(tags, "<span class=\"tag\">{} by its ban</span>", grouped(*banned));
        }
        let _ = write!(
            out,
            "<tr data-rule=\"{name}\" data-seen=\"{seen}\" data-passed=\"{passed}\" data-denied=\"{denied}\"><td>{name}{tags}</td>\
             <td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"wide\">",
            grouped(*seen),
            grouped(*passed),
            grouped(*denied),
            percent(*denied, *seen),
            name = Text(name),
        );
        bar(out, *denied, *seen);
        *out += "</td></tr>\n";
    }
    *out += "</tbody></table></div>\n";
}

/// The subjects with the most denials, and those that shadow rules would deny.
pub(super) fn hardest_hit(out: &mut String, outcome: &Outcome) {
    let denied = at_least(outcome.subjects_denied);
    let about = format!("The subjects with the most denials, of {denied} that were denied at all.");
    hits_card(out, "Hit hardest", &about, (&outcome.hardest_hit, "hardest-hit", "denied"));
    let about = "These requests pass: a shadow rule denies nothing.";
    hits_card(out, "Shadow rules would hit hardest", about, (&outcome.shadow_hits, "shadow-hits", "would deny"));
}

fn hits_card(out: &mut String, title: &str, about: &str, (list, table, what): (&[Hit], &str, &str)) {
    if list.is_empty() {
        return;
    }
    let _ = write!(out, "<h2>{title}</h2>\n<p class=\"about\">{about}</p>\n<div class=\"card scroll\">");
    hits(out, list, table, what);
    *out += "</div>\n";
}

fn hits(out: &mut String, hits: &[Hit], table: &str, what: &str) {
    let wide = table != "changed";
    let times = match wide {
        true => "<th class=\"wide\"></th><th class=\"time\">first</th><th class=\"time\">last</th>",
        false => "",
    };
    let _ = writeln!(
        out,
        "<table data-table=\"{table}\">\n<thead><tr><th>subject</th><th>rule</th><th class=\"right\">{what}</th>{times}</tr></thead>\n<tbody>"
    );
    let most = hits.first().map_or(0, |hit| hit.count);
    for hit in hits {
        let about = if hit.too_high_by > 0 { "≤ " } else { "" };
        let _ = write!(
            out,
            "<tr data-subject=\"{subject}\" data-count=\"{count}\"><td class=\"subject mono\"><bdi>{subject}</bdi></td><td>{}</td>\
             <td class=\"right\">{about}{}</td>",
            Text(&hit.rule),
            grouped(hit.count),
            subject = Text(&hit.subject),
            count = hit.count,
        );
        if wide {
            *out += "<td class=\"wide\">";
            bar(out, hit.count, most);
            let (first, last) = (clock(&hit.first), clock(&hit.last));
            let _ = write!(out, "</td><td class=\"time\">{first}</td><td class=\"time\">{last}</td>");
        }
        *out += "</tr>\n";
    }
    *out += "</tbody></table>";
}

/// The numbers of a curve as a table, for readers without a pointer.
pub(super) fn points(out: &mut String, curve: &Curve) {
    *out += "<details><summary>All counts</summary><div class=\"scroll\"><table data-table=\"points\">\n\
             <thead><tr><th>limit</th><th class=\"right\">requests denied</th><th class=\"right\">share</th>\
             <th class=\"right\">subjects denied</th><th class=\"right\">share</th></tr></thead>\n<tbody>\n";
    for (index, point) in curve.points.iter().enumerate() {
        let class = if index == curve.configured { " class=\"here\"" } else { "" };
        let _ = writeln!(
            out,
            "<tr{class}><td><code>{}</code></td><td class=\"right\">{}</td><td class=\"right\">{}</td>\
             <td class=\"right\">{}</td><td class=\"right\">{}</td></tr>",
            Text(&point.limit),
            grouped(point.requests),
            percent(point.requests, curve.requests),
            grouped(point.subjects),
            percent(point.subjects, curve.subjects),
        );
    }
    *out += "</tbody></table></div></details>\n";
}

/// The requests and subjects that change in one direction.
pub(super) fn change(out: &mut String, change: &Change, title: &str, denying: &str) {
    let _ = writeln!(out, "<section class=\"card\"><h3>{title}</h3>");
    if change.requests == 0 {
        *out += "<p class=\"hint\">No request.</p></section>\n";
        return;
    }
    *out += "<p class=\"hint\">";
    for (index, rule) in change.rules.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(out, "{comma}{} by <b>{}</b>", grouped(rule.requests), Text(&rule.rule));
    }
    let _ = write!(
        out,
        " of <code>{}</code>; {} {}</p>\n<div class=\"scroll\">",
        Text(denying),
        at_least(change.subjects),
        if change.subjects.count == 1 { "subject" } else { "subjects" }
    );
    hits(out, &change.most[..change.most.len().min(10)], "changed", "requests");
    *out += "</div></section>\n";
}

/// The denials of each rule under both policies.
pub(super) fn both(out: &mut String, summary: &Summary, comparison: &Comparison) {
    let (first, second) = (&summary.outcome.rules, &comparison.outcome.rules);
    let mut names: Vec<&str> = first.iter().map(|rule| rule.name.as_str()).collect();
    let known = names.clone();
    names.extend(second.iter().map(|rule| rule.name.as_str()).filter(|name| !known.contains(name)));
    if names.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<div class=\"card scroll\"><table data-table=\"both\">\n<thead><tr><th>denied by rule</th><th class=\"right policy\">{}</th>\
         <th class=\"right policy\">{}</th><th class=\"right\">change</th></tr></thead>\n<tbody>",
        Text(&summary.policy),
        Text(&comparison.policy)
    );
    for name in names {
        let denied = |rules: &[RuleOutcome]| rules.iter().find(|rule| rule.name == name).map(|rule| rule.denied);
        let cell = |count: Option<u64>| count.map_or_else(|| "–".to_owned(), grouped);
        let (before, after) = (denied(first), denied(second));
        let (lost, won) = (before.unwrap_or(0), after.unwrap_or(0));
        let change = match won.checked_sub(lost) {
            Some(0) => "0".to_owned(),
            Some(more) => format!("+{}", grouped(more)),
            None => format!("−{}", grouped(lost - won)),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right\">{change}</td></tr>",
            Text(name),
            cell(before),
            cell(after),
        );
    }
    *out += "</tbody></table></div>\n";
}

/// A part of a whole as a bar.
fn bar(out: &mut String, part: u64, whole: u64) {
    let share = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    let _ = write!(
        out,
        "<svg class=\"bar\" viewBox=\"0 0 100 9\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"rest\" width=\"100\" height=\"9\"/><rect width=\"{share:.2}\" height=\"9\"/></svg>"
    );
}
