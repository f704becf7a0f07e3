//! The recorded traces of `testdata/vectors/limits.jsonl` through the engine: one rule, those limits.

use flowgate::Time;
use flowgate_engine::{Request, RuleDef};
use flowgate_testkit::vectors::limits;
use flowgate_testkit::{numbers, op};

use crate::script::{Written, engine, rule};

#[test]
fn the_engine_gives_the_recorded_answers() {
    for trace in limits::traces() {
        let written: Vec<&str> = trace.limits.iter().map(String::as_str).collect();
        let rule = rule("traced").by("case").limits(&written);
        let engine = engine(&[RuleDef { count_denied: trace.count_denied, ..rule }]);
        for (number, step) in trace.steps.iter().enumerate() {
            let request = Request::new().field("case", &trace.case).cost(step.cost);
            let decision = engine.decide(op!(flowgate, step.op), &request, Time::from_micros(step.at_us));
            trace.check(number, numbers!(decision.numbers));
        }
    }
}
