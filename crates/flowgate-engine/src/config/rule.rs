//! `[[rule]]`: one rule, from its keys to a [`RuleDef`].

use std::collections::HashMap;

use super::limits::{self, LimitSet, ReadLimits};
use super::lists::Lists;
use super::message::coded;
use super::name;
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::store::ON_FAILURE;
use super::table_reader::{self, TableReader};
use super::tree::{Node, TableEntry, Value};
use super::value;
use super::writer::Writer;
use super::{ban, when};
use crate::field_name::canonical;
use crate::rules::{Action, Limits, RuleDef, RulePlace};

/// The most fields of `by`: their values make up a key.
const MAX_BY_FIELDS: usize = 32;

/// The places of the parts of a rule.
#[derive(Debug)]
pub(crate) struct Places {
    /// The rule's name.
    pub(crate) name: Location,
    /// The fields of the conditions, in their order.
    pub(crate) when: Vec<Location>,
    /// The fields of `by`, in their order.
    pub(crate) by: Vec<Location>,
    /// The limits, by sets that are applied together.
    pub(crate) sets: Vec<LimitSet>,
    pub(crate) ban: Option<Location>,
    pub(crate) action: Option<Location>,
    pub(crate) count_denied: Option<Location>,
}

/// Reads the rules top to bottom; reports wrong rules and leaves them out.
pub(crate) fn read_all(report: &mut Report, entry: Option<&TableEntry>, lists: &Lists) -> Vec<(RuleDef, Places)> {
    let items = match entry.map(|entry| (entry, &entry.node.value)) {
        None => return Vec::new(),
        Some((_, Value::Array(items))) => items,
        Some((entry, _)) => {
            let hint = "start each rule with [[rule]], in double brackets";
            report.error(entry.key_at, "\"rule\" must be an array of tables").hint(hint).done();
            return Vec::new();
        }
    };
    let mut names: HashMap<String, Location> = HashMap::new();
    items.iter().filter_map(|item| read(report, item, lists, &mut names)).collect()
}

fn read(
    report: &mut Report,
    node: &Node,
    lists: &Lists,
    names: &mut HashMap<String, Location>,
) -> Option<(RuleDef, Places)> {
    let table = table_reader::table(report, node, "a rule", "start each rule with [[rule]], in double brackets")?;
    let before = report.errors();
    let mut fields = TableReader::new("this rule", table);
    let (name, name_at) = match fields.entry("name") {
        None => {
            let hint = coded!(
                "name-form",
                "name = \"..\" with letters, digits, _ . -; it becomes a header and a metric label"
            );
            report.error(node.at, coded!("no-name", "this rule has no name")).hint(hint).done();
            (String::new(), node.at)
        }
        Some(entry) => {
            let name = name::read(report, &entry.node, "a rule").unwrap_or_default();
            check_unique(report, names, name, entry.node.at);
            (name.to_owned(), entry.node.at)
        }
    };
    let mut rule = RuleDef::named(name);
    let source = report.sources.get(name_at.source);
    rule.place = Some(RulePlace { source: source.name.as_str().into(), line: source.position(name_at.start).line });
    let (when, by, sets) = (Vec::new(), Vec::new(), Vec::new());
    let mut places = Places { name: name_at, when, by, sets, ban: None, action: None, count_denied: None };

    rule.title = fields.read(report, "title", value::text).map(str::to_owned);
    if let Some(when) = fields.read(report, "when", |report, node| when::read(report, node, lists)) {
        (rule.when, places.when) = when.into_iter().unzip();
    }
    if let Some(by) = fields.read(report, "by", read_by) {
        (rule.by, places.by) = by.into_iter().unzip();
    }
    let limits = read_limits(report, &mut fields);
    (rule.limits, places.sets) = (limits.limits, limits.sets);
    fields.read_into(report, "action", &mut rule.action, read_action);
    rule.code = fields.read(report, "code", read_code);
    rule.message = fields.read(report, "message", value::text).map(str::to_owned);
    places.count_denied = fields.node("count_denied").map(|node| node.at);
    fields.read_into(report, "count_denied", &mut rule.count_denied, value::boolean);
    fields.read_into(report, "shadow", &mut rule.shadow, value::boolean);
    rule.on_failure = fields.read(report, "on_failure", |report, node| value::word(report, node, &ON_FAILURE));
    places.ban = fields.entry("ban").map(|entry| entry.key_at);
    rule.ban = fields.read(report, "ban", ban::read);
    places.action = fields.node("action").map(|node| node.at);
    fields.finish(report);

    // Contradictions are reported only between parts that are valid by themselves.
    if report.errors() == before {
        check_together(report, &rule, &places);
    }
    (report.errors() == before).then_some((rule, places))
}

fn check_unique(report: &mut Report, names: &mut HashMap<String, Location>, name: &str, at: Location) {
    if name.is_empty() {
        return;
    }
    match names.get(name) {
        Some(&first) => {
            let hint = coded!("own-name", "counters are kept by the rule's name, so each needs its own");
            let message = coded!("another-rule", "there is another rule {name}", name = quoted(name));
            report.error(at, message).hint(hint).place("it is at", first).done();
        }
        None => drop(names.insert(name.to_owned(), at)),
    }
}

