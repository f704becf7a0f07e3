//! The recorded traces and calls over the Redis protocol: by rules, by limits that the caller brings, by `CL.THROTTLE`.

#[path = "../../../flowgate/tests/recorded/throttle.rs"]
mod throttle;

use flowgate::Time;
use throttle::Call;

use super::*;
use crate::running::recorded::{Expect, Recorded, Step};

#[test]
fn resp_gives_the_recorded_answers() {
    let recorded = Recorded::read();
    let mut config = config("");
    recorded.rules(&mut config);
    let server = Running::serve(config, |_| {});
    let mut client = server.connect();
    for (trace, number) in recorded.steps() {
        let step @ Step { op, cost, .. } = &trace.steps[number];
        server.clock.set(step.time());
        let by_rule = client.call(&format!("fg.{op} {cost} case {}", trace.case));
        trace.check_millis(number, &expect(&by_rule));
        if let Some(limit) = trace.single() {
            let cost = cost.to_string();
            let words = ["fg.limit", &trace.case, limit, &cost, op].map(str::as_bytes);
            trace.check_millis(number, &expect(&client.call_words(&words)));
        }
    }
}

fn expect(reply: &str) -> Expect {
    let numbers: Vec<i64> = reply.trim_start_matches('[').split(' ').map_while(|number| number.parse().ok()).collect();
    let &[allowed, limit, remaining, retry_after, reset_after, delay] = numbers.as_slice() else { panic!("{reply}") };
    let number = |number: i64| u64::try_from(number).ok();
    let micros = |millis: i64| number(millis).map(|millis| millis * 1000);
    Expect {
        allowed: allowed == 1,
        limit: number(limit),
        remaining: number(remaining),
        retry_after_us: micros(retry_after),
        never: retry_after == -2,
        reset_after_us: micros(reset_after).unwrap(),
        delay_us: micros(delay).unwrap(),
    }
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
