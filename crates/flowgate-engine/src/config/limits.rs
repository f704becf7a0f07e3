//! `limits` and `limits_by`: limits as texts or tables, with the place of each mistake.

use std::collections::BTreeMap;
use std::ops::Range;

use flowgate::{Algorithm, Limit, LimitError, Part};

use super::message::{Message, coded};
use super::render::{harmless, quoted};
use super::report::Report;
use super::source::Location;
use super::suggest::{did_you_mean, meant, nearest};
use super::table_reader::{self, TableReader};
use super::tree::{Node, Table, TableEntry, Value};
use super::value;
use super::when;
use super::writer;
use crate::field_name::canonical;
use crate::rules::Limits;

/// Limits that are applied together, each with its place.
pub(crate) type LimitSet = Vec<(Limit, Location)>;

/// The `limits` or `limits_by` of a rule.
#[derive(Default)]
pub(crate) struct ReadLimits {
    pub(crate) limits: Limits,
    pub(crate) sets: Vec<LimitSet>,
}

/// Reads `limits`: a list of texts and tables.
pub(crate) fn read(report: &mut Report, node: &Node) -> Option<ReadLimits> {
    let set = read_set(report, node)?;
    let limits = Limits::Fixed(set.iter().map(|(limit, _)| limit.clone()).collect());
    Some(ReadLimits { limits, sets: vec![set] })
}

/// Reads `limits_by`: a field, the limits for its values, and for all others.
pub(crate) fn read_by(report: &mut Report, node: &Node) -> Option<ReadLimits> {
    const FORM: &str = "such as { field = \"plan\", pro = [\"100/min\"], default = [\"5/min\"] }";
    let table = table_reader::table(report, node, "\"limits_by\"", FORM)?;
    let Some(field_entry) = table.get("field") else {
        return report.error(node.at, "\"limits_by\" needs a \"field\"").hint(FORM).refuse();
    };
    let field = value::text(report, &field_entry.node)?.to_owned();
    if !when::check_field(report, &field, field_entry.node.at) {
        return None;
    }
    let field = canonical(&field).to_owned();
    let (mut cases, mut default, mut sets) = (BTreeMap::new(), None, Vec::new());
    for TableEntry { key, node, .. } in table.entries.iter().filter(|entry| entry.key != "field") {
        let Some(set) = read_set(report, node) else { continue };
        let limits: Vec<Limit> = set.iter().map(|(limit, _)| limit.clone()).collect();
        sets.push(set);
        match key.as_str() {
            "default" => default = Some(limits),
            value => drop(cases.insert(value.to_owned(), limits)),
        }
    }
    if table.entries.len() == 1 {
        return report.error(node.at, "\"limits_by\" names no limits").hint(FORM).refuse();
    }
    Some(ReadLimits { limits: Limits::ByField { field, cases, default }, sets })
}

/// The most limits that are applied together: each request updates a counter of each.
const MAX_LIMITS: usize = 32;

fn read_set(report: &mut Report, node: &Node) -> Option<LimitSet> {
    if matches!(&node.value, Value::Array(items) if items.len() > MAX_LIMITS) {
        let message = format!("more than {MAX_LIMITS} limits");
        return report.error(node.at, message).hint("split them over several rules").refuse();
    }
    let set = value::list(report, node, |report, item| limit(report, item).map(|limit| (limit, item.at)))?;
    if matches!(&node.value, Value::Array(items) if items.is_empty()) {
        let hint = "for no limit write [\"unlimited\"]; a rule that decides at once leaves the key out";
        return report.error(node.at, coded!("no-limits", "there are no limits here")).hint(hint).refuse();
    }
    Some(set)
}

fn limit(report: &mut Report, node: &Node) -> Option<Limit> {
    if let Value::Table(table) = &node.value {
        return from_table(report, node, table);
    }
    let (Value::String(text) | Value::Untyped(text)) = &node.value else {
        let message = coded!("limit-kind", "expected a limit, found {found}", found = node.value.kind());
        let hint = coded!("such-as", "such as {example}", example = "\"5/60s\" or \"bucket 30/60s burst=15\"");
        return report.error(node.at, message).hint(hint).refuse();
    };
    match text.parse::<Limit>() {
        Ok(limit) => Some(limit),
        Err(error) => {
            let part = wrong_part(text, &error).unwrap_or(0..text.len());
            let at = value::place_within(report, node, text, part);
            report.error(at, message(&error)).maybe_hint(hint(text, &error)).refuse()
        }
    }
}

