//! The limit language: what it accepts and how it is written back, what it refuses and in which words.

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
