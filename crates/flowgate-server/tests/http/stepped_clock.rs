//! After the wall clock was put back: waits are told in real seconds, instants as a right clock will show them.

use flowgate::Span;
use serde_json::json;

use super::*;

const HOUR: Span = Span::from_secs(3600);
/// What the wall clock shows when the clock of the test, which shows 1700000000, is an hour ahead.
const WALL: u64 = 1_700_000_000 - 3600;

const RULES: &str = r#"
    [[rule]]
    name = "api"
    when = { path = "/api/**" }
    by = ["ip"]
    limits = ["1/2s"]
    ban = { after = 2, within = "10m", for = ["1m"] }
    [[rule]]
    name = "paced"
    when = { act = "pace" }
    limits = ["pace 1/2s max_wait=10s"]
"#;

fn server_an_hour_ahead() -> Running {
    let server = Running::start(RULES);
    server.clock.put_back(HOUR);
    server
}

fn take(server: &Running, fields: &serde_json::Value) -> serde_json::Value {
    server.post("/v1/take", &json!({ "fields": fields }).to_string()).json()
}

#[test]
fn a_caller_that_waits_as_told_passes() {
    let server = server_an_hour_ahead();
    let limit = r#"{"key":"user:42","limit":"1/2s"}"#;
    assert_eq!(server.post("/v1/limit", limit).json()["allowed"], true);
    let denied = server.post("/v1/limit", limit).json();
    assert_eq!((&denied["retry_after"], &denied["reset_after"]), (&json!(4), &json!(4)));
    assert_eq!(denied["exceeded"][0]["retry_after"], 4);
    server.clock.advance(Span::from_millis(3999));
    assert_eq!(server.post("/v1/limit", limit).json()["retry_after"], 0.001);
    server.clock.advance(Span::from_millis(1));
    assert_eq!(server.post("/v1/limit", limit).json()["allowed"], true);
}

#[test]
fn decisions_batches_headers_and_explanations() {
    let server = server_an_hour_ahead();
    let fields = json!({ "ip": "203.0.113.7", "path": "/api/x" });
    let batch = json!([{ "fields": fields }, { "fields": fields }]).to_string();
    let decisions = server.post("/v1/batch", &batch).json();
    assert_eq!((&decisions[0]["allowed"], &decisions[0]["reset_after"]), (&json!(true), &json!(4)));
    assert_eq!((&decisions[1]["retry_after"], &decisions[1]["exceeded"][0]["retry_after"]), (&json!(4), &json!(4)));
    let explained = server.post("/v1/explain", &json!({ "fields": fields }).to_string()).json();
    assert_eq!(explained["decision"]["retry_after"], 4);
    assert_eq!(
        (&explained["rules"][0]["limits"][0]["retry_after"], &explained["rules"][0]["limits"][0]["reset_after"]),
        (&json!(4), &json!(4))
    );
    let about = [("x-forwarded-for", "203.0.113.9"), ("x-forwarded-uri", "/api/x")];
    server.connect().call("GET", "/gate", &about, "");
    let denied = server.connect().call("GET", "/gate", &about, "");
    for (name, value) in [("retry-after", "4"), ("x-ratelimit-reset", "4"), ("ratelimit", r#""api";r=0;t=4"#)] {
        assert_eq!(denied.header(name), Some(value), "{name}");
    }
    assert_eq!(denied.header("ratelimit-policy"), Some(r#""api";q=1;w=2"#), "what is granted stays the same");
}

#[test]
fn a_delay_is_as_long_as_it_takes() {
    let server = server_an_hour_ahead();
    let fields = json!({ "act": "pace" });
    assert_eq!(take(&server, &fields)["delay"], 0);
    assert_eq!(take(&server, &fields)["delay"], 4);
    server.clock.advance(Span::from_secs(4));
    assert_eq!(take(&server, &fields)["delay"], 4);
}

#[test]
fn bans_end_when_a_right_clock_says_so() {
    let server = server_an_hour_ahead();
    let fields = json!({ "ip": "203.0.113.7", "path": "/api/x" });
    assert_eq!(take(&server, &fields)["allowed"], true);
    assert_eq!(take(&server, &fields)["banned_until"], json!(null));
    let denied = take(&server, &fields);
    // A minute on a clock of half speed.
    assert_eq!((&denied["banned_until"], &denied["retry_after"]), (&json!(WALL + 120), &json!(120)));
    let explained = server.post("/v1/explain", &json!({ "fields": fields }).to_string()).json();
    assert_eq!(explained["rules"][0]["banned_until"], WALL + 120);
    let imposed = server.post("/v1/bans", r#"{"field":"ip","value":"192.0.2.1","for":"1m"}"#).json();
    assert_eq!(imposed["until"], WALL + 120);
    // Of two hours the first takes two: at its end both clocks agree.
    let imposed = server.post("/v1/bans", r#"{"field":"ip","value":"192.0.2.2","for":"2h"}"#).json();
    assert_eq!(imposed["until"], 1_700_000_000_u64 + 7200);
    server.clock.advance(Span::from_secs(20));
    let bans = server.get("/v1/bans").json();
    assert_eq!((&bans["bans"][0]["until"], &bans["rule_bans"][0]["until"]), (&json!(WALL + 120), &json!(WALL + 120)));
    server.clock.advance(Span::from_secs(99));
    assert_eq!(take(&server, &fields)["retry_after"], 1);
    server.clock.advance(Span::from_secs(1));
    assert_eq!(take(&server, &fields)["allowed"], true);
}
