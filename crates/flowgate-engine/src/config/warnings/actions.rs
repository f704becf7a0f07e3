//! Actions that are probably mistakes. A mistyped word still denies, because every unknown word denies. A rule that
//! allows has no effect below all limits.

use crate::config::message::coded;
use crate::config::report::Report;
use crate::config::rule::Places;
use crate::config::suggest::{self, nearest};
use crate::rules::{Action, Limits, RuleDef};

/// Words that rules have for their actions. Callers may understand others.
const KNOWN: [&str; 3] = ["allow", "deny", "captcha"];

/// Reports an action that differs from a known word by a slip: it denies.
pub(super) fn find_mistyped(report: &mut Report, rule: &RuleDef, places: &Places) {
    let (word, Some(at)) = (rule.action.as_str(), places.action) else { return };
    // `hcaptcha` and `recaptcha` are words of their own.
    if KNOWN.contains(&word) || word.contains("captcha") {
        return;
    }
    if let Some(meant) = nearest(word, KNOWN) {
        let message =
            coded!("action-denies", "the action \"{word}\" denies, as every word but \"allow\" does", word = word);
        report.warning(at, message).hint(suggest::meant(meant)).done();
    }
}

/// Reports rules that allow and have no rule below them: they spare no request a limit.
pub(super) fn find_pointless_permissions(report: &mut Report, rules: &[RuleDef], places: &[Places]) {
    let allows = |rule: &RuleDef| rule.action == Action::Allow && matches!(rule.limits, Limits::None) && !rule.shadow;
    let last = rules.iter().rev().take_while(|rule| allows(rule)).count();
    if last == rules.len() {
        return;
    }
    for place in &places[places.len().saturating_sub(last)..] {
        let hint = coded!("move-up", "put it above the rules whose limits it is to spare");
        let message = coded!("changes-nothing", "this rule changes nothing: no rule stands below it");
        report.warning(place.name, message).hint(hint).done();
    }
}
