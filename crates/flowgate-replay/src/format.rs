//! Numbers, shares, times and texts as people read them.

use std::fmt::Write;

use flowgate::{Span, Time};
use jiff::Timestamp;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A share of a whole in percent, to two or three significant digits. `0 %` is exactly zero, `100 %` exactly the whole.
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let share = 100.0 * part as f64 / whole as f64;
    match share {
        _ if part == whole => "100 %".to_owned(),
        _ if share < 0.01 => "< 0.01 %".to_owned(),
        _ if share < 10.0 => format!("{share:.2} %"),
        _ if share >= 99.95 => "> 99.9 %".to_owned(),
        _ => format!("{share:.1} %"),
    }
}

/// `3 d 11 h`, `2 min 5 s`: the two largest units.
pub fn length(span: Span) -> String {
    let seconds = span.as_nanos() / NANOS_PER_SECOND;
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let Some(first) = units.iter().position(|(unit, _)| seconds >= *unit) else { return "0 s".to_owned() };
    let (unit, name) = units[first];
    let mut text = format!("{} {name}", seconds / unit);
    if let Some((next, name)) = units.get(first + 1)
        && seconds % unit / next > 0
    {
        let _ = write!(text, " {} {name}", seconds % unit / next);
    }
    text
}

/// `2015-05-17T10:05:03Z`: the whole second, as in RFC 3339.
pub fn instant(time: Time) -> String {
    utc(time, "%Y-%m-%dT%H:%M:%SZ")
}

/// The text of [`instant`] for people: `2015-05-17 10:05:03`.
pub(crate) fn clock(instant: &str) -> String {
    instant.trim_end_matches('Z').replace('T', " ")
}

/// An instant in UTC, in a format of `strftime`.
pub(super) fn utc(time: Time, format: &str) -> String {
    // Every `Time` ends before the year 2262, and a `Timestamp` reaches the year 9999.
    Timestamp::from_nanosecond(time.as_nanos().into()).unwrap_or_default().strftime(format).to_string()
}

/// A count in millionths: `30`, `0.5`.
pub fn count(micros: u64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    if rest == 0 {
        return grouped(whole);
    }
    format!("{}.{}", grouped(whole), format!("{rest:06}").trim_end_matches('0'))
}

/// A text from a log for a terminal. Control characters are escaped, so the log cannot control the terminal.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || ('\u{202a}'..='\u{202e}').contains(&character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([30_000_000, 500_000, 1_250_000_001].map(count), ["30", "0.5", "1,250.000001"]);
    }

    #[test]
    fn shares_are_exact_at_0_and_100_percent() {
        for (part, whole, expected) in [
            (0, 0, "0 %"),
            (0, 5, "0 %"),
            (5, 5, "100 %"),
            (1, 1_000_000, "< 0.01 %"),
            (269, 10_000, "2.69 %"),
            (5, 10, "50.0 %"),
            (999_999, 1_000_000, "> 99.9 %"),
        ] {
            assert_eq!(percent(part, whole), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn times() {
        for (seconds, expected) in [(0, "0 s"), (59, "59 s"), (60, "1 min"), (125, "2 min 5 s"), (300_000, "3 d 11 h")]
        {
            assert_eq!(length(Span::from_secs(seconds)), expected);
        }
        assert_eq!(instant(Time::from_secs(1_431_857_103)), "2015-05-17T10:05:03Z");
        assert_eq!(instant(Time::MAX), "2262-04-11T23:47:16Z");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[2Jé\n"), "a\\u{1b}[2Jé\\u{a}");
    }
}
