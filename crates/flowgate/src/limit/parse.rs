//! The limit language. [`Limit`] has its grammar.

use super::error::shown;
use super::rate::MAX_DIGITS;
use super::{Algorithm, Limit, LimitBuilder, LimitError, MAX_COUNT, MICRO, MaxWait, Part, Period, Rate, Unit};
use crate::time::Span;

const WHOLE_NUMBER: &str = "a whole number from 1 to 10^12";
const DECIMAL_NUMBER: &str = "a number from 0.000001 to 10^12, with at most 6 decimals and 15 digits";
const PERIOD: &str = "a whole number and a unit such as 60s, 5m or day, from 1us to 366d";
const UNITS: &str = "us, ms, s, m, min, h, d, w, month (or second, minute, hour, day, week)";

pub(super) fn limit(text: &str) -> Result<Limit, LimitError> {
    let mut words = text.split_ascii_whitespace();
    let Some(first) = words.next() else {
        return Err(LimitError::new(Part::Limit, "", "one such as 100/60s or bucket 0.5/s burst=15"));
    };
    if first == "unlimited" {
        return match words.next() {
            None => Ok(Limit::unlimited()),
            Some(word) => Err(LimitError::new(Part::Option, word, "nothing after `unlimited`")),
        };
    }
    let (algorithm, rate_text) = match algorithm(first) {
        Some(algorithm) => {
            let missing = || LimitError::new(Part::Limit, first, "a rate such as 100/60s after the algorithm");
            (algorithm, words.next().ok_or_else(missing)?)
        }
        None if first.contains('/') || first.starts_with(|c: char| c.is_ascii_digit()) => (Algorithm::Sliding, first),
        None => return Err(LimitError::new(Part::Algorithm, first, algorithms())),
    };
    refuse_several(text, rate_text, words.clone())?;
    refuse_blanks_around_slash(rate_text, words.clone())?;
    refuse_blank_in_period(rate_text, words.clone().next())?;
    let mut builder = LimitBuilder::new(algorithm, rate(rate_text, algorithm)?);
    let mut seen = Vec::new();
    while let Some(word) = words.next() {
        builder = option(builder, word, words.clone(), &mut seen)?;
    }
    builder.build()
}

/// The algorithm of a name, `unlimited` aside, which stands alone.
fn algorithm(name: &str) -> Option<Algorithm> {
    Algorithm::from_name(name).filter(|&algorithm| algorithm != Algorithm::Unlimited)
}

/// Every algorithm's name, as an error lists them.
fn algorithms() -> String {
    let names = Algorithm::ALL.map(Algorithm::name);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

/// Refuses `5/60s, 100/h` and `5/60s 100/h`: a text has one limit.
fn refuse_several<'t>(text: &str, rate: &str, mut following: impl Iterator<Item = &'t str>) -> Result<(), LimitError> {
    let is_rate = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('/');
    let has_separator = rate.split_once('/').is_some_and(|(_, period)| period.contains([',', ';', '+', '&']));
    if !is_rate(rate) || !has_separator && !following.any(is_rate) {
        return Ok(());
    }
    Err(LimitError::new(Part::Limit, text, "one limit; several are a list, such as [\"5/60s\", \"100/h\"]"))
}

/// Refuses `5 / 60s`, `5 /60s` and `5/ 60s`, and says how to write it.
fn refuse_blanks_around_slash<'t>(rate: &str, mut words: impl Iterator<Item = &'t str>) -> Result<(), LimitError> {
    let is_count = !rate.contains('/');
    let (slash, period) = match (words.next(), words.next()) {
        _ if !rate.starts_with(|c: char| c.is_ascii_digit()) => return Ok(()),
        (Some("/"), Some(period)) if is_count => (" / ", period),
        (Some(word), _) if is_count && word.starts_with('/') && word.len() > 1 => (" /", &word[1..]),
        (Some(period), _) if rate.ends_with('/') => (" ", period),
        _ => return Ok(()),
    };
    let expected =
        format!("no blanks around the slash: {}", shown(&format!("{}/{period}", rate.trim_end_matches('/'))));
    Err(LimitError::new(Part::Limit, format!("{rate}{slash}{period}"), expected))
}

/// Refuses `5/60 s` and says how to write it.
fn refuse_blank_in_period(rate: &str, following: Option<&str>) -> Result<(), LimitError> {
    match following {
        Some(word) if rate.ends_with(|c: char| c.is_ascii_digit()) && Unit::from_name(word).is_some() => {
            let expected = format!("the unit without a blank before it: {}", shown(&format!("{rate}{word}")));
            Err(LimitError::new(Part::Period, word, expected))
        }
        _ => Ok(()),
    }
}

fn rate(text: &str, algorithm: Algorithm) -> Result<Rate, LimitError> {
    let Some((count, period_text)) = text.split_once('/') else {
        let expected = if text.starts_with(|c: char| c.is_ascii_digit()) {
            "a slash and a period after the count, such as 100/60s"
        } else {
            "a rate such as 100/60s"
        };
        return Err(LimitError::new(Part::Limit, text, expected));
    };
    let micros = if algorithm.takes_decimals() {
        decimal(count)?
    } else if count.contains('.') {
        let expected = format!("{WHOLE_NUMBER}; only bucket and pace take decimals");
        return Err(LimitError::new(Part::Count, count, expected));
    } else {
        whole(count, Part::Count)? * MICRO
    };
    Rate::from_micros(micros, period(period_text, Part::Period)?)
}

