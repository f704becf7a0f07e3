//! Times as traces write them, exact to the nanosecond.
//!
//! Rule       A number is read as decimal text, without a float. Digits below a nanosecond are dropped. A leap second
//!            (`:60`) is the first second of the next minute.
//! Bound      From 1970 to 2262; a text outside that range is refused.

use flowgate::Time;
use jiff::civil::Date;
use jiff::tz::Offset;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// More digits than a time in range has in nanoseconds.
const MAX_DIGITS: u32 = 30;

/// Seconds since the epoch as a JSON number: `1700000000.25`, `17e8`.
pub fn from_decimal(text: &[u8]) -> Option<Time> {
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
        Some(at) => (&mantissa[..at], Some(&mantissa[at + 1..])),
        None => (mantissa, None),
    };
    let has_extra_zero = whole.len() > 1 && whole[0] == b'0';
    if whole.is_empty() || has_extra_zero || fraction.is_some_and(<[u8]>::is_empty) {
        return None;
    }
    let (mut value, mut digits): (u128, u32) = (0, 0);
    // `value` times ten to this power is the time in nanoseconds.
    let mut power = exponent + 9;
    for (text, is_fraction) in [(whole, false), (fraction.unwrap_or_default(), true)] {
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            let kept = digits < MAX_DIGITS;
            if kept {
                value = value * 10 + u128::from(digit);
                digits += u32::from(value > 0);
            }
            // A digit that is kept after the point, or dropped before it, shifts the value by a power of ten.
            power += i64::from(!kept) - i64::from(is_fraction);
        }
    }
    let nanos = match u32::try_from(power.unsigned_abs()).ok().and_then(|power| 10_u128.checked_pow(power)) {
        Some(factor) if power >= 0 => value.checked_mul(factor)?,
        Some(factor) => value / factor,
        // With a power this large, the result is zero or a time out of range.
        None if value == 0 || power < 0 => 0,
        None => return None,
    };
    in_range(i128::try_from(nanos).ok()?)
}

/// `2023-11-14T22:13:20.25Z`, `2023-11-14 22:13:20+08:00`.
pub fn from_rfc3339(text: &[u8]) -> Option<Time> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T' | b't' | b' ', rest @ ..] = text else { return None };
    let date = date([*y1, *y2, *y3, *y4], two(*m1, *m2)?, [*d1, *d2])?;
    let (second, rest) = time_of_day(rest)?;
    let (nanos, rest) = fraction(rest)?;
    let offset = match rest {
        b"Z" | b"z" => 0,
        [sign, h1, h2, b':', m1, m2] => offset(*sign, [*h1, *h2, *m1, *m2])?,
        _ => return None,
    };
    instant(date, second, offset, nanos)
}

/// `17/May/2015:10:05:03 +0000`
#[inline]
pub fn from_log(text: &[u8]) -> Option<Time> {
    let [d1, d2, b'/', month @ .., b' ', sign, h1, h2, m1, m2] = text else { return None };
    let [a, b, c, b'/', y1, y2, y3, y4, b':', rest @ ..] = month else { return None };
    let date = date([*y1, *y2, *y3, *y4], month_named([*a, *b, *c])?, [*d1, *d2])?;
    let (second, rest) = time_of_day(rest)?;
    let (nanos, []) = fraction(rest)? else { return None };
    instant(date, second, offset(*sign, [*h1, *h2, *m1, *m2])?, nanos)
}

/// The latest time of an access log. Consecutive lines mostly have the same text, which is then not parsed again.
#[derive(Clone, Copy, Debug)]
pub struct LastOfLog {
    text: [u8; "17/May/2015:10:05:03 +0000".len()],
    time: Time,
}

impl Default for LastOfLog {
    fn default() -> LastOfLog {
        LastOfLog { text: *b"01/Jan/1970:00:00:00 +0000", time: Time::EPOCH }
    }
}

impl LastOfLog {
    /// Like [`from_log`].
    #[inline]
    pub fn read(&mut self, text: &[u8]) -> Option<Time> {
        if text != self.text {
            let time = from_log(text)?;
            // A time with a fraction of a second is longer and rarely repeats.
            let Ok(text) = text.try_into() else { return Some(time) };
            *self = LastOfLog { text, time };
        }
        Some(self.time)
    }
}

/// The date, if it is valid.
#[inline]
fn date([y1, y2, y3, y4]: [u8; 4], month: i8, [d1, d2]: [u8; 2]) -> Option<Date> {
    let year = 100 * i16::from(two(y1, y2)?) + i16::from(two(y3, y4)?);
    Date::new(year, month, two(d1, d2)?).ok()
}

/// The instant of a second of a day. Second 86,400, a leap second, is the start of the next day.
fn instant(date: Date, second: i64, offset: i64, nanos: u64) -> Option<Time> {
    let midnight = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    let seconds = midnight.as_second() + second - offset;
    in_range(i128::from(seconds) * i128::from(NANOS_PER_SECOND) + i128::from(nanos))
}

fn in_range(nanos: i128) -> Option<Time> {
    let nanos = u64::try_from(nanos).ok()?;
    (nanos <= Time::MAX.as_nanos()).then(|| Time::from_nanos(nanos))
}

/// The second of the day of `22:13:20`, and the rest of the text.
#[inline]
fn time_of_day(text: &[u8]) -> Option<(i64, &[u8])> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else { return None };
    let (hour, minute, second) = (two(*h1, *h2)?, two(*m1, *m2)?, two(*s1, *s2)?);
    let is_time = hour < 24 && minute < 60 && second <= 60;
    is_time.then(|| (i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second), rest))
}

