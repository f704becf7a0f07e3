//! What the server counts, as Prometheus sees it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod exposition;
mod packaging;

use exposition::Samples;
use flowgate::{Limit, ManualClock, MemoryStore, Op, Span, Time};
use flowgate_engine::{AdHoc, Engine, Request, bans::BanOrder};
use flowgate_server::{Author, Config, Operation, Server, Service};
use flowgate_testkit::server::RunningServer;
use flowgate_testkit::{http, resp};
use std::borrow::Cow;

const RULES: &str = r#"
    [[rule]]
    name = "blocked"
    when = { ip = "6.6.6.6" }
    action = "deny"
    [[rule]]
    name = "reply"
    when = { act = "reply" }
    by = ["user"]
    limits = ["2/60s"]
    action = "captcha"
    ban = { after = 2, within = "10m", for = ["1h"], forget = "24h" }
    [[rule]]
    name = "trial"
    limits = ["1/60s"]
    shadow = true
"#;

fn service(rules: &str) -> (Service, ManualClock) {
    let clock = ManualClock::new(Time::from_secs(1_700_000_000));
    let engine = Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap();
    (Service::new(engine, clock.clone().into()), clock)
}

fn take(service: &Service, fields: &[(&str, &str)]) -> bool {
    let request: Request<'_> = fields.iter().copied().collect();
    service.decide(Operation::Take, &request).now().unwrap().allowed()
}

#[tokio::test]
async fn steps_of_the_wall_clock_show() {
    let (service, clock) = service("");
    clock.put_back(Span::from_secs(3600));
    clock.advance(Span::from_secs(1200));
    let samples = Samples::parse(&service.prometheus());
    assert_eq!(samples.get("flowgate_clock_ahead_seconds"), 3000.0);
    let steps = ["back", "forward", "ignored"];
    assert_eq!(
        steps.map(|kind| samples.get(&format!("flowgate_clock_steps_total{{kind=\"{kind}\"}}"))),
        [1.0, 0.0, 0.0]
    );
}

#[tokio::test]
async fn decisions_are_counted_by_rule_and_action() {
    let (service, _) = service(RULES);
    let reply = [("act", "reply"), ("user", "42")];
    // Two pass, the second denial starts a ban, which denies the last.
    let passed: Vec<bool> = (0..5).map(|_| take(&service, &reply)).collect();
    assert_eq!(passed, [true, true, false, false, false]);
    assert!(!take(&service, &[("ip", "6.6.6.6")]));
    assert!(take(&service, &[("act", "other")]));
    service
        .ban(
            BanOrder { field: "user", value: "7", length: Span::from_secs(60), reason: "", author: None },
            &Author::PROGRAM,
        )
        .await
        .unwrap();
    assert!(!take(&service, &[("user", "7")]));
    let limit: Limit = "1/60s".parse().unwrap();
    for operation in [Operation::Take, Operation::Take, Operation::Peek, Operation::Refund] {
        service.limit(operation, AdHoc { key: b"k".into(), limit: &limit, cost: 1 }, service.read()).await.unwrap();
    }

    let samples = Samples::parse(&service.prometheus());
    let decisions = |rule: &str, action: &str| {
        samples.get(&format!("flowgate_decisions_total{{rule=\"{rule}\",action=\"{action}\"}}"))
    };
    assert_eq!(decisions("reply", "allow"), 2.0);
    assert_eq!(decisions("reply", "captcha"), 2.0);
    assert_eq!(decisions("reply", "ban"), 1.0);
    assert_eq!(decisions("blocked", "deny"), 1.0);
    assert_eq!(decisions("(none)", "allow"), 1.0);
    assert_eq!(decisions("(ban)", "ban"), 1.0);
    assert_eq!((decisions("(key)", "allow"), decisions("(key)", "deny")), (1.0, 1.0));
    assert_eq!(samples.get("flowgate_shadow_denials_total{rule=\"trial\"}"), 5.0);
    assert_eq!(samples.get("flowgate_bans_started_total{rule=\"reply\"}"), 1.0);
    assert_eq!(samples.get("flowgate_bans{origin=\"hand\"}"), 1.0);
    assert_eq!(samples.get("flowgate_bans{origin=\"rule\"}"), 1.0);
    assert_eq!(samples.get("flowgate_operations_total{operation=\"peek\"}"), 1.0);
    assert_eq!(samples.get("flowgate_operations_total{operation=\"refund\"}"), 1.0);
    assert_eq!(samples.get("flowgate_memory_keys"), service.stats().counters as f64);
    assert_eq!(samples.get("flowgate_rules"), 3.0);
}

#[tokio::test]
async fn counts_survive_other_rules_by_name() {
    let (service, _) = service(RULES);
    take(&service, &[("act", "reply"), ("user", "1")]);
    let others = r#"rule = [{ name = "new", limits = ["9/s"] }, { name = "reply", by = ["ip"], limits = ["5/60s"] }]"#;
    service.replace(&Config::from_toml(others).unwrap().policy).unwrap();
    take(&service, &[("ip", "1.1.1.1")]);
    let text = service.prometheus();
    let samples = Samples::parse(&text);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"reply\",action=\"allow\"}"), 2.0);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"new\",action=\"allow\"}"), 0.0);
    assert!(!text.contains("trial"), "a rule that is gone has no label");
}