/// A count in millionths, with decimals or without.
fn decimal(text: &str) -> Result<u64, LimitError> {
    millionths(text)
        .filter(|micros| (1..=MAX_COUNT * MICRO).contains(micros))
        .ok_or_else(|| LimitError::new(Part::Count, text, DECIMAL_NUMBER))
}

fn millionths(text: &str) -> Option<u64> {
    let Some((whole, fraction)) = text.split_once('.') else {
        return digits(text)?.checked_mul(MICRO);
    };
    if fraction.len() > 6 || whole.len() + fraction.len() > MAX_DIGITS {
        return None;
    }
    let scale = 10u64.pow(6 - u32::try_from(fraction.len()).ok()?);
    digits(whole)?.checked_mul(MICRO)?.checked_add(digits(fraction)? * scale)
}

/// A whole number from 1 to 10^12.
fn whole(text: &str, part: Part) -> Result<u64, LimitError> {
    digits(text)
        .filter(|number| (1..=MAX_COUNT).contains(number))
        .ok_or_else(|| LimitError::new(part, text, WHOLE_NUMBER))
}

/// ASCII digits only: no sign, no separators, no other script's digits.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn period(text: &str, part: Part) -> Result<Period, LimitError> {
    let error = |expected: &str| LimitError::new(part, text, expected);
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit_name) = text.split_at(split);
    let unit = match Unit::from_name(unit_name) {
        Some(unit) => unit,
        None if unit_name.is_empty() && !number.is_empty() => Unit::Second,
        None if unit_name.starts_with(char::is_alphabetic) => {
            return Err(match meant_unit(unit_name) {
                Some(meant) => error(&format!("{number}{meant}, or another of the units {UNITS}")),
                None => error(&format!("one of the units {UNITS}")),
            });
        }
        None => return Err(error(PERIOD)),
    };
    let number = if number.is_empty() { 1 } else { digits(number).ok_or_else(|| error(PERIOD))? };
    Period::new(number, unit).map_err(|cause| error(&cause.expected))
}

/// The unit that is written in upper case or in the plural.
fn meant_unit(written: &str) -> Option<String> {
    let written = written.to_ascii_lowercase();
    let singular = written.strip_suffix('s').filter(|singular| singular.len() > 1);
    [Some(written.as_str()), singular]
        .into_iter()
        .flatten()
        .find(|name| Unit::from_name(name).is_some())
        .map(str::to_owned)
}

fn option<'t>(
    builder: LimitBuilder,
    word: &str,
    following: impl Iterator<Item = &'t str>,
    seen: &mut Vec<Part>,
) -> Result<LimitBuilder, LimitError> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let part = match name {
        "burst" | "capacity" => Part::Burst,
        "max_wait" => Part::MaxWait,
        "tz" => Part::Tz,
        "after" => Part::After,
        name if algorithm(name).is_some() => {
            return Err(LimitError::new(Part::Option, word, "the algorithm to stand before the rate"));
        }
        _ => return Err(builder.unknown_option(word)),
    };
    if !builder.knows(part) {
        return Err(builder.unknown_option(word));
    }
    if seen.contains(&part) {
        let expected = match part {
            Part::Burst => "it only once (burst= and capacity= are the same)",
            _ => "it only once",
        };
        return Err(LimitError::new(part, word, expected));
    }
    if value.is_empty() {
        refuse_blanks(word, name, following)?;
    }
    seen.push(part);
    Ok(match part {
        Part::Burst => builder.burst(whole(value, part)?),
        Part::MaxWait => builder.max_wait(max_wait(value)?),
        Part::Tz => builder.tz(value),
        _ => {
            let error = || LimitError::new(part, value, "a count and a period such as after=10/day");
            let (free, period_text) = value.split_once('/').ok_or_else(error)?;
            if free.is_empty() || period_text.is_empty() {
                return Err(error());
            }
            builder.after(whole(free, part)?, period(period_text, part)?)
        }
    })
}

/// Refuses `burst 15`, `burst = 15` and `burst= 15`, and says how to write it.
fn refuse_blanks<'t>(word: &str, name: &str, following: impl Iterator<Item = &'t str>) -> Result<(), LimitError> {
    let mut values = following.map(|next| next.strip_prefix('=').unwrap_or(next)).filter(|next| !next.is_empty());
    let value = match values.next().filter(|next| !next.contains('=')) {
        Some(value) => value,
        None if word.contains('=') => return Ok(()),
        None => match name {
            "max_wait" => "2s",
            "tz" => "UTC",
            "after" => "10/day",
            _ => "15",
        },
    };
    let expected = format!("its value behind an equals sign, without blanks: {name}={}", shown(value));
    Err(LimitError::new(Part::Option, word, expected))
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
