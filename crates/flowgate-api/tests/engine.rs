//! The JSON of a real engine's decisions, byte by byte.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use flowgate::{MemoryConfig, MemoryStore, Op, Span, Time, WhenFull};
use flowgate_api::{Decision, Explanation, ManualBan, Problem};
use flowgate_engine::config::Config;
use flowgate_engine::{AdHoc, Engine, Request, bans::BanOrder};

const NOW: Time = Time::from_secs(1_700_000_000);

fn engine(toml: &str) -> Engine {
    Engine::new(&Config::from_toml(toml).unwrap().policy, MemoryStore::default()).unwrap()
}

/// The decision of the last of several takes of user 42.
#[track_caller]
fn check(toml: &str, takes: &[u64], expected: &str) {
    let engine = engine(toml);
    let take = |cost: &u64| engine.decide(Op::Take, &Request::new().field("user", "42").cost(*cost), NOW);
    let decision = takes.iter().map(take).last().unwrap();
    let text = serde_json::to_string(&Decision::from(&decision)).unwrap();
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<Decision<'_>>(&text).unwrap(), Decision::from(&decision));
}

#[test]
fn denial_has_every_member() {
    check(
        r#"rule = [{ name = "reply", by = ["user"], limits = ["bucket 3/10s"], code = -201, message = "Too \"fast\"\\.\n" },
            { name = "quiet", by = ["user"], limits = ["1/s"], shadow = true }]"#,
        &[1, 1, 2],
        concat!(
            r#"{"allowed":false,"action":"deny","rule":"reply","matched":true,"code":-201,"message":"Too \"fast\"\\.\n","#,
            r#""limit":3,"remaining":1,"retry_after":3.334,"reset_after":6.667,"delay":0,"#,
            r#""exceeded":[{"rule":"reply","limit":"bucket 3/10s","retry_after":3.334}],"shadow":["quiet"],"#,
            r#""banned_until":null,"degraded":false}"#
        ),
    );
}

