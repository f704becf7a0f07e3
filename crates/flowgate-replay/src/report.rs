//! The report: one HTML page without external parts, to read, to send and to print.
//!
//! Rule       The charts are SVG with their numbers in `data-` attributes, so the page is complete with scripts turned
//!            off. The script only shows the numbers under the pointer or the focus.
//! Rule       The page fetches nothing: its Content-Security-Policy forbids it, and allows only the style and the
//!            script whose hashes it names. `html.rs` escapes every text of a log. If that failed, the policy would
//!            still keep foreign scripts from running.

mod curve;
mod html;
mod scale;
mod tables;
mod timeline;

use std::fmt::Write;

use flowgate::Span;

use super::format::{clock, grouped, length, percent};
use super::summary::{ADVICE_IS_FOR_EACH_ALONE, Comparison, Curve, Outcome, Point, SubjectCount, Summary};
use html::Text;

const STYLE: &str = include_str!("report/page.css");
const SCRIPT: &str = include_str!("report/page.js");
/// The SHA-256 hashes in base64, for the Content-Security-Policy. A test in a browser checks them.
const STYLE_HASH: &str = "RZ7fXx26/c3GyE7RP3IMQGIac730h/227KRxNv3Vp3Y=";
const SCRIPT_HASH: &str = "krHxHcB9GkCgRHhIORPgpOQPqtgpzVddNtbX4fdADi0=";

/// The most sentences of advice beside the title. Every curve repeats its own.
const MAX_ADVICE: usize = 5;

/// The report as HTML.
pub fn page(summary: &Summary) -> String {
    let mut out = String::with_capacity(1 << 16);
    let title = format!("Replay: {}", summary.policy);
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; \
         script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
        Text(&title),
    );
    head(&mut out, summary);
    if let Some(comparison) = &summary.compare {
        compare(&mut out, summary, comparison);
    }
    over_time(&mut out, &summary.outcome);
    tables::rules(&mut out, &summary.outcome);
    what_if(&mut out, summary);
    tables::hardest_hit(&mut out, &summary.outcome);
    notes(&mut out, summary);
    let _ = writeln!(
        out,
        "<footer>flowgate {}</footer>\n</main>\n<div id=\"tip\" role=\"status\"></div>\n<script>{SCRIPT}</script>\n</body>\n</html>",
        Text(env!("CARGO_PKG_VERSION")),
    );
    out
}

fn head(out: &mut String, summary: &Summary) {
    let outcome = &summary.outcome;
    let Outcome { requests, passed, denied, .. } = *outcome;
    let headline = match denied {
        0 => "Nothing would have been denied".to_owned(),
        _ => format!("{} of {} requests would have been denied", percent(denied, requests), grouped(requests)),
    };
    let instead = summary.compare.as_ref().map(|other| {
        let share = percent(other.outcome.denied, other.outcome.requests);
        format!(", {share} under <code>{}</code>", Text(&other.policy))
    });
    let headline = headline + &instead.unwrap_or_default();
    let when = match (&summary.first, &summary.last) {
        (Some(first), Some(last)) => {
            let span = length(Span::from_secs(summary.seconds));
            format!(" &middot; {} to {} UTC, {span}", clock(first), clock(last))
        }
        _ => String::new(),
    };
    let _ = writeln!(
        out,
        "<header>\n<p class=\"over\">Replay of recorded traffic</p>\n<h1>{headline}</h1>\n\
         <p class=\"lead\"><code>{}</code> on <code>{}</code>{when}</p>",
        Text(&summary.policy),
        Text(&summary.traces.join(", ")),
    );
    for warning in summary.warnings() {
        let _ = writeln!(out, "<p class=\"warning\"><strong>Warning:</strong> {}.</p>", Text(&warning));
    }
    advice(out, summary);
    *out += "</header>\n<dl class=\"numbers\">\n";
    number(out, "requests", "Requests", &grouped(requests), &rate(requests, summary.seconds));
    number(out, "passed", "Passed", &grouped(passed), &percent(passed, requests));
    number(out, "denied", "Denied", &grouped(denied), &percent(denied, requests));
    number(out, "subjects-denied", "Subjects denied", &at_least(outcome.subjects_denied), "once or more");
    if let Some(minute) = &outcome.worst_minute {
        let start = clock(&minute.start);
        let start = start.get(..16).unwrap_or(&start).to_owned();
        number(out, "worst-minute", "Worst minute", &grouped(minute.denied), &start);
    }
    *out += "</dl>\n";
}

