//! The recorded traces of `testdata/vectors/limits.jsonl`, on the pure functions and on the memory store.

mod joint;

use flowgate_testkit::vectors::limits::{Trace, traces};
use flowgate_testkit::{numbers, op};

use crate::memory::MemoryStore;
use crate::plan::{self, Hit, Plan, RuleFlags};
use crate::{Ask, Decision, Limit, Time};

/// A trace with its limits parsed, and the steps that are replayed.
struct Run<'a> {
    trace: &'a Trace,
    limits: Vec<Limit>,
    done: usize,
}

impl Run<'_> {
    fn new(trace: &Trace) -> Run<'_> {
        let limits = trace.limits.iter().map(|limit| limit.parse().unwrap()).collect();
        Run { trace, limits, done: 0 }
    }

    /// Applies the next step and compares the answer; false if there is no further step.
    fn step(&mut self, names: &MemoryStore, apply: &mut impl FnMut(Ask, &mut [Hit<'_>])) -> bool {
        let Some(step) = self.trace.steps.get(self.done) else { return false };
        let flags = RuleFlags { count_denied: self.trace.count_denied, shadow: false };
        let subject = names.subject(self.trace.case.as_bytes());
        let key = |index: usize| subject.counter(names.counter(&index.to_le_bytes()));
        let hit = |(index, limit)| Hit::new(key(index), limit).in_rule(0, flags);
        let mut hits: Vec<Hit<'_>> = self.limits.iter().enumerate().map(hit).collect();
        apply(Ask::new(op!(crate, step.op), step.cost, Time::from_micros(step.at_us)), &mut hits);
        self.trace.check(self.done, numbers!(Decision::from_hits(&hits)));
        self.done += 1;
        true
    }
}

/// Replays every trace. `start` makes the function that applies an operation to fresh counters of a trace.
fn replay<A>(mut start: impl FnMut() -> A)
where
    A: FnMut(Ask, &mut [Hit<'_>]),
{
    let names = MemoryStore::default();
    for trace in &traces() {
        let (mut run, mut apply) = (Run::new(trace), start());
        while run.step(&names, &mut apply) {}
    }
}

#[test]
fn the_pure_functions_give_the_recorded_answers() {
    replay(|| {
        let mut counters = Vec::new();
        move |ask, hits: &mut [Hit<'_>]| {
            counters.resize_with(hits.len(), Default::default);
            for (hit, counter) in hits.iter_mut().zip(&mut counters) {
                hit.counter = std::mem::take(counter);
            }
            plan::decide(ask, hits);
            for (hit, counter) in hits.iter_mut().zip(&mut counters) {
                *counter = std::mem::take(&mut hit.counter);
            }
        }
    });
}

#[test]
fn the_memory_store_gives_the_recorded_answers() {
    replay(|| {
        let memory = MemoryStore::default();
        move |ask, hits: &mut [Hit<'_>]| memory.apply(&mut Plan::one(ask, hits))
    });
}

/// All traces run at once in one table, in the order of their times. No trace touches the counters of another, and no
/// answer changes when the table forgets expired counters.
#[test]
fn traces_that_share_a_store_do_not_touch_each_other() {
    let traces = traces();
    let memory = MemoryStore::default();
    let mut runs: Vec<Run<'_>> = traces.iter().map(Run::new).collect();
    let mut apply = |ask, hits: &mut [Hit<'_>]| memory.apply(&mut Plan::one(ask, hits));
    let mut order: Vec<(u64, usize)> = Vec::new();
    for (index, trace) in traces.iter().enumerate() {
        let mut latest = 0;
        order.extend(trace.steps.iter().map(|step| {
            latest = step.at_us.max(latest);
            (latest, index)
        }));
    }
    order.sort();
    for (_, index) in order {
        assert!(runs[index].step(&memory, &mut apply));
    }
    assert_eq!(memory.stats().evicted, 0);
}
