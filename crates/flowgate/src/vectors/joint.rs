//! The recorded traces of `testdata/vectors/joint.jsonl`, on the pure functions and on the memory store.

use std::collections::HashMap;

use flowgate_testkit::vectors::joint::{Answer, ExceededLimit, PartAnswer, Rule, Step, Trace, traces};
use flowgate_testkit::vectors::{Numbers, limits};
use flowgate_testkit::{numbers, op};

use crate::algorithm::Counter;
use crate::memory::{Key, MemoryStore};
use crate::plan::joint::{self, SharedCounters};
use crate::plan::{Hit, Plan, PlanPart, RuleFlags};
use crate::{Decision, Limit, Retry, Time, Verdict};

/// Replays every trace; `start` gives the function that decides the plans of a trace on fresh counters.
fn replay<D: FnMut(&mut Plan<'_, '_>)>(mut start: impl FnMut() -> D) {
    let names = MemoryStore::default();
    for trace in &traces() {
        let parse = |rule: &Rule| rule.limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let limits: Vec<Vec<Limit>> = trace.rules.iter().map(parse).collect();
        let mut decide = start();
        for (number, step) in trace.steps.iter().enumerate() {
            trace.check(number, &answer(&names, trace, &limits, step, &mut decide));
        }
    }
}

fn answer(
    names: &MemoryStore,
    trace: &Trace,
    limits: &[Vec<Limit>],
    step: &Step,
    decide: &mut impl FnMut(&mut Plan<'_, '_>),
) -> Answer {
    let hit = |rule: usize, subject: &str, number: usize| {
        let Rule { name, count_denied, shadow, .. } = &trace.rules[rule];
        let subject = names.subject(format!("{} {name} {subject}", trace.case).as_bytes());
        let flags = RuleFlags { count_denied: *count_denied, shadow: *shadow };
        let key = subject.counter(names.counter(&number.to_le_bytes()));
        Hit::new(key, &limits[rule][number]).in_rule(rule as u32, flags)
    };
    let mut hits: Vec<Vec<Hit<'_>>> = Vec::new();
    for part in &step.parts {
        let mut met: Vec<(usize, &str)> =
            part.on.iter().map(|target| (trace.rule(target).0, target.subject.as_str())).collect();
        met.sort();
        let of_rule = |(rule, subject): (usize, &str)| {
            (0..limits[rule].len()).map(|number| hit(rule, subject, number)).collect::<Vec<_>>()
        };
        hits.push(met.into_iter().flat_map(of_rule).collect());
    }
    let mut plan = Plan::new(Time::from_micros(step.at_us));
    for (part, hits) in step.parts.iter().zip(&mut hits) {
        plan.push(PlanPart::new(op!(crate, part.op), part.cost, hits));
    }
    decide(&mut plan);
    let whole = numbers!(with_verdict(plan.verdict()));
    assert_eq!(plan.allowed(), whole.allowed);
    let parts = plan.parts().iter().map(|part| part_answer(trace, part)).collect();
    let Numbers { allowed, retry_after_us, never, delay_us, .. } = whole;
    Answer { allowed, retry_after_us, never, delay_us, parts }
}

fn with_verdict(verdict: Verdict) -> Decision {
    Decision { verdict, ..Decision::from_hits(&[]) }
}

/// The answer of a part by the rules of a policy: the first exceeded rule gives the numbers, the longest wait is
/// the answer's.
fn part_answer(trace: &Trace, part: &PlanPart<'_, '_>) -> PartAnswer {
    let denials =
        |shadow: bool| part.hits.iter().filter(move |hit| hit.flags.shadow == shadow && !hit.outcome.allowed());
    let name = |hit: &Hit<'_>| trace.rules[hit.rule_id as usize].name.clone();
    let mut numbers = numbers!(Decision::from_hits(part.hits));
    let first = denials(false).next();
    if let Some(first) = first {
        let mut own = denials(false).filter(|hit| hit.rule_id == first.rule_id);
        let longest = own.clone().map(|hit| hit.outcome.verdict).max_by_key(|verdict| retry(*verdict));
        let hit = own.find(|hit| Some(hit.outcome.verdict) == longest).unwrap();
        let waits = Numbers { ..numbers };
        numbers = numbers!(hit.outcome);
        (numbers.retry_after_us, numbers.never) = (waits.retry_after_us, waits.never);
    }
    let exceeded = denials(false).map(|hit| ExceededLimit {
        rule: name(hit),
        limit: limit_text(trace, hit),
        retry_after_us: hit.outcome.retry_after().map(|wait| wait.as_micros_ceil()),
    });
    let mut shadow: Vec<String> = denials(true).map(name).collect();
    shadow.dedup();
    PartAnswer { numbers, rule: first.map(name), exceeded: exceeded.collect(), shadow }
}

fn retry(verdict: Verdict) -> Option<Retry> {
    match verdict {
        Verdict::Deny(retry) => Some(retry),
        Verdict::Allow { .. } => None,
    }
}

/// The limit as the trace writes it.
fn limit_text(trace: &Trace, hit: &Hit<'_>) -> String {
    let rule = &trace.rules[hit.rule_id as usize];
    let written = rule.limits.iter().find(|text| text.parse::<Limit>().unwrap() == *hit.limit);
    written.unwrap().clone()
}

#[test]
fn the_pure_functions_give_the_recorded_answers() {
    replay(|| {
        let mut counters: HashMap<Key, Counter> = HashMap::new();
        move |plan: &mut Plan<'_, '_>| {
            let now = plan.now;
            let parts = &mut plan.parts;
            let mut shared = SharedCounters::new(parts);
            for hit in &mut shared.hits {
                hit.counter = counters.remove(&hit.key).unwrap_or_default().into();
            }
            joint::decide(now, parts, &mut shared);
            counters.extend(shared.hits.into_iter().map(|hit| (hit.key, hit.counter.into_counter())));
        }
    });
}

#[test]
fn the_memory_store_gives_the_recorded_answers() {
    replay(|| {
        let memory = MemoryStore::default();
        move |plan: &mut Plan<'_, '_>| memory.apply(plan)
    });
}

/// A step of one part answers as a plan of that part does.
#[test]
fn a_step_of_one_part_gives_the_recorded_answers_of_single_requests() {
    let names = MemoryStore::default();
    for trace in &limits::traces() {
        let limits: Vec<Limit> = trace.limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let mut counters: Vec<Counter> = vec![Counter::default(); limits.len()];
        for (number, step) in trace.steps.iter().enumerate() {
            let flags = RuleFlags { count_denied: trace.count_denied, shadow: false };
            let key = |index: usize| names.subject(b"any").counter(names.counter(&index.to_le_bytes()));
            let hit = |(index, limit)| Hit::new(key(index), limit).in_rule(0, flags);
            let mut hits: Vec<Hit<'_>> = limits.iter().enumerate().map(hit).collect();
            let mut parts = [PlanPart::new(op!(crate, step.op), step.cost, &mut hits)];
            let mut shared = SharedCounters::new(&mut parts);
            for (hit, counter) in shared.hits.iter_mut().zip(&mut counters) {
                hit.counter = std::mem::take(counter).into();
            }
            joint::decide(Time::from_micros(step.at_us), &mut parts, &mut shared);
            for (hit, counter) in shared.hits.iter_mut().zip(&mut counters) {
                *counter = std::mem::take(&mut hit.counter).into_counter();
            }
            trace.check(number, numbers!(Decision::from_hits(&hits)));
        }
    }
}
