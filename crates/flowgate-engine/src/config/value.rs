//! Readers of single values: from a node of the tree to a type, or a report of what fits.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::duration;
use super::message::coded;
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::suggest::did_you_mean;
use super::tree::{self, Node, Value};

/// A text of any content.
pub(crate) fn text<'n>(report: &mut Report, node: &'n Node) -> Option<&'n str> {
    match &node.value {
        Value::String(text) | Value::Untyped(text) => Some(text),
        other => {
            let hint = match other {
                Value::Integer(..) | Value::Float(_) | Value::Boolean(_) => {
                    let text = report.sources.shown(node.at);
                    Some(coded!("write-in-quotes", "write \"{text}\" in quotes", text = text))
                }
                _ => None,
            };
            let message = coded!("expected-text", "expected text, found {found}", found = other.kind());
            report.error(node.at, message).maybe_hint(hint).refuse()
        }
    }
}

/// A text that is not empty.
pub(crate) fn full_text<'n>(report: &mut Report, node: &'n Node) -> Option<&'n str> {
    let text = text(report, node)?;
    if text.trim().is_empty() {
        return report.error(node.at, "expected text, this is empty").refuse();
    }
    Some(text)
}

pub(crate) fn boolean(report: &mut Report, node: &Node) -> Option<bool> {
    match &node.value {
        Value::Boolean(answer) => return Some(*answer),
        Value::Untyped(text) if text == "true" => return Some(true),
        Value::Untyped(text) if text == "false" => return Some(false),
        _ => {}
    }
    let hint = match &node.value {
        Value::String(text) if text == "true" || text == "false" => format!("write {text} without quotes"),
        _ => "write true or false".to_owned(),
    };
    let message = coded!("expected-boolean", "expected true or false, found {found}", found = found(node));
    report.error(node.at, message).hint(hint).refuse()
}

/// A whole number within a range.
pub(crate) fn integer(report: &mut Report, node: &Node, range: RangeInclusive<u64>) -> Option<u64> {
    let (digits, radix) = match &node.value {
        Value::Integer(digits, radix) => (digits.as_str(), *radix),
        Value::Untyped(text) => (text.as_str(), 10),
        _ => ("", 10),
    };
    let number = u64::from_str_radix(&digits.replace('_', ""), radix).ok();
    if let Some(number) = number.filter(|number| range.contains(number)) {
        return Some(number);
    }
    let hint = match &node.value {
        Value::String(text) if text.parse::<u64>().is_ok() => Some(format!("write {text} without quotes")),
        _ => None,
    };
    let message = coded!(
        "expected-number",
        "expected a whole number from {least} to {most}, found {found}",
        least = range.start(),
        most = range.end(),
        found = found(node)
    );
    report.error(node.at, message).maybe_hint(hint).refuse()
}