#[tokio::test]
async fn no_number_of_rules_and_subjects_makes_more_labels() {
    let rule = |n| format!("{{ name = \"rule{n}\", when = {{ n = \"{n}\" }}, by = [\"user\"], limits = [\"1/60s\"] }}");
    let rules: Vec<String> = (0..1500).map(rule).collect();
    let (service, _) = service(&format!("rule = [{}]", rules.join(",")));
    for n in 0..1500 {
        let user = format!("secret-subject-{n}");
        take(&service, &[("n", &n.to_string()), ("user", &user)]);
        take(&service, &[("n", &n.to_string()), ("user", &user)]);
    }
    let text = service.prometheus();
    let samples = Samples::parse(&text);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"rule999\",action=\"deny\"}"), 1.0);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"(other)\",action=\"allow\"}"), 500.0);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"(other)\",action=\"deny\"}"), 500.0);
    assert!(samples.len() < 2200, "{}", samples.len());
    assert!(!text.contains("secret-subject"));
}

#[tokio::test]
async fn the_hottest_and_the_most_denied_subjects_are_listed() {
    let (service, clock) = service(r#"rule = [{ name = "reply", by = ["user", "act"], limits = ["5/60s"] }]"#);
    for (user, times) in [("1", 3), ("2", 9), ("3", 7)] {
        for _ in 0..times {
            take(&service, &[("user", user), ("act", "post"), ("ip", "1.1.1.1")]);
        }
    }
    let limit: Limit = "1/60s".parse().unwrap();
    for _ in 0..8 {
        service
            .limit(Operation::Take, AdHoc { key: b"a key".into(), limit: &limit, cost: 1 }, service.read())
            .await
            .unwrap();
    }
    let shown = |top: flowgate_api::Top<'_>| -> Vec<(Option<String>, String, u64)> {
        top.subjects
            .into_iter()
            .map(|top| (top.rule.map(Cow::into_owned), top.subject.into_owned(), top.count))
            .collect()
    };
    let of = |user: &str, count| (Some("reply".to_owned()), format!("user={user} act=post"), count);
    let key = |count| (None, "a key".to_owned(), count);
    assert_eq!(shown(service.hottest()), [of("2", 9), key(8), of("3", 7), of("1", 3)]);
    assert_eq!(shown(service.most_denied()), [key(7), of("2", 4), of("3", 2)]);
    clock.advance(Span::from_secs(180));
    assert!(service.hottest().subjects.is_empty());
}

#[test]
fn a_server_tells_of_both_its_doors() {
    let (service, _) = service("");
    let config = Config::from_toml("listen = { http = '127.0.0.1:0', resp = '127.0.0.1:0' }").unwrap();
    let bind = async move || Server::bind_service(&config, service).await.unwrap();
    let (server, ()) = RunningServer::start_with(bind, |_| {});
    let held = resp::Client::connect(server.resp.unwrap());
    let say = |bytes: &[u8]| {
        let mut client = resp::Client::connect(server.resp.unwrap());
        client.send(bytes);
        client.rest();
    };
    let get = |path: &str| http::Client::connect(server.http.unwrap()).call("GET", path, &[], "");
    say(b"CL.THROTTLE user:42 1 1 60\r\nCL.THROTTLE user:42 1 1 60\r\nCL.THROTTLE user:42 1 1 60\r\nQUIT\r\n");
    say(b"*x\r\n");
    get("/healthz");

    let reply = get("/metrics");
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"), "{reply:?}");
    let samples = Samples::parse(&reply.body);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"(key)\",action=\"allow\"}"), 2.0);
    assert_eq!(samples.get("flowgate_decisions_total{rule=\"(key)\",action=\"deny\"}"), 1.0);
    assert_eq!(samples.get("flowgate_requests_total{protocol=\"resp\"}"), 4.0);
    assert_eq!(samples.get("flowgate_requests_total{protocol=\"http\"}"), 2.0);
    assert_eq!(samples.get("flowgate_connections_total{protocol=\"http\"}"), 2.0);
    assert!(samples.get("flowgate_connections{protocol=\"http\"}") >= 1.0);
    assert_eq!(samples.get("flowgate_resp_closed_total{reason=\"protocol_error\"}"), 1.0);
    assert_eq!(samples.get("flowgate_request_duration_seconds_count{protocol=\"resp\"}"), 4.0);
    assert_eq!(samples.get("flowgate_request_duration_seconds_count{protocol=\"http\"}"), 1.0);
    assert_eq!(samples.get("flowgate_reload_last_successful"), 1.0);
    assert_eq!(samples.get("process_start_time_seconds"), 1_700_000_000.0);
    if cfg!(target_os = "linux") {
        assert!(samples.get("process_resident_memory_bytes") > 1e6);
        assert!(samples.get("process_open_fds") > 3.0);
    }
    drop(held);
}

#[test]
fn what_is_full_is_told() {
    let memory = flowgate::MemoryConfig { max_bytes: 64 << 10, ..flowgate::MemoryConfig::default() };
    let config = Config::from_toml(r#"rule = [{ name = "r", by = ["user"], limits = ["1/60s"] }]"#).unwrap();
    let engine = Engine::new(&config.policy, MemoryStore::new(memory)).unwrap();
    let now = Time::from_secs(1_700_000_000);
    for user in 0..20_000 {
        engine.decide(Op::Take, &Request::new().field("user", &user.to_string()), now);
    }
    let service = Service::new(engine, ManualClock::new(now).into());
    let samples = Samples::parse(&service.prometheus());
    assert!(samples.get("flowgate_memory_evicted_total") > 1000.0);
    assert_eq!(samples.get("flowgate_memory_max_bytes"), 65536.0);
    assert!(samples.get("flowgate_memory_bytes") <= 65536.0);
}
