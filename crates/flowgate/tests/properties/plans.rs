//! Several rules and subjects at once: all or nothing.

use flowgate::{Ask, CounterId, Decision, Hit, MemoryConfig, MemoryStore, Op, Plan, RuleFlags, Subject, Time};
use flowgate_testkit::properties::naive::{self, RuleHits};
use flowgate_testkit::properties::specs::{Spec, Step, any_spec, any_step, start};
use proptest::prelude::*;

/// Subjects times limits, and plans over any of their counters.
#[derive(Clone, Debug)]
struct Setting {
    specs: Vec<Spec>,
    subjects: usize,
    plans: Vec<Vec<RuleHits>>,
}

impl Setting {
    fn counters(&self) -> usize {
        self.specs.len() * self.subjects
    }

    fn spec(&self, counter: usize) -> &Spec {
        &self.specs[counter % self.specs.len()]
    }
}

fn setting() -> impl Strategy<Value = Setting> {
    (prop::collection::vec(any_spec(), 1..4), 1..6usize).prop_flat_map(|(specs, subjects)| {
        let plan = plan(specs.len() * subjects);
        let plans = prop::collection::vec(plan, 1..6);
        plans.prop_map(move |plans| Setting { specs: specs.clone(), subjects, plans })
    })
}

/// Some of the counters, in any order, dealt out to rules.
fn plan(counters: usize) -> impl Strategy<Value = Vec<RuleHits>> {
    let all: Vec<usize> = (0..counters).collect();
    let some = prop::sample::subsequence(all, 1..=counters.min(6)).prop_shuffle();
    let rules = prop::collection::vec((1..4usize, prop::bool::weighted(0.3), prop::bool::weighted(0.2)), 6);
    (some, rules).prop_map(|(mut some, rules)| {
        let mut plan = Vec::new();
        for (size, count_denied, shadow) in rules {
            let counters: Vec<usize> = some.drain(..size.min(some.len())).collect();
            if !counters.is_empty() {
                plan.push(RuleHits { flags: RuleFlags { count_denied, shadow }, counters });
            }
        }
        plan
    })
}

struct Store<'a> {
    setting: &'a Setting,
    memory: MemoryStore,
    subjects: Vec<Subject>,
    ids: Vec<CounterId>,
}

impl Store<'_> {
    fn new(setting: &Setting) -> Store<'_> {
        let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, ..MemoryConfig::default() });
        let subjects = (0..setting.subjects).map(|index| memory.subject(&index.to_le_bytes())).collect();
        let ids = (0..setting.specs.len()).map(|index| memory.counter(&index.to_le_bytes())).collect();
        Store { setting, memory, subjects, ids }
    }

    fn hit(&self, counter: usize) -> Hit<'_> {
        let (subject, limit) = (counter / self.ids.len(), counter % self.ids.len());
        Hit::new(self.subjects[subject].counter(self.ids[limit]), &self.setting.spec(counter).limit)
    }

    fn apply(&self, plan: &[RuleHits], op: Op, cost: u64, now: u64) -> (Decision, Vec<Decision>) {
        let mut hits = Vec::new();
        for (id, rule) in plan.iter().enumerate() {
            hits.extend(rule.counters.iter().map(|&counter| self.hit(counter).in_rule(id as u32, rule.flags)));
        }
        self.memory.apply(&mut Plan::one(Ask::new(op, cost, Time::from_nanos(now)), &mut hits));
        (Decision::from_hits(&hits), hits.iter().map(|hit| *hit.outcome()).collect())
    }

    /// What can be seen of each counter.
    fn seen(&self, now: u64) -> Vec<[Decision; 3]> {
        let peek = |counter, cost| {
            let mut hits = [self.hit(counter)];
            self.memory.apply(&mut Plan::one(Ask::new(Op::Peek, cost, Time::from_nanos(now)), &mut hits));
            *hits[0].outcome()
        };
        let costs = |counter| [0, 1, self.setting.spec(counter).most()].map(|cost| peek(counter, cost));
        (0..self.setting.counters()).map(costs).collect()
    }
}

proptest! {
    #![proptest_config(crate::cases(600))]

    #[test]
    fn plans_over_rules_and_subjects_answer_as_the_reference(
        setting in setting(),
        start in start(),
        steps in prop::collection::vec((any::<prop::sample::Index>(), any_step()), 1..30),
    ) {
        check(&setting, start, &steps)?;
    }
}

fn check(setting: &Setting, start: u64, steps: &[(prop::sample::Index, Step)]) -> Result<(), TestCaseError> {
    let store = Store::new(setting);
    let mut counters: Vec<naive::Counter> =
        (0..setting.counters()).map(|counter| naive::Counter::new(setting.spec(counter))).collect();
    let (mut latest, mut last) = (start, None::<Decision>);
    for (index, step) in steps {
        let plan = index.get(&setting.plans);
        let spec = setting.spec(plan[0].counters[0]);
        let cost = step.cost(spec, last.as_ref());
        let now = step.time(spec, latest, last.as_ref());
        let before = store.seen(now);
        let expected = naive::apply(&mut counters, plan, step.op, cost, now);
        let (decision, found) = store.apply(plan, step.op, cost, now);
        prop_assert_eq!(&found, &expected, "{:?} {} at {}: {:?}", step.op, cost, now, plan);
        let voices: Vec<Decision> = plan
            .iter()
            .flat_map(|rule| rule.counters.iter().map(|_| rule.flags.shadow))
            .zip(expected)
            .filter_map(|(shadow, answer)| (!shadow).then_some(answer))
            .collect();
        if !voices.is_empty() {
            prop_assert_eq!(decision, naive::together(&voices));
        }
        let after = store.seen(now);
        for (counter, (before, after)) in before.iter().zip(&after).enumerate() {
            let rule = plan.iter().find(|rule| rule.counters.contains(&counter)).map(|rule| rule.flags);
            let may_change = match (step.op, rule) {
                (Op::Peek, _) | (_, None) => false,
                (Op::Take, Some(rule)) => decision.allowed() || rule.shadow || rule.count_denied,
                _ => true,
            };
            prop_assert!(may_change || before == after, "counter {} changed from {:?} to {:?}", counter, before, after);
        }
        latest = latest.max(now);
        last = Some(decision);
    }
    Ok(())
}
