//! The gateway check: what it makes of the original request, and how it answers.

use std::time::Duration;

use flowgate::Span;
use serde_json::json;
use sfv::{BareItem, List, ListEntry, Parser};

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
    let server = Running::start_with(one.clone(), move |server| services.send(server.service().clone()).unwrap());
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
fn so_many_pass_and_no_more() {
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
    let ban =
        flowgate_engine::BanOrder { field: "host", value: "banned", length: Span::from_secs(60), reason: "Spam." };
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
fn no_spelling_slips_past_a_rule() {
    let spellings = [
        "/api/x",
        "//api/x",
        "/%61pi/x",
        "/./api/x",
        "/y/../api/x",
        "/api//x?a=b",
        "http://host/api/x",
        "/%2e/api%2fx",
    ];
    for spelling in spellings {
        for name in ["x-forwarded-uri", "x-original-uri"] {
            let server = Running::start(API);
            let gate = |uri| server.gate(&[("x-forwarded-for", "203.0.113.7"), (name, uri)]).status;
            assert_eq!([gate("/api/x"), gate("/api/x"), gate(spelling)], [200, 200, 429], "{name}: {spelling}");
        }
    }
}

#[test]
fn the_client_is_found_from_the_right() {
    let server = Running::start(&format!("gate = {{ trusted_proxies = ['127.0.0.0/8', '10.0.0.0/8'] }}\n{API}"));
    let left = |forwarded: &str| {
        let reply = server.gate(&about(forwarded, "/api/x"));
        reply.header("x-ratelimit-remaining").unwrap().to_owned()
    };
    assert_eq!(left("203.0.113.7"), "1");
    assert_eq!(left("6.6.6.6, 203.0.113.7"), "0", "what a client writes at the left changes nothing");
    assert_eq!(left("6.6.6.6, 203.0.113.8, 10.1.2.3"), "1", "trusted proxies are walked past");
    assert_eq!(left("\u{e9}, 203.0.113.8"), "0", "nor does what is no ASCII");
    assert_eq!(left("2001:db8:1:2:3:4:5:6"), "1");
    assert_eq!(left("[2001:db8:1:2::9]:443"), "0", "an IPv6 client is its network");
    assert_eq!(left("::ffff:203.0.113.9"), "1");
    assert_eq!(left("203.0.113.9:5555"), "0", "one address however it is written");
}

#[test]
fn an_ipv6_client_is_matched_by_its_address_and_counted_by_its_network() {
    let server = Running::start(
        r#"
        lists = { guests = { values = ["2001:db8:1:2::7"] } }
        [[rule]]
        name = "one"
        when = { ip = "2001:db8:1:2::6" }
        action = "deny"
        [[rule]]
        name = "guests"
        when = { ip = "@guests" }
        action = "allow"
        [[rule]]
        name = "all"
        by = ["ip"]
        limits = ["2/60s"]
        ban = { after = 1, within = "1m", for = ["1m"], forget = "1m" }
        "#,
    );
    let ask = |client: &str| server.gate(&about(client, "/")).status;
    server.post("/v1/bans", r#"{"field":"ip","value":"2001:db8:1:2::5","for":"1h"}"#);
    assert_eq!([ask("2001:db8:1:2::6"), ask("2001:db8:1:2::5")], [403, 403], "a condition, a ban by hand");
    assert_eq!([(); 3].map(|()| ask("2001:db8:1:2::7")), [200; 3], "a list");
    assert_eq!([ask("2001:db8:1:2::8"), ask("2001:db8:1:2::9"), ask("2001:db8:1:2:a::")], [200, 200, 429]);
    assert_eq!(ask("2001:db8:1:3::8"), 200, "another network");
    let bans = server.get("/v1/bans").json();
    assert_eq!(bans["rule_bans"][0]["subject"], json!({"ip": "2001:db8:1:2::"}), "the network is banned");
    assert_eq!(ask("2001:db8:1:2::b"), 403);
}

/// What the log tells of a client is enough to ask for what was counted for it.
#[test]
fn the_api_counts_an_address_as_the_gate_does_if_asked_to() {
    let server = Running::start("rule = [{ name = 'all', when = { ip = '*::8' }, by = ['ip'], limits = ['2/60s'] }]");
    assert_eq!(server.gate(&about("2001:db8:1:2::8", "/")).status, 200);
    let ask = |path: &str, ip: &str, gate: bool| {
        server.post(path, &json!({"fields": {"ip": ip}, "cost": 0, "gate": gate}).to_string()).json()
    };
    let left = |ip, gate| ask("/v1/peek", ip, gate)["remaining"].clone();
    assert_eq!(left("2001:db8:1:2::8", false), 2, "counted by what was sent");
    assert_eq!(left("2001:db8:1:2::8", true), 1);
    assert_eq!(left("2001:DB8:1:2:0::8", true), 1, "in whatever spelling");
    assert_eq!(left("2001:db8:1:2::9", true), json!(null), "conditions see all of it");
    assert_eq!(ask("/v1/explain", "2001:db8:1:2::8", true)["rules"][0]["limits"][0]["remaining"], 1);
    let batch = r#"[{"op":"peek","fields":{"ip":"2001:db8:1:2::8"},"cost":0,"gate":true}]"#;
    assert_eq!(server.post("/v1/batch", batch).json()[0]["remaining"], 1);
    assert_eq!(ask("/v1/reset", "2001:db8:1:2::8", true)["remaining"], 2);
    assert_eq!(left("not an address", true), json!(null));
}

#[test]
fn what_an_untrusted_peer_says_is_ignored() {
    let rules = "gate = { trusted_proxies = ['192.0.2.1'] }\nrule = [{ name = 'all', by = ['ip', 'method'], limits = ['2/60s'] }]";
    let server = Running::start(rules);
    for remaining in ["1", "0"] {
        let client = format!("203.0.113.{remaining}");
        let headers = [("x-forwarded-for", client.as_str()), ("x-forwarded-method", client.as_str())];
        assert_eq!(server.gate(&headers).header("x-ratelimit-remaining"), Some(remaining));
    }
    let locked = Running::start(&format!("auth = {{ api_token = 'decide' }}\n{rules}"));
    locked.gate(&[]).is_mistake(401, Some("authorization"));
    let metrics = locked.get("/metrics").body;
    assert!(metrics.contains("flowgate_authentication_failures_total{protocol=\"http\"} 1\n"), "{metrics}");
    assert_eq!(locked.gate(&[("authorization", "Bearer decide")]).status, 200);
    let trusting = Running::start("auth = { api_token = 'decide' }");
    assert_eq!(trusting.gate(&[]).status, 200, "a trusted proxy needs no token");
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
    assert_eq!(Running::start("").gate(&[("x-key", "a"), ("x-key", "b")]).status, 200, "nobody asks for it");
}

#[test]
fn every_field() {
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

/// How many backends read them.
const LOGINS: [&str; 9] = [
    "/login",
    "/login/",
    "/LOGIN",
    "/login;x",
    "/login;jsessionid=1/",
    "/login%20",
    "/login%09/",
    "//Login%3bx",
    "/x/../%4Cogin",
];

#[test]
fn spellings_that_backends_read_alike_match_alike() {
    for condition in ["/login", "/Login", "/login/", "/login/**", "/LOGIN/*", "~^/LOGIN$", "@pages"] {
        let lists = "lists = { pages = { values = ['/Login'] } }\n";
        let server = Running::start(&format!(
            "{lists}rule = [{{ name = 'no', when = {{ path = '{condition}' }}, action = 'deny' }}]"
        ));
        for uri in LOGINS {
            assert_eq!(server.gate(&[("x-forwarded-uri", uri)]).status, 403, "{condition} {uri}");
        }
        assert_eq!(server.gate(&[("x-forwarded-uri", "/logins")]).status, 200, "{condition}");
    }
    let server = Running::start("rule = [{ name = 'no', when = { path = '/admin/**' }, action = 'deny' }]");
    for uri in ["/admin", "/admin/", "/admin/x", "/Admin;x", "/ADMIN/x/y?z"] {
        assert_eq!(server.gate(&[("x-forwarded-uri", uri)]).status, 403, "{uri}");
    }
}

#[test]
fn spellings_that_backends_read_alike_share_a_counter() {
    let rule = "rule = [{ name = 'page', by = ['path'], limits = ['9/60s'] }]";
    let server = Running::start(rule);
    for (uri, remaining) in LOGINS.iter().zip((0..9).rev()) {
        let left = server.gate(&[("x-forwarded-uri", uri)]);
        assert_eq!(left.header("x-ratelimit-remaining"), Some(remaining.to_string().as_str()), "{uri}");
    }
    // Each part by itself, and what a caller of the API asks for as the gate does.
    for (ignored, same, other) in [
        ("'case'", "/LOGIN", "/login/"),
        ("'trailing-slash'", "/login/", "/LOGIN"),
        ("'parameters'", "/login;x", "/login%20"),
        ("'spaces'", "/login%20", "/login;x"),
    ] {
        let server = Running::start(&format!("gate = {{ path_ignores = [{ignored}] }}\n{rule}"));
        let left = |uri| server.gate(&[("x-forwarded-uri", uri)]).header("x-ratelimit-remaining").unwrap().to_owned();
        assert_eq!((left("/login"), left(same), left(other)), ("8".into(), "7".into(), "8".into()), "{ignored}");
        let peek = format!(r#"{{"fields":{{"path":"{same}"}},"gate":true}}"#);
        assert_eq!(server.post("/v1/peek", &peek).json()["remaining"], 7, "{ignored}");
    }
}

#[test]
fn targets_that_servers_read_differently_are_denied() {
    let server = Running::start("");
    for uri in ["/?tok=a#1", "/#", "/a#/../b", "/static/..;/admin", "/static/%2e%2e%20/admin", "/login/%20/..", "/a\\b"]
    {
        let denied = server.gate(&[("x-forwarded-uri", uri)]);
        assert_eq!((denied.status, denied.header("content-type")), (403, Some("application/problem+json")), "{uri}");
    }
    assert_eq!(server.connect().call("GET", "/gate/401", &[("x-forwarded-uri", "/#")], "").status, 401);
    for uri in ["/?tok=a%231", "/a%23b", "/a/../b;c", "/..."] {
        assert_eq!(server.gate(&[("x-forwarded-uri", uri)]).status, 200, "{uri}");
    }
    let exact = Running::start("gate = { path_ignores = [] }");
    assert_eq!(exact.gate(&[("x-forwarded-uri", "/static/..;/admin")]).status, 200, "a name like any other");
}

#[test]
fn bytes_that_are_not_utf_8_have_counters_of_their_own() {
    let rule = "rule = [{ name = 'key', by = ['header.x-key'], limits = ['1/60s'] }]";
    let server = Running::start(rule);
    let ask = |key: &[u8]| {
        let mut client = server.connect();
        client.send([b"GET /gate HTTP/1.1\r\nhost: localhost\r\nx-key: ", key, b"\r\n\r\n"].concat());
        client.reply("GET").status
    };
    assert_eq!([ask(b"k\xff"), ask(b"k\xfe"), ask("k\u{fffd}".as_bytes()), ask(b"k")], [200; 4]);
    assert_eq!([ask(b"k\xff"), ask(b"k\xfe"), ask("k\u{fffd}".as_bytes()), ask(b"k")], [429; 4]);

    let server = Running::start("rule = [{ name = 'tok', by = ['query.tok', 'path'], limits = ['1/60s'] }]");
    let ask = |uri| server.gate(&[("x-forwarded-uri", uri)]).status;
    assert_eq!([ask("/?tok=%ff"), ask("/?tok=%fe"), ask("/%ff?tok=%ff"), ask("/%fe?tok=%ff")], [200; 4]);
    assert_eq!([ask("/?tok=%FF"), ask("/%Fe?tok=%ff")], [429; 2]);
}

#[test]
fn headers_as_configured() {
    for (families, ratelimit, x_ratelimit) in
        [("[]", false, false), ("['ratelimit']", true, false), ("['x-ratelimit']", false, true)]
    {
        let server =
            Running::start(&format!("gate = {{ headers = {families} }}\nrule = [{{ name = 'a', limits = ['1/s'] }}]"));
        let reply = server.gate(&[]);
        let has = |names: &[&str]| names.iter().map(|name| reply.header(name).is_some()).collect::<Vec<_>>();
        assert_eq!(has(&["ratelimit", "ratelimit-policy"]), [ratelimit; 2], "{families}");
        assert_eq!(
            has(&["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]),
            [x_ratelimit; 3],
            "{families}"
        );
    }
}

/// The one member of a list of structured fields: a string and parameters.
#[track_caller]
fn structured(text: &str) -> (String, Vec<(String, i64)>) {
    let list = Parser::new(text).parse::<List>().unwrap();
    let [ListEntry::Item(item)] = list.as_slice() else { panic!("{text}") };
    let integer = |value: &BareItem| i64::from(value.as_integer().unwrap());
    let params = item.params.iter().map(|(key, value)| (key.as_str().to_owned(), integer(value))).collect();
    (item.bare_item.as_string().unwrap().as_str().to_owned(), params)
}

#[test]
fn the_fields_are_structured_and_agree_with_the_decision() {
    for limit in
        ["5/60s", "bucket 7/10s burst=3", "fixed 4/day tz=Asia/Shanghai", "approx 3/1500ms", "fixed 1/5s after=3/day"]
    {
        let server = Running::start(&format!("rule = [{{ name = 'a.b-c_9', limits = ['{limit}'] }}]"));
        for step in 0..12 {
            server.clock.advance(Span::from_millis(step * 137));
            let before = server.post("/v1/peek", r#"{"fields":{}}"#).json();
            let reply = server.gate(&[]);
            let after = server.post("/v1/peek", r#"{"fields":{},"cost":0}"#).json();
            let (name, policy) = structured(reply.header("ratelimit-policy").unwrap());
            let (same, left) = structured(reply.header("ratelimit").unwrap());
            assert_eq!((name.as_str(), same.as_str()), ("a.b-c_9", "a.b-c_9"));
            assert_eq!((policy[0].0.as_str(), left[0].0.as_str(), left[1].0.as_str()), ("q", "r", "t"));
            assert_eq!(left[0].1, after["remaining"].as_i64().unwrap(), "{limit}");
            let seconds = if reply.status == 200 { &after["reset_after"] } else { &before["retry_after"] };
            let seconds = (seconds.as_f64().unwrap().ceil() as i64).max(i64::from(reply.status != 200));
            assert_eq!(left[1].1, seconds, "{limit}");
            let retry_after = reply.header("retry-after").map(|text| text.parse::<i64>().unwrap());
            assert_eq!(retry_after, (reply.status != 200).then_some(seconds), "{limit}");
        }
    }
}

#[test]
fn retry_after_is_never_early() {
    for limit in
        ["3/7s", "bucket 3/700ms burst=2", "fixed 2/hour tz=Asia/Kathmandu", "approx 5/11s", "sliding 2000/13s"]
    {
        let server = Running::start(&format!("rule = [{{ name = 'all', limits = ['{limit}'] }}]"));
        for step in 1..40 {
            server.clock.advance(Span::from_nanos(step * 123_456_789));
            let reply = server.gate(&[]);
            if let Some(wait) = reply.header("retry-after") {
                server.clock.advance(Span::from_secs(wait.parse().unwrap()));
                assert_eq!(server.gate(&[]).status, 200, "{limit}: {wait} s are too short");
            }
            server.post("/v1/record", r#"{"fields":{},"cost":2}"#);
        }
    }
}

#[test]
fn a_turn_is_waited_for() {
    let server = Running::start("rule = [{ name = 'turns', limits = ['pace 1/50ms'] }]");
    let before = std::time::Instant::now();
    assert_eq!([server.gate(&[]).status, server.gate(&[]).status], [200, 200]);
    assert!(before.elapsed() >= Duration::from_millis(50));
}

/// The rule that would hold the request for too long has denied it, not the one that has the least left.
#[test]
fn who_denies_a_far_turn_answers_for_it() {
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
        assert_eq!((denied.status, denied.header("retry-after")), (429, Some("2")), "nobody holds the turn");
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
