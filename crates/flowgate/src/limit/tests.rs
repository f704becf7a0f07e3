//! The limit language: what it accepts and how it is written back, what it refuses and in which words.

use proptest::prelude::*;

use super::*;

#[test]
fn an_error_never_repeats_a_megabyte() {
    let long = |c: char| c.to_string().repeat(1 << 20);
    let digits = long('9');
    let texts = [
        long(' '),
        long('a'),
        digits.clone(),
        format!("{digits}/s"),
        format!("bucket 0.{digits}/s"),
        format!("5/{digits}s"),
        format!("5/1{}", long('s')),
        format!("bucket 5/s burst={digits}"),
        format!("fixed 5/day tz={}", long('z')),
        format!("5/s after={digits}"),
        format!("5/s after=1/{digits}"),
        format!("5/s {}=1", long('o')),
        format!("pace 5/s max_wait={}", long('\u{1F980}')),
        format!("unlimited {}", long('u')),
    ];
    for text in texts {
        let error = text.parse::<Limit>().unwrap_err().to_string();
        assert!(error.len() < 400, "{} bytes for {}", error.len(), text.get(..40).unwrap_or_default());
    }
    let error = Limit::fixed(Rate::new(5, Period::DAY).unwrap()).tz(long('z')).build().unwrap_err();
    assert!(error.to_string().len() < 400);
}

#[test]
fn a_max_wait_is_whole_microseconds_of_at_most_366_days() {
    let max_wait = |nanos| {
        let rate = Rate::new(5, Period::SECOND).unwrap();
        Limit::pace(rate).max_wait(MaxWait::AtMost(Span::from_nanos(nanos))).build()
    };
    assert_eq!(max_wait(1_000).unwrap().to_string(), "pace 5/1s max_wait=1us");
    assert_eq!(max_wait(366 * 86_400_000_000_000).unwrap().to_string(), "pace 5/1s max_wait=366d");
    for nanos in [1, 1_500, 366 * 86_400_000_000_000 + 1_000, u64::MAX] {
        assert_eq!(max_wait(nanos).unwrap_err().part(), Part::MaxWait, "{nanos} ns");
    }
}

#[test]
fn a_count_with_decimals_has_at_most_15_digits() {
    let rate = |micros| Rate::from_micros(micros, Period::SECOND);
    assert_eq!(rate(123_456_789_123_456).unwrap().to_string(), "123456789.123456/1s");
    assert_eq!(rate(999_999_999_999_900_000).unwrap().to_string(), "999999999999.9/1s");
    assert_eq!(rate(1_234_567_890_123_456).unwrap_err().part(), Part::Count);
    assert_eq!(rate(999_999_999_999_999_999).unwrap_err().part(), Part::Count);
}

#[test]
fn a_zone_is_known_by_its_one_name() {
    let limit: Limit = "fixed 100/day tz=asia/SHANGHAI".parse().unwrap();
    assert_eq!(limit, "fixed 100/day tz=Asia/Shanghai".parse().unwrap());
    assert_eq!(limit.tz(), Some("Asia/Shanghai"));
    assert!("fixed 100/day tz=Etc/Unknown".parse::<Limit>().is_err());
}

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
    // Time zones: of the period of `fixed`, of `after`, of both, of the one that is one unit.
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

