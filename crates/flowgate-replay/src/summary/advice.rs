//! The result of a curve as the sentence that people look for.

use flowgate::Period;

use super::curves::{Curve, Point};
use crate::format::length;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Of fewer subjects than this, one is more than the tenth of a percent that the advice gives up.
const FEWEST_FOR_A_SHARE: u64 = 1_000;

/// `To leave 99.9 % of addresses alone: 101 a minute (now 20).`, or for few of them `To leave all 51 addresses alone: ..`.
pub(super) fn sentence(curve: &Curve) -> String {
    let (Some(configured), Some(first), Some(last)) =
        (curve.points.get(curve.configured), curve.points.first(), curve.points.last())
    else {
        return String::new();
    };
    let now = &configured.count;
    let share = |number: u64, [one, many]: [String; 2]| match number {
        1 => format!("the only {one}"),
        _ if number < FEWEST_FOR_A_SHARE && curve.one_in == 1 => format!("all {number} {many}"),
        _ => format!("99.9 % of {many}"),
    };
    let requests = share(curve.requests, ["request", "requests"].map(str::to_owned));
    let whom = share(curve.subjects, subjects(&curve.by));
    // A burst that was tried with the count belongs to the advice.
    let rate = |point: &Point| match point.limit.split(' ').find(|option| option.starts_with("burst=")) {
        Some(burst) => format!("{} {} with {burst}", point.count, curve.period),
        None => format!("{} {}", point.count, curve.period),
    };
    let spared = match curve.by.is_empty() {
        true => format!("lets {requests} pass"),
        false => format!("leaves {whom} alone"),
    };
    match curve.spares {
        None => format!("No count tried, up to {}, {spared} (now {now}).", rate(last)),
        Some(0) if first.requests == 0 => {
            format!("Already the smallest count tried, {}, denies nothing (now {now}).", rate(first))
        }
        Some(0) => format!("Already the smallest count tried, {}, {spared} (now {now}).", rate(first)),
        Some(index) if index == curve.configured => format!("{} {spared}, as configured.", rate(configured)),
        Some(index) => {
            let goal = match curve.by.is_empty() {
                true => format!("To let {requests} pass"),
                false => format!("To leave {whom} alone"),
            };
            let count = curve.points.get(index).map(rate).unwrap_or_default();
            format!("{goal}: {count} (now {now}).")
        }
    }
}

/// A subject of a rule, and several.
fn subjects(by: &[String]) -> [String; 2] {
    let known = match by {
        [field] => match field.as_str() {
            "ip" => ["address", "addresses"],
            "user" => ["user", "users"],
            "host" => ["host", "hosts"],
            "path" => ["path", "paths"],
            "header.user-agent" => ["user agent", "user agents"],
            other => return ["value", "values"].map(|noun| format!("{noun} of {other}")),
        },
        _ => ["subject", "subjects"],
    };
    known.map(str::to_owned)
}

/// `a minute`, `in 10 min`
pub(super) fn period(period: Period) -> String {
    let Some(span) = period.length() else { return "a month".to_owned() };
    let (seconds, rest) = (span.as_nanos() / NANOS_PER_SECOND, span.as_nanos() % NANOS_PER_SECOND);
    match seconds {
        _ if rest > 0 => format!("in {period}"),
        1 => "a second".to_owned(),
        60 => "a minute".to_owned(),
        3600 => "an hour".to_owned(),
        86_400 => "a day".to_owned(),
        604_800 => "a week".to_owned(),
        _ => format!("in {}", length(span)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(by: &[&str], seconds: u64, denied: &[u64], configured: usize, spares: Option<usize>) -> String {
        advice_of(1000, by, seconds, denied, configured, spares)
    }

    /// The advice where `number` requests came from as many subjects.
    fn advice_of(
        number: u64,
        by: &[&str],
        seconds: u64,
        denied: &[u64],
        configured: usize,
        spares: Option<usize>,
    ) -> String {
        let point = |(index, &denied): (usize, &u64)| Point {
            count: (10 * (index + 1)).to_string(),
            millionths: 0,
            limit: String::new(),
            requests: denied,
            subjects: denied,
        };
        sentence(&Curve {
            rule: String::new(),
            case: None,
            limit: String::new(),
            by: by.iter().map(ToString::to_string).collect(),
            period: period(Period::secs(seconds).unwrap()),
            advice: String::new(),
            requests: number,
            subjects: number,
            one_in: 1,
            evicted: 0,
            points: denied.iter().enumerate().map(point).collect(),
            configured,
            spares,
        })
    }

    #[test]
    fn advice_is_one_sentence() {
        for (advice, expected) in [
            (advice(&["ip"], 60, &[9, 2, 0], 0, Some(2)), "To leave 99.9 % of addresses alone: 30 a minute (now 10)."),
            (advice(&["user"], 86_400, &[9, 0, 0], 2, Some(1)), "To leave 99.9 % of users alone: 20 a day (now 30)."),
            (
                advice(&["ua"], 3600, &[9, 0], 1, Some(1)),
                "20 an hour leaves 99.9 % of values of ua alone, as configured.",
            ),
            (
                advice(&["ip"], 1, &[0, 0], 1, Some(0)),
                "Already the smallest count tried, 10 a second, denies nothing (now 20).",
            ),
            (
                advice(&["ip", "user"], 1, &[1, 0], 1, Some(0)),
                "Already the smallest count tried, 10 a second, leaves 99.9 % of subjects alone (now 20).",
            ),
            (
                advice(&["ip"], 60, &[9, 2], 0, None),
                "No count tried, up to 20 a minute, leaves 99.9 % of addresses alone (now 10).",
            ),
            (advice(&[], 600, &[9, 2, 0], 0, Some(1)), "To let 99.9 % of requests pass: 20 in 10 min (now 10)."),
            (
                advice_of(51, &["ip"], 60, &[9, 2, 0], 0, Some(2)),
                "To leave all 51 addresses alone: 30 a minute (now 10).",
            ),
            (advice_of(51, &[], 60, &[9, 0], 0, Some(1)), "To let all 51 requests pass: 20 a minute (now 10)."),
            (
                advice_of(1, &["ip"], 60, &[9, 0], 0, None),
                "No count tried, up to 20 a minute, leaves the only address alone (now 10).",
            ),
        ] {
            assert_eq!(advice, expected);
        }
    }
}
