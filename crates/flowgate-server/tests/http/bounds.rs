//! Who may ask, how much, and what is said about mistakes.

use std::io::{ErrorKind, Read, Write};

use flowgate_testkit::wait::HANG_TIMEOUT;

use super::*;

const TOKENS: &str = "auth = { api_token = 'decide', admin_token = 'rule' }";

#[test]
fn tokens_open_what_they_are_for() {
    let server = Running::start(TOKENS);
    let body = r#"{"fields":{}}"#;
    let with = |method, path, token: &str| {
        let token = format!("Bearer {token}");
        let headers = [("content-type", "application/json"), ("authorization", token.as_str())];
        server.connect().call(method, path, &headers, if method == "POST" { body } else { "" })
    };
    assert_eq!(with("POST", "/v1/take", "decide").status, 200);
    assert_eq!(with("POST", "/v1/take", "rule").status, 200, "a client that may change rules may ask");
    assert_eq!(with("GET", "/v1/bans", "rule").status, 200);
    for (method, path, token) in [
        ("POST", "/v1/take", "wrong"),
        ("POST", "/v1/explain", ""),
        ("GET", "/v1/bans", "decide"),
        ("PUT", "/v1/bans", "x"),
    ] {
        let refused = with(method, path, token);
        refused.is_mistake(401, Some("authorization"));
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!((server.get("/healthz").body.as_str(), server.get("/readyz").body.as_str()), ("ok", "ready"));
}

#[test]
fn unknown_paths_and_methods_are_refused() {
    let server = Running::start("");
    for path in ["/nothing", "/v1", "/v1/take/", "/v1/bans/1/2", "/v1/bans/"] {
        server.get(path).is_mistake(404, None);
    }
    let refused = server.get("/v1/take");
    refused.is_mistake(405, None);
    assert_eq!(refused.header("allow"), Some("POST"));
    let head = server.connect().call("HEAD", "/healthz", &[], "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("2")));
}

#[test]
fn a_write_is_json() {
    let server = Running::start("");
    let take = |headers: &[(&str, &str)]| server.connect().call("POST", "/v1/take", headers, r#"{"fields":{}}"#);
    for good in ["application/json", "Application/JSON; charset=utf-8", "application/json ;x"] {
        assert_eq!(take(&[("content-type", good)]).status, 200, "{good}");
    }
    take(&[]).is_mistake(415, Some("content-type"));
    for wrong in ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", ""] {
        take(&[("content-type", wrong)]).is_mistake(415, Some("content-type"));
    }
}

#[test]
fn bodies_are_bounded_in_size() {
    let server = Running::start("server = { max_request = '1KiB' }");
    let json = ("content-type", "application/json");
    let fits = format!("{{\"fields\":{{\"a\":\"{}\"}}}}", "x".repeat(900));
    assert_eq!(server.post("/v1/take", &fits).status, 200);
    let mut client = server.connect();
    let too_large = client.call("POST", "/v1/take", &[json, ("content-length", "999999999999")], "");
    too_large.is_mistake(413, None);
    assert_eq!(client.rest(), "", "what follows would be the body");

    let chunk = format!("{:x}\r\n{fits}\r\n", fits.len());
    let mut client = server.connect();
    let chunked = [json, ("transfer-encoding", "chunked")];
    assert_eq!(client.call("POST", "/v1/take", &chunked, &format!("{chunk}0\r\n\r\n")).status, 200);
    client.call("POST", "/v1/take", &chunked, &format!("{chunk}{chunk}")).is_mistake(413, None);
}

#[test]
fn bodies_are_bounded_in_time() {
    let server = Running::start("server = { request_timeout = '50ms' }");
    let mut client = server.connect();
    let headers = [("content-type", "application/json"), ("content-length", "100")];
    client.call("POST", "/v1/take", &headers, "{").is_mistake(408, None);
    assert_eq!(client.rest(), "");
}

#[test]
fn a_silent_client_is_let_go() {
    let server = Running::start("server = { idle_timeout = '50ms' }");
    assert_eq!(server.connect().rest(), "");
    let mut client = server.connect();
    assert_eq!(client.call("GET", "/healthz", &[], "").status, 200);
    assert_eq!(client.rest(), "", "silent after a request, too");
}

#[test]
fn slow_head_is_cut_off_after_the_request_timeout() {
    let server = Running::start("server = { request_timeout = '200ms' }");
    for start in ["G", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: 1\r\n"] {
        let mut client = server.connect();
        client.send(start);
        assert_eq!(client.rest(), "", "the idle timeout of 5 minutes does not count");
    }
    // An idle connection is not in the middle of a head, and one that goes on in time is answered.
    let mut client = server.connect();
    for _ in 0..2 {
        assert_eq!(client.call("GET", "/healthz", &[], "").status, 200);
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    let head = request("GET", "/healthz", &[], "");
    client.send(&head[..10]);
    client.send(&head[10..]);
    assert_eq!(client.reply("GET").body, "ok");
    client.send(&head[..10]);
    assert_eq!(client.rest(), "", "so is the head of a later request");
}

#[test]
fn drip_of_bytes_does_not_prolong_the_time_for_a_head() {
    let server = Running::start("server = { request_timeout = '300ms' }");
    let client = server.connect().http.stream.into_inner();
    let began = std::time::Instant::now();
    client.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
    (&client).write_all(b"GET / HTTP/1.1\r\nx-slow: ").unwrap();
    let closed = loop {
        assert!(began.elapsed() < HANG_TIMEOUT, "the server listens to a drip for ever");
        if let Err(error) = (&client).write_all(b"x") {
            break error.kind();
        }
        if let Ok(0) = (&client).read(&mut [0; 64]) {
            break ErrorKind::UnexpectedEof;
        }
    };
    assert!(
        matches!(closed, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof),
        "{closed}"
    );
}

#[test]
fn a_client_that_does_not_read_is_closed() {
    let server = Running::start("server = { idle_timeout = '200ms' }");
    let client = server.connect().http.stream.into_inner();
    // Answers pile up until neither side's buffers take more, and then the server reads no further requests.
    let requests = request("GET", "/openapi.json", &[], "").repeat(100);
    let closed = loop {
        if let Err(error) = (&client).write_all(requests.as_bytes()) {
            break error.kind();
        }
    };
    assert!(matches!(closed, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{closed}");
}

#[test]
fn a_connection_serves_many_requests_also_at_once() {
    let server = Running::start(r#"rule = [{ name = "all", limits = ["100/60s"] }]"#);
    let mut client = server.connect();
    let take = request("POST", "/v1/take", &[("content-type", "application/json")], r#"{"fields":{}}"#);
    client.send(take.repeat(50));
    for taken in 1..=50 {
        assert_eq!(client.reply("POST").json()["remaining"], 100 - taken);
    }
    // The first half of another request follows. The server answers the complete request without waiting for the second
    // half.
    client.send(take.clone() + &take[..take.len() / 2]);
    assert_eq!(client.reply("POST").json()["remaining"], 49);
    client.send(&take[take.len() / 2..]);
    assert_eq!(client.reply("POST").json()["remaining"], 48);
}

#[test]
fn nonsense_is_refused_and_affects_no_other_client() {
    let server = Running::start("");
    for nonsense in [
        "GET\r\n\r\n",
        "\0\0\0\0\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "POST /v1/take HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.send(nonsense);
        let said = client.rest();
        assert!(said.starts_with("HTTP/1.1 400 "), "{nonsense:?}: {said:?}");
    }
    for body in
        ["", "nonsense", "[", "null", "{\"fields\":", "\u{feff}{}", "{\"fields\":{}}{\"fields\":{}}", "[[[[[[[["]
    {
        for path in ["/v1/take", "/v1/peek", "/v1/batch", "/v1/limit", "/v1/explain", "/v1/bans"] {
            assert_eq!(server.post(path, body).status, 400, "{path} {body}");
        }
    }
    assert_eq!(server.get("/healthz").body, "ok");
}

#[test]
fn one_connection_too_many_is_told_when_to_come_again() {
    let server = Running::start("server = { max_connections = 1 }");
    let mut first = server.connect();
    assert_eq!(first.call("GET", "/healthz", &[], "").status, 200);
    let mut second = server.connect();
    let refused = second.reply("GET");
    refused.is_mistake(503, None);
    assert_eq!((refused.header("retry-after"), second.rest().as_str()), (Some("1"), ""));
}
