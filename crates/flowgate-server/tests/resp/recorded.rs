//! The recorded traces and calls over the Redis protocol: by rules, by limits that the caller brings, by `CL.THROTTLE`.

use flowgate::Time;
use flowgate_testkit::vectors::Numbers;
use flowgate_testkit::vectors::limits::{Step, Trace, forward_traces, in_time_order};
use flowgate_testkit::vectors::throttle::{self, Call};

use super::*;

#[test]
fn resp_gives_the_recorded_answers() {
    let traces = forward_traces();
    let rules: String = traces.iter().map(Trace::rule_toml).collect();
    let server = Running::serve(config(&rules), |_| {});
    let mut client = server.connect();
    for (trace, number) in in_time_order(&traces) {
        let Step { at_us, op, cost, .. } = &trace.steps[number];
        server.clock.set(Time::from_micros(*at_us));
        let by_rule = client.call(&format!("fg.{op} {cost} case {}", trace.case));
        trace.check_millis(number, numbers(&by_rule));
        if let Some(limit) = trace.single_limit() {
            let (cost, op) = (cost.to_string(), op.to_string());
            let words = ["fg.limit", &trace.case, limit, &cost, &op].map(str::as_bytes);
            trace.check_millis(number, numbers(&client.call_words(&words)));
        }
    }
}

fn numbers(reply: &str) -> Numbers {
    let numbers = reply.trim_start_matches('[').split(' ').map_while(|number| number.parse().ok());
    Numbers::from_resp(numbers.collect::<Vec<i64>>().try_into().unwrap_or_else(|_| panic!("{reply}")))
}

#[test]
fn resp_gives_the_recorded_answers_of_throttle() {
    let server = Running::plain();
    let mut client = server.connect();
    let mut calls = throttle::calls();
    calls.sort_by_key(|call| call.now_ns);
    for Call { case, now_ns, key, max_burst, count, period, quantity, reply } in calls {
        server.clock.set(Time::from_nanos(now_ns));
        let command = format!("cl.throttle {case}:{key} {max_burst} {count} {period} {quantity}");
        let expected: Vec<String> = reply.iter().map(i64::to_string).collect();
        assert_eq!(client.call(&command), format!("[{}]", expected.join(" ")), "{command} at {now_ns}");
    }
}
