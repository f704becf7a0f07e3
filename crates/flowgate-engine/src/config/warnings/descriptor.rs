//! Conditions on `descriptor`, the keys of an Envoy descriptor joined by commas: they tell which fields a request has.

use crate::rules::{Matcher, RuleDef};

pub(super) const FIELD: &str = "descriptor";
const DOMAIN: &str = "domain";

/// Whether a rule is for descriptors.
pub(super) fn is_asked_for(rule: &RuleDef) -> bool {
    rule.when.iter().any(|condition| [FIELD, DOMAIN].contains(&&*condition.field))
}

/// Whether every descriptor that the matcher lets through has a field.
pub(super) fn has_field(matcher: &Matcher, field: &str) -> bool {
    match matcher {
        Matcher::Equal(keys) => names(keys).any(|name| name == field),
        Matcher::OneOf(matchers) => matchers.iter().all(|matcher| has_field(matcher, field)),
        _ => false,
    }
}

/// The names of the fields: a key that stands again is `key.2`, `key.3`, and `remote_address` is also `ip`.
fn names(keys: &str) -> impl Iterator<Item = String> {
    let number = move |index: usize, key: &str| {
        let own = usize::from(key == FIELD || key == DOMAIN);
        1 + own + keys.split(',').take(index).filter(|earlier| *earlier == key).count()
    };
    let name = move |(index, key): (usize, &str)| match number(index, key) {
        1 => key.to_owned(),
        number => format!("{key}.{number}"),
    };
    let address = keys.split(',').find(|key| *key == "remote_address").map(|_| "ip".to_owned());
    keys.split(',').enumerate().map(name).chain([DOMAIN.to_owned()]).chain(address)
}
