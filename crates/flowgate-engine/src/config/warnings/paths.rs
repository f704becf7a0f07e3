//! Conditions on paths that never match, since paths have another spelling.
//!
//! At the gate, in the middleware and in logs every path begins with a slash.

use super::super::message::coded;
use super::super::render::quoted;
use super::super::report::Report;
use super::super::rule::Places;
use super::super::source::Location;
use super::super::suggest;
use crate::http::{PATH_FIELD, PathPart, PathSpelling};
use crate::rules::{Matcher, RuleDef};

pub(super) fn find(report: &mut Report, rule: &RuleDef, places: &Places, spelling: PathSpelling) {
    for condition in rule.when.iter().filter(|condition| condition.field == PATH_FIELD) {
        condition.matcher.leaves().into_iter().for_each(|leaf| look_at(report, leaf, places, spelling));
    }
}

/// Reports conditions that match no path, because the slash at the start is missing or because they contain a query.
pub(super) fn find_unfit(report: &mut Report, rule: &RuleDef, places: &Places) {
    for (condition, &at) in rule.when.iter().zip(&places.when).filter(|(condition, _)| condition.field == PATH_FIELD) {
        for leaf in condition.matcher.leaves() {
            find_without_slash_in(report, leaf, at);
            find_query_in(report, leaf, at);
        }
    }
}

fn find_without_slash_in(report: &mut Report, matcher: &Matcher, at: Location) {
    let (written, meant) = match matcher {
        Matcher::Equal(text) if !text.starts_with('/') => (text.to_string(), format!("/{text}")),
        Matcher::Glob(glob) => match glob.to_string() {
            text if text.starts_with("**") || text.trim_start_matches('*').starts_with('/') => return,
            // `*` does not match a slash.
            text if text.starts_with('*') => (text.clone(), format!("*{text}")),
            text => (text.clone(), format!("/{text}")),
        },
        Matcher::Regex(regex) => match regex.as_str().strip_prefix('^') {
            Some(rest) if begins_with_name(rest) => (matcher.to_string(), format!("~^/{rest}")),
            _ => return,
        },
        _ => return,
    };
    let message =
        coded!("no-slash", "no path at the gate fits {path}: each begins with a slash", path = quoted(&written));
    let hint = suggest::meant(meant);
    report.warning(at, message).hint(hint).done();
}

fn find_query_in(report: &mut Report, matcher: &Matcher, at: Location) {
    match matcher {
        Matcher::Equal(_) | Matcher::Glob(_) => {
            let written = matcher.to_string();
            let Some((path, query)) = written.split_once('?') else { return };
            let name = query.split(['=', '&']).next().unwrap_or_default();
            let field = quoted(&format!("query.{}", if name.is_empty() { "NAME" } else { name }));
            let message =
                coded!("path-query", "no path at the gate has a query, as {path} wants it", path = quoted(&written));
            let hint = format!("ask for path = {} and for the field {field}", quoted(path));
            report.warning(at, message).hint(hint).done();
        }
        _ => {}
    }
}

/// Whether every text that matches the rest of a regular expression begins with a letter or a digit.
fn begins_with_name(pattern: &str) -> bool {
    let mut chars = pattern.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && !matches!(chars.next(), Some('?' | '*' | '{'))
        && !pattern.contains('|')
}

fn look_at(report: &mut Report, matcher: &Matcher, places: &Places, spelling: PathSpelling) {
    const HINT: &str = "paths are spelled as gate.path_ignores says";
    match matcher {
        Matcher::Equal(_) | Matcher::Glob(_) => {
            let written = matcher.to_string();
            let lost = [PathPart::Parameters, PathPart::Spaces].into_iter().filter(|part| spelling.ignores(*part));
            let spelled = PathSpelling::ignoring(lost).of_written(&written);
            if spelled != written {
                let message = format!("the path {} is not told from {}", quoted(&written), quoted(&spelled));
                report.warning(places.name, message).hint(HINT).done();
            }
        }
        // Other alternatives of the expression may end differently, so nothing is certain.
        Matcher::Regex(regex) if spelling.ignores(PathPart::TrailingSlash) => {
            let written = regex.as_str();
            if written.ends_with("/$") && written != "^/$" && !written.contains(['|', '\\']) {
                let message = format!("no path at the gate ends in a slash, as {} wants it", quoted(written));
                report.warning(places.name, message).hint(HINT).done();
            }
        }
        _ => {}
    }
}