/// Mistakes, and the error in full: which part, what stands there, what fits.
const MISTAKES: &[(&str, &str)] = &[
    // No limit at all.
    ("", "limit is missing: expected one such as 100/60s or bucket 0.5/s burst=15"),
    (" \t\n", "limit is missing: expected one such as 100/60s or bucket 0.5/s burst=15"),
    ("bucket", "limit `bucket`: expected a rate such as 100/60s after the algorithm"),
    ("bucket fast", "limit `fast`: expected a rate such as 100/60s"),
    ("bucket burst=5 10/s", "limit `burst=5`: expected a rate such as 100/60s"),
    ("100", "limit `100`: expected a slash and a period after the count, such as 100/60s"),
    ("60s", "limit `60s`: expected a slash and a period after the count, such as 100/60s"),
    ("5 / 60s", "limit `5`: expected a slash and a period after the count, such as 100/60s"),
    ("5 per minute", "limit `5`: expected a slash and a period after the count, such as 100/60s"),
    ("bucket 5 /s", "limit `5`: expected a slash and a period after the count, such as 100/60s"),
    // The algorithm.
    ("fluid 5/s", "algorithm `fluid`: expected sliding, fixed, bucket, pace, approx or unlimited"),
    ("Sliding 5/s", "algorithm `Sliding`: expected sliding, fixed, bucket, pace, approx or unlimited"),
    ("Unlimited", "algorithm `Unlimited`: expected sliding, fixed, bucket, pace, approx or unlimited"),
    ("5/s bucket", "option `bucket`: expected the algorithm to stand before the rate"),
    ("\u{1b}[31m 5/s", "algorithm `\\u{1b}[31m`: expected sliding, fixed, bucket, pace, approx or unlimited"),
    // The count.
    ("0/60s", "count `0`: expected a whole number from 1 to 10^12"),
    ("/60s", "count is missing: expected a whole number from 1 to 10^12"),
    ("-5/60s", "count `-5`: expected a whole number from 1 to 10^12"),
    ("+5/60s", "count `+5`: expected a whole number from 1 to 10^12"),
    ("1_000/60s", "count `1_000`: expected a whole number from 1 to 10^12"),
    ("1,000/60s", "count `1,000`: expected a whole number from 1 to 10^12"),
    ("1e3/60s", "count `1e3`: expected a whole number from 1 to 10^12"),
    ("\u{ff15}/60s", "count `\u{ff15}`: expected a whole number from 1 to 10^12"),
    ("\u{663}/60s", "count `\u{663}`: expected a whole number from 1 to 10^12"),
    ("1000000000001/60s", "count `1000000000001`: expected a whole number from 1 to 10^12"),
    ("18446744073709551616/s", "count `18446744073709551616`: expected a whole number from 1 to 10^12"),
    (
        "approx 4000000001/s",
        "count `4000000001`: expected a whole number from 1 to 4*10^9, the most that approx counts",
    ),
    ("0.5/s", "count `0.5`: expected a whole number from 1 to 10^12; only bucket and pace take decimals"),
    ("fixed 5.0/s", "count `5.0`: expected a whole number from 1 to 10^12; only bucket and pace take decimals"),
    ("approx 0.5/s", "count `0.5`: expected a whole number from 1 to 10^12; only bucket and pace take decimals"),
    ("bucket 0/s", "count `0`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits"),
    ("bucket 0.0/s", "count `0.0`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits"),
    ("bucket .5/s", "count `.5`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits"),
    ("bucket 5./s", "count `5.`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits"),
    (
        "bucket 1.2.3/s",
        "count `1.2.3`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits",
    ),
    ("bucket 0,5/s", "count `0,5`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits"),
    (
        "bucket 0.1234567/s",
        "count `0.1234567`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits",
    ),
    (
        "pace 1234567890.123456/s",
        "count `1234567890.123456`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits",
    ),
    (
        "bucket 1000000000000.1/s",
        "count `1000000000000.1`: expected a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits",
    ),
    ("bucket 0.000001/366d", "count `0.000001`: expected a rate that refills the burst within 36500 days"),
    ("pace 0.000001/day", "count `0.000001`: expected a rate that refills the burst within 36500 days"),
    // The period.
    ("5/", "period is missing: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d"),
    ("5/ 60s", "period is missing: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d"),
    ("5/0s", "period `0s`: expected a period from 1us to 366d"),
    ("5/0", "period `0`: expected a period from 1us to 366d"),
    ("5/367d", "period `367d`: expected a period from 1us to 366d"),
    ("5/53w", "period `53w`: expected a period from 1us to 366d"),
    ("5/31622400000001us", "period `31622400000001us`: expected a period from 1us to 366d"),
    (
        "5/99999999999999999999s",
        "period `99999999999999999999s`: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d",
    ),
    ("5/1.5s", "period `1.5s`: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d"),
    ("5/-1s", "period `-1s`: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d"),
    ("5/60/s", "period `60/s`: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d"),
    (
        "5/60x",
        "period `60x`: expected one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/ns",
        "period `ns`: expected one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/60S",
        "period `60S`: expected one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/1h30m",
        "period `1h30m`: expected one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/year",
        "period `year`: expected one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)",
    ),
    ("5/60 s", "option `s`: expected one that sliding knows: tz, after"),
    ("fixed 5/2month tz=UTC", "period `2month`: expected a single `month`; no other number is supported"),
    ("fixed 5/0month tz=UTC", "period `0month`: expected a single `month`; no other number is supported"),
    (
        "5/month",
        "period `month`: expected a period of fixed length; a month needs `fixed` or `after` with a time zone (tz=)",
    ),
    (
        "fixed 5/month",
        "period `month`: expected a period of fixed length; a month needs `fixed` or `after` with a time zone (tz=)",
    ),
    (
        "bucket 5/month after=1/day tz=UTC",
        "period `month`: expected a period of fixed length; a month needs `fixed` or `after` with a time zone (tz=)",
    ),
    (
        "5/s after=1/month",
        "after `month`: expected a period of fixed length; a month needs `fixed` or `after` with a time zone (tz=)",
    ),
    // Options.
    ("unlimited 5/s", "option `5/s`: expected nothing after `unlimited`"),
    ("unlimited burst=5", "option `burst=5`: expected nothing after `unlimited`"),
    ("5/s size=3", "option `size=3`: expected one that sliding knows: tz, after"),
    ("5/s Tz=UTC", "option `Tz=UTC`: expected one that sliding knows: tz, after"),
    ("5/s 10/m", "option `10/m`: expected one that sliding knows: tz, after"),
    ("5/s =", "option `=`: expected one that sliding knows: tz, after"),
    ("5/s burst=3", "option `burst=3`: expected one that sliding knows: tz, after"),
    ("fixed 5/s capacity=3", "option `capacity=3`: expected one that fixed knows: tz, after"),
    ("approx 5/s burst=3", "option `burst=3`: expected one that approx knows: tz, after"),
    ("bucket 5/s max_wait=1s", "option `max_wait=1s`: expected one that bucket knows: burst, tz, after"),
    ("pace 5/s wait=1s", "option `wait=1s`: expected one that pace knows: burst, max_wait, tz, after"),
    ("bucket 5/s burst=0", "burst `0`: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst=", "burst is missing: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst", "burst is missing: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst=1.5", "burst `1.5`: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst=-1", "burst `-1`: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst==5", "burst `=5`: expected a whole number from 1 to 10^12"),
    ("pace 5/s burst=1000000000001", "burst `1000000000001`: expected a whole number from 1 to 10^12"),
    ("bucket 1/366d burst=100", "burst `100`: expected a burst that 1/366d refills within 36500 days"),
    ("pace 0.5/day burst=18251", "burst `18251`: expected a burst that 0.5/1d refills within 36500 days"),
    ("bucket 5/s burst=1 burst=2", "burst `burst=2`: expected it only once (burst= and capacity= are the same)"),
    ("bucket 5/s burst=2 capacity=2", "burst `capacity=2`: expected it only once (burst= and capacity= are the same)"),
    ("pace 5/s max_wait=soon", "max_wait `soon`: expected a period from 1us to 366d, 0s or none"),
    ("pace 5/s max_wait=", "max_wait is missing: expected a period from 1us to 366d, 0s or none"),
    ("pace 5/s max_wait=0ms", "max_wait `0ms`: expected a period from 1us to 366d, 0s or none"),
    ("pace 5/s max_wait=367d", "max_wait `367d`: expected a period from 1us to 366d, 0s or none"),
    ("pace 5/s max_wait=month", "max_wait `month`: expected a period from 1us to 366d, 0s or none"),
    ("pace 5/s max_wait=1s max_wait=2s", "max_wait `max_wait=2s`: expected it only once"),
    ("fixed 5/day tz=Mars/Olympus", "tz `Mars/Olympus`: expected the name of a time zone such as Asia/Shanghai or UTC"),
    ("fixed 5/day tz=+08:00", "tz `+08:00`: expected the name of a time zone such as Asia/Shanghai or UTC"),
    ("fixed 5/day tz=", "tz is missing: expected the name of a time zone such as Asia/Shanghai or UTC"),
    ("fixed 5/day tz=UTC tz=UTC", "tz `tz=UTC`: expected it only once"),
    (
        "fixed 5/24h tz=UTC",
        "tz `UTC`: expected no time zone here: it aligns the period of `fixed` or `after` when that is one unit such \
         as `day` (not `24h`)",
    ),
    (
        "fixed 5/24h after=10/7d tz=UTC",
        "tz `UTC`: expected no time zone here: it aligns the period of `fixed` or `after` when that is one unit such \
         as `day` (not `24h`)",
    ),
    (
        "5/day tz=UTC",
        "tz `UTC`: expected no time zone here: it aligns the period of `fixed` or `after` when that is one unit such \
         as `day` (not `24h`)",
    ),
    ("5/s after=10", "after `10`: expected a count and a period such as after=10/day"),
    ("5/s after=", "after is missing: expected a count and a period such as after=10/day"),
    ("5/s after", "after is missing: expected a count and a period such as after=10/day"),
    ("5/s after=10/", "after `10/`: expected a count and a period such as after=10/day"),
    ("5/s after=/day", "after `/day`: expected a count and a period such as after=10/day"),
    ("5/s after=0/day", "after `0`: expected a whole number from 1 to 10^12"),
    ("bucket 5/s after=0.5/day", "after `0.5`: expected a whole number from 1 to 10^12"),
    ("5/s after=1000000000001/day", "after `1000000000001`: expected a whole number from 1 to 10^12"),
    ("5/s after=10/0s", "after `0s`: expected a period from 1us to 366d"),
    (
        "5/s after=10/days",
        "after `days`: expected one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)",
    ),
    ("5/s after=1/day after=2/day", "after `after=2/day`: expected it only once"),
];

