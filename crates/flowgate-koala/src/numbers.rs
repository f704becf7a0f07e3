//! The last two brackets of a rule: `[time=86400; count=1000;] [result=2; return=111]`.

use flowgate::MAX_COUNT;
use flowgate_engine::front::{Location, Report, did_you_mean, quoted};

use super::piece::Piece;

/// The longest time, in seconds: 366 days, as for every limit.
const MAX_TIME_SECONDS: u64 = 366 * 86_400;

/// The highest number of a rule or a result; Koala's are 32 bits wide.
const MAX_NUMBER: u64 = i32::MAX as u64;

/// The keys of each bracket, and the highest value of each.
const LIMIT_KEYS: [(&str, u64); 5] = [
    ("time", MAX_TIME_SECONDS),
    ("count", MAX_COUNT),
    ("base", MAX_COUNT),
    ("erase1", MAX_COUNT),
    ("erase2", MAX_COUNT),
];
const RESULT_KEYS: [(&str, u64); 2] = [("result", MAX_NUMBER), ("return", MAX_NUMBER)];

/// The numbers of one bracket.
pub(super) struct Numbers<'t> {
    bracket: Piece<'t>,
    known: Vec<Number<'t>>,
}

struct Number<'t> {
    key: &'t str,
    value: u64,
    at: Location,
}

impl<'t> Numbers<'t> {
    /// Reads the third bracket: how many requests, in which time.
    pub(super) fn of_limit(report: &mut Report, bracket: Piece<'t>) -> Option<Numbers<'t>> {
        Numbers::read(report, bracket, &LIMIT_KEYS, &RESULT_KEYS)
    }

    /// Reads the fourth bracket: the result and the number of the rule.
    pub(super) fn of_result(report: &mut Report, bracket: Piece<'t>) -> Option<Numbers<'t>> {
        Numbers::read(report, bracket, &RESULT_KEYS, &LIMIT_KEYS)
    }

    pub(super) fn get(&self, key: &str) -> Option<u64> {
        self.known.iter().find(|number| number.key == key).map(|number| number.value)
    }

    /// The place of a number; the place of the bracket if the rule does not give the number.
    pub(super) fn place(&self, key: &str) -> Location {
        let number = self.known.iter().find(|number| number.key == key);
        number.map_or_else(|| self.bracket.at(), |number| number.at)
    }

    fn read(
        report: &mut Report,
        bracket: Piece<'t>,
        keys: &[(&'static str, u64)],
        others: &[(&'static str, u64)],
    ) -> Option<Numbers<'t>> {
        let before = report.errors();
        let mut numbers = Numbers { bracket, known: Vec::new() };
        for item in bracket.items(';') {
            let Some((key, value)) = item.split_once('=') else {
                let message = format!("expected `key=number`, found {}", quoted(item.text));
                report.error(item.at(), message).done();
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            let Some(&(_, highest)) = keys.iter().find(|(known, _)| *known == key.text) else {
                let hint = match others.iter().any(|(other, _)| *other == key.text) {
                    true => Some("it stands in the other of the last two brackets".into()),
                    false => did_you_mean(key.text, keys.iter().map(|(known, _)| *known)),
                };
                report.error(key.at(), format!("unknown key {}", quoted(key.text))).maybe_hint(hint).done();
                continue;
            };
            let Some(value) = number(report, value, highest) else { continue };
            if numbers.get(key.text).is_some() {
                let message = format!("{} is given twice; the last one counts", quoted(key.text));
                report.warning(key.at(), message).done();
                numbers.known.retain(|number| number.key != key.text);
            }
            numbers.known.push(Number { key: key.text, value, at: item.at() });
        }
        (report.errors() == before).then_some(numbers)
    }
}

fn number(report: &mut Report, value: Piece<'_>, highest: u64) -> Option<u64> {
    let digits = value.text.strip_prefix(['-', '+']).unwrap_or(value.text);
    let message = if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("expected a whole number, found {}", quoted(value.text))
    } else if value.text.starts_with('-') && digits.bytes().any(|byte| byte != b'0') {
        format!("{} is negative", value.text)
    } else {
        match digits.parse::<u64>() {
            Ok(number) if number <= highest => return Some(number),
            _ => format!("expected a number up to {highest}, found {}", quoted(value.text)),
        }
    };
    report.error(value.at(), message).refuse()
}
