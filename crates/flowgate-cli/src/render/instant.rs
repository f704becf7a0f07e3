//! Instants as text for people: the time, and how far away it is.

use flowgate::{Span, Time};
use flowgate_api::Millis;
use jiff::Timestamp;

/// `2026-11-16 09:30:00Z (in 5m)`, which begins with RFC 3339.
pub(super) fn render(time: Millis, now: Time) -> String {
    let shown = instant(time);
    match Time::from_millis(time.0).since(now) {
        Span::ZERO => format!("{shown} (over)"),
        left => format!("{shown} (in {})", roughly(left)),
    }
}

/// `2026-11-16 09:30:00Z`.
pub(crate) fn instant(Millis(millis): Millis) -> String {
    let nanos = Time::from_millis(millis).as_nanos();
    Timestamp::from_nanosecond(nanos.into()).unwrap_or_default().strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The two largest units. Seconds are rounded up; minutes beside hours and hours beside days to the nearest, so that a
/// millisecond between two clocks does not make `1h 1m` of an hour. The instant itself stands beside it.
pub(crate) fn roughly(span: Span) -> String {
    let seconds = span.as_millis_ceil().div_ceil(1000);
    let nearest = |unit: u64| (seconds + unit / 2) / unit;
    let (whole, name, part, part_name) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3600 => (seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => (nearest(60) / 60, "h", nearest(60) % 60, "m"),
        _ => (nearest(3600) / 24, "d", nearest(3600) % 24, "h"),
    };
    if part == 0 { format!("{whole}{name}") } else { format!("{whole}{name} {part}{part_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_shown_with_its_distance() {
        let now = Time::from_secs(1_700_000_000);
        for (millis, expected) in [
            (1_700_000_300_000, "2023-11-14 22:18:20Z (in 5m)"),
            (1_700_000_000_250, "2023-11-14 22:13:20Z (in 1s)"),
            (1_700_000_061_000, "2023-11-14 22:14:21Z (in 1m 1s)"),
            (1_700_003_599_000, "2023-11-14 23:13:19Z (in 59m 59s)"),
            (1_700_003_600_001, "2023-11-14 23:13:20Z (in 1h)"),
            (1_700_003_629_000, "2023-11-14 23:13:49Z (in 1h)"),
            (1_700_003_630_000, "2023-11-14 23:13:50Z (in 1h 1m)"),
            (1_700_086_399_000, "2023-11-15 22:13:19Z (in 24h)"),
            (1_700_604_800_000, "2023-11-21 22:13:20Z (in 7d)"),
            (1_700_608_401_000, "2023-11-21 23:13:21Z (in 7d 1h)"),
            (1_700_000_000_000, "2023-11-14 22:13:20Z (over)"),
        ] {
            assert_eq!(render(Millis(millis), now), expected);
        }
    }
}
