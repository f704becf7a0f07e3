//! Which rules may match a request, without asking each of them.
//!
//! Every rule is filed under **one** of its conditions: an exact value, a network, the literal beginning of a glob, or
//! at least the presence of a field. A request looks up its own values and gets the few rules that are filed there; the
//! others cannot match. A rule is filed under the condition that the fewest rules share: a thousand rules with `act =
//! "reply"` and a path each are filed by their paths.
//!
//! Invariant  A rule that matches is always among the candidates, and candidates come in file order.

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::fields::{FieldId, FieldNames, Value, Values};
use super::matcher::{AddressMatcher, Matcher};
use super::text_table::TextTable;
use crate::network::Network;
use crate::region_index::{RegionIndex, TextPrefix};

/// The numbers of the rules to ask, ascending.
#[derive(Debug, Default)]
pub(crate) struct Candidates<'i> {
    /// The first place of the index that was found, mostly the only one.
    one: &'i [u32],
    /// The rules of all places, once there are several.
    several: SmallVec<[u32; 8]>,
}

impl<'i> Candidates<'i> {
    #[inline]
    pub(crate) fn rules(&self) -> &[u32] {
        if self.several.is_empty() { self.one } else { &self.several }
    }

    #[inline]
    fn add(&mut self, rules: &'i [u32]) {
        if self.one.is_empty() {
            self.one = rules;
        } else if !rules.is_empty() {
            self.add_another(rules);
        }
    }

    fn add_another(&mut self, rules: &[u32]) {
        if self.several.is_empty() {
            self.several.extend_from_slice(self.one);
        }
        self.several.extend_from_slice(rules);
    }
}

/// What the index needs to know of a rule.
pub(crate) struct Entry<'a> {
    pub(crate) conditions: Vec<(FieldId, &'a Matcher)>,
    /// The fields that must be present whatever the conditions say.
    pub(crate) by: &'a [FieldId],
}

/// A condition under which a rule can be filed, or a field that the rule needs.
#[derive(Clone, Debug)]
struct FilingOption {
    field: FieldId,
    /// All places that a request may find the rule in.
    places: Vec<Place>,
    /// The number of the condition, if it holds of every request that finds the rule in one of the places.
    proves: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Rules that are filed nowhere, so every request checks them.
    always: Vec<u32>,
    fields: Vec<(FieldId, FieldIndex)>,
}

/// The rules filed under values of one field.
#[derive(Clone, Debug, Default)]
struct FieldIndex {
    present: Vec<u32>,
    equal: TextTable<Vec<u32>>,
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
    /// The rules are numbered in the order in which they come. Also returns, for each rule, the number of the condition that
    /// holds whenever the rule is among the candidates.
    pub(crate) fn new(rules: &[Entry<'_>], names: &FieldNames) -> (Index, Vec<Option<usize>>) {
        let options: Vec<Vec<FilingOption>> = rules.iter().map(options).collect();
        let mut shared: HashMap<(FieldId, &Place), usize> = HashMap::new();
        for FilingOption { field, places, .. } in options.iter().flatten() {
            for place in places {
                *shared.entry((*field, place)).or_default() += 1;
            }
        }
        let mut filed: HashMap<FieldId, HashMap<Place, Vec<u32>>> = HashMap::new();
        let (mut always, mut proven) = (Vec::new(), Vec::new());
        for (number, options) in options.iter().enumerate() {
            let number = number as u32;
            let cost = |option: &&FilingOption| {
                option.places.iter().map(|place| shared[&(option.field, place)]).sum::<usize>()
            };
            let option = options.iter().min_by_key(cost);
            proven.push(option.and_then(|option| option.proves));
            let Some(FilingOption { field, places, .. }) = option else {
                always.push(number);
                continue;
            };
            for place in places {
                let rules = filed.entry(*field).or_default().entry(place.clone()).or_default();
                // Filed by one value out of several.
                if rules.last() != Some(&number) {
                    rules.push(number);
                }
            }
        }
        let file = |field| filed.remove(&field).map(|places| (field, FieldIndex::new(places)));
        (Index { always, fields: names.ids().filter_map(file).collect() }, proven)
    }

    /// Finds the rules that may match, in the place of earlier candidates.
    #[inline]
    pub(crate) fn find<'i>(&'i self, values: &Values<'_>, found: &mut Candidates<'i>) {
        found.one = &self.always;
        found.several.clear();
        for (field, index) in &self.fields {
            if let Some(value) = values.get(*field) {
                index.look_up(value, found);
            }
        }
        if !found.several.is_empty() {
            found.several.sort_unstable();
            // A rule may be filed under several values. If they are nested, a request may find it more than once.
            found.several.dedup();
        }
    }
}

impl FieldIndex {
    fn new(places: HashMap<Place, Vec<u32>>) -> FieldIndex {
        let mut index = FieldIndex::default();
        let (mut networks, mut prefixes) = (Vec::new(), Vec::new());
        for (place, rules) in places {
            match place {
                Place::Equal(text) => index.equal.insert(text, rules),
                Place::Network(network) => networks.push((network, rules)),
                Place::Prefix(prefix) => prefixes.push((prefix, rules)),
                Place::Present => index.present = rules,
            }
        }
        FieldIndex { networks: networks.into_iter().collect(), prefixes: prefixes.into_iter().collect(), ..index }
    }

    #[inline]
    fn look_up<'i>(&'i self, value: Value<'_, '_>, found: &mut Candidates<'i>) {
        found.add(&self.present);
        if !self.equal.is_empty()
            && let Some(rules) = self.equal.get(value.text)
        {
            found.add(rules);
        }
        if !self.networks.is_empty()
            && let Some(address) = value.address()
        {
            self.networks.covering(&address).for_each(|rules| found.add(rules));
        }
        if !self.prefixes.is_empty() {
            self.prefixes.covering(value.text).for_each(|rules| found.add(rules));
        }
    }
}

/// The conditions and fields under which a rule can be filed.
fn options(rule: &Entry<'_>) -> Vec<FilingOption> {
    let by_value = rule.conditions.iter().enumerate().filter_map(|(number, (field, matcher))| {
        let places = places(matcher)?;
        let is_exact = places.iter().all(|place| matches!(place, Place::Equal(_)));
        Some(FilingOption { field: *field, places, proves: is_exact.then_some(number) })
    });
    let required = rule.conditions.iter().filter(|(_, matcher)| matcher.requires_presence()).map(|(field, _)| field);
    let present = |field: &FieldId| FilingOption { field: *field, places: vec![Place::Present], proves: None };
    by_value.chain(required.chain(rule.by).map(present)).collect()
}

/// The places of all values that a matcher accepts; `None` if they may be anywhere.
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
                let every = set.rules.iter().filter(|rule| set.check(rule, &values).is_ok());
                let naive: Vec<&str> = every.map(|rule: &Arc<Rule>| rule.name()).collect();
                let mut candidates = super::Candidates::default();
                let found: Vec<&str> = set.matching(&values, &mut candidates).map(|(rule, _)| rule.name()).collect();
                prop_assert_eq!(found, naive);
            }
        }
    }
}