/// Writes the advice of the curves first, because people open the report for it.
fn advice(out: &mut String, summary: &Summary) {
    let Some(curves) = summary.what_if.as_ref().filter(|curves| !curves.curves.is_empty()) else { return };
    *out += "<ul class=\"advice\">\n";
    for curve in curves.curves.iter().take(MAX_ADVICE) {
        let _ = writeln!(
            out,
            "<li>{} <span>{} <code>{}</code></span></li>",
            Text(&curve.advice),
            Text(&curve.rule),
            Text(&curve.limit)
        );
    }
    *out += "</ul>\n";
    if curves.are_several() {
        let _ = writeln!(out, "<p class=\"hint\">{ADVICE_IS_FOR_EACH_ALONE}</p>");
    }
}

fn rate(requests: u64, seconds: u64) -> String {
    if seconds == 0 {
        return "at once".to_owned();
    }
    let rate = requests as f64 / seconds as f64;
    match rate {
        rate if rate >= 10.0 => format!("{} a second", grouped(rate.round() as u64)),
        rate if rate >= 1.0 => format!("{rate:.1} a second"),
        rate if rate * 60.0 >= 1.0 => format!("{:.1} a minute", rate * 60.0),
        rate => format!("{:.1} an hour", rate * 3600.0),
    }
}

fn number(out: &mut String, name: &str, title: &str, value: &str, small: &str) {
    let hot = if name == "denied" && value != "0" { " class=\"hot\"" } else { "" };
    let _ = writeln!(
        out,
        "<div class=\"number\" data-number=\"{name}\"><dt>{title}</dt><dd><span{hot}>{value}</span><small>{}</small></dd></div>",
        Text(small)
    );
}

fn over_time(out: &mut String, outcome: &Outcome) {
    if outcome.timeline.is_empty() {
        return;
    }
    let width = length(Span::from_secs(outcome.period_seconds));
    let _ = write!(
        out,
        "<h2>Over time</h2>\n<p class=\"about\">One bar for {width}, times in UTC.</p>\n<div class=\"card\">\n\
         <ul class=\"legend\"><li><i class=\"passed\"></i>passed</li><li><i class=\"denied\"></i>denied</li></ul>\n\
         <div class=\"chart wide\">"
    );
    timeline::svg(out, outcome, &timeline::WIDE);
    *out += "</div>\n<div class=\"chart narrow\">";
    timeline::svg(out, outcome, &timeline::NARROW);
    *out += "</div>\n</div>\n";
}

fn what_if(out: &mut String, summary: &Summary) {
    let Some(curves) = summary.what_if.as_ref().filter(|curves| !curves.curves.is_empty()) else { return };
    *out += "<h2>What if the count were another?</h2>\n\
             <p class=\"about\">Each limit by itself, tried at other counts on the requests that its rule matched. \
             A subject counts as denied if any of its requests is.</p>\n\
             <ul class=\"legend\"><li><i class=\"denied stroke\"></i>share of requests denied</li>\
             <li><i class=\"subjects stroke\"></i>share of subjects denied</li></ul>\n<div class=\"curves\">\n";
    for curve in &curves.curves {
        card(out, curve);
    }
    *out += "</div>\n";
    if curves.left_out > 0 {
        let _ =
            writeln!(out, "<p class=\"hint\">{} further limits are not shown.</p>", grouped(curves.left_out as u64));
    }
}

fn card(out: &mut String, curve: &Curve) {
    let case = curve.case.as_ref().map(|case| format!("<span class=\"tag\">{}</span>", Text(case))).unwrap_or_default();
    let _ = write!(
        out,
        "<section class=\"card\">\n<div class=\"curve-head\"><h3>{}{case}</h3><code>{}</code></div>\n<p class=\"finding\"><strong>{}</strong> {}</p>",
        Text(&curve.rule),
        Text(&curve.limit),
        Text(&curve.advice),
        finding(curve),
    );
    if curve::is_drawn(curve) {
        *out += "<div class=\"chart wide\">";
        curve::svg(out, curve, curve::WIDE);
        *out += "</div>\n<div class=\"chart narrow\">";
        curve::svg(out, curve, curve::NARROW);
        *out += "</div>\n";
    }
    if curve.one_in > 1 {
        let _ = writeln!(
            out,
            "<p class=\"hint\">From one subject in {}, chosen by a hash: {} subjects with {} requests.</p>",
            grouped(curve.one_in),
            grouped(curve.subjects),
            grouped(curve.requests)
        );
    }
    if curve.evicted > 0 {
        let _ = writeln!(
            out,
            "<p class=\"hint\">Memory was short: {} counters were forgotten early, so the shares may be too low.</p>",
            grouped(curve.evicted)
        );
    }
    tables::points(out, curve);
    *out += "</section>\n";
}

