//! Recorded traffic, and drafts that are tried on it.

use std::io::Write;
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::thread;

use flowgate::Span;
use flowgate_replay::{Format, Job, Names, Replay, Source};
use serde_json::json;

use super::rules::AdminFile;
use super::*;

const RULES: &str = "[[rule]]\nname = \"reply\"\nby = [\"user\"]\nlimits = [\"5/60s\", \"fixed 100/day\"]\n";

fn toml(server: &Running, path: &str, text: &str) -> Reply {
    server.connect().call("POST", path, &[("content-type", "application/toml")], text)
}

#[test]
fn a_try_has_the_numbers_of_a_replay_of_the_same_requests() {
    let admin = AdminFile::start(RULES);
    let server = &admin.server;
    let draft = RULES.replace("5/60s", "3/60s");
    assert_eq!(server.get("/v1/sample").json()["state"], "empty");
    toml(server, "/v1/rules/try", &draft).is_mistake(409, None);
    let started = server.post("/v1/sample", r#"{"for":"1m"}"#).json();
    assert_eq!(
        (&started["state"], &started["by"], &started["one_in"]),
        (&json!("recording"), &json!("user"), &json!(1))
    );

    let mut trace = String::new();
    for second in 0..30 {
        for user in 0..=(second % 3) {
            let fields = json!({"user": user.to_string()});
            let mut sent = json!({"fields": fields});
            assert_eq!(server.post("/v1/take", &sent.to_string()).status, 200);
            sent["ts"] = json!(1_700_000_000 + second);
            trace.push_str(&format!("{sent}\n"));
        }
        server.clock.advance(Span::from_secs(1));
    }
    server.clock.advance(Span::from_secs(60));
    let recorded = server.get("/v1/sample").json();
    assert_eq!((&recorded["state"], &recorded["requests"]), (&json!("recorded"), &json!(60)));
    let stopped = server.post("/v1/sample", r#"{"for":"0s"}"#).json();
    assert_eq!(
        (&stopped["state"], &stopped["until"]),
        (&json!("recorded"), &recorded["until"]),
        "it has ended already"
    );

    let tried = toml(server, "/v1/rules/try", &draft).json();
    let (now, next) = (Config::from_toml(RULES).unwrap(), Config::from_toml(&draft).unwrap());
    let reorder = Span::from_secs(1);
    let mut replay =
        Replay::new(Job { config: &now, compare: Some(&next), what_if: true, decisions: None, reorder }).unwrap();
    let source = Source::Memory(trace.into_bytes().into());
    replay.read(&source, Some(Format::Jsonl), &mut |_| ControlFlow::Continue(())).unwrap();
    let names = Names { traces: vec!["sample".into()], policy: "in force".into(), compare: "draft".into() };
    let expected = serde_json::to_value(replay.finish(names).0).unwrap();
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&tried[name], value, "{name}");
    }
    assert!(tried["compare"].to_string().len() > 100 && tried["lines"] == 60, "{tried}");
    let cannot = json!([
        {"rule": "reply", "limit": "sliding 3/60s", "why": "longer than the sample"},
        {"rule": "reply", "limit": "fixed 100/1d", "why": "longer than the sample"},
    ]);
    assert_eq!((&tried["horizon"], &tried["one_in"], &tried["cannot_judge"]), (&json!(29), &json!(1), &cannot));
    toml(server, "/v1/rules/try", "rule = 7").is_mistake(400, None);

    assert_eq!(server.connect().call("DELETE", "/v1/sample", &[], "").json()["state"], "empty");
    toml(server, "/v1/rules/try", &draft).is_mistake(409, None);
}

