//! The recorded traces through Redis, with their times.

use flowgate::{MemoryStore, Throttle, Time};
use flowgate_engine::{Decider, Request, RuleDef};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::vectors::limits;
use flowgate_testkit::vectors::throttle::{self, Call};
use flowgate_testkit::{numbers, op};

use crate::redis_engine::RedisEngine;
use crate::script::{Written, rule};

#[test]
fn redis_gives_the_recorded_answers() {
    let server = Redis::start();
    for trace in limits::traces() {
        let written: Vec<&str> = trace.limits.iter().map(String::as_str).collect();
        let rules = [RuleDef { count_denied: trace.count_denied, ..rule("traced").by("case").limits(&written) }];
        let mut engine = RedisEngine::new(&rules, server.connect());
        for (number, step) in trace.steps.iter().enumerate() {
            let request = Request::new().field("case", &trace.case).cost(step.cost);
            let decision = engine.decide(op!(flowgate, step.op), &request, Time::from_micros(step.at_us));
            trace.check(number, numbers!(decision.numbers));
        }
    }
}

#[test]
fn redis_gives_the_recorded_answers_of_throttle() {
    let server = Redis::start();
    let mut engine = RedisEngine::new(&[], server.connect());
    for Call { case, now_ns, key, max_burst, count, period, quantity, reply } in throttle::calls() {
        let throttle =
            Throttle::new(max_burst, count, period).and_then(|throttle| throttle.quantity(quantity)).unwrap();
        let found = engine.throttle(format!("{case} {key}").as_bytes(), throttle, Time::from_nanos(now_ns)).unwrap();
        assert_eq!(found.numbers(), reply, "{case} {key} {max_burst} {count} {period} {quantity} at {now_ns}");
    }
}

/// Two and a half centuries from now, instants in microseconds are beyond 2^53.
#[test]
fn redis_throttles_for_centuries_as_memory_does() {
    let server = Redis::start();
    let mut engine = RedisEngine::new(&[], server.connect());
    let memory = Decider::new(MemoryStore::default());
    let now = Time::from_secs(1_800_000_000);
    for period in [3_600_000_000, 7_100_000_000, 7_300_000_000, 7_400_000_000] {
        let (key, throttle) = (period.to_string(), Throttle::new(0, 1, period).unwrap());
        for call in 0..3 {
            let found = engine.throttle(key.as_bytes(), throttle, now);
            let expected = memory.throttle(memory.ad_hoc_key(key.as_bytes()), &throttle, now);
            assert_eq!(found, expected, "{period}, call {call}");
        }
    }
}
