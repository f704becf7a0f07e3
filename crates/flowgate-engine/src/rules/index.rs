//! Which rules may match a request, without asking each of them.
//!
//! Every rule is filed under **one** of its conditions: an exact value, a network, the literal beginning of a glob,
//! or at least the presence of a field. A request looks up its own values and gets the few rules that are filed
//! there; the others cannot match. Of several conditions the one is taken that the fewest rules share, so a thousand
//! rules with `act = "reply"` and a path each are filed by their paths.
//!
//! Invariant  A rule that matches is always among the candidates, and candidates come in file order.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::fields::{FieldId, FieldNames, Value, Values};
use super::matcher::{AddressMatcher, Matcher};
use crate::network::Network;
use crate::region_index::{RegionIndex, TextPrefix};

/// The numbers of the rules to ask, ascending.
pub(crate) type Candidates = SmallVec<[u32; 16]>;

/// What the index needs to know of a rule.
pub(crate) struct Entry<'a> {
    pub(crate) conditions: Vec<(FieldId, &'a Matcher)>,
    /// The fields that must be present whatever the conditions say.
    pub(crate) by: &'a [FieldId],
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Filed nowhere: to be asked always.
    always: Vec<u32>,
    fields: Vec<(FieldId, FieldIndex)>,
}

/// The rules filed under values of one field.
#[derive(Clone, Debug, Default)]
struct FieldIndex {
    present: Vec<u32>,
    equal: HashMap<Box<str>, Vec<u32>>,
    networks: RegionIndex<Network, Vec<u32>>,
    prefixes: RegionIndex<TextPrefix, Vec<u32>>,
}

/// Where in the index of a field a rule may be filed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Equal(Box<str>),
    Network(Network),
    Prefix(TextPrefix),
    Present,
}

impl Index {
    /// The rules are numbered in the order in which they come.
    pub(crate) fn new(rules: &[Entry<'_>], names: &FieldNames) -> Index {
        let mut shared: HashMap<(FieldId, Place), usize> = HashMap::new();
        let options: Vec<Vec<(FieldId, Vec<Place>)>> = rules.iter().map(options).collect();
        for (field, places) in options.iter().flatten() {
            for place in places {
                *shared.entry((*field, place.clone())).or_default() += 1;
            }
        }
        let mut filed: HashMap<FieldId, HashMap<Place, Vec<u32>>> = HashMap::new();
        let mut always = Vec::new();
        for (number, options) in options.into_iter().enumerate() {
            let number = number as u32;
            let cost = |(field, places): &(FieldId, Vec<Place>)| {
                places.iter().map(|place| shared[&(*field, place.clone())]).sum::<usize>()
            };
            let Some((field, places)) = options.into_iter().min_by_key(cost) else {
                always.push(number);
                continue;
            };
            for place in places {
                let rules = filed.entry(field).or_default().entry(place).or_default();
                // One of several equal values.
                if rules.last() != Some(&number) {
                    rules.push(number);
                }
            }
        }
        let file = |field| filed.remove(&field).map(|places| (field, FieldIndex::new(places)));
        Index { always, fields: names.ids().filter_map(file).collect() }
    }

    pub(crate) fn candidates(&self, values: &Values<'_>) -> Candidates {
        let mut found = Candidates::new();
        add(&mut found, &self.always);
        for (field, index) in &self.fields {
            if let Some(value) = values.get(*field) {
                index.look_up(value, &mut found);
            }
        }
        if found.len() > 1 {
            found.sort_unstable();
            // A rule may be filed under several values, of which nested ones may fit at once.
            found.dedup();
        }
        found
    }
}

/// Mostly one or two are found, so that a loop is shorter than a call.
#[inline]
fn add(found: &mut Candidates, rules: &[u32]) {
    rules.iter().for_each(|rule| found.push(*rule));
}

impl FieldIndex {
    fn new(places: HashMap<Place, Vec<u32>>) -> FieldIndex {
        let mut index = FieldIndex::default();
        let (mut networks, mut prefixes) = (Vec::new(), Vec::new());
        for (place, rules) in places {
            match place {
                Place::Equal(text) => _ = index.equal.insert(text, rules),
                Place::Network(network) => networks.push((network, rules)),
                Place::Prefix(prefix) => prefixes.push((prefix, rules)),
                Place::Present => index.present = rules,
            }
        }
        FieldIndex { networks: networks.into_iter().collect(), prefixes: prefixes.into_iter().collect(), ..index }
    }

