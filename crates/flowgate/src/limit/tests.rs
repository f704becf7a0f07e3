//! The limit language: what it accepts and how it is written back, what it refuses and in which words.

mod accepted;
mod mistakes;
mod random;

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
        assert_eq!(max_wait(nanos).unwrap_err().part, Part::MaxWait, "{nanos} ns");
    }
}

#[test]
fn a_count_with_decimals_has_at_most_15_digits() {
    let rate = |micros| Rate::from_micros(micros, Period::SECOND);
    assert_eq!(rate(123_456_789_123_456).unwrap().to_string(), "123456789.123456/1s");
    assert_eq!(rate(999_999_999_999_900_000).unwrap().to_string(), "999999999999.9/1s");
    assert_eq!(rate(1_234_567_890_123_456).unwrap_err().part, Part::Count);
    assert_eq!(rate(999_999_999_999_999_999).unwrap_err().part, Part::Count);
}

#[test]
fn a_zone_is_known_by_its_one_name() {
    let limit: Limit = "fixed 100/day tz=asia/SHANGHAI".parse().unwrap();
    assert_eq!(limit, "fixed 100/day tz=Asia/Shanghai".parse().unwrap());
    assert_eq!(limit.tz(), Some("Asia/Shanghai"));
    assert!("fixed 100/day tz=Etc/Unknown".parse::<Limit>().is_err());
}

/// The builder also makes limits that the language cannot express.
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
