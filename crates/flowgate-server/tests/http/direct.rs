//! Plain requests are answered without hyper: they are answered as hyper would answer them, and what follows them is hyper's.

use std::io::Write;

use flowgate::Span;
use flowgate_testkit::wait::{eventually, eventually_some};
use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, TestRunner};

use super::*;

const RULES: &str = r#"
rule = [{ name = "api", by = ["ip"], limits = ["100/60s"] }, { name = "shut", when = { user = "x" }, limits = ["1/1d"] }]
auth = { api_token = "decide" }
server = { max_request = "1KiB" }
"#;

/// A request after which the server closes the connection.
const CLOSING: &str = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

/// Requests after which a connection goes on, some of them plain.
fn requests() -> Vec<String> {
    let json = "Content-Type: application/json\r\nAuthorization: Bearer decide\r\n";
    let peek = r#"{"fields":{"ip":"192.0.2.1"}}"#;
    let gate = |headers: &str| format!("GET /gate HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    vec![
        post("/v1/peek", json, peek),
        post("/v1/peek", &format!("{json}X-Request-Id: abc\r\nConnection: keep-alive\r\n"), peek),
        post("/v1/peek", &format!("{json}x-request-id: a b\r\n"), r#"{"fields":{"user":"x"},"cost":2}"#),
        post("/v1/peek", &format!("{json}Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n"), peek),
        post("/v1/peek", json, "{"),
        post("/v1/peek", json, ""),
        post("/v1/peek?x=1", json, peek),
        post("/v1/limit", json, r#"{"key":"k","limit":"5/60s","op":"peek"}"#),
        post("/v1/limit", json, r#"{"key":"k","limit":"nonsense"}"#),
        "GET /v1/peek HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        gate("X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Uri: /a\r\nX-Forwarded-Uri: /b\r\n"),
        gate("X-Forwarded-Uri: /a#b\r\n"),
        "GET /gate/403 HTTP/1.1\r\nX-Forwarded-Uri: /a#b\r\n\r\n".to_owned(),
        "GET /gate/499 HTTP/1.1\r\nX-Forwarded-Uri: /a#b\r\n\r\n".to_owned(),
        "\r\nGET /gate/403?a=b HTTP/1.1\nX-Original-Uri: /a/..;/b\n\n".to_owned(),
        "HEAD /gate/404 HTTP/1.1\r\nX-Forwarded-Uri: /a#b\r\n\r\n".to_owned(),
        "GET /gate/500 HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        "POST /v1/peek HTTP/1.1\r\nhost: x\r\n\r\n".to_owned(),
        format!(
            "POST /v1/peek HTTP/1.1\r\n{json}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{peek}\r\n0\r\n\r\n",
            peek.len()
        ),
    ]
}

/// Requests that are refused before their body is read. hyper then closes the connection unless the body has arrived, which
/// is a matter of time.
fn refused() -> Vec<String> {
    let json = "Content-Type: application/json\r\nAuthorization: Bearer decide\r\n";
    let peek = r#"{"fields":{"ip":"192.0.2.1"}}"#;
    vec![
        post("/v1/peek", "content-type: application/json\r\n", peek),
        post("/v1/peek", "authorization: Bearer decide\r\n", peek),
        post("/v1/peek", &format!("{json}Origin: http://evil.example\r\n"), peek),
        "GET /gate HTTP/1.1\r\ncontent-length: 3\r\nX-Forwarded-Uri: /a#b\r\n\r\nabc".to_owned(),
    ]
}

/// Ends of connections: requests that close them, and ones that are no requests.
fn ends() -> Vec<String> {
    let json = "Content-Type: application/json\r\nAuthorization: Bearer decide\r\n";
    vec![
        CLOSING.to_owned(),
        "GET /gate HTTP/1.1\r\nConnection: close\r\nX-Forwarded-Uri: /a#b\r\n\r\n".to_owned(),
        "GET /gate HTTP/1.0\r\nX-Forwarded-Uri: /a#b\r\n\r\n".to_owned(),
        post("/v1/peek", json, &format!(r#"{{"fields":{{"a":"{}"}}}}"#, "x".repeat(1500))),
        format!("POST /v1/peek HTTP/1.1\r\n{json}content-length: 2\r\ncontent-length: 3\r\n\r\n{{}}"),
        format!("POST /v1/peek HTTP/1.1\r\n{json}content-length : 2\r\n\r\n{{}}"),
        format!("POST /v1/peek HTTP/1.1\r\n{json}content-length: -2\r\n\r\n{{}}"),
        "GET /gate HTTP/1.1\r\n folded: x\r\n\r\n".to_owned(),
        "GET /gate HTTP/3.0\r\n\r\n".to_owned(),
        "nonsense\r\n\r\n".to_owned(),
        format!("GET /gate HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200)),
    ]
}

/// All that the server answers to `text`, sent in pieces that end at `cuts`, without the date.
fn answers(server: &Running, through_hyper: bool, text: &str, cuts: &[usize]) -> String {
    let mut client = server.connect();
    if through_hyper {
        // Not a plain request, so all that follows is hyper's.
        assert_eq!(client.call("GET", "/healthz", &[], "").status, 200);
    }
    let mut start = 0;
    for &cut in cuts.iter().chain([&text.len()]) {
        // A server that has closed the connection takes no more.
        let _ = client.stream.get_mut().write_all(&text.as_bytes()[start..cut]);
        start = cut;
    }
    let said = client.rest();
    said.split_inclusive("\r\n").filter(|line| !line.starts_with("date: ")).collect()
}

#[test]
fn answers_are_those_of_hyper() {
    let server = Running::start(RULES);
    let one = |list: Vec<String>| prop::sample::select(list);
    let text = (prop::collection::vec(one(requests()), 0..6), one(ends()));
    let cases = (text, prop::collection::vec(any::<prop::sample::Index>(), 0..3));
    let config = RunnerConfig { cases: 150, failure_persistence: None, ..RunnerConfig::default() };
    let result = TestRunner::new(config).run(&cases, |((requests, end), cuts)| {
        let text = requests.concat() + &end;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(answers(&server, false, &text, &cuts), answers(&server, true, &text, &cuts), "{}", text);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_request_is_answered_as_by_hyper() {
    let server = Running::start(RULES);
    let twice = |request: &String| request.repeat(2) + CLOSING;
    for text in requests().iter().map(twice).chain(ends()) {
        let expected = answers(&server, true, &text, &[]);
        assert!(expected.starts_with("HTTP/1."), "{text}");
        assert_eq!(answers(&server, false, &text, &[]), expected, "{text}");
    }
}

#[test]
fn a_request_is_refused_as_by_hyper() {
    let server = Running::start(RULES);
    for request in refused() {
        let [direct, by_hyper] = [false, true].map(|through_hyper| {
            let mut client = server.connect();
            if through_hyper {
                assert_eq!(client.call("GET", "/healthz", &[], "").status, 200);
            }
            client.send(&request);
            let mut reply = client.reply("GET");
            reply.headers.retain(|(name, _)| name != "date" && name != "connection");
            (reply.status, reply.headers, reply.body)
        });
        assert_eq!(direct, by_hyper, "{request}");
    }
}

#[test]
fn a_plain_request_may_arrive_byte_by_byte() {
    let server = Running::start(RULES);
    let text = requests()[0].repeat(2) + CLOSING;
    let cuts: Vec<usize> = (1..text.len()).collect();
    assert_eq!(answers(&server, false, &text, &cuts), answers(&server, true, &text, &[]));
}

#[test]
fn a_client_that_pauses_between_plain_requests_is_closed_only_after_the_idle_timeout() {
    let server = Running::start("server = { idle_timeout = '400ms' }");
    let mut client = server.connect();
    for _ in 0..3 {
        let gate = client.call("GET", "/gate", &[], "");
        assert_eq!(gate.status, 200);
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
    assert_eq!(client.rest(), "");
}

/// The client has its answer while the next request is held, so that it can leave before the turn of that one.
#[test]
fn an_answer_does_not_wait_for_that_of_the_next_request() {
    let server = Running::start("rule = [{ name = 'turns', limits = ['pace 1/1s max_wait=1s'] }]");
    for through_hyper in [true, false] {
        let mut client = server.connect();
        if through_hyper {
            assert_eq!(client.call("GET", "/healthz", &[], "").status, 200);
        }
        client.send("GET /gate HTTP/1.1\r\n\r\n".repeat(2));
        assert_eq!(client.reply("GET").status, 200);
        drop(client);
        let refunds =
            format!("\nflowgate_operations_total{{operation=\"refund\"}} {}\n", if through_hyper { 1 } else { 2 });
        eventually("the turn is given back", || server.get("/metrics").body.contains(&refunds));
        server.clock.advance(Span::from_secs(9));
    }
}

/// Heads that two readers could take for different requests.
#[test]
fn dubious_heads_are_read_as_by_hyper() {
    let server = Running::start(RULES);
    let json = "Content-Type: application/json\r\nAuthorization: Bearer decide\r\n";
    let peek = |headers: &str| format!("POST /v1/peek HTTP/1.1\r\n{json}{headers}\r\n{{\"fields\":{{}}}}");
    let gate = |headers: &str| format!("GET /gate HTTP/1.1\r\nX-Forwarded-Uri: /a#b\r\n{headers}\r\n");
    let lengths =
        ["13", "0013", "13 ", "\t13", "+13", "13,13", "13, 13", "0xd", "1_3", "", "18446744073709551629", "12", "14"];
    let other_lengths =
        ["Content-Length: 13\r\ncontent-length: 13\r\n", "Content-Length : 13\r\n", "Content-Length: 1\r\n 3\r\n"];
    let encodings = [
        "transfer-encoding: chunked",
        "TRANSFER-ENCODING:\tCHUNKED",
        "Transfer-Encoding: identity",
        "Transfer-Encoding : chunked",
    ];
    let others = [
        "Connection: close, keep-alive",
        "Connection: keep-alive\r\nConnection: close",
        "Connection: keep-alive, x",
        "Connection:",
        "Upgrade: h2c\r\nConnection: upgrade",
        "Expect: 100-continue",
        "Host: a\r\nHost: b",
        "x-request-id: \u{e9}\r\nx-request-id: b",
        "x-request-id: a\r\nX-Request-ID: b",
        "X-Forwarded-For: \u{e9}",
        "a: \0",
        "a: b\rc: d",
        "a: b\nConnection: close",
        "a:",
        ": a",
        "a b: c",
        "a",
        "content-length: 0",
        "content-length: 0\r\ntransfer-encoding: chunked",
    ];
    let lines = [
        "get /gate HTTP/1.1",
        "GET http://x/gate HTTP/1.1",
        "GET //gate HTTP/1.1",
        "GET /gate%20 HTTP/1.1",
        "GET  /gate HTTP/1.1",
        "GET /gate  HTTP/1.1",
        "GET /gate HTTP/1.1 ",
        "GET /gate?? HTTP/1.1",
        "GET /gate?a=\u{e9} HTTP/1.1",
        "GET /gate? HTTP/1.1",
        "GET gate HTTP/1.1",
        "GET /gate http/1.1",
        "GET /gate HTTP/1.10",
        "GET /gate\t HTTP/1.1",
        "POST /gate HTTP/1.1",
    ];
    let mut texts: Vec<String> = lengths.map(|length| peek(&format!("content-length: {length}\r\n"))).into();
    texts.extend(other_lengths.map(peek));
    texts.extend(encodings.map(|encoding| peek(&format!("content-length: 13\r\n{encoding}\r\n"))));
    texts.extend(encodings.map(|encoding| peek(&format!("{encoding}\r\ncontent-length: 13\r\n"))));
    texts.extend(others.map(|header| gate(&format!("{header}\r\n"))));
    texts.extend(lines.map(|line| format!("{line}\r\nX-Forwarded-Uri: /a#b\r\n\r\n")));
    texts.extend([47, 48, 99, 100].map(|headers| gate(&"a: b\r\n".repeat(headers))));
    for text in texts.iter().map(|text| text.repeat(2) + CLOSING) {
        assert_eq!(answers(&server, false, &text, &[]), answers(&server, true, &text, &[]), "{text}");
    }
}

#[test]
fn a_stop_loses_no_request_and_is_told_with_the_answer() {
    let server =
        Running::start("rule = [{ name = 'turns', when = { path = '/held' }, limits = ['pace 1/1s max_wait=1s'] }]");
    let gate = "GET /gate HTTP/1.1\r\nX-Forwarded-Uri: /";
    let (mut held, mut idle) = (server.connect(), server.connect());
    for client in [&mut held, &mut idle] {
        client.send(format!("{gate}\r\n\r\n"));
        assert_eq!(client.reply("GET").header("connection"), None);
    }
    // The answer to the first says that the second is held.
    held.send(format!("{gate}held\r\n\r\n").repeat(2));
    assert_eq!(held.reply("GET").header("connection"), None);
    server.server.trigger.stop();
    let is_last = |client: &mut Client| {
        let reply = client.reply("GET");
        assert_eq!(reply.status, 200);
        reply.header("connection") == Some("close")
    };
    eventually_some("the server stops", || {
        idle.send(format!("{gate}\r\n\r\n"));
        is_last(&mut idle).then_some(())
    });
    assert!(is_last(&mut held));
    assert_eq!((idle.rest(), held.rest()), (String::new(), String::new()));
}