    fn look_up(&self, value: Value<'_, '_>, found: &mut Candidates) {
        add(found, &self.present);
        if let Some(rules) = self.equal.get(value.text).filter(|_| !self.equal.is_empty()) {
            add(found, rules);
        }
        if !self.networks.is_empty()
            && let Some(address) = value.address()
        {
            self.networks.covering(&address).for_each(|rules| add(found, rules));
        }
        self.prefixes.covering(value.text).for_each(|rules| add(found, rules));
    }
}

/// The places under which a rule could be filed: for each usable condition, all those that its values may take.
fn options(rule: &Entry<'_>) -> Vec<(FieldId, Vec<Place>)> {
    let by_value = rule.conditions.iter().filter_map(|(field, matcher)| Some((*field, places(matcher)?)));
    let required = rule.conditions.iter().filter(|(_, matcher)| matcher.requires_presence()).map(|(field, _)| field);
    let by_presence = required.chain(rule.by).map(|field| (*field, vec![Place::Present]));
    by_value.chain(by_presence).collect()
}

/// Where all values that a matcher holds of are found; `None` when they may be anywhere.
fn places(matcher: &Matcher) -> Option<Vec<Place>> {
    match matcher {
        Matcher::Equal(text) => Some(vec![Place::Equal(text.clone())]),
        Matcher::Address(AddressMatcher(range)) => Some(vec![Place::Network(Network::new(*range)?)]),
        Matcher::Glob(glob) if glob.literal_prefix().is_empty() => None,
        Matcher::Glob(glob) => Some(vec![Place::Prefix(TextPrefix(glob.literal_prefix().into()))]),
        Matcher::OneOf(matchers) => {
            let places = matchers.iter().map(places).collect::<Option<Vec<_>>>()?;
            Some(places.concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flowgate::MemoryStore;
    use proptest::prelude::*;

    use crate::rules::{Condition, Matcher, Policy, Rule, RuleDef, RuleSet};
    use crate::{Limits, Request};

    fn matcher() -> impl Strategy<Value = Matcher> {
        let written = prop::sample::select(vec![
            "a",
            "b",
            "/a/b",
            "*",
            "!*",
            "!a",
            "/a/*",
            "/a/b*",
            "/**",
            "**b",
            "/*/b",
            "10.0.0.0/8",
            "10.0.0.0/24",
            "10.0.0.1",
            "0.0.0.0/0",
            "10.0.0.0..10.0.0.9",
            "::/0",
            "1..9",
            "~a",
        ]);
        let one = written.prop_map(|text| Matcher::parse(text).unwrap());
        prop_oneof![3 => one.clone(), 1 => prop::collection::vec(one, 1..4).prop_map(Matcher::OneOf)]
    }

    fn field() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["x", "y", "z"])
    }

    fn rule() -> impl Strategy<Value = RuleDef> {
        let when = prop::collection::vec((field(), matcher()), 0..3);
        let by = prop::collection::btree_set(field(), 0..3);
        (when, by).prop_map(|(when, by)| RuleDef {
            when: when.into_iter().map(|(field, matcher)| Condition::new(field, matcher)).collect(),
            by: by.into_iter().map(str::to_owned).collect(),
            limits: Limits::Fixed(vec!["1/s".parse().unwrap()]),
            ..RuleDef::named("unnamed")
        })
    }

    fn request() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
        let values = ["", "a", "b", "/a/b", "/a/b/c", "/a/", "10.0.0.1", "10.0.0.5", "10.9.9.9", "9.9.9.9", "::1", "5"];
        prop::collection::vec((field(), prop::sample::select(values.to_vec())), 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn asking_the_candidates_is_asking_every_rule(
            mut rules in prop::collection::vec(rule(), 0..30), requests in prop::collection::vec(request(), 10)
        ) {
            for (number, rule) in rules.iter_mut().enumerate() {
                rule.name = format!("r{number}");
            }
            let set = RuleSet::compile(&Policy { rules, ..Policy::default() }, &MemoryStore::default()).unwrap();
            for fields in requests {
                let values = set.read(&Request::from_iter(fields));
                let every = set.rules().iter().filter(|rule| set.check(rule, &values).is_ok());
                let naive: Vec<&str> = every.map(|rule: &Arc<Rule>| rule.name()).collect();
                let found: Vec<&str> = set.matching(&values).map(|(rule, _)| rule.name()).collect();
                prop_assert_eq!(found, naive);
            }
        }
    }
}
