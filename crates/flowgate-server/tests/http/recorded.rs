//! The recorded traces over HTTP, by rules and by limits that the caller brings.

use flowgate_server::Config;
use serde_json::json;

use super::*;
use crate::running::recorded::{Expect, Recorded, Step};

#[test]
fn http_gives_the_recorded_answers() {
    let recorded = Recorded::read();
    let mut config = Config::default();
    recorded.rules(&mut config);
    let server = Running::start_with(config, |_| {});
    let mut client = server.connect();
    let mut ask = |path: &str, body: Value| {
        let reply = client.call("POST", path, &[("content-type", "application/json")], &body.to_string());
        expect(&reply.json())
    };
    for (trace, number) in recorded.steps() {
        let step @ Step { op, cost, .. } = &trace.steps[number];
        server.clock.set(step.time());
        let by_rule = json!({"fields": {"case": trace.case}, "cost": cost});
        trace.check_millis(number, &ask(&format!("/v1/{op}"), by_rule));
        if let Some(limit) = trace.single() {
            let by_key = json!({"key": trace.case, "limit": limit, "cost": cost, "op": op});
            trace.check_millis(number, &ask("/v1/limit", by_key));
        }
    }
}

fn expect(decision: &Value) -> Expect {
    // Up to a million years a double tells milliseconds apart.
    let micros = |key: &str| decision[key].as_f64().map(|seconds| (seconds * 1000.0).round() as u64 * 1000);
    Expect {
        allowed: decision["allowed"].as_bool().unwrap(),
        limit: decision["limit"].as_u64(),
        remaining: decision["remaining"].as_u64(),
        retry_after_us: micros("retry_after"),
        never: decision.get("never").is_some(),
        reset_after_us: micros("reset_after").unwrap(),
        delay_us: micros("delay").unwrap(),
    }
}
