//! The result of a curve as the sentence that people look for.

use flowgate::Period;

use super::curves::{Curve, Point};
use crate::format::length;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `To leave 99.9 % of addresses alone: 101 a minute (now 20).`
pub(super) fn sentence(curve: &Curve) -> String {
    let (Some(configured), Some(first), Some(last)) =
        (curve.points.get(curve.configured), curve.points.first(), curve.points.last())
    else {
        return String::new();
    };
    let (now, whom) = (&configured.count, subjects(&curve.by));
    // A burst that was tried with the count belongs to the advice.
    let rate = |point: &Point| match point.limit.split(' ').find(|option| option.starts_with("burst=")) {
        Some(burst) => format!("{} {} with {burst}", point.count, curve.period),
        None => format!("{} {}", point.count, curve.period),
    };
    let spared = match curve.by.is_empty() {
        true => "lets 99.9 % of requests pass".to_owned(),
        false => format!("leaves 99.9 % of {whom} alone"),
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
                true => "To let 99.9 % of requests pass".to_owned(),
                false => format!("To leave 99.9 % of {whom} alone"),
            };
            let count = curve.points.get(index).map(rate).unwrap_or_default();
            format!("{goal}: {count} (now {now}).")
        }
    }
}

/// The subjects of a rule, in the plural.
fn subjects(by: &[String]) -> String {
    match by {
        [field] => match field.as_str() {
            "ip" => "addresses".to_owned(),
            "user" => "users".to_owned(),
            "host" => "hosts".to_owned(),
            "path" => "paths".to_owned(),
            "header.user-agent" => "user agents".to_owned(),
            other => format!("values of {other}"),
        },
        _ => "subjects".to_owned(),
    }
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
            requests: 1000,
            subjects: 1000,
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
        ] {
            assert_eq!(advice, expected);
        }
    }
}
