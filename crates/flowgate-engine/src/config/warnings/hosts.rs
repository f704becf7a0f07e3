//! Conditions on hosts that name a port: hosts at the gate have none.

use super::super::render::quoted;
use super::super::report::Report;
use super::super::rule::Places;
use super::super::source::Location;
use crate::http::HOST_FIELD;
use crate::rules::{Matcher, RuleDef, Spelling};

pub(super) fn find_with_port(report: &mut Report, rule: &RuleDef, places: &Places) {
    for (condition, &at) in rule.when.iter().zip(&places.when).filter(|(condition, _)| condition.field == HOST_FIELD) {
        condition.matcher.leaves().into_iter().for_each(|leaf| look_at(report, leaf, at));
    }
}

fn look_at(report: &mut Report, matcher: &Matcher, at: Location) {
    match matcher {
        Matcher::Equal(_) | Matcher::Glob(_) => {
            let written = matcher.to_string();
            let Some((_, port)) = written.rsplit_once(':') else { return };
            if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit() || byte == b'*') {
                return;
            }
            let spelled = Spelling::Host.of_written(&written);
            let message = match spelled.eq_ignore_ascii_case(&written) {
                true => format!("no host at the gate has a port, as {} wants it", quoted(&written)),
                false => format!("the host {} is not told from {}", quoted(&written), quoted(&spelled)),
            };
            report.warning(at, message).hint("at the gate a host is without its port").done();
        }
        _ => {}
    }
}