fn read_by(report: &mut Report, node: &Node) -> Option<Vec<(String, Location)>> {
    if matches!(&node.value, Value::Array(items) if items.len() > MAX_BY_FIELDS) {
        return report.error(node.at, format!("more than {MAX_BY_FIELDS} fields")).refuse();
    }
    let mut seen: Vec<String> = Vec::new();
    value::list(report, node, |report, item| {
        let field = value::text(report, item)?;
        if !when::check_field(report, field, item.at) {
            return None;
        }
        let written = field;
        let field = canonical(written);
        if seen.iter().any(|known| known == field) {
            return report.error(item.at, coded!("twice", "{name} is given twice", name = quoted(written))).refuse();
        }
        seen.push(field.to_owned());
        Some((field.to_owned(), item.at))
    })
}

fn read_limits(report: &mut Report, fields: &mut TableReader<'_>) -> ReadLimits {
    let limits = fields.entry("limits");
    let limits_by = fields.entry("limits_by");
    match (limits, limits_by) {
        (Some(limits), Some(limits_by)) => {
            let hint = "limits_by chooses the limits by a field's value; its default holds for all others";
            let notes = report.error(limits_by.key_at, "\"limits\" and \"limits_by\" exclude each other").hint(hint);
            notes.place("\"limits\" is at", limits.key_at).done();
            ReadLimits::default()
        }
        (Some(limits), None) => limits::read(report, &limits.node).unwrap_or_default(),
        (None, Some(limits_by)) => limits::read_by(report, &limits_by.node).unwrap_or_default(),
        (None, None) => ReadLimits::default(),
    }
}

fn read_action(report: &mut Report, node: &Node) -> Option<Action> {
    let word = value::text(report, node)?;
    if !name::fits(word) {
        let message = coded!("action", "{word} cannot be an action", word = quoted(word));
        let hint = coded!(
            "action-form",
            "\"deny\", \"allow\" or a word that the caller understands such as \"captcha\": letters, digits, _ . -"
        );
        return report.error(node.at, message).hint(hint).refuse();
    }
    Some(Action::from(word))
}

fn read_code(report: &mut Report, node: &Node) -> Option<i64> {
    let code = match &node.value {
        Value::Integer(digits, radix) => i64::from_str_radix(digits, *radix).ok(),
        _ => None,
    };
    if code.is_none() {
        let message = format!("expected a whole number, found {}", value::found(node));
        report.error(node.at, message).hint("a number handed to the caller, such as code = 201").done();
    }
    code
}

fn check_together(report: &mut Report, rule: &RuleDef, places: &Places) {
    match (&rule.limits, places.action) {
        // A rule with forgotten limits must not deny every request.
        (Limits::None, None) => {
            let hint = coded!(
                "add-limits",
                "add limits = [\"5/60s\"], or action = \"deny\" if it is to deny whatever it matches"
            );
            report.error(places.name, coded!("empty-rule", "a rule needs limits or an action")).hint(hint).done();
        }
        (Limits::None, Some(_)) => {}
        (_, Some(at)) if rule.action == Action::Allow => {
            let hint = coded!(
                "limits-or-allow",
                "leave the limits out to let requests pass at once, or the action to deny what exceeds them"
            );
            let message = coded!("allow-with-limits", "a rule with limits cannot have the action \"allow\"");
            report.error(at, message).hint(hint).done();
        }
        _ => {}
    }
    let Some(ban) = places.ban else { return };
    if rule.by.is_empty() {
        let hint = coded!(
            "name-subject",
            "name the banned subject, such as by = [\"user\"]; without it all requests are one subject"
        );
        report.error(ban, coded!("ban-needs-by", "\"ban\" needs \"by\"")).hint(hint).done();
    }
    if matches!(rule.limits, Limits::None) {
        let hint = "a ban counts what limits deny; this rule decides by itself whenever it matches";
        report.error(ban, coded!("ban-needs-limits", "\"ban\" needs limits")).hint(hint).done();
    }
}

pub(crate) fn write(rule: &RuleDef, out: &mut Writer) {
    out.item("rule");
    out.text("name", &rule.name);
    if let Some(title) = &rule.title {
        out.text("title", title);
    }
    if !rule.when.is_empty() {
        out.raw("when", when::write(&rule.when));
    }
    if !rule.by.is_empty() {
        out.texts("by", &rule.by);
    }
    limits::write(&rule.limits, out);
    out.text("action", rule.action.as_str());
    if let Some(code) = rule.code {
        out.raw("code", code);
    }
    if let Some(message) = &rule.message {
        out.text("message", message);
    }
    out.raw("count_denied", rule.count_denied);
    out.raw("shadow", rule.shadow);
    if let Some(on_failure) = rule.on_failure {
        out.text("on_failure", value::word_of(&ON_FAILURE, on_failure));
    }
    if let Some(definition) = &rule.ban {
        out.raw("ban", ban::write(definition));
    }
}
