//! The recorded traces of `testdata/vectors/limits.jsonl` through the engine: one rule, those limits.

mod script;

use flowgate::{Op, Time};
use flowgate_engine::{Decision, Request, RuleDef};
use script::{Written, engine, rule};
use serde::Deserialize;

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

#[test]
fn the_engine_gives_the_recorded_answers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/limits.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let traces: Vec<Trace> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(traces.len() > 200, "the vectors are there");
    for Trace { case, limits, count_denied, steps } in traces {
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let engine = engine(&[RuleDef { count_denied, ..rule("traced").by("case").limits(&limits) }]);
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