/// What the configured count denies, in words.
fn finding(curve: &Curve) -> String {
    let noun = if curve.subjects == 1 { "subject" } else { "subjects" };
    let shares = |point: &Point| {
        let (requests, subjects) = (percent(point.requests, curve.requests), percent(point.subjects, curve.subjects));
        format!("denies <b>{requests}</b> of requests and <b>{subjects}</b> of {} {noun}", grouped(curve.subjects))
    };
    let Some(configured) = curve.points.get(curve.configured) else { return String::new() };
    format!("As configured it {}.", shares(configured))
}

fn compare(out: &mut String, summary: &Summary, comparison: &Comparison) {
    let Comparison { policy, outcome, newly_denied, newly_passed, .. } = comparison;
    let requests = outcome.requests;
    let _ = writeln!(
        out,
        "<h2>Under <code>{}</code> instead</h2>\n<p class=\"about\">The same traffic under both policies, each with \
         counters of its own. A change is put down to the rule that decided on the side that denies.</p>\n\
         <dl class=\"numbers\">",
        Text(policy)
    );
    let denied = format!("instead of {}", grouped(summary.outcome.denied));
    number(out, "compare-denied", "Denied", &grouped(outcome.denied), &denied);
    let share = |count: u64| percent(count, requests);
    number(out, "newly-denied", "Newly denied", &grouped(newly_denied.requests), &share(newly_denied.requests));
    number(out, "newly-passed", "Newly passed", &grouped(newly_passed.requests), &share(newly_passed.requests));
    let same = comparison.passed_by_both + comparison.denied_by_both;
    number(out, "unchanged", "Unchanged", &grouped(same), &share(same));
    *out += "</dl>\n<div class=\"two\">\n";
    tables::change(out, newly_denied, "Newly denied", policy);
    tables::change(out, newly_passed, "Newly passed", &summary.policy);
    *out += "</div>\n";
    tables::both(out, summary, comparison);
}

fn notes(out: &mut String, summary: &Summary) {
    *out += "<h2>How this was made</h2>\n<div class=\"notes\"><ul>\n";
    let mut note = |text: String| {
        let _ = writeln!(out, "<li>{text}</li>");
    };
    note(format!(
        "{} lines were replayed in virtual time through the engine that serves: each request was decided at the time \
         that its line gives.",
        grouped(summary.lines - summary.skipped)
    ));
    if summary.reordered > 0 {
        note(format!(
            "{} of them are older than a line before them, by at most {}, since logs are written when requests end; they \
             were put in the order of their times.",
            grouped(summary.reordered),
            length(Span::from_secs(summary.reordered_by_seconds))
        ));
    }
    if summary.other_operations > 0 {
        let other = grouped(summary.other_operations);
        note(format!("{other} lines ask for something else than to take, and are in no count."));
    }
    note(
        "A rule counts as denying a request whether or not another rule denies it, too, so the rules' denials may add \
          up to more than all denials. A shadow rule never denies; its numbers are what it would have done."
            .to_owned(),
    );
    if summary.what_if.is_some() {
        note("A curve runs its limit alone: no other limit, no other rule and no ban holds anything back. Around the \
              configured count each is half as much again as the one before, farther away the steps are larger; a burst that \
              was set grows with the count. The count marked is the smallest of those tried from which on at least 99.9 % of \
              the subjects are never denied, or where a rule counts all requests together 99.9 % of the requests pass. \
              Counts that deny nothing are not all drawn; the table has them."
            .to_owned());
    }
    if summary.evicted > 0 {
        let evicted = grouped(summary.evicted);
        note(format!("{evicted} counters were forgotten early, because <code>store.max_memory</code> was reached."));
    }
    if summary.skipped > 0 {
        let lines = if summary.skipped == 1 { "line was" } else { "lines were" };
        let mut text = format!("{} {lines} skipped, not being readable:<ul>", grouped(summary.skipped));
        for line in &summary.unreadable {
            let _ = write!(text, "<li><code>{}:{}</code> {}</li>", Text(&line.trace), line.line, Text(&line.reason));
        }
        note(text + "</ul>");
    }
    *out += "</ul></div>\n";
}

fn at_least(count: SubjectCount) -> String {
    let number = grouped(count.count);
    if count.at_least { format!("≥ {number}") } else { number }
}
