//! An instant as text for people: when it is, and how far away.

use flowgate::{Span, Time};
use flowgate_api::Millis;
use jiff::Timestamp;

/// `2026-11-16 09:30:00Z (in 5m)`, which begins with RFC 3339.
pub(super) fn render(Millis(millis): Millis, now: Time) -> String {
    let time = Time::from_millis(millis);
    let shown = Timestamp::from_nanosecond(time.as_nanos().into()).unwrap_or_default().strftime("%Y-%m-%d %H:%M:%SZ");
    match time.since(now) {
        Span::ZERO => format!("{shown} (over)"),
        left => format!("{shown} (in {})", roughly(left)),
    }
}

/// The two largest units, the smaller one rounded up, so that a client that waits that long is not early.
fn roughly(span: Span) -> String {
    let seconds = span.as_millis_ceil().div_ceil(1000);
    let (whole, name, part, part_name) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3600 => (seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => (seconds.div_ceil(60) / 60, "h", seconds.div_ceil(60) % 60, "m"),
        _ => (seconds.div_ceil(3600) / 24, "d", seconds.div_ceil(3600) % 24, "h"),
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
            (1_700_003_601_000, "2023-11-14 23:13:21Z (in 1h 1m)"),
            (1_700_086_399_000, "2023-11-15 22:13:19Z (in 24h)"),
            (1_700_604_800_000, "2023-11-21 22:13:20Z (in 7d)"),
            (1_700_608_401_000, "2023-11-21 23:13:21Z (in 7d 2h)"),
            (1_700_000_000_000, "2023-11-14 22:13:20Z (over)"),
        ] {
            assert_eq!(render(Millis(millis), now), expected);
        }
    }
}
