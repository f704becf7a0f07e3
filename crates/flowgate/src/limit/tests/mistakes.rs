//! What the language refuses, and in which words.

use super::*;

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
    ("5 / 60s", "limit `5 / 60s`: expected no blanks around the slash: 5/60s"),
    ("5 /60s burst=3", "limit `5 /60s`: expected no blanks around the slash: 5/60s"),
    ("5/ 60s", "limit `5/ 60s`: expected no blanks around the slash: 5/60s"),
    ("5/", "period is missing: expected a whole number and a unit such as 60s, 5m or day, from 1us to 366d"),
    ("5 /", "limit `5`: expected a slash and a period after the count, such as 100/60s"),
    ("5 per minute", "limit `5`: expected a slash and a period after the count, such as 100/60s"),
    ("bucket 5 /s", "limit `5 /s`: expected no blanks around the slash: 5/s"),
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
        "period `60x`: expected one of the units us, ms, s, m, min, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/ns",
        "period `ns`: expected one of the units us, ms, s, m, min, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/60S",
        "period `60S`: expected 60s, or another of the units us, ms, s, m, min, h, d, w, month (or second, minute, hour, \
         day, week)",
    ),
    (
        "5/minutes",
        "period `minutes`: expected minute, or another of the units us, ms, s, m, min, h, d, w, month (or second, minute, \
         hour, day, week)",
    ),
    (
        "5/2Hours",
        "period `2Hours`: expected 2hour, or another of the units us, ms, s, m, min, h, d, w, month (or second, minute, \
         hour, day, week)",
    ),
    (
        "5/1h30m",
        "period `1h30m`: expected one of the units us, ms, s, m, min, h, d, w, month (or second, minute, hour, day, week)",
    ),
    (
        "5/year",
        "period `year`: expected one of the units us, ms, s, m, min, h, d, w, month (or second, minute, hour, day, week)",
    ),
    ("5/60 s", "period `s`: expected the unit without a blank before it: 5/60s"),
    ("bucket 5/1 day burst=3", "period `day`: expected the unit without a blank before it: 5/1day"),
    ("5/s s", "option `s`: expected one that sliding knows: tz, after"),
    // Several.
    ("5/60s, 100/h", "limit `5/60s, 100/h`: expected one limit; several are a list, such as [\"5/60s\", \"100/h\"]"),
    ("5/60s,100/h", "limit `5/60s,100/h`: expected one limit; several are a list, such as [\"5/60s\", \"100/h\"]"),
    ("5/60s 10/1h", "limit `5/60s 10/1h`: expected one limit; several are a list, such as [\"5/60s\", \"100/h\"]"),
    (
        "bucket 5/s burst=3 10/1h",
        "limit `bucket 5/s burst=3 10/1h`: expected one limit; several are a list, such as [\"5/60s\", \"100/h\"]",
    ),
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
    ("5/s 10/m", "limit `5/s 10/m`: expected one limit; several are a list, such as [\"5/60s\", \"100/h\"]"),
    ("5/s =", "option `=`: expected one that sliding knows: tz, after"),
    ("5/s burst=3", "option `burst=3`: expected one that sliding knows: tz, after"),
    ("fixed 5/s capacity=3", "option `capacity=3`: expected one that fixed knows: tz, after"),
    ("approx 5/s burst=3", "option `burst=3`: expected one that approx knows: tz, after"),
    ("bucket 5/s max_wait=1s", "option `max_wait=1s`: expected one that bucket knows: burst, tz, after"),
    ("pace 5/s wait=1s", "option `wait=1s`: expected one that pace knows: burst, max_wait, tz, after"),
    ("bucket 5/s burst=0", "burst `0`: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst=", "burst is missing: expected a whole number from 1 to 10^12"),
    ("bucket 5/s burst", "option `burst`: expected its value behind an equals sign, without blanks: burst=15"),
    ("bucket 5/s burst 8", "option `burst`: expected its value behind an equals sign, without blanks: burst=8"),
    ("bucket 5/s burst = 8", "option `burst`: expected its value behind an equals sign, without blanks: burst=8"),
    (
        "bucket 5/s capacity =8",
        "option `capacity`: expected its value behind an equals sign, without blanks: capacity=8",
    ),
    ("bucket 5/s burst= 8", "option `burst=`: expected its value behind an equals sign, without blanks: burst=8"),
    ("pace 5/s burst= max_wait=1s", "burst is missing: expected a whole number from 1 to 10^12"),
    ("pace 5/s max_wait", "option `max_wait`: expected its value behind an equals sign, without blanks: max_wait=2s"),
    ("fixed 5/day tz UTC", "option `tz`: expected its value behind an equals sign, without blanks: tz=UTC"),
    ("5/s burst 8", "option `burst`: expected one that sliding knows: tz, after"),
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
        "tz `UTC`: expected `fixed` before the rate, whose windows follow the calendar: fixed 5/1d tz=UTC",
    ),
    (
        "5/24h tz=UTC",
        "tz `UTC`: expected no time zone here: it aligns the period of `fixed` or `after` when that is one unit such \
         as `day` (not `24h`)",
    ),
    ("5/s after=10", "after `10`: expected a count and a period such as after=10/day"),
    ("5/s after=", "after is missing: expected a count and a period such as after=10/day"),
    ("5/s after", "option `after`: expected its value behind an equals sign, without blanks: after=10/day"),
    ("5/s after=10/", "after `10/`: expected a count and a period such as after=10/day"),
    ("5/s after=/day", "after `/day`: expected a count and a period such as after=10/day"),
    ("5/s after=0/day", "after `0`: expected a whole number from 1 to 10^12"),
    ("bucket 5/s after=0.5/day", "after `0.5`: expected a whole number from 1 to 10^12"),
    ("5/s after=1000000000001/day", "after `1000000000001`: expected a whole number from 1 to 10^12"),
    ("5/s after=10/0s", "after `0s`: expected a period from 1us to 366d"),
    (
        "5/s after=10/days",
        "after `days`: expected day, or another of the units us, ms, s, m, min, h, d, w, month (or second, minute, hour, \
         day, week)",
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
