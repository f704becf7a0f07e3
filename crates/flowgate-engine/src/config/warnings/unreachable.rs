//! Rules that never match, since a rule above them decides all their requests.

use crate::address::Address;
use crate::config::message::coded;
use crate::config::report::Report;
use crate::config::rule::Places;
use crate::http::PathSpelling;
use crate::rules::{AddressMatcher, Condition, Limits, Matcher, RuleDef, Spelling, spelled};

/// The most rules that are compared with each other: the work grows with the square of their number.
const MAX_DIRECT_RULES: usize = 200;

pub(super) fn find(report: &mut Report, rules: &[RuleDef], places: &[Places], paths: PathSpelling) {
    let mut direct: Vec<(RuleDef, &Places)> = Vec::new();
    for (rule, place) in rules.iter().zip(places) {
        let rule = as_compared(rule, paths);
        if let Some((above, above_place)) = direct.iter().find(|(above, _)| covers(above, &rule)) {
            let message = coded!(
                "unreachable",
                "this rule is never reached: \"{rule}\" above it decides first",
                rule = above.name
            );
            let hint = coded!("above-or-remove", "put it above that rule, or remove it");
            report.warning(place.name, message).hint(hint).place("that rule is at", above_place.name).done();
        }
        if is_direct(&rule) && direct.len() < MAX_DIRECT_RULES {
            direct.push((rule, place));
        }
    }
}

/// The rule with its conditions as the engine compares them: `/Login` also matches `/login`.
fn as_compared(rule: &RuleDef, paths: PathSpelling) -> RuleDef {
    let mut rule = rule.clone();
    for condition in &mut rule.when {
        if let Some(spelling) = Spelling::of_field(&condition.field, paths) {
            condition.matcher = spelled(&condition.matcher, spelling);
        }
    }
    rule
}

/// True if the rule decides without a limit. A shadow rule never decides.
fn is_direct(rule: &RuleDef) -> bool {
    matches!(rule.limits, Limits::None) && !rule.shadow
}

/// True if `above` certainly matches every request that `below` matches.
fn covers(above: &RuleDef, below: &RuleDef) -> bool {
    let conditions_hold = above.when.iter().all(|condition| is_implied(condition, &below.when));
    let fields_present = above.by.iter().all(|field| {
        let required = |condition: &Condition| condition.field == *field && condition.matcher.requires_presence();
        below.by.contains(field) || below.when.iter().any(required)
    });
    conditions_hold && fields_present
}

pub(super) fn is_implied(condition: &Condition, by: &[Condition]) -> bool {
    by.iter().any(|known| known.field == condition.field && implies(&known.matcher, &condition.matcher))
}

/// True if every value that fits `known` certainly fits `wanted`.
fn implies(known: &Matcher, wanted: &Matcher) -> bool {
    match (known, wanted) {
        (Matcher::OneOf(options), _) => options.iter().all(|option| implies(option, wanted)),
        (_, Matcher::OneOf(options)) => options.iter().any(|option| implies(known, option)),
        (Matcher::Equal(text), _) => holds(wanted, text),
        (Matcher::Address(AddressMatcher(inner)), Matcher::Address(AddressMatcher(outer))) => outer.encloses(inner),
        (Matcher::Number(_) | Matcher::Address(_) | Matcher::List(_), Matcher::Present) => true,
        (Matcher::List(known), Matcher::List(wanted)) => known == wanted,
        // Equal texts have equal meanings. `Equal` was handled above, so neither text is a literal that only looks like
        // another form.
        (_, Matcher::Equal(_)) => false,
        _ => known.to_string() == wanted.to_string(),
    }
}

/// True if a matcher certainly holds for a text of the request.
fn holds(matcher: &Matcher, text: &str) -> bool {
    match matcher {
        Matcher::Equal(other) => **other == *text,
        Matcher::Present => !text.is_empty(),
        Matcher::OneOf(options) => options.iter().any(|option| holds(option, text)),
        Matcher::Number(range) => range.contains(text),
        Matcher::Address(AddressMatcher(range)) => Address::parse(text).is_some_and(|address| range.contains(address)),
        Matcher::Glob(glob) => glob.matches(text),
        Matcher::Regex(regex) => regex.is_match(text),
        Matcher::Not(inner) => certainly_fails(inner, text),
        Matcher::Absent => text.is_empty(),
        // The contents of a list may change at any time.
        Matcher::List(_) => false,
    }
}

fn certainly_fails(matcher: &Matcher, text: &str) -> bool {
    match matcher {
        Matcher::List(_) => false,
        Matcher::OneOf(options) => options.iter().all(|option| certainly_fails(option, text)),
        Matcher::Not(inner) => holds(inner, text),
        other => !holds(other, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: &str, wanted: &str, expected: bool) {
        let (known, wanted) = (Matcher::parse(known).unwrap(), Matcher::parse(wanted).unwrap());
        assert_eq!(implies(&known, &wanted), expected, "{known} -> {wanted}");
    }

    #[test]
    fn implied_conditions_are_recognized() {
        for (known, wanted) in [
            ("x", "x"),
            ("x", "*"),
            ("*", "*"),
            ("!*", "!*"),
            ("@vip", "@vip"),
            ("@vip", "*"),
            ("5", "1..9"),
            ("10.1.2.3", "10.0.0.0/8"),
            ("10.1.0.0/16", "10.0.0.0/8"),
            ("/api/x", "/api/*"),
            ("/v1/", "~^/v[0-9]+/"),
            ("x", "!y"),
            ("> 100", "*"),
            ("> 100", "> 100"),
        ] {
            check(known, wanted, true);
        }
        for (known, wanted) in [
            ("*", "x"),
            ("x", "y"),
            ("x", "!*"),
            ("!*", "*"),
            ("10.0.0.0/8", "10.1.0.0/16"),
            ("x", "@vip"),
            ("x", "!@vip"),
            ("**", "*"),
            ("~x", "*"),
            ("!x", "*"),
            ("@vip", "@blocked"),
            ("> 100", "> 50"), // true, but not worked out
        ] {
            check(known, wanted, false);
        }
        let one_of = |texts: &[&str]| Matcher::OneOf(texts.iter().map(|text| Matcher::equal(*text)).collect());
        assert!(implies(&one_of(&["x", "y"]), &one_of(&["z", "y", "x"])));
        assert!(!implies(&one_of(&["x", "y"]), &Matcher::equal("x")));
        // A literal text that looks like another form (`eq = "*x"`) is compared as a literal.
        assert!(!implies(&Matcher::Present, &Matcher::equal("*")));
    }
}