/// One of several words.
pub(crate) fn word<T: Copy>(report: &mut Report, node: &Node, words: &[(&'static str, T)]) -> Option<T> {
    let text = text(report, node)?;
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Some(*value);
    }
    let known = words.iter().map(|(word, _)| *word);
    let choices = one_of(known.clone());
    let hint = did_you_mean(text, known);
    let message = coded!("expected-word", "expected {choices}, found {found}", choices = choices, found = quoted(text));
    report.error(node.at, message).maybe_hint(hint).refuse()
}

/// The word that stands for a value.
pub(crate) fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

/// `"a", "b" or "c"`.
pub(crate) fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// A duration such as `"5m"` within a range.
pub(crate) fn span(report: &mut Report, node: &Node, range: RangeInclusive<Duration>) -> Option<Duration> {
    const EXPECTED: &str = "expected a duration such as \"500ms\", \"30s\", \"5m\" or \"24h\"";
    if let Value::Integer(..) = node.value {
        let written = report.sources.written(node.at).to_owned();
        let message = coded!("duration-unit", "{expected}, found a number without a unit", expected = EXPECTED);
        return report.error(node.at, message).hint(format!("for seconds write \"{written}s\"")).refuse();
    }
    let text = text(report, node)?;
    let Some(length) = duration::parse(text) else {
        let seconds = text.parse::<u64>().ok().map(|number| format!("for seconds write \"{number}s\""));
        let units = || "a whole number and one of the units us, ms, s, m, h, d, w".to_owned();
        let message = coded!("duration", "{expected}, found {found}", expected = EXPECTED, found = quoted(text));
        return report.error(node.at, message).hint(seconds.unwrap_or_else(units)).refuse();
    };
    if !range.contains(&length) {
        let (least, most) = (duration::format(*range.start()), duration::format(*range.end()));
        let message = coded!(
            "duration-range",
            "expected a duration from {least} to {most}, found {found}",
            least = least,
            most = most,
            found = quoted(text)
        );
        return report.error(node.at, message).refuse();
    }
    Some(length)
}

/// A value with a text form of its own; `expected` says what fits.
pub(crate) fn parsed<T: FromStr>(report: &mut Report, node: &Node, expected: &str) -> Option<T> {
    let text = text(report, node)?;
    let value = text.parse().ok();
    if value.is_none() {
        report.error(node.at, format!("expected {expected}, found {}", quoted(text))).done();
    }
    value
}

/// A path. A relative path starts from the file that names it. An empty text means no path.
pub(crate) fn path(report: &mut Report, node: &Node) -> Option<Option<PathBuf>> {
    let text = text(report, node)?;
    Some((!text.is_empty()).then(|| report.sources.resolve(node.at.source, text)))
}

/// A list, each item read by `reader`; reports wrong items and leaves them out.
///
/// The environment gives `a, b, c`, or a TOML list where an item holds a comma.
pub(crate) fn list<T>(
    report: &mut Report,
    node: &Node,
    mut reader: impl FnMut(&mut Report, &Node) -> Option<T>,
) -> Option<Vec<T>> {
    match &node.value {
        Value::Array(items) => Some(items.iter().filter_map(|item| reader(report, item)).collect()),
        Value::Untyped(text) if text.trim_start().starts_with('[') => {
            match tree::parse_value(text, node.at.source, node.at.start) {
                Ok(inner) if !matches!(inner.value, Value::Untyped(_)) => list(report, &inner, reader),
                Ok(_) => None,
                Err(cause) => report.error(node.at, format!("this array is not TOML: {cause}")).refuse(),
            }
        }
        Value::Untyped(text) => Some(split(node.at, text).iter().filter_map(|item| reader(report, item)).collect()),
        other => {
            let hint = match other {
                Value::String(_) => Some(format!("write [{}]", report.sources.written(node.at))),
                _ => None,
            };
            let hint = hint.filter(|hint| hint.len() < 100);
            let message = coded!("expected-array", "expected an array, found {found}", found = other.kind());
            report.error(node.at, message).maybe_hint(hint).refuse()
        }
    }
}

/// The items of a comma separated text; an empty text has none.
fn split(at: Location, text: &str) -> Vec<Node> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut offset = 0;
    text.split(',')
        .map(|item| {
            let lead = item.len() - item.trim_start().len();
            let word = item.trim();
            let node = Node { at: at.part(offset + lead, word.len()), value: Value::Untyped(word.to_owned()) };
            offset += item.len() + 1;
            node
        })
        .collect()
}

/// The place of a part of a text value: the exact characters if the text has no escapes, else the whole value.
pub(crate) fn place_within(report: &Report, node: &Node, text: &str, part: std::ops::Range<usize>) -> Location {
    match report.sources.written(node.at).find(text) {
        Some(offset) if !part.is_empty() => node.at.part(offset + part.start, part.len()),
        _ => node.at,
    }
}

/// The value for a message: the text itself, or the kind of value.
pub(crate) fn found(node: &Node) -> String {
    match &node.value {
        Value::String(text) | Value::Untyped(text) => quoted(text),
        Value::Integer(digits, 10) | Value::Float(digits) => digits.chars().take(40).collect(),
        other => other.kind().to_owned(),
    }
}