#[test]
fn what_is_off_records_nothing_and_orders_are_read_strictly() {
    let server = Running::start("console.sample = 'off'\nrule = [{ name = 'all', limits = ['5/60s'] }]");
    assert_eq!(server.get("/v1/sample").json()["state"], "off");
    server.post("/v1/sample", r#"{"for":"1m"}"#).is_mistake(403, None);
    for wrong in [r#"{"for":"11m"}"#, r#"{"for":"-1s"}"#, r#"{"for":"long"}"#] {
        server.post("/v1/sample", wrong).is_mistake(400, Some("for"));
    }
    server.connect().call("GET", "/v1/sample", &[("authorization", "")], "").is_mistake(401, Some("authorization"));
    toml(&server, "/v1/rules/try", "").is_mistake(409, None);
}

#[test]
fn a_server_that_always_records_keeps_the_last_minutes() {
    let server = Running::start(
        "console = { sample = 'always', sample_for = '1m' }\nrule = [{ name = 'all', limits = ['5/60s'] }]",
    );
    let take = || server.post("/v1/take", r#"{"fields":{"user":"42"}}"#);
    take();
    server.clock.advance(Span::from_secs(61));
    take();
    let sample = server.get("/v1/sample").json();
    assert_eq!(
        (&sample["state"], &sample["requests"], &sample["until"]),
        (&json!("recording"), &json!(1), &Value::Null)
    );
}

/// A server that has recorded so much that a try takes several slices.
fn with_a_long_recording() -> AdminFile {
    let admin = AdminFile::start(RULES);
    let server = &admin.server;
    server.post("/v1/sample", r#"{"for":"10m"}"#);
    for second in 0..30 {
        let take = |user| json!({"op": "take", "fields": {"user": format!("{second}-{user}")}});
        let batch: Vec<Value> = (0..1_000).map(take).collect();
        assert_eq!(server.post("/v1/batch", &json!(batch).to_string()).status, 200);
        server.clock.advance(Span::from_secs(1));
    }
    admin
}

#[test]
fn a_recording_is_stopped_and_kept() {
    let server = Running::start("rule = [{ name = 'all', limits = ['5/60s'] }]");
    assert_eq!(server.post("/v1/sample", r#"{"for":"0s"}"#).json()["state"], "empty");
    server.post("/v1/sample", r#"{"for":"5m"}"#);
    server.post("/v1/take", r#"{"fields":{"user":"42"}}"#);
    assert_eq!(server.post("/v1/sample", r#"{"for":"0s"}"#).json()["state"], "recorded");
    server.post("/v1/take", r#"{"fields":{"user":"42"}}"#);
    assert_eq!(server.get("/v1/sample").json()["requests"], 1);
}

fn metric(server: &Running, name: &str) -> u64 {
    let text = server.get("/metrics").body;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name}")).parse().unwrap()
}

/// Waits until the try that a thread has begun rests. Its rest lasts until the clock goes on.
fn wait_until_it_rests(server: &Running) {
    while metric(server, "flowgate_try_under_way") == 0 {
        server.clock.advance(Span::from_millis(1));
    }
    server.clock.advance(Span::from_millis(1));
}

#[test]
fn tries_are_one_at_a_time_and_end_after_ten_seconds() {
    let admin = with_a_long_recording();
    let server = &admin.server;
    thread::scope(|scope| {
        let first = scope.spawn(|| toml(server, "/v1/rules/try", RULES));
        wait_until_it_rests(server);
        let second = toml(server, "/v1/rules/try", RULES);
        second.is_mistake(409, None);
        assert!(second.body.contains("one at a time"), "{second:?}");
        server.clock.advance(Span::from_secs(11));
        let first = first.join().unwrap();
        first.is_mistake(503, None);
        assert!(first.body.contains("longer than 10 seconds"), "{first:?}");
    });
    assert_eq!(metric(server, "flowgate_try_under_way"), 0);
    assert_eq!(metric(server, "flowgate_tries_total{result=\"refused\"}"), 1);
    assert_eq!(metric(server, "flowgate_tries_total{result=\"too_long\"}"), 1);
    assert_eq!(toml(server, "/v1/rules/try", RULES).json()["lines"], 30_000, "the next one may begin");
    assert_eq!(metric(server, "flowgate_tries_total{result=\"finished\"}"), 1);
    assert!(metric(server, "flowgate_sample_bytes") > 1_000_000);
    assert_eq!(metric(server, "flowgate_sample_one_in"), 1);
    assert_eq!(metric(server, "flowgate_sample_recording"), 1);
}

#[test]
fn a_try_ends_when_its_client_leaves() {
    let admin = with_a_long_recording();
    let server = &admin.server;
    let mut connection = TcpStream::connect(server.address).unwrap();
    let head = format!(
        "POST /v1/rules/try HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\
         content-type: application/toml\r\ncontent-length: {}\r\n\r\n{RULES}",
        RULES.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    wait_until_it_rests(server);
    drop(connection);
    while metric(server, "flowgate_try_under_way") == 1 {
        thread::yield_now();
    }
    assert_eq!(metric(server, "flowgate_tries_total{result=\"left\"}"), 1);
}
