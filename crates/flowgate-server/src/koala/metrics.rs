//! What is counted about decisions by Koala's rules.

use flowgate::Time;
use flowgate_engine::{RuleCounts, RuleOutcome};
use flowgate_koala::{KoalaAnswer, KoalaRules};

use super::KoalaInForce;
use crate::metrics::{BAN_BY_HAND, Exposition, MAX_RULES, NO_RULE, OTHER_RULES};
use crate::observer::Observer;

/// Notes the answer to a request.
pub(super) fn note(observer: &Observer, rules: &KoalaRules, answer: &KoalaAnswer, now: Time) {
    rules.note(answer, now);
    match answer.decided() {
        _ if answer.banned() => rules.unruled().count(RuleOutcome::Banned),
        None => rules.unruled().count(RuleOutcome::Allowed),
        Some(rule) if rules.result_of(rule).passes() => rules.decided_by(rule).count(RuleOutcome::Allowed),
        Some(rule) => rules.decided_by(rule).count(RuleOutcome::Denied),
    }
    if answer.degraded() {
        observer.metrics.degraded.add(1);
    }
}

/// Writes the counts of the rules in force.
pub(crate) fn render(out: &mut Exposition, koala: Option<&KoalaInForce>) {
    let help = "Requests that Koala's rules decided, by the number of the rule and what it asks for.";
    let mut family = out.counter("flowgate_koala_decisions_total", help);
    let mut sample = |rule: &str, action: &str, count| {
        family.sample(&[("rule", rule), ("action", action)], count);
    };
    let unruled = koala.map(|koala| koala.rules.unruled().read()).unwrap_or_default();
    sample(NO_RULE, "allow", unruled.get(RuleOutcome::Allowed));
    sample(BAN_BY_HAND, "ban", unruled.get(RuleOutcome::Banned));
    let Some(KoalaInForce { rules, .. }) = koala else { return };
    let mut others = RuleCounts::default();
    for rule in 0..rules.len() {
        let counts = rules.decided_by(rule).read();
        if rule >= MAX_RULES {
            others += counts;
            continue;
        }
        let (number, result) = (rules.number(rule).to_string(), rules.result_of(rule));
        let denial = if result.wants_captcha() { "captcha" } else { "deny" };
        for (action, what, expected) in
            [("allow", RuleOutcome::Allowed, result.passes()), (denial, RuleOutcome::Denied, !result.passes())]
        {
            // A rule that was edited may have decided both.
            if expected || counts.get(what) > 0 {
                sample(&number, action, counts.get(what));
            }
        }
    }
    if rules.len() > MAX_RULES {
        sample(OTHER_RULES, "allow", others.get(RuleOutcome::Allowed));
        sample(OTHER_RULES, "deny", others.get(RuleOutcome::Denied));
    }
}
