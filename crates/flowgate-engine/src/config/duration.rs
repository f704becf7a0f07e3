//! Durations as text: a whole number and a unit, the units of the limit language.

use std::time::Duration;

use flowgate::{Span, Unit};

/// The longest duration: as in limits, a leap year.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(366 * 86_400);

/// Reads `"5m"`; `None` if it is not a duration, or longer than 366 days.
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|char: char| !char.is_ascii_digit())?);
    let unit = Unit::from_name(unit)?.nanos()?;
    let number: u64 = if number.is_empty() { 1 } else { number.parse().ok()? };
    let length = Duration::from_nanos(number.checked_mul(unit)?);
    (length <= MAX_DURATION).then_some(length)
}

/// Writes a duration in the largest unit that divides it, rounded down to microseconds. Weeks are read and never
/// written: "14d" is easier to read than "2w".
pub(crate) fn format(length: Duration) -> String {
    Span::from(length).in_units().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_read_as_it_is_written() {
        let check = |text, micros| assert_eq!(parse(text), Some(Duration::from_micros(micros)), "{text}");
        check("5m", 300_000_000);
        check("50ms", 50_000);
        check("0s", 0);
        check("1us", 1);
        check("day", 86_400_000_000);
        check("2w", 1_209_600_000_000);
        for text in ["", "5", "m5", "5 m", "5x", "-5s", "1.5s", "1h30m", "367d", "99999999999999999999s", "٣s"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["5m", "50ms", "0s", "1us", "24d", "90s", "1h", "14d"] {
            assert_eq!(parse(text).map(format).as_deref(), Some(text));
        }
        assert_eq!(format(Duration::from_secs(86_400)), "1d");
    }
}
