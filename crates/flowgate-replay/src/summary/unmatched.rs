//! Rules that matched nothing in the traces, and fields that no line has.
//!
//! Rule       A field that rules look at and no line has is a reason to doubt the results, since those rules would act
//!            differently on requests that have it. A rule that matched nothing although lines have all its fields may
//!            be right, such as one for blocked addresses.

use flowgate_engine::RuleDef;
use flowgate_engine::config::nearest_word;
use flowgate_engine::field_name::{REFERER, USER_AGENT, canonical};
use flowgate_engine::rules::Limits;
use serde::Serialize;

use crate::run::Replay;

/// The most fields of a trace that a message lists.
const MAX_FIELDS_LISTED: usize = 12;

/// Other names that people use for a field, and the field's own name.
const OTHER_NAMES: [(&[&str], &str); 7] = [
    (&["agent", "user_agent", "useragent", "user-agent", "http_user_agent", "browser"], USER_AGENT),
    (&["referer", "referrer", "http_referer"], REFERER),
    (&["address", "addr", "remote_addr", "client", "client_ip", "clientip", "remote_ip"], "ip"),
    (&["uri", "url", "request_uri", "target", "request"], "path"),
    (&["verb", "request_method"], "method"),
    (&["domain", "server_name", "vhost", "site"], "host"),
    (&["username", "remote_user", "uid", "account", "login"], "user"),
];

/// A field that rules look at and no line has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingField {
    /// The field.
    pub field: String,
    /// The rules that read the field, in order.
    pub rules: Vec<String>,
    /// The rules that match no request because of this.
    pub unmatched_rules: Vec<String>,
    /// The field of the traces that the author of the rule probably means.
    pub nearest: Option<String>,
    /// The fields of the traces.
    pub fields: Vec<String>,
    /// The kind of the traces, if they cannot have the field: `a log in the combined format`.
    pub log: Option<&'static str>,
}

impl MissingField {
    /// The fields of both policies that no line has, in the order of the rules.
    pub(super) fn find(replay: &Replay<'_>) -> Vec<MissingField> {
        let fields = replay.fields_seen.possible();
        let mut missing: Vec<MissingField> = Vec::new();
        if replay.trace.lines == replay.trace.skipped {
            return missing;
        }
        for (rules, result) in replay.policies() {
            for (rule, result) in rules.iter().zip(&result.rules) {
                for field in looked_at(rule) {
                    if replay.fields_seen.has(field, &replay.wanted.queries) {
                        continue;
                    }
                    let position = missing.iter().position(|found| found.field == field).unwrap_or_else(|| {
                        missing.push(MissingField::new(field, &fields, replay.fields_seen.log_kind()));
                        missing.len() - 1
                    });
                    let found = &mut missing[position];
                    let lists = [(&mut found.rules, true), (&mut found.unmatched_rules, result.seen == 0)];
                    for (list, _) in lists.into_iter().filter(|(list, belongs)| *belongs && !list.contains(&rule.name))
                    {
                        list.push(rule.name.clone());
                    }
                }
            }
        }
        missing
    }

    fn new(field: &str, fields: &[String], log: Option<&'static str>) -> MissingField {
        MissingField {
            field: field.to_owned(),
            rules: Vec::new(),
            unmatched_rules: Vec::new(),
            nearest: nearest(field, fields).filter(|nearest| *nearest != field).map(str::to_owned),
            fields: fields.iter().take(MAX_FIELDS_LISTED).cloned().collect(),
            log,
        }
    }
}

/// The fields that a rule reads, each once.
fn looked_at(rule: &RuleDef) -> Vec<&str> {
    let chosen = match &rule.limits {
        Limits::ByField { field, .. } => Some(field.as_str()),
        Limits::None | Limits::Fixed(_) => None,
    };
    let by = rule.by.iter().map(String::as_str);
    let mut fields: Vec<&str> = Vec::new();
    for field in rule.when.iter().map(|condition| condition.field.as_str()).chain(by).chain(chosen) {
        let field = canonical(field);
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    fields
}

/// The field of the traces that the author of a rule probably means.
fn nearest<'f>(field: &str, fields: &'f [String]) -> Option<&'f str> {
    let names = || fields.iter().map(String::as_str);
    let meant = OTHER_NAMES.iter().find(|(others, _)| others.contains(&bare(field).to_lowercase().as_str()));
    let meant = meant.and_then(|(_, name)| names().find(|known| known == name));
    // A header or a parameter of the same name, without its prefix or with another one.
    let by_bare_name = || {
        let near = nearest_word(bare(field), names().map(bare))?;
        names().find(|name| bare(name) == near)
    };
    nearest_word(field, names()).or(meant).or_else(by_bare_name)
}

fn bare(field: &str) -> &str {
    field.strip_prefix("header.").or_else(|| field.strip_prefix("query.")).unwrap_or(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_field_of_a_log() {
        let fields: Vec<String> =
            ["ip", "user", "method", "path", "status", REFERER, USER_AGENT, "query.page"].map(str::to_owned).to_vec();
        for (written, expected) in [
            ("usr", Some("user")),
            ("agent", Some(USER_AGENT)),
            ("User-Agent", Some(USER_AGENT)),
            ("header.user-agnt", Some(USER_AGENT)),
            ("header.referrer", Some(REFERER)),
            ("remote_addr", Some("ip")),
            ("uri", Some("path")),
            ("page", Some("query.page")),
            ("host", None),
            ("header.x-api-key", None),
            ("act", None),
        ] {
            assert_eq!(nearest(written, &fields), expected, "{written}");
        }
    }
}
