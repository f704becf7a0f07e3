//! Who may do what: tokens for administrators, and which web pages may ask.

use super::*;

const TAKE: &str = r#"{"fields":{}}"#;
const JSON: (&str, &str) = ("content-type", "application/json");

#[test]
fn administering_needs_a_token_wherever_the_request_comes_from() {
    let server = Running::start("");
    for path in ["/v1/bans", "/v1/rules", "/v1/rules/history", "/v1/stats"] {
        for headers in [
            &[("authorization", "")][..],
            &[("authorization", "Bearer wrong")],
            &[("authorization", ""), ("host", "127.0.0.1")],
            &[("authorization", ""), ("x-forwarded-for", "192.0.2.1")],
        ] {
            server.connect().call("GET", path, headers, "").is_mistake(401, Some("authorization"));
        }
    }
    assert_eq!(server.get("/v1/bans").status, 200);
    let body = r#"{"field":"user","value":"42","for":"1h"}"#;
    server
        .connect()
        .call("POST", "/v1/bans", &[JSON, ("authorization", "")], body)
        .is_mistake(401, Some("authorization"));
    server.connect().call("DELETE", "/v1/bans/1", &[("authorization", "")], "").is_mistake(401, Some("authorization"));
    assert_eq!(server.get("/v1/bans").json()["bans"], serde_json::json!([]));
}

#[test]
fn a_server_without_an_admin_token_refuses_administration() {
    let config = Config::from_toml("listen = { http = '127.0.0.1:0', resp = 'off' }").unwrap();
    let server = Running::serve(config.clone(), |_| {});
    for token in ["", "Bearer ", "Bearer adm1n"] {
        let refused = server.connect().call("GET", "/v1/bans", &[("authorization", token)], "");
        refused.is_mistake(403, None);
        assert!(refused.body.contains("auth.admin_token_file"), "{refused:?}");
    }
    assert_eq!(server.post("/v1/take", TAKE).status, 200, "it decides all the same");

    let server = Running::serve(config, |server| server.set_admin_token(Secret::new(ADMIN_TOKEN)));
    assert_eq!(server.get("/v1/bans").status, 200);
    server.connect().call("GET", "/v1/bans", &[("authorization", "")], "").is_mistake(401, Some("authorization"));
}

#[test]
fn pages_of_other_origins_decide_nothing() {
    let server = Running::start("rule = [{ name = 'all', limits = ['5/60s'] }]");
    let port = server.address.port();
    let (here, evil) = (format!("127.0.0.1:{port}"), format!("evil.example:{port}"));
    let (own_page, evil_page) = (format!("http://{here}"), format!("http://{evil}"));
    let ask = |path: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([JSON]).collect();
        server.connect().call("POST", path, &headers, TAKE)
    };
    for path in ["/v1/take", "/v1/reset", "/v1/peek", "/v1/record", "/v1/refund", "/v1/explain"] {
        for headers in [
            // By DNS rebinding: the page's own name leads here.
            &[("host", evil.as_str()), ("origin", evil_page.as_str())][..],
            &[("host", "[::1].evil.example"), ("origin", "http://[::1].evil.example")],
            &[("host", "6.6.6.6"), ("origin", "http://6.6.6.6")],
            &[("host", &here), ("host", &evil), ("origin", &own_page)],
            &[("host", &here), ("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")],
            &[("host", &here), ("sec-fetch-site", "cross-site")],
            &[("host", &here), ("origin", "null")],
        ] {
            ask(path, headers).is_mistake(403, None);
        }
    }
    let by_name = [("host", evil.as_str()), ("origin", &evil_page), ("authorization", "Bearer guessed")];
    server.connect().call("GET", "/v1/bans", &by_name, "").is_mistake(403, None);
    let by_name = [("host", evil.as_str()), ("origin", &evil_page)];
    assert_eq!(server.connect().call("GET", "/v1/bans", &by_name, "").status, 200, "a page that has the admin token");
    assert_eq!(ask("/v1/peek", &[]).json()["remaining"], 5, "nothing was counted");

    let own = [("host", here.as_str()), ("origin", own_page.as_str()), ("sec-fetch-site", "same-origin")];
    assert_eq!(ask("/v1/take", &own).json()["remaining"], 4);
    for host in ["flowgate:7070", "tunnel.example", "[::1].evil.example"] {
        assert_eq!(ask("/v1/take", &[("host", host)]).status, 200, "{host}, not from a browser");
    }
}

#[test]
fn the_gate_is_asked_for_pages_of_any_origin() {
    let server = Running::start("rule = [{ name = 'all', limits = ['5/60s'] }]");
    let headers = [("host", "shop.example"), ("origin", "https://shop.example"), ("sec-fetch-site", "same-origin")];
    assert_eq!(server.connect().call("GET", "/gate", &headers, "").status, 200);
}

#[test]
fn on_all_addresses_a_page_is_known_by_where_it_arrives() {
    let toml = "listen = { http = '0.0.0.0:0', resp = 'off' }\nauth.insecure = true";
    let server = Running::serve(Config::from_toml(toml).unwrap(), |_| {});
    let port = server.address.port();
    let mut client = Client { http: http::Client::connect(("127.0.0.3", port)), described: true };
    for (host, status) in [("127.0.0.3", 200), ("0.0.0.0", 403), ("192.0.2.1", 403)] {
        let host = format!("{host}:{port}");
        let headers = [JSON, ("host", host.as_str()), ("origin", &format!("http://{host}"))];
        assert_eq!(client.call("POST", "/v1/take", &headers, TAKE).status, status, "{host}");
    }
}

#[test]
fn answers_of_the_api_are_neither_kept_nor_guessed_at() {
    let server = Running::start("");
    for reply in [
        server.post("/v1/take", TAKE),
        server.post("/v1/take", "{"),
        server.get("/v1/bans"),
        server.get("/v1/nothing"),
        server.connect().call("GET", "/v1/bans", &[("authorization", "")], ""),
    ] {
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{reply:?}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{reply:?}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"), "{reply:?}");
    }
}
