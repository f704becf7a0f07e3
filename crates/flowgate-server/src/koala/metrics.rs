//! What is counted about decisions by Koala's rules.

use std::borrow::Borrow;

use flowgate::Time;
use flowgate_engine::{Request, RuleCounts, RuleOutcome};
use flowgate_koala::{KoalaAnswer, KoalaRules};

use super::KoalaInForce;
use crate::metrics::{BAN_BY_HAND, Exposition, MAX_RULES, NO_RULE, OTHER_RULES};
use crate::observer::{Denial, Observer};

/// Notes the answer to a request. `request` is called only if the answer is ranked or logged.
pub(super) fn note<'q, R: Borrow<Request<'q>>>(
    observer: &Observer,
    rules: &KoalaRules,
    request: impl Fn() -> R,
    answer: &KoalaAnswer,
    now: Time,
) {
    rules.note(answer, now);
    observer.note_by(request, answer.ranked().map(|rule| rules.rule(rule)), denial(rules, answer), now);
    answer.shadow().for_each(|rule| rules.decided_by(rule).count(RuleOutcome::Shadowed));
    match answer.decided() {
        _ if answer.banned => rules.unruled.count(RuleOutcome::Banned),
        None => rules.unruled.count(RuleOutcome::Allowed),
        Some(rule) if rules.result_of(rule).passes() => rules.decided_by(rule).count(RuleOutcome::Allowed),
        Some(rule) => rules.decided_by(rule).count(RuleOutcome::Denied),
    }
    if answer.degraded {
        observer.metrics.degraded.add(1);
    }
}

/// What the log tells of an answer that denies.
fn denial<'r>(rules: &'r KoalaRules, answer: &KoalaAnswer) -> Option<Denial<'r>> {
    let degraded = answer.degraded;
    if answer.banned {
        return Some(Denial { by: "ban by hand", banned_field: None, action: "deny", retry_after: None, degraded });
    }
    let rule = answer.decided().filter(|rule| !rules.result_of(*rule).passes())?;
    let by = if rules.is_direct(rule) { "rule" } else { "limit" };
    let action = rules.rule(rule).action.as_str();
    Some(Denial { by, banned_field: None, action, retry_after: None, degraded })
}

/// What each rule has decided, under a name such as `koala:111`, and the decisions without a rule.
pub(crate) fn tallies(koala: Option<&KoalaInForce>) -> impl Iterator<Item = (String, &'static str, RuleCounts)> {
    koala.into_iter().flat_map(|KoalaInForce { rules, .. }| {
        let by_rule = (0..rules.file.number_of_rules()).map(|rule| {
            (format!("koala:{}", rules.number(rule)), denial_action(rules, rule), rules.decided_by(rule).read())
        });
        by_rule.chain(std::iter::once(("koala:(none)".to_owned(), DENY, rules.unruled.read())))
    })
}

const DENY: &str = "deny";

/// What a rule asks for if it does not let a request pass.
fn denial_action(rules: &KoalaRules, rule: usize) -> &'static str {
    if rules.result_of(rule).wants_captcha() { "captcha" } else { DENY }
}

/// Writes the counts of the rules in force.
pub(crate) fn render(out: &mut Exposition, koala: Option<&KoalaInForce>) {
    let help = "Requests that Koala's rules decided, by the number of the rule and what it asks for.";
    let mut family = out.counter("flowgate_koala_decisions_total", help);
    let mut sample = |rule: &str, action: &str, count| {
        family.sample(&[("rule", rule), ("action", action)], count);
    };
    let unruled = koala.map(|koala| koala.rules.unruled.read()).unwrap_or_default();
    sample(NO_RULE, "allow", unruled.get(RuleOutcome::Allowed));
    sample(BAN_BY_HAND, "ban", unruled.get(RuleOutcome::Banned));
    let Some(KoalaInForce { rules, .. }) = koala else { return };
    let mut others = RuleCounts::default();
    for rule in 0..rules.file.number_of_rules() {
        let counts = rules.decided_by(rule).read();
        if rule >= MAX_RULES {
            others += counts;
            continue;
        }
        let (number, result) = (rules.number(rule).to_string(), rules.result_of(rule));
        if counts.get(RuleOutcome::Shadowed) > 0 {
            sample(&number, "shadow", counts.get(RuleOutcome::Shadowed));
        }
        for (action, what, expected) in [
            ("allow", RuleOutcome::Allowed, result.passes()),
            (denial_action(rules, rule), RuleOutcome::Denied, !result.passes()),
        ] {
            // A rule that was edited may have decided in both ways.
            if expected || counts.get(what) > 0 {
                sample(&number, action, counts.get(what));
            }
        }
    }
    if rules.file.number_of_rules() > MAX_RULES {
        sample(OTHER_RULES, "allow", others.get(RuleOutcome::Allowed));
        sample(OTHER_RULES, "deny", others.get(RuleOutcome::Denied));
    }
}
