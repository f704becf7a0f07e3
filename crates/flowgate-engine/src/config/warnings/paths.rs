//! Conditions on paths that never match, since paths have another spelling.

use super::super::render::quoted;
use super::super::report::Report;
use super::super::rule::Places;
use crate::http::{PATH_FIELD, PathPart, PathSpelling};
use crate::rules::{Matcher, RuleDef};

pub(super) fn find(report: &mut Report, rule: &RuleDef, places: &Places, spelling: PathSpelling) {
    for condition in rule.when.iter().filter(|condition| condition.field == PATH_FIELD) {
        look_at(report, &condition.matcher, places, spelling);
    }
}

fn look_at(report: &mut Report, matcher: &Matcher, places: &Places, spelling: PathSpelling) {
    const HINT: &str = "paths are spelled as gate.path_ignores says";
    match matcher {
        Matcher::Not(inner) => look_at(report, inner, places, spelling),
        Matcher::OneOf(matchers) => matchers.iter().for_each(|matcher| look_at(report, matcher, places, spelling)),
        Matcher::Equal(_) | Matcher::Glob(_) => {
            let written = matcher.to_string();
            let lost = [PathPart::Parameters, PathPart::Spaces].into_iter().filter(|part| spelling.ignores(*part));
            let spelled = PathSpelling::ignoring(lost).of_written(&written);
            if spelled != written {
                let message = format!("the path {} is not told from {}", quoted(&written), quoted(&spelled));
                report.warning(places.name, message).hint(HINT).done();
            }
        }
        // Another alternative may have another end.
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