fn message(error: &LimitError) -> Message {
    let (found, expected) = (quoted(&error.found), &error.expected);
    match error.part {
        Part::Limit => coded!("limit", "expected {expected}, found {found}", expected = expected, found = found),
        part => Message {
            code: Some(code(part)),
            ..coded!("", "wrong {part} {found}: expected {expected}", part = part, found = found, expected = expected)
        },
    }
}

fn code(part: Part) -> &'static str {
    match part {
        Part::Algorithm => "limit-algorithm",
        Part::Count => "limit-count",
        Part::Period => "limit-period",
        Part::Option => "limit-option",
        Part::Burst => "limit-burst",
        Part::MaxWait => "limit-max-wait",
        Part::Tz => "limit-tz",
        Part::After => "limit-after",
        _ => "limit",
    }
}

/// A hint with the text that was probably meant.
fn hint(text: &str, error: &LimitError) -> Option<Message> {
    let found = &error.found;
    match error.part {
        Part::Algorithm => did_you_mean(found, Algorithm::ALL.iter().flat_map(|algorithm| algorithm.names()).copied()),
        // No hint: the error itself says what to write.
        Part::Option if error.expected.starts_with("its value") => None,
        Part::Option => match found.split('=').next().unwrap_or_default() {
            "burst" | "capacity" => {
                Some(coded!("limit-has-burst", "bucket and pace have a burst, such as \"bucket 30/60s burst=15\""))
            }
            "max_wait" => Some("only pace lets requests wait, such as \"pace 10/s max_wait=2s\"".into()),
            name => did_you_mean(name, ["burst", "capacity", "max_wait", "tz", "after"]),
        },
        Part::Count if found.contains('.') => write_instead(format!("bucket {text}")),
        Part::Period => {
            let mut words = text.split_ascii_whitespace();
            if let (Some(count), Some("per" | "every" | "a" | "/"), Some(unit)) =
                (words.next(), words.next(), words.next())
            {
                return write_instead(format!("{count}/{}", unit.trim_end_matches('s')));
            }
            match found.as_str() {
                "month" => Some(coded!("such-as", "such as {example}", example = "\"fixed 1000/month tz=UTC\"")),
                _ => better_unit(found),
            }
        }
        Part::After => better_unit(found),
        _ => None,
    }
}

/// A hint that shows the right text, unless that is too long to be read beside its line.
fn write_instead(text: String) -> Option<Message> {
    (text.len() < 60).then(|| coded!("write", "write {text}", text = format!("\"{}\"", harmless(&text))))
}

fn better_unit(period: &str) -> Option<Message> {
    let unit = period.trim_start_matches(|char: char| char.is_ascii_digit());
    let number = &period[..period.len() - unit.len()];
    nearest(unit, UNITS).map(|unit| meant(format!("{number}{unit}")))
}

const UNITS: [&str; 10] = ["ms", "sec", "second", "min", "minute", "hour", "day", "week", "month", "hr"];

/// The bytes of a limit's text that an error is about.
fn wrong_part(text: &str, error: &LimitError) -> Option<Range<usize>> {
    let words = words(text);
    let rate = || words.iter().find(|word| text[(*word).clone()].contains('/')).or(words.first()).cloned();
    let value_of = |names: &[&str]| {
        let mut values = words.iter().filter_map(|word| {
            let (name, value) = text[word.clone()].split_once('=')?;
            names.contains(&name).then(|| word.end - value.len()..word.end)
        });
        // Of an option that is given twice, the second one is wrong.
        values.next_back()
    };
    match error.part {
        Part::Algorithm => words.first().cloned(),
        Part::Count => rate().map(|rate| rate.start..rate.start + text[rate.clone()].find('/').unwrap_or(rate.len())),
        Part::Period => rate().map(|rate| rate.start + text[rate.clone()].find('/').map_or(0, |at| at + 1)..rate.end),
        Part::Option => {
            let found = error.found.trim_end_matches("...");
            words.into_iter().find(|word| text[word.clone()].starts_with(found))
        }
        Part::Burst => value_of(&["burst", "capacity"]),
        Part::MaxWait => value_of(&["max_wait"]),
        Part::Tz => value_of(&["tz"]),
        Part::After => value_of(&["after"]),
        _ => None,
    }
    .filter(|part| !part.is_empty())
}

fn words(text: &str) -> Vec<Range<usize>> {
    let is_space = |char: char| char.is_ascii_whitespace();
    let mut start = 0;
    let mut words = Vec::new();
    for piece in text.split_inclusive(is_space) {
        let word = piece.trim_end_matches(is_space);
        if !word.is_empty() {
            words.push(start..start + word.len());
        }
        start += piece.len();
    }
    words
}

