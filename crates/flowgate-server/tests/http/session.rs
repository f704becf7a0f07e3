//! Logins: a token is traded for a key that ends by itself, and the view token opens what is read.

use flowgate::Span;

use super::*;

const TOKENS: &str = "auth = { admin_token = 'adm1n', view_token = 'v1ew', api_token = 'ap1' }";

fn log_in(server: &Running, token: &str) -> Reply {
    server.post("/v1/session", &serde_json::json!({ "token": token }).to_string())
}

fn key(server: &Running, token: &str) -> String {
    format!("Bearer {}", log_in(server, token).json()["key"].as_str().unwrap())
}

#[test]
fn a_key_opens_what_its_token_opens_until_it_ends() {
    let server = Running::start("");
    let answer = log_in(&server, ADMIN_TOKEN).json();
    let (now, until) = (answer["now"].as_f64().unwrap(), answer["until"].as_f64().unwrap());
    assert!((until - now - 8.0 * 3600.0).abs() < 1.0, "{answer}");
    assert_eq!(answer["rights"], "admin");
    let bearer = format!("Bearer {}", answer["key"].as_str().unwrap());
    let read = || server.connect().call("GET", "/v1/stats", &[("authorization", &bearer)], "").status;
    assert_eq!(read(), 200);
    server.clock.advance(Span::from_secs(8 * 3600 - 1));
    assert_eq!(read(), 200);
    server.clock.advance(Span::from_secs(2));
    assert_eq!(read(), 401);
}

#[test]
fn the_length_of_a_session_is_a_setting() {
    let server = Running::start("console.session = '10m'");
    let bearer = key(&server, ADMIN_TOKEN);
    server.clock.advance(Span::from_secs(601));
    server.connect().call("GET", "/v1/stats", &[("authorization", &bearer)], "").is_mistake(401, Some("authorization"));
}

