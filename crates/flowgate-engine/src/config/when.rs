//! `when = { act = "reply", user = "*" }`: the conditions of a rule.

use std::collections::BTreeMap;

use super::lists::Lists;
use super::message::coded;
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::suggest::{meant, nearest};
use super::table_reader;
use super::tree::{Node, Table, Value};
use super::value;
use super::writer;
use crate::address::AddressRange;
use crate::bans::ADDRESS_FIELD;
use crate::field_name::canonical;
use crate::rules::{Condition, Matcher};

/// The longest name of a field.
const MAX_FIELD_BYTES: usize = 200;

/// Reads the conditions, each with the place of its field; reports wrong ones and leaves them out.
pub(crate) fn read(report: &mut Report, node: &Node, lists: &Lists) -> Option<Vec<(Condition, Location)>> {
    let table = table_reader::table(report, node, "\"when\"", "such as { act = \"reply\", user = \"*\" }")?;
    let mut conditions = Vec::new();
    for entry in &table.entries {
        if !check_field(report, &entry.key, entry.key_at) {
            continue;
        }
        let matchers = all(report, &entry.key, &entry.node, lists);
        let field = canonical(&entry.key);
        conditions.extend(matchers.into_iter().map(|matcher| (Condition::new(field, matcher), entry.key_at)));
    }
    Some(conditions)
}

/// The lists that conditions on a field refer to, each with the place of one.
pub(crate) fn lists_of<'n>(field: &str, rules: &'n Node) -> BTreeMap<&'n str, Location> {
    fn add<'n>(node: &'n Node, lists: &mut BTreeMap<&'n str, Location>) {
        match &node.value {
            Value::Array(items) => items.iter().for_each(|item| add(item, lists)),
            Value::Table(table) => {
                let all = table.entries.iter().filter(|entry| entry.key == "all");
                all.for_each(|entry| add(&entry.node, lists));
            }
            Value::String(text) => {
                if let Some(name) = text.strip_prefix('!').unwrap_or(text).strip_prefix('@') {
                    lists.entry(name).or_insert(node.at);
                }
            }
            _ => {}
        }
    }
    let mut lists = BTreeMap::new();
    let Value::Array(rules) = &rules.value else { return lists };
    for rule in rules {
        if let Value::Table(rule) = &rule.value
            && let Some(condition) = rule.find(&["when", field])
        {
            add(&condition.node, &mut lists);
        }
    }
    lists
}

/// Reports a text that cannot be the name of a field.
pub fn check_field(report: &mut Report, name: &str, at: Location) -> bool {
    let fits = !name.is_empty() && name.len() <= MAX_FIELD_BYTES && !name.chars().any(|c| c.is_control() || c == ' ');
    if !fits {
        let hint = "a field is called such as \"user\", \"ip\" or \"header.X-Plan\"";
        let message = coded!("field-name", "{name} cannot be the name of a field", name = quoted(name));
        report.error(at, message).hint(hint).done();
    }
    fits
}

/// The condition on a field: one, or each of `{ all = [..] }`.
fn all(report: &mut Report, field: &str, node: &Node, lists: &Lists) -> Vec<Matcher> {
    if let Value::Table(table) = &node.value
        && let [entry] = table.entries.as_slice()
        && entry.key == "all"
    {
        return match &entry.node.value {
            Value::Array(items) if !items.is_empty() => {
                items.iter().filter_map(|item| matcher(report, field, item, lists)).collect()
            }
            _ => {
                let hint = "such as { all = [\"> 5\", \"!7\"] }";
                report.error(entry.node.at, "expected an array of what must hold").hint(hint).done();
                Vec::new()
            }
        };
    }
    matcher(report, field, node, lists).into_iter().collect()
}

fn matcher(report: &mut Report, field: &str, node: &Node, lists: &Lists) -> Option<Matcher> {
    match &node.value {
        Value::Array(items) if items.is_empty() => {
            let message = coded!("empty-array", "an empty array matches nothing");
            report.error(node.at, message).hint("name the values that fit").refuse()
        }
        Value::Array(items) => {
            let matchers: Vec<_> = items.iter().filter_map(|item| single(report, field, item, lists)).collect();
            // A list of one item is that item. If items were left out, their mistakes are reported already.
            match <[Matcher; 1]>::try_from(matchers) {
                Ok([only]) => Some(only),
                Err(several) => Some(Matcher::OneOf(several)),
            }
        }
        _ => single(report, field, node, lists),
    }
}

fn single(report: &mut Report, field: &str, node: &Node, lists: &Lists) -> Option<Matcher> {
    if let Value::Table(table) = &node.value {
        return literal(report, field, node, table);
    }
    if let Value::Array(_) = node.value {
        return report.error(node.at, "expected text, found an array within an array").refuse();
    }
    let text = value::text(report, node)?;
    if text.is_empty() {
        let hint = coded!("absent", "for a field that is absent or empty write \"!*\"");
        return report.error(node.at, coded!("empty-text", "an empty text matches nothing")).hint(hint).refuse();
    }
    let matcher = match Matcher::parse(text) {
        Ok(matcher) => matcher,
        Err(error) => {
            let found = error.found.trim_end_matches("...");
            // `find` gives a byte at which `found` stands in the text, so the sum stays within it.
            let part = text.find(found).map_or(0..text.len(), |start| start..start + found.len());
            let at = value::place_within(report, node, text, part);
            let message = format!("expected {}, found {}", error.expected, quoted(&error.found));
            let hint = format!("to match the text itself write {{ eq = {} }}", writer::string(text));
            return report.error(at, message).maybe_hint(Some(hint).filter(|hint| hint.len() < 100)).refuse();
        }
    };
    if field == ADDRESS_FIELD && is_broken_address(&matcher) {
        let message = coded!("address", "{text} is neither an address nor a network", text = quoted(text));
        let meant = meant_address(text).map_or_else(
            || "such as 192.0.2.7 or 192.0.2.0/24; to".to_owned(),
            |meant| format!("did you mean {}? To", quoted(&meant)),
        );
        let literal = text.strip_prefix('!').map_or_else(
            || format!("{{ eq = {} }}", writer::string(text)),
            |text| format!("{{ ne = {} }}", writer::string(text)),
        );
        let hint = format!("{meant} match the text itself write {literal}");
        return report.error(node.at, message).maybe_hint(Some(hint).filter(|hint| hint.len() < 120)).refuse();
    }
    for name in matcher.lists() {
        if !lists.is_known(name) {
            report_unknown_list(report, node, text, name, lists);
            return None;
        }
    }
    Some(matcher)
}

