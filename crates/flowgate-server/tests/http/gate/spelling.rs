//! Spellings of a path that backends read alike.

use super::*;

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
fn hosts_and_methods_match_in_any_case_and_without_a_port() {
    let lists = "lists = { hosts = { values = ['Shop.Example:443'] }, methods = { values = ['post'] } }\n";
    let fields = [
        ("host", ["shop.example", "Shop.Example", "shop.example:443", "*.Example", "~^SHOP", "@hosts"]),
        ("method", ["POST", "post", "Post", "p*t", "~^post$", "@methods"]),
    ];
    for (field, conditions) in fields {
        for condition in conditions {
            let rule = format!("{{ name = 'no', when = {{ {field} = '{condition}' }}, action = 'deny' }}");
            let server = Running::start(&format!("{lists}rule = [{rule}]"));
            for (host, method) in [("shop.example", "POST"), ("SHOP.example:8443", "post"), ("shop.example.", "Post")] {
                let headers = [("x-forwarded-host", host), ("x-forwarded-method", method), ("x-forwarded-uri", "/")];
                assert_eq!(server.gate(&headers).status, 403, "{condition}: {method} {host}");
            }
            let other = [("x-forwarded-host", "elsewhere"), ("x-forwarded-method", "GET"), ("x-forwarded-uri", "/")];
            assert_eq!(server.gate(&other).status, 200, "{condition}");
        }
    }
    let limits = "limits_by = { field = 'method', default = ['5/60s'], post = ['1/60s'] }";
    let server = Running::start(&format!("rule = [{{ name = 'a', {limits} }}]"));
    let post = [("x-forwarded-method", "POST"), ("x-forwarded-uri", "/")];
    assert_eq!([server.gate(&post).status, server.gate(&post).status], [200, 429]);
}
