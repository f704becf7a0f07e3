//! Steps of several requests on Redis: the recorded answers, and those of memory.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flowgate::{MemoryStore, Op, Time};
use flowgate_engine::{Engine, JointDecision, Policy, Request, RuleDef};
use flowgate_testkit::op;
use flowgate_testkit::properties::specs::{SECONDS, Spec, Step, any_step};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::vectors::joint;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::agree::{RuleSpec, config, flush, rule_spec, said, written};
use crate::joint::{answer, requests, rules};
use crate::redis_engine::RedisEngine;
use crate::script::{Written, rule};

#[test]
fn redis_gives_the_recorded_answers_of_joint_steps() {
    let server = Redis::start();
    for trace in joint::traces() {
        check(&server, &trace, RedisEngine::decide_joint);
    }
}

/// In a cluster, a record that fills a sliding log stays when its step is denied.
#[test]
fn groups_give_the_recorded_answers_of_joint_steps() {
    let server = Redis::start();
    let is_record = |part: &joint::Part| op!(flowgate, part.op) == Op::Record;
    let is_exact =
        |trace: &joint::Trace| trace.steps.iter().all(|step| step.expect.allowed || !step.parts.iter().any(is_record));
    let exact: Vec<joint::Trace> = joint::traces().into_iter().filter(is_exact).collect();
    assert!(exact.len() > 80, "only {} traces", exact.len());
    for trace in exact {
        check(&server, &trace, RedisEngine::decide_joint_in_groups);
    }
}

fn check(
    server: &Redis,
    trace: &joint::Trace,
    decide: fn(&mut RedisEngine, &[(Op, Request<'_>)], Time) -> JointDecision,
) {
    let mut redis = RedisEngine::new(&rules(trace), server.connect());
    flush(&mut redis.connection);
    for (number, step) in trace.steps.iter().enumerate() {
        let found = decide(&mut redis, &requests(step), Time::from_micros(step.at_us));
        trace.check(number, &answer(trace, &found));
    }
}

/// Random steps of several requests. Each request has a user, an address, and the rule whose numbers it should come
/// close to.
#[derive(Clone, Debug)]
struct Trace {
    rules: Vec<RuleSpec>,
    closed: bool,
    steps: Vec<Vec<(Step, usize, usize, prop::sample::Index)>>,
}

fn trace() -> impl Strategy<Value = Trace> {
    let part = (any_step(), 0..2usize, 0..2usize, any::<prop::sample::Index>());
    let steps = prop::collection::vec(prop::collection::vec(part, 1..5), 1..16);
    (prop::collection::vec(rule_spec(), 1..4), prop::bool::weighted(0.1), steps)
        .prop_map(|(rules, closed, steps)| Trace { rules, closed, steps })
}

impl Trace {
    fn rules(&self) -> Vec<RuleDef> {
        let closed = self.closed.then(|| RuleDef::named("closed"));
        written(&self.rules).into_iter().chain(closed).collect()
    }

    /// Asks the engine in memory and `other` the same; `with` replaces operations that the stores are not compared on.
    fn run(
        &self,
        with: fn(Op) -> Op,
        mut other: impl FnMut(&[(Op, Request<'_>)], Time) -> JointDecision,
    ) -> Result<(), TestCaseError> {
        let policy = Policy { rules: self.rules(), ..Policy::default() };
        let memory = Engine::new(&policy, MemoryStore::default()).unwrap();
        let mut now = 1_700_000_000 * SECONDS;
        let mut last: Option<flowgate::Decision> = None;
        let limits: Vec<&Spec> = self.rules.iter().flat_map(|rule| &rule.limits).collect();
        for (number, parts) in self.steps.iter().enumerate() {
            let (step, _, _, aim) = &parts[0];
            let then = step.time(limits[aim.index(limits.len())], now, last.as_ref());
            now = (then.div_ceil(1000) * 1000).max(now);
            if now / 1000 > super::agree::LAST {
                return Ok(());
            }
            let part = |(step, user, ip, aim): &(Step, usize, usize, prop::sample::Index)| {
                let cost = step.cost(limits[aim.index(limits.len())], last.as_ref());
                (with(step.op), Request::new().field("user", ["a", "b"][*user]).field("ip", ["1", "2"][*ip]).cost(cost))
            };
            let requests: Vec<(Op, Request<'_>)> = parts.iter().map(part).collect();
            let time = Time::from_nanos(now);
            let expected = memory.decide_joint(&requests, time);
            let found = other(&requests, time);
            let all = |joint: &JointDecision| {
                let part = |part: &flowgate_engine::PartDecision| format!("{} {}", said(&part.decision), part.charged);
                joint.parts().iter().map(part).collect::<Vec<_>>()
            };
            prop_assert_eq!(all(&found), all(&expected), "step {}: {:?} at {:?}", number, requests, time);
            last = Some(expected.parts()[0].decision.numbers);
        }
        Ok(())
    }
}

/// A check that records is Koala's; steps have none.
fn of_steps(op: Op) -> Op {
    if op == Op::CheckAndRecord { Op::Take } else { op }
}

#[test]
fn stores_agree_on_random_joint_steps() {
    let server = Redis::start();
    let result = TestRunner::new(config(300)).run(&trace(), |trace| {
        let mut redis = RedisEngine::new(&trace.rules(), server.connect());
        flush(&mut redis.connection);
        trace.run(of_steps, |requests, now| redis.decide_joint(requests, now))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A ban may stop what another place has counted.
#[test]
fn stores_agree_on_joint_steps_that_are_rolled_back() {
    let server = Redis::start();
    let result = TestRunner::new(config(200)).run(&trace(), |mut trace| {
        trace.rules.iter_mut().for_each(|rule| rule.ban = None);
        let mut redis = RedisEngine::new(&trace.rules(), server.connect());
        flush(&mut redis.connection);
        let with = |op| if op == Op::Record { Op::Take } else { of_steps(op) };
        trace.run(with, |requests, now| redis.decide_joint_in_groups(requests, now))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Each step takes from two users, one of whom has less: none of the steps may charge one user alone.
#[test]
fn connections_that_meet_charge_whole_steps_only() {
    let server = Redis::start();
    let rules = [rule("user").by("user").limits(&["100/366d"]), rule("few").by("few").limits(&["fixed 60/366d"])];
    let passed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut redis = RedisEngine::new(&rules, server.connect());
                redis.own_time = true;
                let step = [
                    (Op::Take, Request::new().field("user", "1")),
                    (Op::Take, Request::new().field("few", "1")),
                    (Op::Record, Request::new().field("user", "2")),
                ];
                for _ in 0..30 {
                    passed.fetch_add(usize::from(redis.decide_joint(&step, Time::EPOCH).allowed()), Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.load(Relaxed), 60);
    let mut redis = RedisEngine::new(&rules, server.connect());
    redis.own_time = true;
    for user in ["1", "2"] {
        let left = redis.decide(Op::Peek, &Request::new().field("user", user), Time::EPOCH);
        assert_eq!(left.remaining(), Some(40), "user {user}");
    }
}