/// `.25` in nanoseconds, or 0 without a fraction, and the rest of the text.
#[inline]
fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let [b'.' | b',', digits @ ..] = text else { return Some((0, text)) };
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let digit = |index: usize| digits[..length].get(index).map_or(0, |byte| u64::from(byte - b'0'));
    Some(((0..9).fold(0, |nanos, index| nanos * 10 + digit(index)), &digits[length..]))
}

#[inline]
fn offset(sign: u8, digits: [u8; 4]) -> Option<i64> {
    let (hours, minutes) = (two(digits[0], digits[1])?, two(digits[2], digits[3])?);
    let seconds = i64::from(hours) * 3600 + i64::from(minutes) * 60;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // An exponent of five digits is out of range, so a larger one may saturate.
    let value = digits.iter().fold(0, |value: i64, byte| (value * 10 + i64::from(byte - b'0')).min(99_999));
    Some(if negative { -value } else { value })
}

/// The number of two decimal digits.
#[inline]
fn two(high: u8, low: u8) -> Option<i8> {
    let (high, low) = (high.wrapping_sub(b'0'), low.wrapping_sub(b'0'));
    (high <= 9 && low <= 9).then(|| (high * 10 + low) as i8)
}

#[inline]
fn month_named(name: [u8; 3]) -> Option<i8> {
    let names = b"JanFebMarAprMayJunJulAugSepOctNovDec".chunks_exact(3);
    (1..).zip(names).find(|(_, known)| *known == name).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut read: impl FnMut(&[u8]) -> Option<Time>, rows: &[(&str, Option<u64>)]) {
        for (text, expected) in rows {
            assert_eq!(read(text.as_bytes()).map(Time::as_nanos), *expected, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        check(
            from_decimal,
            &[
                ("0", Some(0)),
                ("1700000000", Some(1_700_000_000_000_000_000)),
                ("1700000000.25", Some(1_700_000_000_250_000_000)),
                // A double would give ..000_476.
                ("1700000000.123456789", Some(1_700_000_000_123_456_789)),
                ("1700000000.1234567899999999999999999999999999999999999", Some(1_700_000_000_123_456_789)),
                ("0.000000001", Some(1)),
                ("0.0000000009", Some(0)),
                ("17e8", Some(1_700_000_000_000_000_000)),
                ("1.7E+9", Some(1_700_000_000_000_000_000)),
                ("17000000000000e-4", Some(1_700_000_000_000_000_000)),
                ("170000000000000000000000000000000000000000000e-35", Some(1_700_000_000_000_000_000)),
                ("0.00000000000000000000000000000000000000000017e50", Some(17_000_000_000_000_000)),
                ("0e99999999999", Some(0)),
                ("1e-99999999999", Some(0)),
                ("9223372036.854775807", Some(Time::MAX.as_nanos())),
                ("9223372036.854775808", None),
                ("1e99999999999", None),
                ("99999999999999999999999999999999999999999999999999", None),
                ("-1", None),
                ("-0", None),
                ("", None),
                (".5", None),
                ("5.", None),
                ("05", None),
                ("1e", None),
                ("1e+", None),
                ("1.2.3", None),
                ("0x10", None),
                ("١", None),
            ],
        );
    }

    #[test]
    fn rfc3339() {
        check(
            from_rfc3339,
            &[
                ("1970-01-01T00:00:00Z", Some(0)),
                ("2023-11-14T22:13:20.25Z", Some(1_700_000_000_250_000_000)),
                ("2023-11-14t22:13:20.250000000999z", Some(1_700_000_000_250_000_000)),
                ("2023-11-15 06:13:20+08:00", Some(1_700_000_000_000_000_000)),
                ("2023-11-14T20:43:20,5-01:30", Some(1_700_000_000_500_000_000)),
                ("2016-12-31T23:59:60Z", Some(1_483_228_800_000_000_000)),
                ("2262-04-11T23:47:16.854775807Z", Some(Time::MAX.as_nanos())),
                ("2262-04-11T23:47:16.854775808Z", None),
                ("1969-12-31T23:59:59Z", None),
                ("1970-01-01T00:00:00+00:01", None),
                ("2023-02-29T00:00:00Z", None),
                ("2023-11-14T24:00:00Z", None),
                ("2023-11-14T22:13:20", None),
                ("2023-11-14T22:13:20.Z", None),
                ("2023-11-14T22:13:20+0800", None),
                ("2023-11-14T22:13:20+24:00", None),
                ("2023-11-14", None),
                ("+2023-11-14T22:13:20Z", None),
            ],
        );
    }

    #[test]
    fn access_logs() {
        let mut last = LastOfLog::default();
        check(
            |text| {
                let time = last.read(text);
                assert_eq!((time, last.read(text)), (from_log(text), time));
                time
            },
            &[
                ("17/May/2015:10:05:03 +0000", Some(1_431_857_103_000_000_000)),
                ("17/May/2015:18:05:03 +0800", Some(1_431_857_103_000_000_000)),
                ("17/May/2015:05:35:03 -0430", Some(1_431_857_103_000_000_000)),
                ("17/May/2015:10:05:03.125 +0000", Some(1_431_857_103_125_000_000)),
                ("31/Dec/2016:23:59:60 +0000", Some(1_483_228_800_000_000_000)),
                ("31/Dec/2016:23:59:61 +0000", None),
                ("17/may/2015:10:05:03 +0000", None),
                ("17/Mai/2015:10:05:03 +0000", None),
                ("31/Apr/2015:10:05:03 +0000", None),
                ("17/May/2015:10:05:03", None),
                ("17/May/2015:10:05:03 0000", None),
                ("17/May/2015:10:05:03 +00:00", None),
                ("7/May/2015:10:05:03 +0000", None),
                ("17/May/1960:10:05:03 +0000", None),
                ("", None),
            ],
        );
    }
}
