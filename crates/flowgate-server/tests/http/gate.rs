//! The gateway check: what it makes of the original request, and how it answers.

mod client;
mod headers;
mod spelling;
mod turns;

use std::time::Duration;

use flowgate::Span;
use serde_json::json;

use super::*;

const API: &str = r#"
    [[rule]]
    name = "api"
    when = { path = "/api/**" }
    by = ["ip"]
    limits = ["2/60s"]
    message = "Slowly."
"#;

impl Running {
    /// Asks as a gateway does.
    fn gate(&self, headers: &[(&str, &str)]) -> Reply {
        self.connect().call("GET", "/gate", headers, "")
    }
}

fn about<'a>(client: &'a str, uri: &'a str) -> [(&'a str, &'a str); 2] {
    [("x-forwarded-for", client), ("x-forwarded-uri", uri)]
}

/// Both sets of rules deny the request, each by a header that the other does not look at.
#[test]
fn a_reload_while_the_gate_reads_fields_lets_no_request_slip_past_both_rules() {
    let rules = |header: &str| {
        let toml = format!("rule = [{{ name = 'r', when = {{ 'header.{header}' = '1' }}, action = 'deny' }}]");
        Config::from_toml(&toml).unwrap()
    };
    let (one, other) = (rules("x-one"), rules("x-other"));
    let (services, service) = std::sync::mpsc::channel();
    let server = Running::start_with(one.clone(), move |server| services.send(server.service.clone()).unwrap());
    let (service, ended) = (service.recv().unwrap(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                service.replace(&other.policy).unwrap();
                service.replace(&one.policy).unwrap();
            }
        });
        let mut client = server.connect();
        let headers = [("x-forwarded-uri", "/"), ("x-one", "1"), ("x-other", "1")];
        let passed = (0..2000).filter(|_| client.call("GET", "/gate", &headers, "").status == 200).count();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(passed, 0);
    });
}