#[test]
fn denial_for_want_of_memory_is_told_apart_from_an_exceeded_limit() {
    let config = MemoryConfig { max_bytes: 64 << 10, when_full: WhenFull::Deny, ..MemoryConfig::default() };
    let policy = Config::from_toml("rule = [{ name = 'reply', by = ['user'], limits = ['5/60s'] }]").unwrap().policy;
    let engine = Engine::new(&policy, MemoryStore::new(config)).unwrap();
    let take = |user: u32| engine.decide(Op::Take, &Request::new().field("user", &user.to_string()), NOW);
    let refused = (0..100_000).map(take).find(|decision| !decision.allowed()).unwrap();
    let text = serde_json::to_string(&Decision::from(&refused).exceeded).unwrap();
    assert_eq!(text, r#"[{"rule":"reply","limit":"sliding 5/60s","retry_after":1,"memory_full":true}]"#);
    let exceeded = engine.decide(Op::Peek, &Request::new().field("user", "0").cost(5), NOW);
    assert!(!exceeded.allowed() && !exceeded.exceeded()[0].lacks_room, "known keys are counted");
    let limit = "5/60s".parse().unwrap();
    let take_key =
        |key: u32| engine.limit(Op::Take, AdHoc { key: (&key.to_le_bytes()).into(), limit: &limit, cost: 1 }, NOW);
    let refused = (0..100_000).map(|key| take_key(key).unwrap()).find(|decision| !decision.allowed()).unwrap();
    assert!(Decision::of_limit(&limit, &refused, false).exceeded[0].memory_full);
}

#[test]
fn allowed_request_has_numbers_of_its_rule() {
    check(
        r#"rule = [{ name = "reply", by = ["user"], limits = ["1/60s"] }]"#,
        &[1],
        concat!(
            r#"{"allowed":true,"action":"allow","rule":"reply","matched":true,"limit":1,"remaining":0,"#,
            r#""retry_after":null,"reset_after":60,"delay":0,"exceeded":[],"shadow":[],"banned_until":null,"#,
            r#""degraded":false}"#
        ),
    );
}

#[test]
fn never_is_written_only_when_true() {
    check(
        "rule = [{ name = 'big', limits = ['5/60s'] }]",
        &[9],
        concat!(
            r#"{"allowed":false,"action":"deny","rule":"big","matched":true,"limit":5,"remaining":5,"#,
            r#""retry_after":null,"never":true,"reset_after":0,"delay":0,"#,
            r#""exceeded":[{"rule":"big","limit":"sliding 5/60s","retry_after":null,"never":true}],"#,
            r#""shadow":[],"banned_until":null,"degraded":false}"#
        ),
    );
}

#[test]
fn delay_of_pace_is_written() {
    check(
        "rule = [{ name = 'p', limits = ['pace 500/s'] }]",
        &[1, 1],
        concat!(
            r#"{"allowed":true,"action":"allow","rule":"p","matched":true,"limit":1,"remaining":0,"retry_after":null,"#,
            r#""reset_after":0.004,"delay":0.002,"exceeded":[],"shadow":[],"banned_until":null,"degraded":false}"#
        ),
    );
}

#[test]
fn request_without_a_rule_has_null_numbers() {
    check(
        "",
        &[1],
        concat!(
            r#"{"allowed":true,"action":"allow","rule":null,"matched":false,"limit":null,"remaining":null,"#,
            r#""retry_after":null,"reset_after":0,"delay":0,"exceeded":[],"shadow":[],"banned_until":null,"#,
            r#""degraded":false}"#
        ),
    );
}

#[test]
fn ban_ends_at_an_instant_rounded_up() {
    let engine = engine("");
    let now = Time::from_nanos(1_700_000_000_000_000_001);
    let order =
        BanOrder { field: "user", value: "42", length: Span::from_millis(1500), reason: "\u{1}é", author: None };
    let ban = engine.ban(order, now).unwrap();
    let decision = engine.decide(Op::Take, &Request::new().field("user", "42"), now);
    let text = serde_json::to_string(&Decision::from(&decision)).unwrap();
    assert!(text.contains(r#""message":"\u0001é""#), "{text}");
    assert!(text.contains(r#""retry_after":1.5,"#), "{text}");
    assert!(text.contains(r#""banned_until":1700000001.501,"#), "{text}");
    let ban = serde_json::to_string(&ManualBan::from(&*ban)).unwrap();
    let rest = r#"","field":"user","value":"42","until":1700000001.501,"reason":"\u0001é","author":null}"#;
    assert!(ban.starts_with(r#"{"id":"h-"#) && ban.ends_with(rest), "{ban}");
}

#[test]
fn decision_of_one_limit_names_it() {
    let (engine, limit) = (engine(""), "1/60s".parse().unwrap());
    let hit = || engine.limit(Op::Take, AdHoc { key: b"k".into(), limit: &limit, cost: 1 }, NOW).unwrap();
    hit();
    assert_eq!(
        serde_json::to_string(&Decision::of_limit(&limit, &hit(), true)).unwrap(),
        concat!(
            r#"{"allowed":false,"action":"deny","rule":null,"matched":true,"limit":1,"remaining":0,"retry_after":60,"#,
            r#""reset_after":60,"delay":0,"exceeded":[{"rule":null,"limit":"sliding 1/60s","retry_after":60}],"#,
            r#""shadow":[],"banned_until":null,"degraded":true}"#
        )
    );
}

#[test]
fn explanation_tells_why_a_rule_fails() {
    let engine = engine("rule = [{ name = 'reply', when = { act = 'reply' }, by = ['user'], limits = ['1/60s'] }]");
    let explain = |act| engine.explain(&Request::new().field("user", "42").field("act", act), NOW);
    let (matching, failing) = (explain("reply"), explain("read"));
    let text = serde_json::to_string(&Explanation::from(&matching).rules).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"[{"rule":"reply","title":null,"matched":true,"failed":null,"reached":true,"shadow":false,"#,
            r#""action":"deny","limits":[{"limit":"sliding 1/60s","allowed":true,"most":1,"remaining":1,"#,
            r#""retry_after":null,"reset_after":0,"delay":0}],"banned_until":null,"ban_scope":null,"on_failure":null}]"#
        )
    );
    let failed = Explanation::from(&failing).rules.remove(0).failed.unwrap();
    let text = serde_json::to_string(&failed).unwrap();
    assert_eq!(text, r#"{"field":"act","expected":"reply","found":"read"}"#);
}

#[test]
fn problem_of_a_limit_is_an_exceeded_quota() {
    let toml = "rule = [{ name = 'reply', limits = ['1/60s'], code = 201, message = 'You reply too fast.' }]";
    let engine = engine(toml);
    engine.decide(Op::Take, &Request::new(), NOW);
    let denied = engine.decide(Op::Take, &Request::new(), NOW);
    assert_eq!(
        serde_json::to_string(&Problem::from_decision(&denied, 429, 403)).unwrap(),
        concat!(
            r#"{"status":429,"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
            r#""title":"Quota exceeded","detail":"You reply too fast.","action":"deny","code":201,"retry_after":60,"#,
            r#""violated-policies":["reply"]}"#
        )
    );
}

#[test]
fn problem_of_a_rule_without_limits_is_forbidden() {
    let engine = engine("rule = [{ name = 'no', when = { user = '42' }, action = 'deny' }]");
    let denied = engine.decide(Op::Take, &Request::new().field("user", "42"), NOW);
    assert_eq!(
        serde_json::to_string(&Problem::from_decision(&denied, 429, 403)).unwrap(),
        r#"{"status":403,"type":"about:blank","title":"Forbidden","action":"deny","violated-policies":["no"]}"#
    );
    assert_eq!(
        serde_json::to_string(&Problem::forbidden(403, "two hosts")).unwrap(),
        r#"{"status":403,"type":"about:blank","title":"Forbidden","detail":"two hosts"}"#
    );
}
