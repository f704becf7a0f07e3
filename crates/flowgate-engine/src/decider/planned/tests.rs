//! A plan that replaces an older one is the same as one that is made from nothing, and is decided alike.

use std::collections::{BTreeMap, HashMap};

use flowgate::{MemoryConfig, MemoryStore, Op, Reading, Span, Time};
use proptest::prelude::*;

use super::*;
use crate::bans::BanOrder;
use crate::rules::{Action, BanDef, BanScope, Condition, Limits, Matcher, Policy, RuleDef};
use crate::{Decision, Request};

type Fields = Vec<(&'static str, &'static str)>;

const NAMES: [&str; 4] = ["x", "y", "ip", "ua"];
const VALUES: [&str; 8] = ["", "a", "b", "/a/b", "7", "10.0.0.1", "::ffff:10.0.0.1", "10.9.9.9"];

#[derive(Clone, Debug)]
enum Event {
    /// Plans a take in one of two places, and decides it some time later, on a clock that may be ahead.
    Take { place: usize, fields: Fields, cost: u64, later: u64, ahead: u64 },
    /// Bans a value by hand for some seconds.
    Ban { field: &'static str, value: &'static str, seconds: u64 },
    /// Puts the other rules in force.
    Reload,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(NAMES.to_vec())
}

fn value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(VALUES.to_vec())
}

fn limits() -> impl Strategy<Value = Limits> {
    let written = ["2/10s", "fixed 3/30s", "bucket 2/20s", "5/60s", "pace 4/20s max_wait=10s"];
    let some = prop::collection::vec(prop::sample::select(written.to_vec()), 1..3)
        .prop_map(|limits| limits.iter().map(|limit| limit.parse().unwrap()).collect::<Vec<_>>());
    let cases = prop::collection::btree_map(value().prop_map(str::to_owned), some.clone(), 1..3);
    let by_field = (name(), cases, prop::option::of(some.clone()))
        .prop_map(|(field, cases, default)| Limits::ByField { field: field.into(), cases, default });
    prop_oneof![3 => some.prop_map(Limits::Fixed), 1 => by_field, 1 => Just(Limits::None)]
}

fn ban() -> impl Strategy<Value = BanDef> {
    (1..3u64, any::<bool>()).prop_map(|(after, everywhere)| BanDef {
        after,
        within: Span::from_secs(20),
        lengths: vec![Span::from_secs(5)],
        forget: Span::from_secs(10),
        scope: if everywhere { BanScope::Subject } else { BanScope::Rule },
    })
}