/// True if a wrong text was meant as an address: it begins with a digit, or with the hexadecimal digits and the colon
/// of an IPv6 address. Such a condition would never match, and a gap in a list of blocked networks is noticed too late.
fn is_broken_address(matcher: &Matcher) -> bool {
    let text = match matcher {
        Matcher::Equal(text) => text,
        Matcher::Not(inner) => return is_broken_address(inner),
        _ => return false,
    };
    let text = text.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
    let is_hexadecimal = |group: &str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.starts_with(|c: char| c.is_ascii_digit())
        || text.split_once(':').is_some_and(|(group, _)| is_hexadecimal(group))
}

/// The address that a wrong text was probably meant as: a range with a dash, an address with blanks around it, in the
/// brackets of a URL, or with a zone.
fn meant_address(text: &str) -> Option<String> {
    let (not, text) = text.strip_prefix('!').map_or(("", text), |text| ("!", text));
    let text = text.trim();
    let without_zone = text.split_once('%').map_or(text, |(address, _)| address);
    let candidates = [without_zone.trim_matches(['[', ']']).to_owned(), text.replacen('-', "..", 1)];
    let is_address = |text: &String| matches!(AddressRange::parse(text), Ok(Some(_)));
    candidates.into_iter().find(is_address).map(|meant| format!("{not}{meant}"))
}

/// `{ eq = "*literal" }` and `{ ne = "*literal" }`. Any other table is mostly a dotted name without quotes, which TOML
/// splits.
fn literal(report: &mut Report, field: &str, node: &Node, table: &Table) -> Option<Matcher> {
    if let [entry] = table.entries.as_slice()
        && let "eq" | "ne" = entry.key.as_str()
    {
        let equal = value::text(report, &entry.node).map(Matcher::equal)?;
        return Some(if entry.key == "eq" { equal } else { Matcher::Not(Box::new(equal)) });
    }
    match table.entries.first() {
        Some(entry) => {
            let hint = format!("put a name with dots in quotes: \"{field}.{}\" = ..", entry.key);
            let message = "expected text, an array, or { eq = \"..\" }";
            report.error(entry.key_at, message).maybe_hint(Some(hint).filter(|hint| hint.len() < 100)).done();
        }
        None => report.error(node.at, "expected text, an array, or { eq = \"..\" }, found an empty table").done(),
    }
    None
}

fn report_unknown_list(report: &mut Report, node: &Node, text: &str, name: &str, lists: &Lists) {
    let start = text.find('@').unwrap_or(0);
    let at = value::place_within(report, node, text, start..text.len());
    let known = lists.names.keys().map(String::as_str);
    let hint = match nearest(name, known.filter(|_| !report.is_full())) {
        Some(known) => meant(format!("@{known}")),
        None => coded!(
            "define-list",
            "define it: [lists] {name} = {{ values = [..] }} or {{ file = \"{name}.txt\" }}",
            name = name
        ),
    };
    report.error(at, coded!("unknown-list", "there is no list {name}", name = quoted(name))).hint(hint).done();
}

/// The conditions as an inline table. A field with several of them has all of them.
pub fn write(conditions: &[Condition]) -> String {
    let mut fields: Vec<(&str, Vec<String>)> = Vec::new();
    for Condition { field, matcher } in conditions {
        match fields.iter_mut().find(|(known, _)| known == field) {
            Some((_, matchers)) => matchers.push(written(field, matcher)),
            None => fields.push((field, vec![written(field, matcher)])),
        }
    }
    let items: Vec<_> = fields
        .into_iter()
        .map(|(field, matchers)| match matchers.as_slice() {
            [only] => format!("{} = {only}", writer::name(field)),
            several => format!("{} = {{ all = [{}] }}", writer::name(field), several.join(", ")),
        })
        .collect();
    format!("{{ {} }}", items.join(", "))
}

fn written(field: &str, matcher: &Matcher) -> String {
    match matcher {
        Matcher::Equal(text) if is_special(field, text) => format!("{{ eq = {} }}", writer::string(text)),
        Matcher::Not(inner) => match &**inner {
            Matcher::Equal(text) if is_special(field, text) => format!("{{ ne = {} }}", writer::string(text)),
            _ => writer::string(&matcher.to_string()),
        },
        Matcher::OneOf(matchers) => {
            let items: Vec<_> = matchers.iter().map(|matcher| written(field, matcher)).collect();
            format!("[{}]", items.join(", "))
        }
        Matcher::Equal(text) => writer::string(text),
        other => writer::string(&other.to_string()),
    }
}

/// True if a text has a special meaning in a condition.
fn is_special(field: &str, text: &str) -> bool {
    let is_itself = |matcher: &Matcher| {
        matches!(matcher, Matcher::Equal(_)) && !(field == ADDRESS_FIELD && is_broken_address(matcher))
    };
    text.is_empty() || !Matcher::parse(text).is_ok_and(|matcher| is_itself(&matcher))
}
