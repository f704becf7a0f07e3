//! The recorded traces over HTTP, by rules and by limits that the caller brings.

use flowgate::Time;
use flowgate_server::Config;
use flowgate_testkit::vectors::Numbers;
use flowgate_testkit::vectors::limits::{Step, Trace, forward_traces, in_time_order};
use serde_json::json;

use super::*;

#[test]
fn http_gives_the_recorded_answers() {
    let traces = forward_traces();
    let rules: String = traces.iter().map(Trace::rule_toml).collect();
    let server = Running::start_with(Config::from_toml(&rules).unwrap(), |_| {});
    let mut client = server.connect();
    let mut ask = |path: &str, body: Value| {
        let reply = client.call("POST", path, &[("content-type", "application/json")], &body.to_string());
        Numbers::from_json(&reply.json())
    };
    for (trace, number) in in_time_order(&traces) {
        let Step { at_us, op, cost, .. } = &trace.steps[number];
        server.clock.set(Time::from_micros(*at_us));
        let by_rule = json!({"fields": {"case": trace.case}, "cost": cost});
        trace.check_millis(number, ask(&format!("/v1/{op}"), by_rule));
        if let Some(limit) = trace.single_limit() {
            let by_key = json!({"key": trace.case, "limit": limit, "cost": cost, "op": op.to_string()});
            trace.check_millis(number, ask("/v1/limit", by_key));
        }
    }
}