fn rule() -> impl Strategy<Value = RuleDef> {
    let written = ["a", "!a", "*", "!*", "/a/*", "10.0.0.0/24", "!10.0.0.1", "1..9", "~b$", "@some"];
    let matcher = prop::sample::select(written.to_vec()).prop_map(|text| Matcher::parse(text).unwrap());
    let when = prop::collection::vec((name(), matcher), 0..3);
    let by = prop::collection::btree_set(name(), 0..3);
    let action = prop::sample::select(vec![Action::Allow, Action::Deny, Action::Other("captcha".into())]);
    let flags = (any::<bool>(), prop::bool::weighted(0.2), action);
    (when, by, limits(), prop::option::weighted(0.3, ban()), flags).prop_map(|(when, by, limits, ban, flags)| {
        let (count_denied, shadow, action) = flags;
        let decides = matches!(limits, Limits::None);
        RuleDef {
            when: when.into_iter().map(|(field, matcher)| Condition::new(field, matcher)).collect(),
            ban: ban.filter(|_| !decides && !by.is_empty()),
            by: by.into_iter().map(str::to_owned).collect(),
            limits,
            count_denied,
            shadow,
            action: if decides || action != Action::Allow { action } else { Action::Deny },
            ..RuleDef::named("")
        }
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    (prop::collection::vec(rule(), 0..6), prop::sample::subsequence(VALUES[1..].to_vec(), 2)).prop_map(
        |(mut rules, list)| {
            rules.iter_mut().enumerate().for_each(|(number, rule)| rule.name = format!("r{number}"));
            let list = crate::lists::List::from_values(list).unwrap();
            Policy { rules, lists: BTreeMap::from([("some".to_owned(), list.into())]), ..Policy::default() }
        },
    )
}

/// Requests that mostly differ in one value.
fn requests() -> impl Strategy<Value = Vec<Fields>> {
    let fields = prop::collection::vec((name(), value()), 0..5);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), value()), 0..6);
    (fields, changes).prop_map(|(fields, changes)| {
        let mut requests = vec![fields];
        for (index, value) in changes {
            let mut next = requests[requests.len() - 1].clone();
            if !next.is_empty() {
                let number = index.index(next.len());
                next[number].1 = value;
            }
            requests.push(next);
        }
        requests
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let takes =
        (requests(), prop::collection::vec((0..2usize, 0..3u64, 0..4u64, 0..3u64), 7)).prop_map(|(requests, rest)| {
            let take = |(fields, (place, cost, later, ahead))| Event::Take { place, fields, cost, later, ahead };
            requests.into_iter().zip(rest).map(take).collect()
        });
    let ban = (name(), value(), 1..5u64).prop_map(|(field, value, seconds)| vec![Event::Ban { field, value, seconds }]);
    let some = prop_oneof![8 => takes, 1 => ban, 1 => Just(vec![Event::Reload])];
    prop::collection::vec(some, 1..8).prop_map(|events| events.concat())
}

/// All that a client is told of a decision.
fn told(decision: &Decision) -> String {
    let rules = |rules: &mut dyn Iterator<Item = &std::sync::Arc<crate::Rule>>| {
        rules.map(|rule| rule.name().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let exceeded: Vec<String> = decision
        .exceeded()
        .iter()
        .map(|limit| format!("{} {} {:?}", limit.rule.name(), limit.limit, limit.retry))
        .collect();
    format!(
        "{:?} by {} matched {} window {:?} banned until {:?} shadow {} exceeded {exceeded:?}",
        decision.numbers,
        rules(&mut decision.rule().into_iter()),
        decision.matched(),
        decision.window(),
        decision.banned_until(),
        rules(&mut decision.shadow.iter()),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn a_plan_in_the_place_of_another_is_decided_as_a_new_one(
        policies in [policy(), policy()],
        events in events(),
        max_bytes in prop::sample::select(vec![0, 1 << 20]),
    ) {
        let decider = || {
            let (seed, when_full) = (flowgate::Seed([1, 2]), flowgate::WhenFull::Deny);
            let memory = MemoryStore::new(MemoryConfig { seed, max_bytes, when_full });
            let decider = Decider::new(memory);
            let sets = policies.each_ref().map(|policy| decider.compile(policy, None).unwrap());
            (decider, sets)
        };
        let ((planning, planned_sets), (plain, plain_sets)) = (decider(), decider());
        let (mut plans, mut buffer) = ([PlannedTake::default(), PlannedTake::default()], HitBuffer::default());
        let mut lists = HashMap::new();
        let (mut in_force, mut now) = (0, Time::from_secs(1_700_000_000));
        for event in events {
            match event {
                Event::Take { place, fields, cost, later, ahead } => {
                    let (rules, plan) = (&planned_sets[in_force], &mut plans[place]);
                    let (names, texts): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
                    let list = lists.entry(names.clone()).or_insert_with(|| RequestNames::new(names));
                    planning.plan_ahead(rules, cost, list, &texts, plan);
                    let mut anew = PlannedTake::default();
                    planning.plan_ahead(rules, cost, list, &texts, &mut anew);
                    prop_assert_eq!(format!("{:?}", plan.evaluation), format!("{:?}", anew.evaluation));
                    now = now + Span::from_secs(later);
                    let at = Reading { now, ahead: Span::from_secs(ahead) };
                    let request = || Request::from_iter(fields.iter().copied()).cost(cost);
                    let answer = planning.decide_planned(rules, plan, &mut buffer, request, at);
                    let expected = plain.decide_by(&plain_sets[in_force], Op::Take, &request(), at);
                    match answer.unwrap() {
                        TakeAnswer::Passes(pass) => prop_assert_eq!(told(&pass.into_decision()), told(&expected)),
                        TakeAnswer::Decided(decision) => prop_assert_eq!(told(&decision), told(&expected)),
                        // It leaves out which limits were exceeded, and there is nothing else to leave out.
                        TakeAnswer::Denied(denied) => {
                            prop_assert_eq!(denied.numbers(), &expected.numbers);
                            prop_assert_eq!(Some(denied.rule().name()), expected.rule().map(|rule| rule.name()));
                            prop_assert!(!expected.exceeded().is_empty() && expected.banned_until().is_none());
                            prop_assert!(!expected.allowed() && expected.shadow.is_empty());
                            prop_assert_eq!(denied.rule().action.as_str(), expected.action());
                        }
                    }
                }
                Event::Ban { field, value, seconds } => {
                    let order = || BanOrder { field, value, length: Span::from_secs(seconds), reason: "", author: None };
                    let imposed = [&planning, &plain].map(|decider| decider.ban(order(), now).is_ok());
                    prop_assert_eq!(imposed[0], imposed[1]);
                }
                Event::Reload => in_force = 1 - in_force,
            }
        }
    }
}

#[test]
fn a_plan_that_other_rules_have_made_does_not_hold() {
    let decider = Decider::new(MemoryStore::default());
    let sets = [(); 2].map(|()| decider.compile(&Policy::default(), None).unwrap());
    let mut plan = PlannedTake::default();
    decider.plan_ahead(&sets[0], 1, &RequestNames::new(["x"]), &["a"], &mut plan);
    let holds = |set| {
        let now = Time::from_secs(1_700_000_000);
        decider.decide_planned(set, &plan, &mut HitBuffer::default(), Request::new, now.into()).is_some()
    };
    assert_eq!(sets.each_ref().map(holds), [true, false]);
}
