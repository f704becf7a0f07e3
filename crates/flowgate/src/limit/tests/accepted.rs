//! What the language accepts, and how it is written back.

use super::*;

/// What may be written, and its one canonical form.
const ACCEPTED: &[(&str, &str)] = &[
    // Algorithms and their synonyms.
    ("unlimited", "unlimited"),
    ("100/60s", "sliding 100/60s"),
    ("sliding 100/60s", "sliding 100/60s"),
    ("log 100/60s", "sliding 100/60s"),
    ("fixed 100/60s", "fixed 100/60s"),
    ("count 100/60s", "fixed 100/60s"),
    ("bucket 100/60s", "bucket 100/60s"),
    ("token 100/60s", "bucket 100/60s"),
    ("funnel 100/60s", "bucket 100/60s"),
    ("gcra 100/60s", "bucket 100/60s"),
    ("pace 100/60s", "pace 100/60s"),
    ("leaky 100/60s", "pace 100/60s"),
    ("approx 100/60s", "approx 100/60s"),
    // Units and their names; no number is one, no unit is seconds.
    ("5/250us", "sliding 5/250us"),
    ("5/250ms", "sliding 5/250ms"),
    ("5/us", "sliding 5/1us"),
    ("5/ms", "sliding 5/1ms"),
    ("5/s", "sliding 5/1s"),
    ("5/sec", "sliding 5/1s"),
    ("5/second", "sliding 5/1s"),
    ("5/10second", "sliding 5/10s"),
    ("5/m", "sliding 5/1m"),
    ("5/min", "sliding 5/1m"),
    ("5/minute", "sliding 5/1m"),
    ("5/15min", "sliding 5/15m"),
    ("5/h", "sliding 5/1h"),
    ("5/hr", "sliding 5/1h"),
    ("5/hour", "sliding 5/1h"),
    ("5/24hr", "sliding 5/24h"),
    ("5/d", "sliding 5/1d"),
    ("5/day", "sliding 5/1d"),
    ("5/7day", "sliding 5/7d"),
    ("5/w", "sliding 5/1w"),
    ("5/week", "sliding 5/1w"),
    ("5/2week", "sliding 5/2w"),
    ("5/60", "sliding 5/60s"),
    ("5/1", "sliding 5/1s"),
    // The ends of the ranges.
    ("1/1us", "sliding 1/1us"),
    ("1000000000000/366d", "sliding 1000000000000/366d"),
    ("5/31622400000000us", "sliding 5/31622400000000us"),
    ("approx 4000000000/s", "approx 4000000000/1s"),
    ("bucket 1000000000000/us", "bucket 1000000000000/1us"),
    ("bucket 1/366d burst=99", "bucket 1/366d burst=99"),
    ("bucket 1/365d burst=100", "bucket 1/365d burst=100"),
    ("0007/060s", "sliding 7/60s"),
    // Decimals.
    ("bucket 0.5/s", "bucket 0.5/1s"),
    ("bucket 0.500000/s", "bucket 0.5/1s"),
    ("bucket 5.0/s", "bucket 5/1s"),
    ("bucket 00.5/s", "bucket 0.5/1s"),
    ("pace 0.000001/s", "pace 0.000001/1s"),
    ("pace 123456789.123456/s", "pace 123456789.123456/1s"),
    ("bucket 999999999999.999/s", "bucket 999999999999.999/1s"),
    ("bucket 1000000000000.00/s", "bucket 1000000000000/1s"),
    // Burst; one that is the default is not written.
    ("bucket 30/60s burst=15", "bucket 30/60s burst=15"),
    ("bucket 30/60s capacity=15", "bucket 30/60s burst=15"),
    ("bucket 30/60s burst=30", "bucket 30/60s"),
    ("bucket 2.5/s burst=3", "bucket 2.5/1s"),
    ("pace 5/s burst=1", "pace 5/1s"),
    ("pace 5/s burst=5", "pace 5/1s burst=5"),
    ("bucket 1000000000000/s burst=1000000000000", "bucket 1000000000000/1s"),
    // How long pace lets wait.
    ("pace 5/s max_wait=1s", "pace 5/1s"),
    ("pace 5/s max_wait=1000ms", "pace 5/1s"),
    ("pace 5/s max_wait=1", "pace 5/1s"),
    ("pace 5/s max_wait=0s", "pace 5/1s max_wait=0s"),
    ("pace 5/s max_wait=0", "pace 5/1s max_wait=0s"),
    ("pace 5/s max_wait=none", "pace 5/1s max_wait=none"),
    ("pace 5/s max_wait=1500us", "pace 5/1s max_wait=1500us"),
    ("pace 5/s max_wait=90s", "pace 5/1s max_wait=90s"),
    ("pace 5/s max_wait=120s", "pace 5/1s max_wait=2m"),
    ("pace 5/s max_wait=2hour", "pace 5/1s max_wait=2h"),
    ("pace 5/s max_wait=week", "pace 5/1s max_wait=7d"),
    ("pace 5/s max_wait=366d", "pace 5/1s max_wait=366d"),
    // Time zones: for the period of `fixed`, for that of `after`, for both, and for the only one of the two that is a
    // calendar unit.
    ("fixed 100/day tz=Asia/Shanghai", "fixed 100/1d tz=Asia/Shanghai"),
    ("fixed 100/1d tz=UTC", "fixed 100/1d tz=UTC"),
    ("fixed 100/week tz=Europe/Berlin", "fixed 100/1w tz=Europe/Berlin"),
    ("fixed 100/hour tz=Asia/Kolkata", "fixed 100/1h tz=Asia/Kolkata"),
    ("fixed 100/1 tz=UTC", "fixed 100/1s tz=UTC"),
    ("fixed 100/month tz=UTC", "fixed 100/month tz=UTC"),
    ("fixed 100/1month tz=UTC", "fixed 100/month tz=UTC"),
    ("fixed 1/5s after=10/day tz=UTC", "fixed 1/5s tz=UTC after=10/1d"),
    ("fixed 1/day after=10/24h tz=UTC", "fixed 1/1d tz=UTC after=10/24h"),
    ("fixed 1/month after=10/month tz=UTC", "fixed 1/month tz=UTC after=10/month"),
    ("sliding 1/5s after=10/month tz=UTC", "sliding 1/5s tz=UTC after=10/month"),
    ("bucket 1/5s after=10/day tz=UTC", "bucket 1/5s tz=UTC after=10/1d"),
    // After, and several options in any order.
    ("5/s after=10/day", "sliding 5/1s after=10/1d"),
    ("approx 5/s after=1000000000000/60", "approx 5/1s after=1000000000000/60s"),
    ("fixed 1/5s after=10/day", "fixed 1/5s after=10/1d"),
    ("leaky 0.5/s after=3/h max_wait=none tz=UTC capacity=2", "pace 0.5/1s burst=2 max_wait=none tz=UTC after=3/1h"),
    // White space.
    ("  bucket \t 5/s\n burst=2  ", "bucket 5/1s burst=2"),
];

#[test]
fn what_is_accepted_has_one_canonical_form() {
    for (text, canonical) in ACCEPTED {
        let limit = text.parse::<Limit>().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(limit.to_string(), *canonical, "{text}");
        assert_eq!(canonical.parse::<Limit>().as_ref(), Ok(&limit), "{text}");
    }
}
