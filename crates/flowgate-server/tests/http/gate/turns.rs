//! Requests that wait for their turn.

use flowgate_testkit::wait::eventually;

use super::*;

#[test]
fn a_turn_is_waited_for() {
    let server = Running::start("rule = [{ name = 'turns', limits = ['pace 1/50ms'] }]");
    let before = std::time::Instant::now();
    assert_eq!([server.gate(&[]).status, server.gate(&[]).status], [200, 200]);
    assert!(before.elapsed() >= Duration::from_millis(50));
}

/// The rule that would hold the request for too long has denied it, not the one that has the least left.
#[test]
fn a_rule_that_denies_a_late_turn_is_named() {
    let denied = |max_wait: &str| {
        let server = Running::start(&format!(
            r#"rule = [
                {{ name = "quota", limits = ["3/60s"], message = "Enough." }},
                {{ name = "slow", limits = ["pace 1/10s burst=2 max_wait={max_wait}"], message = "Slowly.", code = 7 }},
            ]"#
        ));
        assert_eq!([server.gate(&[]).status, server.gate(&[]).status], [200, 200]);
        let denied = server.gate(&[]);
        let headers = ["x-flowgate-rule", "ratelimit-policy", "ratelimit", "x-ratelimit-remaining", "retry-after"]
            .map(|name| denied.header(name).unwrap().to_owned());
        (headers, denied.json())
    };
    let (headers, problem) = denied("none");
    assert_eq!(headers, ["slow", r#""slow";q=2;w=20"#, r#""slow";r=0;t=9"#, "0", "9"]);
    assert_eq!((&problem["detail"], &problem["code"]), (&json!("Slowly."), &json!(7)));
    assert_eq!((&problem["retry_after"], &problem["violated-policies"]), (&json!(9), &json!(["slow"])));
    assert_eq!((headers, problem), denied("1s"), "as if max_wait were what the gate waits");
}

#[test]
fn a_turn_that_is_far_away_is_denied() {
    let server = Running::start("rule = [{ name = 'turns', limits = ['pace 1/2250ms max_wait=9s'] }]");
    assert_eq!(server.gate(&[]).status, 200);
    for _ in 0..3 {
        let denied = server.gate(&[]);
        assert_eq!((denied.status, denied.header("retry-after")), (429, Some("2")), "no client holds the turn");
        assert_eq!((denied.header("x-flowgate-action"), &denied.json()["retry_after"]), (Some("deny"), &json!(1.25)));
    }
    server.clock.advance(Span::from_millis(1250));
    assert_eq!(server.gate(&[]).status, 200);
    let metrics = server.get("/metrics").body;
    for line in [
        r#"decisions_total{rule="turns",action="allow"} 2"#,
        r#"decisions_total{rule="turns",action="deny"} 3"#,
        r#"operations_total{operation="refund"} 0"#,
    ] {
        assert!(metrics.contains(&format!("\nflowgate_{line}\n")), "{line} in\n{metrics}");
    }
}

#[test]
fn a_turn_is_given_back_when_the_gateway_leaves_before_it() {
    let server = Running::start("rule = [{ name = 'turns', limits = ['pace 1/1s max_wait=9s'] }]");
    let delay = || server.post("/v1/peek", r#"{"fields":{}}"#).json()["delay"].clone();
    assert_eq!((server.gate(&[]).status, delay()), (200, json!(1)));
    let mut gateway = server.connect();
    gateway.http.send("GET /gate HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // The clock stands still, so a turn that is not given back stays taken.
    eventually("the request is held", || delay() == json!(2));
    drop(gateway);
    eventually("the turn is free", || delay() == json!(1));
}
