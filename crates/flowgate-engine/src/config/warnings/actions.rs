//! Actions that are probably meant otherwise: a mistyped word denies as any word does, and a permission that stands below
//! every limit spares nothing.

use crate::config::report::Report;
use crate::config::rule::Places;
use crate::config::suggest::nearest;
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
        let message = format!("the action \"{word}\" denies, as every word but \"allow\" does");
        report.warning(at, message).hint(format!("did you mean \"{meant}\"?")).done();
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
        let hint = "put it above the rules whose limits it is to spare";
        report.warning(place.name, "this rule changes nothing: no rule stands below it").hint(hint).done();
    }
}
