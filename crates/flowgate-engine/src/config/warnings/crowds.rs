//! Rules by which a single client can fill the store: long-lived counters, by a value that the client invents.
//!
//! A full store evicts the counters that are used least, so a crowd of invented values shortens the memory of all
//! rules. A request that a limit by address denies makes no counter in any other rule, so one such limit is enough.

use flowgate::{Limit, Period, Span};

use super::unreachable::is_implied;
use crate::config::message::coded;
use crate::config::report::Report;
use crate::config::rule::Places;
use crate::rules::{Condition, Limits, Matcher, RuleDef};

/// Counters of a shorter period expire faster than one address can make new ones.
const LONG_WINDOW: Span = Span::from_secs(3600);

/// Up to this count, few requests use up the limit of an invented value, and eviction spares it as one in use.
const SMALL_LIMIT: u64 = 3;

/// The most rules by address that are compared with others: the work grows with the product of their numbers.
const MAX_RULES_BY_ADDRESS: usize = 200;

const ADDRESS: &str = "ip";

pub(super) fn find(report: &mut Report, rules: &[RuleDef], places: &[Places]) {
    let by_address: Vec<&RuleDef> = rules.iter().filter(|rule| limits_by_address(rule)).collect();
    if by_address.len() > MAX_RULES_BY_ADDRESS {
        return;
    }
    for (rule, places) in rules.iter().zip(places) {
        let chosen = rule.by.iter().zip(&places.by).find(|(field, _)| is_made_up(field, &rule.when));
        let long = places.sets.iter().flatten().map(|(limit, _)| limit).find(|limit| longest(limit).is_some());
        let (Some((field, &at)), Some(limit)) = (chosen, long) else { continue };
        if by_address.iter().any(|other| may_cover(other, rule)) {
            continue;
        }
        let message = coded!(
            "crowd",
            "a client can fill the store with values of \"{field}\": each has a counter for up to {length}, and no rule \
             limits such requests by \"ip\"",
            field = field,
            length = longest(limit).unwrap_or_default()
        );
        let hint = coded!(
            "limit-addresses",
            "put a rule with when = {{ ip = \"*\" }} and by = [\"ip\"] above this one: requests that it denies make no \
             counter here"
        );
        let notes = report.warning(at, message).hint(hint);
        match small_count(limit) {
            Some(count) => notes
                .hint(format!(
                    "a limit of {count} is soon used up, so such values displace counters that are used up as well"
                ))
                .done(),
            None => notes.done(),
        }
    }
}

/// True if clients can certainly invent any number of values for the field.
fn is_made_up(field: &str, when: &[Condition]) -> bool {
    let sent = matches!(field, "path" | "host") || field.starts_with("header.") || field.starts_with("query.");
    sent && when.iter().filter(|condition| condition.field == field).all(|condition| is_open(&condition.matcher))
}

/// True if it certainly holds for any number of values.
fn is_open(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Present | Matcher::Not(_) | Matcher::Glob(_) => true,
        Matcher::OneOf(options) => options.iter().any(is_open),
        _ => false,
    }
}

/// The longer of the limit's periods that last an hour or more, as it is written.
fn longest(limit: &Limit) -> Option<String> {
    let periods = [limit.rate().map(|rate| rate.period()), limit.after().map(|(_, period)| period)];
    let long = periods.into_iter().flatten().filter(|&period| is_long(period));
    long.max_by_key(|&period| length(period)).map(|period| match period.length() {
        Some(_) => period.to_string(),
        None => "a month".into(),
    })
}

fn is_long(period: Period) -> bool {
    length(period) >= LONG_WINDOW
}

/// A month has no one length, and is long.
fn length(period: Period) -> Span {
    period.length().unwrap_or(Span::MAX)
}

/// The count of a limit with a long period, if the count is small.
fn small_count(limit: &Limit) -> Option<u64> {
    let rate = limit.rate().filter(|rate| is_long(rate.period()))?;
    // Requests that wait count, too.
    if limit.max_wait().is_some() {
        return None;
    }
    let count = limit.burst().unwrap_or(rate.micros() / 1_000_000);
    Some(count).filter(|&count| count <= SMALL_LIMIT)
}

fn limits_by_address(rule: &RuleDef) -> bool {
    rule.by == [ADDRESS] && !matches!(rule.limits, Limits::None) && !rule.shadow
}

/// True if `other` may match every request that `rule` matches. It does not if it needs a text that `rule` does not
/// need. A request with such a field comes through a gateway, so it has an address.
fn may_cover(other: &RuleDef, rule: &RuleDef) -> bool {
    other.when.iter().all(|condition| !is_exact(&condition.matcher) || is_implied(condition, &rule.when))
}

fn is_exact(matcher: &Matcher) -> bool {
    match matcher {
        Matcher::Equal(_) => true,
        Matcher::OneOf(options) => options.iter().all(is_exact),
        _ => false,
    }
}
