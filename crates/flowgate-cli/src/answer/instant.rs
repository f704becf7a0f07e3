//! An instant that a server gives as seconds since 1970, told to people: when it is, and how far away.

use flowgate::{Span, Time};
use jiff::Timestamp;
use serde_json::Value;

/// `2026-11-16 09:30:00Z (in 5m)`, which is RFC 3339 in front.
pub(super) fn tell(seconds: &Value, now: Time) -> String {
    // Seconds of this century have ten digits, so a double keeps their milliseconds.
    let Some(seconds) = seconds.as_f64().filter(|seconds| (0.0..1e10).contains(seconds)) else {
        return seconds.to_string();
    };
    let time = Time::from_millis((seconds * 1000.0).round() as u64);
    let shown = Timestamp::from_nanosecond(time.as_nanos().into()).unwrap_or_default().strftime("%Y-%m-%d %H:%M:%SZ");
    match time.since(now) {
        Span::ZERO => format!("{shown} (over)"),
        left => format!("{shown} (in {})", roughly(left)),
    }
}

/// The two largest units, the second rounded up: nobody comes back too early.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn when_and_how_far_away() {
        let now = Time::from_secs(1_700_000_000);
        for (seconds, expected) in [
            (json!(1_700_000_300), "2023-11-14 22:18:20Z (in 5m)"),
            (json!(1_700_000_000.25), "2023-11-14 22:13:20Z (in 1s)"),
            (json!(1_700_000_061), "2023-11-14 22:14:21Z (in 1m 1s)"),
            (json!(1_700_003_599), "2023-11-14 23:13:19Z (in 59m 59s)"),
            (json!(1_700_003_601), "2023-11-14 23:13:21Z (in 1h 1m)"),
            (json!(1_700_086_399), "2023-11-15 22:13:19Z (in 24h)"),
            (json!(1_700_604_800), "2023-11-21 22:13:20Z (in 7d)"),
            (json!(1_700_608_401), "2023-11-21 23:13:21Z (in 7d 2h)"),
            (json!(1_700_000_000), "2023-11-14 22:13:20Z (over)"),
            (json!(1e300), "1e+300"),
            (json!(-1), "-1"),
            (json!("soon"), "\"soon\""),
        ] {
            assert_eq!(tell(&seconds, now), expected);
        }
    }
}
