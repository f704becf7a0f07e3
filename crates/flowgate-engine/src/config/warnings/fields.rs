//! Names of fields that gateways and logs do not give, where another name was probably meant.
//!
//! Programs that ask over the API name their fields as they like, so any name can be right. Reported are names that
//! differ from a field of gateways and logs in their case only, and names that other systems have for one of them.
//! The keys of Envoy's descriptors are chosen in Envoy, so rules for them are left alone.

use super::super::message::coded;
use super::super::render::quoted;
use super::super::report::Report;
use super::super::rule::Places;
use super::super::source::Location;
use crate::field_name::{REFERER, USER_AGENT};
use crate::rules::{Limits, RuleDef};

/// The fields of gateways and logs that have one name.
const FIELDS: [&str; 7] = ["ip", "method", "host", "path", "user", "status", "ua"];

/// The prefixes of fields whose name continues with a name that the client chooses.
const PREFIXES: [&str; 2] = ["header.", "query."];

/// What other systems call a field, as [`squashed`] writes it.
const SYNONYMS: [(&str, &[&str]); 6] = [
    (
        "ip",
        &["clientip", "ipaddress", "ipaddr", "remoteaddr", "remoteip", "sourceip", "srcip", "xforwardedfor", "xrealip"],
    ),
    ("path", &["requestpath", "requesturi", "uri", "urlpath"]),
    ("method", &["httpmethod", "requestmethod"]),
    ("host", &["httphost"]),
    (USER_AGENT, &["useragent", "httpuseragent"]),
    (REFERER, &["referer", "referrer", "httpreferer"]),
];

pub(super) fn find(report: &mut Report, rule: &RuleDef, places: &Places) {
    let mut names: Vec<(&str, Location)> = Vec::new();
    names.extend(rule.when.iter().map(|condition| &*condition.field).zip(places.when.iter().copied()));
    names.extend(rule.by.iter().map(String::as_str).zip(places.by.iter().copied()));
    if let Limits::ByField { field, .. } = &rule.limits {
        names.push((field, places.name));
    }
    let mut told: Vec<&str> = Vec::new();
    for (name, at) in names {
        let Some(meant) = meant(name).filter(|_| !told.contains(&name)) else { continue };
        told.push(name);
        let message = coded!("no-such-field", "gateways and logs give no field {name}", name = quoted(name));
        let hint = coded!(
            "field-meant",
            "did you mean {meant}? Only a program that names its fields itself can send {name}",
            meant = quoted(&meant),
            name = quoted(name)
        );
        report.warning(at, message).hint(hint).done();
    }
}

/// The field of gateways and logs that a name probably means; `None` if the name is such a field, or resembles none.
fn meant(name: &str) -> Option<String> {
    let is_prefixed = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if FIELDS.contains(&name) || is_prefixed {
        return None;
    }
    if let Some(field) = FIELDS.iter().find(|field| field.eq_ignore_ascii_case(name)) {
        return Some((*field).to_owned());
    }
    if let Some((prefix, rest)) = name.split_once('.') {
        let singular = prefix.to_ascii_lowercase() + ".";
        let singular = if singular == "headers." { "header.".to_owned() } else { singular };
        return PREFIXES.contains(&&*singular).then(|| singular + rest);
    }
    let squashed = squashed(name);
    let (field, _) = SYNONYMS.iter().find(|(_, synonyms)| synonyms.contains(&&*squashed))?;
    Some((*field).to_owned())
}

/// A name in lower case and without separators between words: `Remote-Addr` and `remote_addr` give the same text.
fn squashed(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}
