//! The log of a running server: its settings, and denied requests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::io::{Read, Write};
use std::process::Command;

use flowgate_testkit::http::{Client, Reply};
use flowgate_testkit::resp::Client as RespClient;
use flowgate_testkit::server_process::ServerProcess;
use serde_json::Value;

const RULES: &str = r#"
    [[rule]]
    name = "reply"
    when = { act = "reply" }
    by = ["user"]
    limits = ["1/60s"]
    action = "captcha"
"#;

fn start(configuration: &str) -> ServerProcess {
    ServerProcess::start(env!("CARGO_BIN_EXE_flowgate"), configuration)
}

/// The reply to a `take` of these fields, asked under this name.
fn take(server: &ServerProcess, fields: &str, request_id: Option<&str>) -> Reply {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(request_id.map(|name| ("x-request-id", name)));
    Client::connect(&server.http).call("POST", "/v1/take", &headers, &format!("{{\"fields\":{fields}}}"))
}

#[test]
fn denials_are_events_with_the_request_s_name() {
    let server = start(&format!("[log]\nformat = \"json\"\ndenials = \"all\"\n{RULES}"));
    let fields = r#"{"act":"reply","user":"42","header.authorization":"Bearer s3cret"}"#;
    assert_eq!(take(&server, fields, Some("first")).header("x-request-id"), Some("first"));
    assert_eq!(take(&server, fields, None).header("x-request-id"), None);
    assert_eq!(take(&server, fields, Some(&"x".repeat(200))).header("x-request-id"), None);
    take(&server, fields, Some("7f3a-21"));

    let mut denials: Vec<Value> =
        (0..3).map(|_| serde_json::from_str(&server.line_with("\"denied\"")).unwrap()).collect();
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
    let server = start(&format!("[log]\ndenials = \"1/3\"\n{RULES}"));
    for number in 0..7 {
        take(&server, r#"{"act":"reply","user":"42\\n"}"#, Some(&number.to_string()));
    }
    // The first request passes. Of the six denials, the first and the fourth are logged.
    let first = server.line_with("denied");
    let expected = r#"denied rule="reply" by="limit" action="captcha" fields="act=reply user=42"#;
    assert!(first.contains(expected) && first.contains("request_id=\"1\""), "{first}");
    assert!(server.line_with("denied").contains("request_id=\"4\""));
}

const SETTINGS: &str = "[auth]\nadmin_token = \"s3cret-token\"\n[store]\nmax_memory = \"2GB\"\n";

#[test]
fn settings_are_told_and_secrets_are_not() {
    let server = start(&format!("[log]\nlevel = \"debug\"\n{SETTINGS}"));
    let differing = server.line_with("settings other than the defaults");
    assert!(differing.contains("store.max_memory = ") && !differing.contains("server.drain"), "{differing}");
    server.line_with("the effective configuration");
    let mut lines = vec![differing];
    while !lines.last().is_some_and(|line| line.starts_with("tz = ")) {
        lines.push(server.line());
    }
    assert!(lines.iter().any(|line| line == "max_connections = 10000"), "{lines:?}");
    assert!(!lines.concat().contains("s3cret"), "{lines:?}");
}

#[test]
fn machines_are_told_the_settings_at_once() {
    let server = start(&format!("[log]\nformat = \"json\"\n{SETTINGS}"));
    let told: Value = serde_json::from_str(&server.line_with("settings other than the defaults")).unwrap();
    let settings = told["settings"].as_str().unwrap();
    assert!(settings.contains("store.max_memory = \"2GB\"") && settings.contains("auth.admin_token = "), "{told}");
    assert!(!settings.contains("s3cret"));
}

#[test]
fn nothing_is_said_of_denials_unless_asked_for() {
    let mut server = start(RULES);
    for _ in 0..3 {
        take(&server, r#"{"act":"reply","user":"42"}"#, None);
    }
    let said = server.kill();
    assert!(!said.iter().any(|line| line.contains("denied")), "{said:?}");
}

#[test]
fn a_denial_at_the_gate_tells_by_what_the_client_is_counted() {
    let rules = "rule = [{ name = 'all', by = ['ip'], limits = ['1/60s'] }]\n[log]\nformat = 'json'\ndenials = 'all'";
    let server = start(rules);
    for last in ["7", "8"] {
        let client = format!("2001:db8:1:2::{last}");
        Client::connect(&server.http).call("GET", "/gate", &[("x-forwarded-for", &client)], "");
    }
    let denial: Value = serde_json::from_str(&server.line_with("\"denied\"")).unwrap();
    assert_eq!((&denial["fields"], &denial["counted"]), (&"ip=2001:db8:1:2::8".into(), &"ip=2001:db8:1:2::".into()));
}

/// A gateway that asks the wrong address lets every request through, or none. The log tells the operator.
#[test]
fn a_gateway_that_asks_elsewhere_is_told_of() {
    let server = start("");
    let gateway = [("x-forwarded-for", "9.9.9.9"), ("x-forwarded-uri", "/login"), ("x-forwarded-method", "POST")];
    for _ in 0..2 {
        assert_eq!(Client::connect(&server.http).call("GET", "/", &gateway, "").status, 404);
    }
    let told = server.line_with("WARN");
    assert!(told.contains("a gateway asks / instead of /gate"), "{told}");

    // A status in the query of the original request comes from the client; one in the gateway's own query comes from
    // the gateway.
    for (query, uri) in [("deny=1", "/x?deny=1"), ("deny=403", "/x?y=1")] {
        Client::connect(&server.http).call("GET", &format!("/gate?{query}"), &[("x-forwarded-uri", uri)], "");
        if uri == "/x?deny=1" {
            // A request without a URI causes the next warning.
            Client::connect(&server.http).call("GET", "/gate", &[], "");
            let told = server.line_with("WARN");
            assert!(told.contains("X-Forwarded-Uri"), "{told}");
        }
    }
    let told = server.line_with("WARN");
    assert!(told.contains("deny= in the query of /gate has no effect"), "{told}");

    for _ in 0..2 {
        let mut stream = std::net::TcpStream::connect(&server.resp).unwrap();
        stream.write_all(b"GET /gate HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let told = server.line_with("WARN");
    assert!(told.contains("HTTP arrives at the port of the Redis protocol"), "{told}");
    let mut server = server;
    let rest = server.kill();
    assert!(!rest.iter().any(|line| line.contains("WARN")), "{rest:?}");
}

/// Each change is one log line that names its author, over every protocol.
#[test]
fn each_change_of_rules_and_bans_is_one_line_with_its_author() {
    let rules = "rule = [{ name = 'a', limits = ['5/60s'] }]\n";
    let configuration = format!("{rules}log.format = 'json'\nauth.admin_token = 's3cret-token'\n");
    let mut server = start(&configuration);
    let change = |text: &str| serde_json::from_str::<Value>(&server.line_with(text)).unwrap();
    let flowgate = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        command.args(args).env("FLOWGATE_SERVER", &server.url).env("FLOWGATE_TOKEN", "s3cret-token");
        assert!(command.output().unwrap().status.success(), "{args:?}");
    };
    let admin = |line: &Value| {
        assert_eq!((&line["by"], &line["from"]), (&"admin token".into(), &"127.0.0.1".into()), "{line}");
        assert_eq!((&line["target"], &line["level"]), (&"flowgate::changes".into(), &"INFO".into()), "{line}");
        assert!(line["agent"].as_str().unwrap().starts_with("flowgate/") && line["timestamp"].is_string(), "{line}");
    };

    flowgate(&["ban", "user=7", "--for", "1h", "--reason", "spam"]);
    let ban = change("ban imposed");
    admin(&ban);
    let told = ["field", "value", "length", "reason"].map(|name| ban[name].as_str().unwrap());
    assert_eq!(told, ["user", "7", "3600s", "spam"]);
    flowgate(&["unban", "user=7"]);
    let lifted = change("ban lifted");
    admin(&lifted);
    assert_eq!(lifted["id"], ban["id"]);
    flowgate(&["pause", "--for", "10m"]);
    let paused = change("the rules are paused");
    admin(&paused);
    assert_eq!(paused["length"], "600s");
    flowgate(&["resume"]);
    admin(&change("the pause has ended"));

    // If a client comes through a trusted proxy, the log names the client and the proxy.
    let headers = [
        ("authorization", "Bearer s3cret-token"),
        ("x-forwarded-for", "203.0.113.9"),
        ("user-agent", "curl/8"),
        ("content-type", "application/toml"),
        ("if-match", "*"),
    ];
    let other = configuration.replace("'a'", "'b'");
    assert_eq!(Client::connect(&server.http).call("PUT", "/v1/rules", &headers, &other).status, 200);
    let put = change("new rules are in force");
    let who = ["by", "from", "through", "agent"].map(|name| put[name].as_str().unwrap());
    assert_eq!(who, ["admin token", "203.0.113.9", "127.0.0.1", "curl/8"]);
    assert_eq!((&put["version"], &put["rules"]), (&2.into(), &1.into()));

    let mut resp = RespClient::connect(&server.resp);
    assert_eq!(resp.call("AUTH admin s3cret-token"), "OK");
    assert_eq!(resp.call("FG.BAN user 8 60"), "OK");
    let ban = change("ban imposed");
    assert_eq!((&ban["by"], &ban["from"]), (&"user admin of the Redis protocol".into(), &"127.0.0.1".into()));
    assert_eq!(resp.call("FG.UNBAN user 8"), "1");
    assert_eq!(change("ban lifted")["by"], "user admin of the Redis protocol");

    fs::write(server.directory().join("flowgate.toml"), configuration).unwrap();
    assert_eq!(change("new rules are in force")["by"], "file");
    server.signal("HUP");
    assert_eq!(change("new rules are in force")["by"], "SIGHUP");
    let rest = server.kill().concat();
    assert!(!rest.contains("flowgate::changes"), "each change is told once: {rest}");
    assert!(!rest.contains("s3cret"));
}
