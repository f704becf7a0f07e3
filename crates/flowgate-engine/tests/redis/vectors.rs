//! The recorded traces through Redis, with their times.

use flowgate::{Op, Throttle, Time};
use flowgate_engine::{Decision, Request, RuleDef};
use serde::Deserialize;

use crate::script::redis_server::RedisServer;
use crate::script::store::RedisEngine;
use crate::script::{Written, rule};

#[derive(Deserialize)]
struct Trace {
    case: String,
    limits: Vec<String>,
    count_denied: bool,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    at_us: u64,
    op: String,
    cost: u64,
    expect: Expect,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Expect {
    allowed: bool,
    limit: Option<u64>,
    remaining: Option<u64>,
    retry_after_us: Option<u64>,
    never: bool,
    reset_after_us: u64,
    delay_us: u64,
}

impl From<Decision> for Expect {
    fn from(decision: Decision) -> Expect {
        Expect {
            allowed: decision.allowed(),
            limit: decision.limit,
            remaining: decision.remaining,
            retry_after_us: decision.retry_after().map(|wait| wait.as_micros_ceil()),
            never: decision.never(),
            reset_after_us: decision.reset_after.as_micros_ceil(),
            delay_us: decision.delay().as_micros_ceil(),
        }
    }
}

fn read<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let path = format!("{}/../../testdata/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn redis_gives_the_recorded_answers() {
    let server = RedisServer::start();
    let traces: Vec<Trace> = read("limits.jsonl");
    assert!(traces.len() > 200, "the vectors are there");
    for Trace { case, limits, count_denied, steps } in traces {
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let rules = [RuleDef { count_denied, ..rule("traced").by("case").limits(&limits) }];
        let mut engine = RedisEngine::new(&rules, server.connect());
        for (number, step) in steps.into_iter().enumerate() {
            let op = match step.op.as_str() {
                "take" => Op::Take,
                "peek" => Op::Peek,
                "record" => Op::Record,
                "refund" => Op::Refund,
                other => panic!("{other}"),
            };
            let request = Request::new().field("case", &case).cost(step.cost);
            let found = Expect::from(engine.decide(op, &request, Time::from_micros(step.at_us)));
            assert_eq!(found, step.expect, "{case} {limits:?} step {number}: {op:?} {} at {}", step.cost, step.at_us);
        }
    }
}

#[derive(Deserialize)]
struct Call {
    case: u64,
    now_ns: u64,
    key: String,
    max_burst: i64,
    count: i64,
    period: i64,
    quantity: i64,
    reply: [i64; 5],
}

#[test]
fn redis_gives_the_recorded_answers_of_throttle() {
    let server = RedisServer::start();
    let mut engine = RedisEngine::new(&[], server.connect());
    let calls: Vec<Call> = read("cl_throttle.jsonl");
    assert!(calls.len() > 3000, "the vectors are there");
    for Call { case, now_ns, key, max_burst, count, period, quantity, reply } in calls {
        let throttle =
            Throttle::new(max_burst, count, period).and_then(|throttle| throttle.quantity(quantity)).unwrap();
        let found = engine.throttle(format!("{case} {key}").as_bytes(), throttle, Time::from_nanos(now_ns)).unwrap();
        assert_eq!(found.numbers(), reply, "{case} {key} {max_burst} {count} {period} {quantity} at {now_ns}");
    }
}