/// A limit as a table: the same parts under names. It is turned into text, so that there is one language.
fn from_table(report: &mut Report, node: &Node, table: &Table) -> Option<Limit> {
    let before = report.errors();
    let mut fields = TableReader::new("a limit", table);
    let algorithm = fields.read(report, "algorithm", single_word);
    let rate = fields.read(report, "rate", single_word);
    let burst = fields.read(report, "burst", |report, node| value::integer(report, node, 1..=flowgate::MAX_COUNT));
    let max_wait = fields.read(report, "max_wait", single_word);
    let tz = fields.read(report, "tz", single_word);
    let after = fields.read(report, "after", single_word);
    fields.finish(report);
    if report.errors() > before {
        return None;
    }
    if rate.is_none() && algorithm != Some("unlimited") {
        return report.error(node.at, "a limit needs a \"rate\"").hint("such as { rate = \"100/60s\" }").refuse();
    }
    let mut text = [algorithm, rate].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let burst = burst.map(|burst| burst.to_string());
    for (name, value) in [("burst", burst.as_deref()), ("max_wait", max_wait), ("tz", tz), ("after", after)] {
        if let Some(value) = value {
            text.push_str(&format!(" {name}={value}"));
        }
    }
    match text.parse::<Limit>() {
        Ok(limit) => Some(limit),
        Err(error) => {
            let at = wrong_key(report, table, &error).unwrap_or(node.at);
            report.error(at, message(&error)).maybe_hint(hint(&text, &error)).refuse()
        }
    }
}

/// The place of the key that an error is about.
fn wrong_key(report: &Report, table: &Table, error: &LimitError) -> Option<Location> {
    let at = |key: &str| table.get(key).map(|entry| entry.node.at);
    match error.part {
        Part::Algorithm => at("algorithm"),
        Part::Count | Part::Period => {
            let rate = &table.get("rate")?.node;
            let Value::String(text) = &rate.value else { return Some(rate.at) };
            Some(value::place_within(report, rate, text, wrong_part(text, error)?))
        }
        Part::Burst => at("burst"),
        Part::MaxWait => at("max_wait"),
        Part::Tz => at("tz"),
        Part::After => at("after"),
        Part::Option => {
            let name = error.found.split('=').next().unwrap_or_default();
            table.get(name).map(|entry| entry.key_at)
        }
        _ => None,
    }
}

/// True if the value stays one word in the limit's text.
fn single_word<'n>(report: &mut Report, node: &'n Node) -> Option<&'n str> {
    let text = value::text(report, node)?;
    if text.is_empty() || text.contains(|char: char| char.is_ascii_whitespace()) {
        let message = format!("expected a single word, found {}", quoted(text));
        return report.error(node.at, message).hint("each part of a limit has its own key here").refuse();
    }
    Some(text)
}

pub(crate) fn write(limits: &Limits, out: &mut writer::Writer) {
    let set = |limits: &[Limit]| writer::list(limits.iter().map(Limit::to_string));
    match limits {
        Limits::None => {}
        Limits::Fixed(limits) => out.raw("limits", set(limits)),
        Limits::ByField { field, cases, default } => {
            let mut items = vec![format!("field = {}", writer::string(field))];
            items.extend(cases.iter().map(|(value, limits)| format!("{} = {}", writer::name(value), set(limits))));
            items.extend(default.iter().map(|limits| format!("default = {}", set(limits))));
            out.raw("limits_by", format!("{{ {} }}", items.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_a_limit_is_marked_where_it_stands() {
        let check = |text: &str, part: &str| {
            let error = text.parse::<Limit>().unwrap_err();
            let found = wrong_part(text, &error).map_or(text, |range| &text[range]);
            assert_eq!(found, part, "{text}: {error}");
        };
        check("5/60x", "60x");
        check("0/60s", "0");
        check("x/60s", "x");
        check("5/0s", "0s");
        check("slding 5/60s", "slding");
        check("5", "5");
        check("sliding", "sliding");
        check("sliding 5", "sliding 5");
        check("5/60s  burts=3", "burts=3");
        check("5/60s burst=3", "burst=3");
        check("bucket 5/60s burst=0", "0");
        check("bucket 5/60s burst=1 burst=2", "2");
        check("bucket 5/60s capacity=x", "x");
        check("fixed 5/day tz=Mars/Olympus", "Mars/Olympus");
        check("fixed 5/24h tz=UTC", "UTC");
        check("5/60s after=10", "10");
        check("pace 5/s max_wait=long", "long");
        check("5/month", "month");
        check("unlimited burst=2", "burst=2");
        check("", "");
        check("5/", "5/");
        check("sliding 0.5/s", "0.5");
    }
}
