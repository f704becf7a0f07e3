//! The layer around real services: what passes, what clients get, what is refunded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod axum_server;
mod dropped;
mod from_config;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use flowgate::{Span, Time};
use flowgate_tower::{
    ClientAddresses, Config, Decision, Engine, HeaderFamily, ManualClock, MemoryStore, Outcome, RateLimit, client_ip,
    header, path,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::{Layer, Service, ServiceExt, service_fn};

const START: Time = Time::from_secs(1_700_000_000);

type Answer = Response<Full<Bytes>>;

fn get_as(key: &str) -> Request<()> {
    Request::builder().uri("/").header("x-key", key).body(()).unwrap()
}

/// A service that responds with the status that the request asks for, and counts the requests that reach it.
fn echo(
    reached: &Arc<AtomicUsize>,
) -> impl Service<Request<()>, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + use<> {
    let reached = Arc::clone(reached);
    service_fn(move |request: Request<()>| {
        reached.fetch_add(1, Relaxed);
        let status = request.headers().get("x-status").map_or(200, |status| status.to_str().unwrap().parse().unwrap());
        let seen = request.extensions().get::<Arc<Decision>>().is_some();
        let response = Response::builder().status(status).header("x-decided", seen.to_string());
        std::future::ready(Ok(response.body(Full::default()).unwrap()))
    })
}

async fn ask<S>(service: &S, request: Request<()>) -> Answer
where
    S: Service<Request<()>, Response = Answer, Error = Infallible> + Clone,
{
    service.clone().oneshot(request).await.unwrap()
}

/// The named headers, joined; a missing one is `-`.
fn headers(response: &Answer, names: &[&str]) -> String {
    let value = |name: &&str| response.headers().get(*name).map_or("-", |value| value.to_str().unwrap()).to_owned();
    names.iter().map(value).collect::<Vec<_>>().join(" | ")
}

const LEFT: &[&str] = &[
    "ratelimit-policy",
    "ratelimit",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "retry-after",
];

#[tokio::test]
async fn each_key_has_a_counter_of_its_own() {
    let (clock, reached) = (ManualClock::new(START), Arc::default());
    let limit = RateLimit::new("api", "2/60s").unwrap().by(header("x-key")).clock(clock.clone());
    let service = limit.layer(echo(&reached));

    let first = ask(&service, get_as("a")).await;
    assert_eq!(first.status(), 200);
    assert_eq!(headers(&first, LEFT), r#""api";q=2;w=60 | "api";r=1;t=60 | 2 | 1 | 60 | -"#);
    assert_eq!(headers(&first, &["x-decided"]), "true");
    ask(&service, get_as("a")).await;

    let denied = ask(&service, get_as("a")).await;
    assert_eq!(denied.status(), 429);
    assert_eq!(headers(&denied, LEFT), r#""api";q=2;w=60 | "api";r=0;t=60 | 2 | 0 | 60 | 60"#);
    assert_eq!(headers(&denied, &["content-type"]), "application/problem+json");
    let body = denied.into_body().collect().await.unwrap().to_bytes();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(body["title"], "Quota exceeded");
    assert_eq!(body["violated-policies"], serde_json::json!(["api"]));
    assert_eq!((&body["status"], &body["retry_after"]), (&429.into(), &60.into()));

    assert_eq!(ask(&service, get_as("b")).await.status(), 200, "another key");
    assert_eq!(reached.load(Relaxed), 3, "a denied request never reaches the service");
    clock.advance(Span::from_secs(60));
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn waits_are_real_time_while_the_clock_runs_at_half_speed() {
    let clock = ManualClock::new(START);
    clock.put_back(Span::from_secs(3600));
    let limit = |limit| RateLimit::new("api", limit).unwrap().by(header("x-key")).clock(clock.clone());
    let service = limit("1/60s").layer(echo(&Arc::default()));
    ask(&service, get_as("a")).await;
    let denied = ask(&service, get_as("a")).await;
    assert_eq!(headers(&denied, LEFT), r#""api";q=1;w=60 | "api";r=0;t=120 | 1 | 0 | 120 | 120"#);
    clock.advance(Span::from_secs(120));
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);

    // The clock runs at half speed. A turn in 2 seconds of the clock comes after 4 real seconds. A turn in 6 seconds
    // would come after 12 real seconds, and the layer holds a request for at most 10.
    let paced = limit("pace 1/2s max_wait=1h").layer(echo(&Arc::default()));
    ask(&paced, get_as("b")).await;
    let asked = tokio::time::Instant::now();
    assert_eq!(ask(&paced, get_as("b")).await.status(), 200);
    assert_eq!(asked.elapsed().as_secs(), 4);
    assert_eq!(ask(&paced, get_as("b")).await.status(), 200);
    assert_eq!(ask(&paced, get_as("b")).await.status(), 429);
}

#[tokio::test]
async fn requests_without_a_key_are_counted_together() {
    let limit = RateLimit::new("api", "1/60s").unwrap().by(header("x-key"));
    let service = limit.layer(echo(&Arc::default()));
    let without = || Request::builder().uri("/").body(()).unwrap();
    assert_eq!(ask(&service, without()).await.status(), 200);
    assert_eq!(ask(&service, without()).await.status(), 429);
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
}

#[tokio::test]
async fn costs_come_from_the_request() {
    let limit = RateLimit::new("api", "10/60s").unwrap().cost(|request| request.uri.path().len() as u64);
    let service = limit.layer(echo(&Arc::default()));
    let to = |path: &str| Request::builder().uri(path).body(()).unwrap();
    assert_eq!(headers(&ask(&service, to("/123456")).await, &["x-ratelimit-remaining"]), "3");
    assert_eq!(ask(&service, to("/123456")).await.status(), 429);
    let never = ask(&service, to("/1234567890")).await;
    assert_eq!((never.status(), headers(&never, &["retry-after"])), (StatusCode::TOO_MANY_REQUESTS, "-".to_owned()));
}

#[tokio::test]
async fn rules_decide_by_fields() {
    let config = Config::from_toml(
        r#"
        [[rule]]
        name = "blocked"
        when = { ip = "6.6.6.0/24" }
        action = "deny"
        code = 7
        message = "Go away."
        [[rule]]
        name = "api"
        when = { path = "/api" }
        by = ["ip"]
        limits = ["1/60s"]
        "#,
    );
    let engine = Arc::new(Engine::new(&config.unwrap().policy, MemoryStore::default()).unwrap());
    let limit = RateLimit::with_engine(engine).field("ip", client_ip(ClientAddresses::default())).field("path", path());
    let service = limit.layer(echo(&Arc::default()));
    let from = |client: &str, path: &str| {
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        Request::builder().uri(path).header("x-forwarded-for", client).extension(peer).body(()).unwrap()
    };
    assert_eq!(ask(&service, from("1.1.1.1", "/api")).await.status(), 200);
    for spelling in ["/api", "//api", "/%61pi", "/./api"] {
        assert_eq!(ask(&service, from("1.1.1.1", spelling)).await.status(), 429, "{spelling}");
        assert_eq!(ask(&service, from("9.9.9.9, 1.1.1.1", spelling)).await.status(), 429, "{spelling}");
    }
    assert_eq!(ask(&service, from("1.1.1.2", "/api")).await.status(), 200);
    let free = ask(&service, from("1.1.1.1", "/other")).await;
    assert_eq!((free.status(), headers(&free, LEFT)), (StatusCode::OK, "- | - | - | - | - | -".to_owned()));

    let blocked = ask(&service, from("6.6.6.6", "/")).await;
    assert_eq!((blocked.status(), headers(&blocked, &["retry-after"])), (StatusCode::FORBIDDEN, "-".to_owned()));
    let body = blocked.into_body().collect().await.unwrap().to_bytes();
    let expected = r#"{"type":"about:blank","title":"Forbidden","status":403,"detail":"Go away.","violated-policies":["blocked"],"action":"deny","code":7}"#;
    let parse = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
    assert_eq!(parse(&body), parse(expected.as_bytes()));
}

/// `ua` is the field `header.user-agent`, on either side.
#[tokio::test]
async fn rules_know_the_user_agent_by_both_names() {
    for (named, ruled) in [("ua", "header.user-agent"), ("header.user-agent", "ua"), ("header.User-Agent", "ua")] {
        let rules = format!("rule = [{{ name = 'bots', when = {{ '{ruled}' = '~bot' }}, action = 'deny' }}]");
        let engine = Engine::new(&Config::from_toml(&rules).unwrap().policy, MemoryStore::default()).unwrap();
        let limit = RateLimit::with_engine(Arc::new(engine)).field("ua", |_| Some("bot".to_owned()));
        let service = limit.field(named, header("user-agent")).layer(echo(&Arc::default()));
        let status = async |agent: &str| {
            ask(&service, Request::builder().header("user-agent", agent).body(()).unwrap()).await.status().as_u16()
        };
        assert_eq!((status("Mozilla").await, status("robot").await), (200, 403), "{named} {ruled}");
    }
}

#[tokio::test]
async fn failures_are_refunded() {
    let limit = RateLimit::new("api", "2/60s").unwrap().refund_failures();
    let service = limit.layer(echo(&Arc::default()));
    let with_status = |status: u16| Request::builder().header("x-status", status).body(()).unwrap();
    for _ in 0..5 {
        let failed = ask(&service, with_status(503)).await;
        assert_eq!(failed.status(), 503);
        assert_eq!(headers(&failed, &["x-ratelimit-remaining"]), "2", "told after it was given back");
    }
    assert_eq!(ask(&service, with_status(404)).await.status(), 404);
    assert_eq!(ask(&service, with_status(200)).await.status(), 200);
    assert_eq!(ask(&service, with_status(503)).await.status(), 429);
}

#[tokio::test]
async fn failure_without_a_response_is_refunded() {
    let limit = RateLimit::new("api", "1/60s").unwrap();
    let broken = || service_fn(|_: Request<()>| std::future::ready(Err::<Answer, _>("broken")));
    let refunding = limit.clone().refund_if(|outcome| matches!(outcome, Outcome::Failed)).layer(broken());
    for _ in 0..3 {
        assert_eq!(refunding.clone().oneshot(get_as("a")).await.unwrap_err(), "broken");
    }
    let counting = limit.layer(broken());
    assert!(counting.clone().oneshot(get_as("a")).await.is_err());
    assert_eq!(counting.oneshot(get_as("a")).await.unwrap().status(), 429);
}

#[tokio::test(start_paused = true)]
async fn request_is_held_until_its_turn() {
    let clock = ManualClock::new(START);
    let limit = RateLimit::new("report", "pace 1/2s max_wait=1h").unwrap().clock(clock);
    let service = limit.max_delay(Duration::from_secs(3)).layer(echo(&Arc::default()));
    let start = tokio::time::Instant::now();
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(ask(&service, get_as("a")).await.status(), 200);
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_millis(2010), "{waited:?}");

    // The next turn is 4 seconds away, a second more than the longest hold.
    for _ in 0..3 {
        let denied = ask(&service, get_as("a")).await;
        assert_eq!((denied.status(), headers(&denied, &["retry-after"])), (StatusCode::TOO_MANY_REQUESTS, "1".into()));
    }
    assert_eq!(start.elapsed(), waited, "a denied request neither waits nor holds a turn");
}

#[tokio::test]
async fn a_rule_that_denies_a_late_turn_is_named() {
    let rules = r#"rule = [
        { name = "quota", limits = ["3/60s"] },
        { name = "slow", limits = ["pace 1/20s burst=2 max_wait=none"], message = "Slowly." },
    ]"#;
    let engine = Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap();
    let service = RateLimit::with_engine(Arc::new(engine)).clock(ManualClock::new(START)).layer(echo(&Arc::default()));
    ask(&service, get_as("a")).await;
    ask(&service, get_as("a")).await;
    let denied = ask(&service, get_as("a")).await;
    assert_eq!(headers(&denied, &["ratelimit", "retry-after"]), r#""slow";r=0;t=10 | 10"#);
    let body = denied.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("Slowly."), "{body:?}");
}

#[tokio::test]
async fn an_ipv6_client_is_matched_by_its_address_and_counted_by_its_network() {
    let rules = r#"rule = [
        { name = "one", when = { ip = "2001:db8:1:2::6" }, action = "deny" },
        { name = "all", by = ["ip"], limits = ["2/60s"] },
    ]"#;
    let engine = Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap();
    let limit = RateLimit::with_engine(Arc::new(engine)).field("ip", client_ip(ClientAddresses::default()));
    let service = limit.layer(echo(&Arc::default()));
    let status = async |client: &str| {
        let local: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let request = Request::builder().extension(local).header("x-forwarded-for", client).body(()).unwrap();
        ask(&service, request).await.status().as_u16()
    };
    for (client, expected) in [
        ("2001:db8:1:2::6", 403),
        ("2001:db8:1:2::7", 200),
        ("2001:db8:1:2::8", 200),
        ("2001:db8:1:2::9", 429),
        ("2001:db8:1:3::9", 200),
    ] {
        assert_eq!(status(client).await, expected, "{client}");
    }
}

#[tokio::test]
async fn on_deny_replaces_the_response_and_keeps_its_headers() {
    let limit =
        RateLimit::new("api", "1/60s").unwrap().headers([HeaderFamily::RateLimit]).on_deny(|decision, request| {
            let text = format!("{} denies {}", decision.rule().unwrap().name(), request.uri.path());
            Response::builder().status(503).header("retry-after", "120").body(Bytes::from(text)).unwrap()
        });
    let service = limit.layer(echo(&Arc::default()));
    ask(&service, get_as("a")).await;
    let denied = ask(&service, get_as("a")).await;
    assert_eq!(denied.status(), 503);
    assert_eq!(headers(&denied, LEFT), r#""api";q=1;w=60 | "api";r=0;t=60 | - | - | - | 120"#);
    assert_eq!(denied.into_body().collect().await.unwrap().to_bytes(), "api denies /");
}

#[tokio::test]
async fn every_layer_adds_its_headers() {
    let (outer, inner) = (RateLimit::new("all", "9/60s").unwrap(), RateLimit::new("route", "5/60s").unwrap());
    let service = outer.layer(inner.layer(echo(&Arc::default())));
    let answer = ask(&service, get_as("a")).await;
    let listed: Vec<_> = answer.headers().get_all("ratelimit").iter().collect();
    assert_eq!(listed, [r#""route";r=4;t=60"#, r#""all";r=8;t=60"#]);
    assert_eq!(headers(&answer, &["x-ratelimit-remaining"]), "4");
}

#[tokio::test]
async fn a_path_that_can_be_read_in_two_ways_is_denied() {
    let rules = r#"rule = [{ name = "login", when = { path = "/login" }, limits = ["1/60s"] }]"#;
    let engine = Arc::new(Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap());
    let reached = Arc::default();
    let service = RateLimit::with_engine(engine).field("path", path()).layer(echo(&reached));
    let get = |uri: &str| Request::get(uri).body(()).unwrap();
    let status = async |uri: &str| ask(&service, get(uri)).await.status().as_u16();
    for uri in ["/search/x%2f..%2f..%2flogin", "/static/..;/login", "/a%5c..%5clogin", "/login/%20/.."] {
        assert_eq!(status(uri).await, 403, "{uri}");
    }
    let denied = ask(&service, get("/static/..;/login")).await.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&denied).contains("the path of the request can be read in several ways"));
    assert_eq!([status("/a/../login").await, status("/login").await], [200, 429], "a plain .. has one reading");
}

#[test]
fn a_rule_by_a_field_that_requests_never_have_fails_at_build() {
    let rules = r#"rule = [{ name = "login", when = { path = "/login" }, by = ["ip"], limits = ["5/60s"] }]"#;
    let engine = Arc::new(Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap());
    let limit = RateLimit::with_engine(Arc::clone(&engine)).field("path", path());
    assert_eq!(limit.missing_fields(), ["ip"]);
    let panic = |limit: &RateLimit| {
        let build = std::panic::AssertUnwindSafe(|| drop(limit.layer(())));
        std::panic::catch_unwind(build).err()?.downcast::<String>().ok()
    };
    let message = panic(&limit).unwrap();
    assert!(message.contains(r#".field("ip", ..)"#), "{message}");
    assert!(panic(&limit.clone().field("ip", |_| None::<String>)).is_none());

    // Rules that come later are not checked by themselves.
    let limit = limit.field("ip", client_ip(ClientAddresses::default()));
    let more = r#"rule = [{ name = "all", by = ["user"], limits = ["5/60s"] }]"#;
    engine.replace(&Config::from_toml(more).unwrap().policy).unwrap();
    assert_eq!(limit.missing_fields(), ["user"]);
}

#[test]
fn wrong_limits_and_names_are_errors() {
    let error = |name, limit| RateLimit::new(name, limit).unwrap_err().to_string();
    assert!(error("api", "5 per minute").contains("a slash and a period"), "{}", error("api", "5 per minute"));
    assert!(error("a b", "5/60s").contains("letters, digits"), "{}", error("a b", "5/60s"));
}

#[tokio::test]
async fn concurrent_requests_get_the_limit_and_no_more() {
    let reached = Arc::default();
    let service = RateLimit::new("api", "10/60s").unwrap().layer(echo(&reached));
    let asking = (0..64).map(|_| {
        let service = service.clone();
        tokio::spawn(async move { ask(&service, get_as("a")).await.status() })
    });
    let mut passed = 0;
    for asked in asking.collect::<Vec<_>>() {
        passed += usize::from(asked.await.unwrap() == 200);
    }
    assert_eq!((passed, reached.load(Relaxed)), (10, 10));
}