#[test]
fn a_mistake_is_named_with_what_fits() {
    let mut wrong = Vec::new();
    for (text, expected) in MISTAKES {
        let found = text.parse::<Limit>().map_or_else(|error| error.to_string(), |limit| format!("accepted: {limit}"));
        if found != *expected {
            wrong.push(format!("{text:?}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What the language cannot express can still be asked of a builder.
#[test]
fn a_builder_refuses_what_the_language_does() {
    let rate = Rate::new(5, Period::SECOND).unwrap();
    let half = Rate::from_micros(500_000, Period::SECOND).unwrap();
    let refused = [
        (Limit::sliding(half).build(), "count `0.5`: expected a whole number; only bucket and pace take decimals"),
        (Limit::sliding(rate).burst(3).build(), "option `burst`: expected one that sliding knows: tz, after"),
        (Limit::bucket(rate).burst(0).build(), "burst `0`: expected a whole number from 1 to 10^12"),
        (
            Limit::bucket(rate).burst(u64::MAX).build(),
            "burst `18446744073709551615`: expected a whole number from 1 to 10^12",
        ),
        (Limit::bucket(rate).after(0, Period::DAY).build(), "after `0`: expected a whole number from 1 to 10^12"),
        (
            Limit::bucket(rate).max_wait(MaxWait::Unbounded).build(),
            "option `max_wait`: expected one that bucket knows: burst, tz, after",
        ),
        (
            Limit::pace(rate).max_wait(MaxWait::AtMost(Span::from_nanos(1))).build(),
            "max_wait `0.000000001s`: expected whole microseconds up to 366d, or none",
        ),
    ];
    for (result, expected) in refused {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
    let error = |result: Result<Rate, LimitError>| result.unwrap_err().to_string();
    assert_eq!(error(Rate::new(0, Period::DAY)), "count `0`: expected a whole number from 1 to 10^12");
    assert_eq!(error(Rate::from_micros(0, Period::DAY)), "count `0`: expected a number from 0.000001 to 10^12");
    let month = Period::new(12, Unit::Month).unwrap_err().to_string();
    assert_eq!(month, "period `12month`: expected a single `month`; no other number is supported");
}

/// Limits built step by step rather than read, over everything the builder accepts.
fn built() -> impl Strategy<Value = Limit> {
    let algorithm = prop::sample::select(vec![
        Algorithm::Sliding,
        Algorithm::Fixed,
        Algorithm::Bucket,
        Algorithm::Pace,
        Algorithm::Approx,
    ]);
    let tz = prop::sample::select(vec!["UTC", "utc", "Asia/Shanghai", "america/new_york", "Australia/Lord_Howe"]);
    let options = (
        prop::option::of(count()),
        prop::option::of(max_wait()),
        prop::option::of(tz),
        prop::option::of((count(), period())),
    );
    (algorithm, micros(), period(), options).prop_filter_map(
        "cannot be built",
        |(algorithm, micros, period, options)| {
            let mut builder = LimitBuilder::new(algorithm, Rate::from_micros(micros, period).ok()?);
            let (burst, max_wait, tz, after) = options;
            if let (Some(burst), Algorithm::Bucket | Algorithm::Pace) = (burst, algorithm) {
                builder = builder.burst(burst);
            }
            if let (Some(max_wait), Algorithm::Pace) = (max_wait, algorithm) {
                builder = builder.max_wait(max_wait);
            }
            if let Some(tz) = tz {
                builder = builder.tz(tz);
            }
            if let Some((free, period)) = after {
                builder = builder.after(free, period);
            }
            builder.build().ok()
        },
    )
}

/// Counts of every magnitude.
fn count() -> impl Strategy<Value = u64> {
    (0u32..=12).prop_flat_map(|digits| 1..=10u64.pow(digits))
}

/// Counts in millionths: mostly whole, since most algorithms want that.
fn micros() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => count().prop_map(|count| count * MICRO),
        1 => (0u32..=18).prop_flat_map(|digits| 1..=10u64.pow(digits)),
    ]
}

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![
        Unit::Microsecond,
        Unit::Millisecond,
        Unit::Second,
        Unit::Minute,
        Unit::Hour,
        Unit::Day,
        Unit::Week,
        Unit::Month,
    ])
}

fn period() -> impl Strategy<Value = Period> {
    let number = prop_oneof![Just(1), 1..400u64, 1..32_000_000_000_000u64];
    (number, unit()).prop_filter_map("not a period", |(number, unit)| Period::new(number, unit).ok())
}

fn max_wait() -> impl Strategy<Value = MaxWait> {
    let nanos = (0u32..=19).prop_flat_map(|digits| 0..=10u64.pow(digits));
    prop_oneof![
        1 => Just(MaxWait::Unbounded),
        1 => Just(MaxWait::AtMost(Span::ZERO)),
        2 => (0..40_000_000u64).prop_map(|secs| MaxWait::AtMost(Span::from_secs(secs))),
        2 => (0..40_000_000_000_000u64).prop_map(|micros| MaxWait::AtMost(Span::from_micros(micros))),
        2 => nanos.prop_map(|nanos| MaxWait::AtMost(Span::from_nanos(nanos))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn a_built_limit_is_read_back_from_its_text(limit in built()) {
        let text = limit.to_string();
        let read = text.parse::<Limit>();
        prop_assert_eq!(read.as_ref(), Ok(&limit), "{}", text);
        prop_assert_eq!(read.map(|limit| limit.to_string()), Ok(text));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = text.parse::<Limit>();
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = String::from_utf8_lossy(&bytes).parse::<Limit>();
    }

    #[test]
    fn no_words_of_the_language_make_the_parser_panic(words in prop::collection::vec(word(), 0..8)) {
        read_back(&words.concat())?;
    }

    #[test]
    fn no_mutation_of_a_limit_makes_the_parser_panic(limit in built(), edits in prop::collection::vec(edit(), 1..4)) {
        let mut text: Vec<char> = limit.to_string().chars().collect();
        for (at, removed, inserted) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        read_back(&String::from_iter(text))?;
    }
}

/// Whatever is accepted has a canonical form.
fn read_back(text: &str) -> Result<(), TestCaseError> {
    if let Ok(limit) = text.parse::<Limit>() {
        prop_assert_eq!(limit.to_string().parse::<Limit>(), Ok(limit), "{}", text);
    }
    Ok(())
}

/// Pieces from which both limits and near misses are made.
fn word() -> impl Strategy<Value = String> {
    let pieces = [
        "unlimited",
        "sliding",
        "fixed",
        "bucket",
        "pace",
        "approx",
        "leaky",
        "0",
        "1",
        "7",
        "0.5",
        "999999999999",
        ".",
        "/",
        "=",
        " ",
        " ",
        "s",
        "us",
        "d",
        "day",
        "month",
        "5/s",
        "100/60s",
        " burst=",
        " capacity=",
        " max_wait=",
        " tz=",
        " after=",
        "none",
        "UTC",
        "Asia/Shanghai",
        "-",
        "\u{ff15}",
    ];
    prop::sample::select(pieces.map(str::to_owned).to_vec())
}

/// Removes a few characters somewhere and inserts others.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let inserted = prop_oneof![word(), any::<char>().prop_map(String::from), Just(String::new())];
    (any::<prop::sample::Index>(), 0..4usize, inserted)
}
