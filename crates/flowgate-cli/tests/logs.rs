//! What a running server writes about itself: its settings, and whom it denies.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod serving;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use serving::Serving;

const RULES: &str = r#"
    [[rule]]
    name = "reply"
    when = { act = "reply" }
    by = ["user"]
    limits = ["1/60s"]
    action = "captcha"
"#;

/// What the server answers to a `take` of these fields, with another header or two.
fn take(serving: &Serving, fields: &str, headers: &str) -> String {
    let address = serving.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let body = format!("{{\"fields\":{fields}}}");
    let head = "POST /v1/take HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json";
    write!(stream, "{head}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn denials_are_events_with_the_request_s_name() {
    let serving = Serving::start(&format!("[log]\nformat = \"json\"\ndenials = \"all\"\n{RULES}"));
    let fields = r#"{"act":"reply","user":"42","header.authorization":"Bearer s3cret"}"#;
    assert!(take(&serving, fields, "x-request-id: first\r\n").contains("x-request-id: first\r\n"));
    assert!(!take(&serving, fields, "").contains("x-request-id"));
    let long = "x".repeat(200);
    assert!(!take(&serving, fields, &format!("x-request-id: {long}\r\n")).contains("x-request-id"));
    take(&serving, fields, "x-request-id: 7f3a-21\r\n");

    let mut denials: Vec<Value> = (0..3).map(|_| serde_json::from_str(&serving.said("\"denied\"")).unwrap()).collect();
    let last = denials.pop().unwrap();
    assert_eq!(last["level"], "INFO");
    assert_eq!((&last["rule"], &last["action"], &last["by"]), (&"reply".into(), &"captcha".into(), &"limit".into()));
    assert_eq!(last["fields"], "act=reply user=42", "headers may be secrets");
    assert_eq!(last["request_id"], "7f3a-21");
    assert!(last["retry_after"].as_str().unwrap().ends_with('s'), "{last}");
    assert!(denials.iter().all(|denial| denial["request_id"].is_null()), "{denials:?}");
}

#[test]
fn people_read_the_same_and_a_share_is_a_share() {
    let serving = Serving::start(&format!("[log]\ndenials = \"1/3\"\n{RULES}"));
    for number in 0..7 {
        take(&serving, r#"{"act":"reply","user":"42\\n"}"#, &format!("x-request-id: {number}\r\n"));
    }
    // The first passes; of the six denials the first and the fourth are told.
    let first = serving.said("denied");
    let expected = r#"denied rule="reply" by="limit" action="captcha" fields="act=reply user=42"#;
    assert!(first.contains(expected) && first.contains("request_id=\"1\""), "{first}");
    assert!(serving.said("denied").contains("request_id=\"4\""));
}

const SETTINGS: &str = "[auth]\nadmin_token = \"s3cret-token\"\n[store]\nmax_memory = \"2GB\"\n";

#[test]
fn settings_are_told_and_secrets_are_not() {
    let serving = Serving::start(&format!("[log]\nlevel = \"debug\"\n{SETTINGS}"));
    let differing = serving.said("settings other than the defaults");
    assert!(differing.contains("store.max_memory = ") && !differing.contains("server.drain"), "{differing}");
    serving.said("the effective configuration");
    let mut lines = vec![differing];
    while !lines.last().is_some_and(|line| line.starts_with("tz = ")) {
        lines.push(serving.line());
    }
    assert!(lines.iter().any(|line| line == "max_connections = 10000"), "{lines:?}");
    assert!(!lines.concat().contains("s3cret"), "{lines:?}");
}

#[test]
fn machines_are_told_the_settings_at_once() {
    let serving = Serving::start(&format!("[log]\nformat = \"json\"\n{SETTINGS}"));
    let told: Value = serde_json::from_str(&serving.said("settings other than the defaults")).unwrap();
    let settings = told["settings"].as_str().unwrap();
    assert!(settings.contains("store.max_memory = \"2GB\"") && settings.contains("auth.admin_token = "), "{told}");
    assert!(!settings.contains("s3cret"));
}

#[test]
fn nothing_is_said_of_denials_unless_asked_for() {
    let serving = Serving::start(RULES);
    for _ in 0..3 {
        take(&serving, r#"{"act":"reply","user":"42"}"#, "");
    }
    let said = serving.stop();
    assert!(!said.iter().any(|line| line.contains("denied")), "{said:?}");
}

#[test]
fn a_denial_at_the_gate_tells_by_what_the_client_is_counted() {
    let rules = "rule = [{ name = 'all', by = ['ip'], limits = ['1/60s'] }]\n[log]\nformat = 'json'\ndenials = 'all'";
    let serving = Serving::start(rules);
    for last in ["7", "8"] {
        let mut stream = TcpStream::connect(serving.url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let head = "GET /gate HTTP/1.1\r\nhost: localhost\r\nconnection: close";
        write!(stream, "{head}\r\nx-forwarded-for: 2001:db8:1:2::{last}\r\n\r\n").unwrap();
        stream.read_to_string(&mut String::new()).unwrap();
    }
    let denial: Value = serde_json::from_str(&serving.said("\"denied\"")).unwrap();
    assert_eq!((&denial["fields"], &denial["counted"]), (&"ip=2001:db8:1:2::8".into(), &"ip=2001:db8:1:2::".into()));
}
