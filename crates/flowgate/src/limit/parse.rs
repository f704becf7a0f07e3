//! The limit language.
//!
//! ```text
//! limit     = "unlimited" | [algorithm] rate {option}
//! algorithm = sliding (default) | fixed | bucket | pace | approx
//!             also: token, funnel, gcra = bucket; leaky = pace; count = fixed; log = sliding
//! rate      = count "/" period            bucket and pace also take a decimal count such as 0.5
//! period    = [number] unit | number      whole numbers; a bare number is seconds; 1us .. 366d
//! unit      = us | ms | s sec second | m min minute | h hr hour | d day | w week | month
//! option    = burst=N (also capacity=)  max_wait=PERIOD|0s|none  tz=ZONE  after=M/PERIOD
//! ```

use super::rate::MAX_DIGITS;
use super::{Algorithm, Limit, LimitBuilder, LimitError, MAX_COUNT, MICRO, MaxWait, Part, Period, Rate, Unit};
use crate::time::Span;

const ALGORITHMS: &str = "sliding, fixed, bucket, pace, approx or unlimited";
const OPTIONS: &str = "burst=, max_wait=, tz= or after=";
const PERIOD: &str = "a period such as 60s, 5m or day, from 1us to 366d";

pub(super) fn limit(text: &str) -> Result<Limit, LimitError> {
    let mut words = text.split_ascii_whitespace().peekable();
    let Some(first) = words.next() else {
        return Err(LimitError::new(Part::Limit, text, "a limit such as 100/60s or bucket 0.5/s burst=15"));
    };
    if first == "unlimited" {
        return match words.next() {
            None => Ok(Limit::unlimited()),
            Some(word) => Err(LimitError::new(Part::Option, word, "nothing after `unlimited`")),
        };
    }
    let (algorithm, rate_text) = if first.contains('/') {
        (Algorithm::Sliding, first)
    } else {
        let Some(algorithm) = algorithm(first) else {
            let (part, expected) = if first.starts_with(|c: char| c.is_ascii_digit()) {
                (Part::Period, "a slash and a period after the count, such as 100/60s")
            } else {
                (Part::Algorithm, ALGORITHMS)
            };
            return Err(LimitError::new(part, first, expected));
        };
        let missing = || LimitError::new(Part::Limit, text, "a rate such as 100/60s after the algorithm");
        (algorithm, words.next().ok_or_else(missing)?)
    };
    let mut builder = LimitBuilder::new(algorithm, rate(rate_text, algorithm)?);
    let mut seen = Vec::new();
    for word in words {
        builder = option(builder, word, &mut seen)?;
    }
    builder.build()
}

fn algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "sliding" | "log" => Algorithm::Sliding,
        "fixed" | "count" => Algorithm::Fixed,
        "bucket" | "token" | "funnel" | "gcra" => Algorithm::Bucket,
        "pace" | "leaky" => Algorithm::Pace,
        "approx" => Algorithm::Approx,
        _ => return None,
    })
}

fn rate(text: &str, algorithm: Algorithm) -> Result<Rate, LimitError> {
    let Some((count, period_text)) = text.split_once('/') else {
        return Err(LimitError::new(Part::Limit, text, "a rate such as 100/60s"));
    };
    let micros = match algorithm {
        Algorithm::Bucket | Algorithm::Pace => decimal(count)?,
        _ => whole(count, Part::Count)? * MICRO,
    };
    Rate::from_micros(micros, period(period_text, Part::Period)?)
}

/// A count in millionths.
fn decimal(text: &str) -> Result<u64, LimitError> {
    let Some((whole_text, fraction)) = text.split_once('.') else {
        return Ok(whole(text, Part::Count)? * MICRO);
    };
    let expected = "a number above 0 with at most 6 decimals and 15 digits, such as 0.5";
    let error = || LimitError::new(Part::Count, text, expected);
    let digits = [whole_text, fraction].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if !digits || fraction.len() > 6 || whole_text.len() + fraction.len() > MAX_DIGITS {
        return Err(error());
    }
    // Both parts are digits and short enough: 15 in all, 6 behind the point.
    let whole: u64 = whole_text.parse().map_err(|_| error())?;
    let micros: u64 = format!("{fraction:0<6}").parse().map_err(|_| error())?;
    match whole.checked_mul(MICRO).and_then(|scaled| scaled.checked_add(micros)) {
        Some(total) if total > 0 && total <= MAX_COUNT * MICRO => Ok(total),
        _ => Err(error()),
    }
}

/// A whole number from 1 to 10^12.
fn whole(text: &str, part: Part) -> Result<u64, LimitError> {
    digits(text)
        .filter(|number| (1..=MAX_COUNT).contains(number))
        .ok_or_else(|| LimitError::new(part, text, format!("a whole number from 1 to {MAX_COUNT}")))
}

/// ASCII digits only: no sign, no separators, no other script's digits.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn period(text: &str, part: Part) -> Result<Period, LimitError> {
    let error = || LimitError::new(part, text, PERIOD);
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit_name) = text.split_at(split);
    let unit = match unit_name {
        "us" => Unit::Microsecond,
        "ms" => Unit::Millisecond,
        "s" | "sec" | "second" => Unit::Second,
        "m" | "min" | "minute" => Unit::Minute,
        "h" | "hr" | "hour" => Unit::Hour,
        "d" | "day" => Unit::Day,
        "w" | "week" => Unit::Week,
        "month" => Unit::Month,
        "" if !number.is_empty() => Unit::Second,
        "" => return Err(error()),
        _ => {
            let units = "one of the units us, ms, s, m, h, d, w, month (or second, minute, hour, day, week)";
            return Err(LimitError::new(part, text, units));
        }
    };
    let number = if number.is_empty() { 1 } else { digits(number).ok_or_else(error)? };
    Period::new(number, unit).map_err(|cause| LimitError::new(part, text, cause.expected()))
}

fn option(builder: LimitBuilder, word: &str, seen: &mut Vec<Part>) -> Result<LimitBuilder, LimitError> {
    let unknown = || LimitError::new(Part::Option, word, OPTIONS);
    let (name, value) = word.split_once('=').ok_or_else(unknown)?;
    let part = match name {
        "burst" | "capacity" => Part::Burst,
        "max_wait" => Part::MaxWait,
        "tz" => Part::Tz,
        "after" => Part::After,
        _ => return Err(unknown()),
    };
    if seen.contains(&part) {
        return Err(LimitError::new(part, word, format!("`{part}` only once")));
    }
    seen.push(part);
    Ok(match part {
        Part::Burst => builder.burst(whole(value, part)?),
        Part::MaxWait => builder.max_wait(max_wait(value)?),
        Part::Tz => builder.tz(value),
        _ => {
            let expected = "a count and a period such as after=10/day";
            let error = || LimitError::new(part, value, expected);
            let (free, period_text) = value.split_once('/').ok_or_else(error)?;
            builder.after(whole(free, part)?, period(period_text, part)?)
        }
    })
}

fn max_wait(text: &str) -> Result<MaxWait, LimitError> {
    match text {
        "none" => return Ok(MaxWait::Unbounded),
        "0" | "0s" => return Ok(MaxWait::AtMost(Span::ZERO)),
        _ => {}
    }
    let expected = "a period from 1us to 366d, 0s or none";
    let error = || LimitError::new(Part::MaxWait, text, expected);
    let length = period(text, Part::MaxWait).map_err(|_| error())?.length().ok_or_else(error)?;
    Ok(MaxWait::AtMost(length))
}
