//! Plans of several parts: all of them or none.

use flowgate::{Decision, Hit, MemoryConfig, MemoryStore, Op, Plan, PlanPart, RuleFlags, Time};
use flowgate_testkit::properties::joint::{self, Part};
use flowgate_testkit::properties::naive::{Counter, RuleHits};
use flowgate_testkit::properties::specs::{Algorithm, Spec, Step, any_spec, any_step, start};
use proptest::prelude::*;

/// Subjects times limits. Rules from the counter `shadows` on are shadow rules.
#[derive(Clone, Debug)]
struct Setting {
    specs: Vec<Spec>,
    counters: usize,
    shadows: usize,
}

impl Setting {
    fn spec(&self, counter: usize) -> &Spec {
        &self.specs[counter % self.specs.len()]
    }
}

fn setting() -> impl Strategy<Value = Setting> {
    // A wait of `approx` is whole microseconds from now, or from the end of the free period: which one is left open. So
    // is whether a turn of `pace` that is more than 36,500 days away comes nearer when the free period ends.
    let is_open = |spec: &Spec| matches!(spec.algorithm, Algorithm::Approx | Algorithm::Pace { max_wait: None, .. });
    let spec = any_spec().prop_filter("open waits", move |spec| spec.after.is_none() || !is_open(spec));
    (prop::collection::vec(spec, 1..4), 1..4usize, 0..3usize).prop_map(|(specs, subjects, shadows)| {
        let counters = specs.len() * subjects;
        Setting { specs, counters, shadows: counters.saturating_sub(shadows).max(1) }
    })
}

/// How one part is made: its operation, cost and time, its counters, and how they are dealt out to rules.
type Draft = (Step, Vec<prop::sample::Index>, Vec<(usize, bool)>);

fn draft() -> impl Strategy<Value = Draft> {
    let counters = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    let rules = prop::collection::vec((1..3usize, prop::bool::weighted(0.3)), 4);
    (any_step(), counters, rules)
}

fn part(setting: &Setting, (step, chosen, rules): &Draft, last: Option<&Decision>) -> Part {
    let mut chosen: Vec<usize> = chosen.iter().map(|index| index.index(setting.counters)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let cost = step.cost(setting.spec(chosen[0]), last);
    let mut part = Part { op: step.op, cost, rules: Vec::new() };
    for same in chosen.chunk_by(|a, b| (*a < setting.shadows) == (*b < setting.shadows)) {
        let (mut left, shadow) = (same, same[0] >= setting.shadows);
        for &(size, count_denied) in rules.iter().cycle() {
            let (counters, rest) = left.split_at(size.min(left.len()));
            if counters.is_empty() {
                break;
            }
            part.rules.push(RuleHits { flags: RuleFlags { count_denied, shadow }, counters: counters.to_vec() });
            left = rest;
        }
    }
    part
}

fn decide(memory: &MemoryStore, setting: &Setting, parts: &[Part], now: u64) -> (bool, Vec<Vec<Decision>>) {
    let hit = |counter: usize| {
        let (subject, limit) = (counter / setting.specs.len(), counter % setting.specs.len());
        let key = memory.subject(&subject.to_le_bytes()).counter(memory.counter(&limit.to_le_bytes()));
        Hit::new(key, &setting.spec(counter).limit)
    };
    let mut hits: Vec<Vec<Hit<'_>>> = Vec::new();
    for part in parts {
        let mut of_part = Vec::new();
        for (id, rule) in part.rules.iter().enumerate() {
            of_part.extend(rule.counters.iter().map(|&counter| hit(counter).in_rule(id as u32, rule.flags)));
        }
        hits.push(of_part);
    }
    let mut plan = Plan::new(Time::from_nanos(now));
    for (part, hits) in parts.iter().zip(&mut hits) {
        plan.push(PlanPart::new(part.op, part.cost, hits));
    }
    memory.apply(&mut plan);
    let allowed = plan.allowed();
    drop(plan);
    (allowed, hits.iter().map(|hits| hits.iter().map(|hit| *hit.outcome()).collect()).collect())
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn plans_of_several_parts_answer_as_the_reference(
        setting in setting(),
        start in start(),
        steps in prop::collection::vec(prop::collection::vec(draft(), 1..5), 1..16),
    ) {
        check(&setting, start, &steps)?;
    }
}

fn check(setting: &Setting, start: u64, steps: &[Vec<Draft>]) -> Result<(), TestCaseError> {
    let memory = MemoryStore::new(MemoryConfig { max_bytes: 1 << 20, ..MemoryConfig::default() });
    let mut counters: Vec<Counter> = (0..setting.counters).map(|counter| Counter::new(setting.spec(counter))).collect();
    let (mut latest, mut last) = (start, None::<Decision>);
    for drafts in steps {
        let parts: Vec<Part> = drafts.iter().map(|draft| part(setting, draft, last.as_ref())).collect();
        let now = drafts[0].0.time(setting.spec(0), latest, last.as_ref());
        // Times that run back are those of single requests.
        let now = now.max(latest);
        let expected = joint::apply(&mut counters, &parts, now);
        let (allowed, found) = decide(&memory, setting, &parts, now);
        prop_assert_eq!(&found, &expected, "at {}: {:?}", now, parts);
        let mut denies = false;
        for (part, answers) in parts.iter().zip(&expected) {
            let shadows = part.rules.iter().flat_map(|rule| rule.counters.iter().map(|_| rule.flags.shadow));
            let asks = !matches!(part.op, Op::Record | Op::Refund);
            denies |= asks && answers.iter().zip(shadows).any(|(answer, shadow)| !shadow && !answer.allowed());
        }
        prop_assert_eq!(allowed, !denies);
        latest = now;
        last = found.last().and_then(|answers| answers.last()).copied();
    }
    Ok(())
}
