//! `ban = { after = 3, within = "10m", for = ["1m", "10m", "1h"], forget = "24h" }`.

use std::time::Duration;

use flowgate::Span;

use super::duration::{self, MAX_DURATION};
use super::report::Report;
use super::table_reader::{self, TableReader};
use super::tree::{Node, Value};
use super::value;
use super::writer;
use crate::rules::{BanDef, BanScope};

/// The default of `forget`: after a day without a ban, the next ban is as short as the first.
const DEFAULT_FORGET: Span = Span::from_secs(86_400);
const FORM: &str = "such as { after = 3, within = \"10m\", for = [\"1m\", \"10m\", \"1h\"], forget = \"24h\" }";
/// The largest `after`: the store keeps the time of each denial within the window.
const MAX_DENIALS: u64 = 1000;
const MAX_LENGTHS: usize = 100;
const SCOPES: [(&str, BanScope); 2] =
    [(BanScope::Rule.as_str(), BanScope::Rule), (BanScope::Subject.as_str(), BanScope::Subject)];

pub(crate) fn read(report: &mut Report, node: &Node) -> Option<BanDef> {
    let table = table_reader::table(report, node, "\"ban\"", FORM)?;
    let before = report.errors();
    let mut fields = TableReader::new("a ban", table);
    let after = fields.read(report, "after", |report, node| value::integer(report, node, 1..=MAX_DENIALS));
    let within = fields.read(report, "within", span);
    let lengths = fields.read(report, "for", lengths);
    let forget = fields.read(report, "forget", span);
    let scope = fields.read(report, "scope", |report, node| value::word(report, node, &SCOPES)).unwrap_or_default();
    fields.finish(report);
    let missing: Vec<_> = ["after", "within", "for"].into_iter().filter(|key| table.get(key).is_none()).collect();
    if !missing.is_empty() {
        let message = format!("a ban needs \"{}\"", missing.join("\" and \""));
        report.error(node.at, message).hint(FORM).done();
    }
    if report.errors() > before {
        return None;
    }
    let forget = forget.unwrap_or(DEFAULT_FORGET);
    Some(BanDef { after: after?, within: within?, lengths: lengths?, forget, scope })
}

fn span(report: &mut Report, node: &Node) -> Option<Span> {
    value::span(report, node, Duration::from_millis(1)..=MAX_DURATION).map(Span::from)
}

fn lengths(report: &mut Report, node: &Node) -> Option<Vec<Span>> {
    let lengths = value::list(report, node, span)?;
    match &node.value {
        Value::Array(items) if items.is_empty() => {
            report.error(node.at, "a ban needs a length").hint("such as for = [\"1m\", \"10m\", \"1h\"]").refuse()
        }
        Value::Array(items) if items.len() > MAX_LENGTHS => {
            report.error(node.at, format!("more than {MAX_LENGTHS} lengths")).hint("the last one repeats").refuse()
        }
        _ => Some(lengths),
    }
}

pub(crate) fn write(ban: &BanDef) -> String {
    let span = |span: Span| duration::format(span.into());
    format!(
        "{{ after = {}, within = {}, for = {}, forget = {}, scope = {} }}",
        ban.after,
        writer::string(&span(ban.within)),
        writer::list(ban.lengths.iter().map(|length| span(*length))),
        writer::string(&span(ban.forget)),
        writer::string(ban.scope.as_str()),
    )
}