#[test]
fn the_view_token_reads_and_changes_nothing() {
    let server = Running::start(TOKENS);
    assert_eq!(log_in(&server, "v1ew").json()["rights"], "view");
    let json = ("content-type", "application/json");
    for bearer in ["Bearer v1ew".to_owned(), key(&server, "v1ew")] {
        let call =
            |method, path, body| server.connect().call(method, path, &[("authorization", bearer.as_str()), json], body);
        for path in ["/v1/stats", "/v1/stats/history", "/v1/policy", "/v1/denials", "/v1/bans", "/v1/pause"] {
            assert_eq!(call("GET", path, "").status, 200, "{path}");
        }
        assert_eq!(call("POST", "/v1/bans/find", "{}").status, 200);
        for path in ["/v1/explain", "/v1/peek"] {
            assert_eq!(call("POST", path, r#"{"fields":{"user":"42"}}"#).status, 200, "{path}");
        }
        for (method, path, body) in [
            ("POST", "/v1/bans", r#"{"field":"user","value":"42","for":"1h"}"#),
            ("DELETE", "/v1/bans/h-3f0k2m9qav-7", ""),
            ("POST", "/v1/pause", r#"{"for":"10m"}"#),
            ("DELETE", "/v1/pause", ""),
            ("PUT", "/v1/rules", ""),
            ("POST", "/v1/rules/validate", ""),
            ("POST", "/v1/rules/try", ""),
            ("POST", "/v1/sample", r#"{"for":"1m"}"#),
            ("DELETE", "/v1/sample", ""),
            ("POST", "/v1/rules/rollback", r#"{"version":1}"#),
            ("POST", "/v1/take", r#"{"fields":{}}"#),
            ("POST", "/v1/reset", r#"{"fields":{}}"#),
        ] {
            let refused = call(method, path, body);
            refused.is_mistake(403, None);
            assert!(refused.body.contains("the view token changes nothing"), "{refused:?}");
        }
    }
    assert_eq!(server.get("/v1/bans").json()["bans"], serde_json::json!([]));
}

#[test]
fn ten_wrong_tokens_a_minute_then_none_is_compared() {
    let server = Running::start("");
    for _ in 0..10 {
        log_in(&server, "wrong").is_mistake(401, Some("token"));
    }
    for token in ["wrong", ADMIN_TOKEN] {
        let refused = log_in(&server, token);
        refused.is_mistake(429, None);
        assert_eq!(refused.header("retry-after"), Some("60"));
    }
    assert_eq!(server.get("/v1/stats").status, 200, "the token itself still opens");
    let forwarded = [("content-type", "application/json"), ("x-forwarded-for", "192.0.2.1")];
    let body = format!(r#"{{"token":"{ADMIN_TOKEN}"}}"#);
    assert_eq!(server.connect().call("POST", "/v1/session", &forwarded, &body).status, 200, "another client");
    server.clock.advance(Span::from_secs(60));
    assert_eq!(log_in(&server, ADMIN_TOKEN).status, 200);
}

#[test]
fn a_login_is_read_strictly_and_not_for_foreign_pages() {
    let server = Running::start("");
    server.post("/v1/session", "{}").is_mistake(400, None);
    server.post("/v1/session", r#"{"token":1}"#).is_mistake(400, Some("token"));
    server.post("/v1/session", r#"{"token":"x","more":1}"#).is_mistake(400, Some("more"));
    log_in(&server, "").is_mistake(401, Some("token"));
    server.connect().call("POST", "/v1/session", &[], "token=x").is_mistake(415, Some("content-type"));
    server.get("/v1/session").is_mistake(405, None);
    let json = ("content-type", "application/json");
    let body = format!(r#"{{"token":"{ADMIN_TOKEN}"}}"#);
    for foreign in
        [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"), ("origin", "http://evil.example")]
    {
        server.connect().call("POST", "/v1/session", &[json, foreign], &body).is_mistake(403, None);
    }
    let named = [json, ("host", "flowgate.example"), ("origin", "https://flowgate.example")];
    assert_eq!(server.connect().call("POST", "/v1/session", &named, &body).status, 200, "behind a domain name");
}

#[test]
fn a_server_without_an_admin_token_has_no_login() {
    let config = Config::from_toml("listen = { http = '127.0.0.1:0', resp = 'off' }").unwrap();
    let refused = log_in(&Running::serve(config, |_| {}), ADMIN_TOKEN);
    refused.is_mistake(403, None);
    assert!(refused.body.contains("auth.admin_token_file"), "{refused:?}");
}

/// What is read by `POST`, so that what is looked for stays out of addresses; and the login.
const READ_BY_POST: [&str; 4] = ["/v1/peek", "/v1/explain", "/v1/bans/find", "/v1/session"];

/// Every path and method of openapi.json, which a test compares with the table of routes. Gateways check their callers
/// themselves.
fn routes(server: &Running) -> Vec<(String, String)> {
    let document = server.get("/openapi.json").json();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            let path = path.replace("{id}", "h-3f0k2m9qav-7").replace("{version}", "1").replace("{rule}", "reply");
            routes.push((method.to_ascii_uppercase(), path));
        }
    }
    assert!(routes.len() > 40, "{routes:?}");
    routes.retain(|(_, path)| path.starts_with("/v1/"));
    routes
}

/// A call without a body. The route decides on the caller before it looks at the body.
fn ask(server: &Running, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    http::Client::connect(server.address).call(method, path, headers, "")
}

#[test]
fn the_view_token_opens_no_write_of_any_route() {
    for toml in [TOKENS, "auth = { admin_token = 'adm1n', view_token = 'v1ew' }"] {
        let server = Running::start(toml);
        let bearer = key(&server, "v1ew");
        for (method, path) in routes(&server) {
            let reply = ask(&server, &method, &path, &[("authorization", &bearer)]);
            let reads = method == "GET" || READ_BY_POST.contains(&path.as_str());
            let refused = reply.status == 403 && reply.body.contains("the view token changes nothing");
            // Koala's own paths have rules of their own, and there are none here.
            assert!(refused != reads || path.starts_with("/v1/koala"), "{method} {path}: {reply:?}");
        }
    }
}

#[test]
fn no_route_answers_the_page_of_another_site() {
    let server = Running::start(TOKENS);
    for (method, path) in routes(&server) {
        for site in ["cross-site", "same-site"] {
            let headers = [("authorization", "Bearer adm1n"), ("sec-fetch-site", site)];
            let reply = ask(&server, &method, &path, &headers);
            assert!(reply.status == 403 || path.starts_with("/v1/koala"), "{method} {path} {site}: {reply:?}");
        }
        for site in ["same-origin", "none"] {
            let headers = [("authorization", "Bearer adm1n"), ("sec-fetch-site", site)];
            let reply = ask(&server, &method, &path, &headers);
            assert_ne!(reply.status, 403, "{method} {path} {site}: {reply:?}");
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("cache-control", "no-store"),
                ("cross-origin-resource-policy", "same-origin"),
            ] {
                assert_eq!(reply.header(name), Some(value), "{method} {path}");
            }
        }
    }
}

#[test]
fn no_route_but_the_login_answers_without_a_token() {
    let server = Running::start(TOKENS);
    for (method, path) in routes(&server).into_iter().filter(|(_, path)| path != "/v1/session") {
        let reply = ask(&server, &method, &path, &[("authorization", "Bearer wrong")]);
        assert!(reply.status == 401 || path.starts_with("/v1/koala"), "{method} {path}: {reply:?}");
    }
}