#[test]
fn the_gate_admits_the_limit_and_no_more() {
    let server = Running::start(API);
    for remaining in ["1", "0"] {
        let passed = server.gate(&about("203.0.113.7", "/api/x"));
        assert_eq!((passed.status, passed.body.as_str()), (200, ""));
        assert_eq!(passed.header("x-ratelimit-remaining"), Some(remaining));
        assert_eq!(passed.header("x-flowgate-action"), Some("allow"));
        assert_eq!(passed.header("retry-after"), None);
    }
    server.clock.advance(Span::from_millis(500));
    let denied = server.gate(&about("203.0.113.7", "/api/y"));
    assert_eq!(denied.status, 429);
    for (name, value) in [
        ("content-type", "application/problem+json"),
        ("ratelimit-policy", r#""api";q=2;w=60"#),
        ("ratelimit", r#""api";r=0;t=60"#),
        ("x-ratelimit-limit", "2"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "60"),
        ("retry-after", "60"),
        ("x-flowgate-rule", "api"),
        ("x-flowgate-action", "deny"),
    ] {
        assert_eq!(denied.header(name), Some(value), "{name}");
    }
    let problem = json!({"status": 429, "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Quota exceeded", "detail": "Slowly.", "action": "deny", "retry_after": 59.5, "violated-policies": ["api"]});
    assert_eq!(denied.json(), problem);

    let other = server.gate(&about("203.0.113.8", "/api/y"));
    assert_eq!(other.header("x-ratelimit-remaining"), Some("1"), "another client");
    let unmatched = server.gate(&about("203.0.113.7", "/"));
    assert_eq!(
        (unmatched.status, unmatched.header("ratelimit"), unmatched.header("x-flowgate-rule")),
        (200, None, None)
    );
}

/// The example limits robots behind a gateway, as it does in a replay. `ua` is the same field over the API.
#[test]
fn the_website_example_limits_robots_by_their_header() {
    let website = include_str!("../../../../examples/website.toml");
    for rules in [website.to_owned(), website.replace("\"header.user-agent\"", "ua")] {
        let server = Running::start(&rules);
        let ask = |agent: &str| {
            let headers = [about("203.0.113.7", "/"), [("user-agent", agent), ("accept", "*/*")]].concat();
            let reply = server.gate(&headers);
            (reply.status, reply.header("x-flowgate-rule").map(str::to_owned))
        };
        let robots = Some("robots".to_owned());
        for _ in 0..9 {
            assert_eq!(ask("SomeBot/1.0"), (200, robots.clone()));
        }
        assert_eq!(ask("Mozilla/5.0"), (200, Some("addresses".to_owned())));
        for (field, allowed) in [("ua", true), ("header.user-agent", false), ("ua", false)] {
            let call = json!({"fields": {"ip": "203.0.113.7", field: "SomeBot/1.0"}}).to_string();
            let explained = server.post("/v1/explain", &call).json();
            assert_eq!(explained["decision"]["allowed"], allowed, "{explained}");
            let decision = server.post("/v1/take", &call).json();
            assert_eq!((&decision["allowed"], &decision["rule"]), (&json!(allowed), &json!("robots")), "{field}");
        }
        assert_eq!(ask("SomeBot/1.0"), (429, robots));
        server.post("/v1/bans", r#"{"field":"ua","value":"Rude/1","for":"60s","reason":"Rude."}"#);
        assert_ne!(ask("Rude/1").0, 200, "a ban by the other name");
    }
}

/// The gate and the tower layer are two ways to the same limits: clients read one problem document.
#[test]
fn problem_document_is_that_of_the_tower_layer() {
    let toml = r#"
        rule = [
            { name = "blocked", when = { host = "blocked" }, action = "deny", code = 7, message = "Go \"away\"." },
            { name = "human", when = { host = "human" }, action = "captcha" },
            { name = "burst", when = { host = "burst" }, limits = ["bucket 3/10s"], code = -201, message = "Slowly." },
            { name = "minute", when = { host = "burst" }, limits = ["3/60s", "3/h"] },
            { name = "never", when = { host = "never" }, limits = ["pace 1/h"] },
            { name = "strict", when = { host = "strict" }, by = ["host"], limits = ["1/60s"], ban = { after = 1, within = "10m", for = ["1h"] } },
        ]"#;
    let server = Running::start(toml);
    let policy = &Config::from_toml(toml).unwrap().policy;
    let engine = flowgate_engine::Engine::new(policy, flowgate::MemoryStore::default()).unwrap();
    let ban = flowgate_engine::bans::BanOrder {
        field: "host",
        value: "banned",
        length: Span::from_secs(60),
        reason: "Spam.",
        author: None,
    };
    engine.ban(ban, server.clock.now()).unwrap();
    server.post("/v1/bans", r#"{"field":"host","value":"banned","for":"60s","reason":"Spam."}"#);
    let mut denials = 0;
    for host in ["blocked", "human", "burst", "never", "strict", "banned"].repeat(5) {
        server.clock.advance(Span::from_nanos(1_234_567));
        let gate = server.gate(&[("x-forwarded-for", "203.0.113.7"), ("x-forwarded-host", host)]);
        let take = flowgate::Op::TakeWithin(Span::from_secs(1));
        let request = flowgate_engine::Request::new().field("host", host);
        let decision = engine.decide(take, &request, server.clock.now());
        assert_eq!(gate.status == 200, decision.allowed(), "{host}");
        if !decision.allowed() {
            let layer = flowgate_tower::problem(&decision);
            assert_eq!((gate.status, gate.body.as_bytes()), (layer.status().as_u16(), &layer.body()[..]), "{host}");
            assert_eq!(gate.header("content-type"), layer.headers()["content-type"].to_str().ok());
            denials += 1;
        }
    }
    assert_eq!(denials, 25);
}

#[test]
fn two_headers_that_differ_are_denied() {
    let server = Running::start(API);
    let uris = [("x-original-uri", "/api/x"), ("x-forwarded-uri", "/harmless")];
    let denied = server.gate(&uris);
    assert_eq!((denied.status, denied.header("content-type")), (403, Some("application/problem+json")));
    assert_eq!(server.connect().call("GET", "/gate/418", &uris, "").status, 418);
    assert_eq!(server.gate(&[("x-forwarded-method", "GET"), ("x-forwarded-method", "POST")]).status, 403);
    assert_eq!(server.gate(&[("x-original-uri", "/x"), ("x-forwarded-uri", "/x")]).status, 200);
}

#[test]
fn a_field_that_counts_has_one_value() {
    let rule = "rule = [{ name = 'key', by = ['header.x-key', 'query.k'], limits = ['9/60s'] }]";
    let server = Running::start(rule);
    let asked = |uri, key| server.gate(&[("x-forwarded-uri", uri), ("x-key", "a"), ("x-key", key)]).status;
    assert_eq!([asked("/?k=1", "a"), asked("/?k=1&k=%31", "a"), asked("/?p=1&p=2", "a")], [200; 3]);
    assert_eq!([asked("/?k=1", "b"), asked("/?k=1&k=2", "a"), asked("/?k&%6b=2", "a")], [403; 3]);
    assert_eq!(Running::start("").gate(&[("x-key", "a"), ("x-key", "b")]).status, 200, "no rule reads the header");
}

#[test]
fn every_field_of_a_request_can_be_matched() {
    for (when, headers) in [
        ("ip = '203.0.113.7'", [("x-forwarded-for", "203.0.113.7")]),
        ("method = 'PATCH'", [("x-forwarded-method", "PATCH")]),
        ("method = 'PATCH'", [("x-original-method", "PATCH")]),
        ("method = 'GET'", [("x-other", "")]),
        ("host = 'example.com'", [("x-forwarded-host", "Example.com:8443")]),
        ("host = 'localhost'", [("x-other", "")]),
        ("path = '/a b'", [("x-forwarded-uri", "/a%20b?c")]),
        ("'header.X-Api-Key' = 'k1'", [("X-API-KEY", "k1")]),
        ("'header.x-api-key' = '!*'", [("x-other", "k1")]),
        ("'query.q' = 'a b'", [("x-original-uri", "/?p=1&q=a+b&p=2")]),
        ("'query.q' = '!*'", [("x-original-uri", "/q")]),
        ("path = '!*'", [("x-other", "")]),
    ] {
        let server =
            Running::start(&format!("rule = [{{ name = 'it', when = {{ {when} }}, action = 'captcha', code = 7 }}]"));
        let denied = server.gate(&headers);
        assert_eq!((denied.status, denied.header("x-flowgate-action")), (403, Some("captcha")), "{when} {headers:?}");
        assert_eq!((&denied.json()["code"], denied.header("retry-after")), (&json!(7), None));
    }
}

#[test]
fn a_ban_by_a_header_holds_although_no_rule_asks_for_it() {
    let server = Running::start("");
    server.post("/v1/bans", r#"{"field":"header.x-key","value":"stolen","for":"90s","reason":"stolen key"}"#);
    server.clock.advance(Span::from_nanos(1));
    let denied = server.gate(&[("x-key", "stolen")]);
    assert_eq!((denied.status, denied.header("retry-after")), (403, Some("90")));
    assert_eq!(denied.json()["detail"], "stolen key");
    assert_eq!(server.gate(&[("x-key", "own")]).status, 200);
}

#[test]
fn the_status_of_a_denial() {
    let rules =
        "rule = [{ name = 'no', when = { method = 'DELETE' }, action = 'deny' }, { name = 'all', limits = ['1/60s'] }]";
    for (gate, asked, by_limit, at_once) in [
        ("", "", 429, 403),
        ("", "/403", 403, 403),
        ("", "/418?x=1", 418, 418),
        // The query may be the client's.
        ("", "?deny=418", 429, 403),
        ("", "/403?deny=418", 403, 403),
        ("", "?deny=1", 429, 403),
        ("gate = { deny_status = 444 }", "", 444, 403),
    ] {
        let server = Running::start(&format!("{gate}\n{rules}"));
        let status = |method| server.connect().call(method, &format!("/gate{asked}"), &[], "").status;
        assert_eq!([status("GET"), status("POST"), status("DELETE")], [200, by_limit, at_once], "{gate} {asked}");
    }
    let server = Running::start("");
    for wrong in ["200", "x", "500", "4xx", "-1"] {
        server.get(&format!("/gate/{wrong}")).is_mistake(400, Some("status"));
    }
    server.get("/gate/").is_mistake(404, None);
}

/// A gateway that asks there would take the page for a permission. A plain proxy before the console says neither the method
/// nor the target of the original request.
#[test]
fn the_console_is_no_answer_to_a_gateway() {
    let server = Running::start("");
    let client = || Client { described: false, ..server.connect() };
    let status = |path, headers: &[(&str, &str)]| client().call("GET", path, headers, "").status;
    for header in [("X-Forwarded-Uri", "/login"), ("x-forwarded-method", "GET"), ("X-Forwarded-Uri", "/")] {
        for path in ["/", "/console/", "/console/index.html"] {
            assert_eq!(status(path, &[header]), 404, "{path} {header:?}");
        }
        assert_eq!(status("/healthz", &[header]), 200);
    }
    let proxied = [
        ("X-Forwarded-For", "9.9.9.9"),
        ("X-Forwarded-Host", "console.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Port", "443"),
        ("X-Forwarded-Server", "proxy"),
        ("X-Forwarded-Prefix", "/flowgate"),
        ("X-Real-Ip", "9.9.9.9"),
        ("X-Original-URI", "/"),
    ];
    assert_eq!(status("/", &proxied), 200);
}
