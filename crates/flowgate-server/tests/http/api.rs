//! Decisions, bans, explanations: what is asked and what comes back.

use flowgate::Span;
use serde_json::{Value, json};

use super::*;

const RULES: &str = r#"
    [[rule]]
    name = "reply"
    title = "Replies"
    when = { act = "reply" }
    by = ["user"]
    limits = ["5/60s"]
    code = 201
    message = "You reply too fast."
"#;

const REPLY: &str = r#"{"fields":{"act":"reply","user":"42"}}"#;

#[test]
fn the_decision_in_full() {
    let server = Running::start(RULES);
    let allowed = server.post("/v1/take", r#"{"fields":{"act":"reply","user":"42"},"cost":5}"#);
    assert_eq!((allowed.status, allowed.header("content-type")), (200, Some("application/json")));
    let expected = json!({"allowed": true, "action": "allow", "rule": "reply", "matched": true, "limit": 5, "remaining": 0,
        "retry_after": null, "reset_after": 60, "delay": 0, "exceeded": [], "shadow": [], "banned_until": null,
        "degraded": false});
    assert_eq!(allowed.json(), expected);

    server.clock.advance(Span::from_millis(47_750));
    let denied = server.post("/v1/take", REPLY);
    assert_eq!(denied.status, 200);
    let expected = json!({"allowed": false, "action": "deny", "rule": "reply", "matched": true, "code": 201,
        "message": "You reply too fast.", "limit": 5, "remaining": 0, "retry_after": 12.25, "reset_after": 12.25,
        "delay": 0, "exceeded": [{"rule": "reply", "limit": "sliding 5/60s", "retry_after": 12.25}], "shadow": [],
        "banned_until": null, "degraded": false});
    assert_eq!(denied.json(), expected);

    let unmatched = server.post("/v1/take", r#"{"fields":{}}"#).json();
    assert_eq!(
        (&unmatched["allowed"], &unmatched["matched"], &unmatched["rule"]),
        (&json!(true), &json!(false), &json!(null))
    );
}

#[test]
fn every_operation_is_answered() {
    let server = Running::start(RULES);
    for (operation, remaining) in
        [("take", 4), ("peek", 4), ("record", 3), ("refund", 4), ("take", 3), ("reset", 5), ("peek", 5)]
    {
        assert_eq!(server.post(&format!("/v1/{operation}"), REPLY).json()["remaining"], remaining, "{operation}");
    }
}

#[test]
fn a_batch_in_order_all_of_it_or_nothing() {
    let server = Running::start(RULES);
    let body = r#"[{"op":"take","fields":{"act":"reply","user":"42"},"cost":2},
                   {"fields":{"act":"reply","user":"42"}},
                   {"op":"peek","fields":{"act":"reply","user":"42"},"cost":4},
                   {"op":"refund","fields":{"act":"reply","user":"42"}}]"#;
    let replies = server.post("/v1/batch", body).json();
    let seen: Vec<_> = replies.as_array().unwrap().iter().map(|one| (&one["allowed"], &one["remaining"])).collect();
    assert_eq!(
        format!("{seen:?}"),
        "[(Bool(true), Number(3)), (Bool(true), Number(2)), (Bool(false), Number(2)), (Bool(true), Number(3))]"
    );

    server
        .post("/v1/batch", r#"[{"fields":{"act":"reply","user":"42"}},{"op":"give","fields":{}}]"#)
        .is_mistake(400, Some("[1].op"));
    server.post("/v1/batch", &format!("[{}]", vec![REPLY; 1001].join(","))).is_mistake(400, Some("[1000]"));
    assert_eq!(server.post("/v1/peek", REPLY).json()["remaining"], 3, "a mistake leaves everything as it was");
    assert_eq!(server.post("/v1/batch", "[]").body, "[]");
}

#[test]
fn an_atomic_batch_passes_whole_or_not_at_all() {
    let server = Running::start(RULES);
    let reply = |user: &str, cost: u64| format!(r#"{{"fields":{{"act":"reply","user":"{user}"}},"cost":{cost}}}"#);
    let ask = |items: &[String]| server.post("/v1/batch?atomic=true", &format!("[{}]", items.join(","))).json();
    let seen = |answer: &Value| {
        let part = |one: &Value| format!("{} {} {}", one["allowed"], one["remaining"], one["charged"]);
        let parts: Vec<_> = answer["decisions"].as_array().unwrap().iter().map(part).collect();
        format!("{}: {}", answer["allowed"], parts.join(", "))
    };
    assert_eq!(seen(&ask(&[reply("1", 2), reply("1", 1)])), "true: true 3 true, true 2 true");
    assert_eq!(seen(&ask(&[reply("2", 4), reply("1", 3)])), "false: true 5 false, false 2 false");
    // The second part is asked as if the first were counted.
    assert_eq!(seen(&ask(&[reply("1", 2), reply("1", 1)])), "false: true 2 false, false 2 false");
    let refund =
        reply("1", 1).replace('{', r#"{"op":"refund","#).replacen(r#""fields":{"op":"refund","#, r#""fields":{"#, 1);
    let peek = refund.replace("refund", "peek").replace(r#""cost":1"#, r#""cost":9"#);
    assert_eq!(seen(&ask(&[refund, peek])), "false: true 3 false, false 3 false");
    assert_eq!(server.post("/v1/batch?atomic=true", "[]").body, r#"{"allowed":true,"decisions":[]}"#);
    let unruled = ask(&[r#"{"fields":{"act":"other"}}"#.to_owned()]);
    assert_eq!((&unruled["allowed"], &unruled["decisions"][0]["charged"]), (&json!(true), &json!(false)));
}

#[test]
fn an_atomic_batch_has_at_most_128_requests_and_no_reset() {
    let server = Running::start(RULES);
    let path = "/v1/batch?atomic=true";
    let batch =
        |length: usize| format!("[{}]", vec![r#"{"fields":{"act":"reply","user":"42"},"cost":0}"#; length].join(","));
    assert_eq!(server.post(path, &batch(128)).json()["decisions"].as_array().unwrap().len(), 128);
    server.post(path, &batch(129)).is_mistake(400, Some("[128]"));
    let reset = r#"[{"fields":{"act":"reply","user":"42"}},{"op":"reset","fields":{"act":"reply","user":"42"}}]"#;
    server.post(path, reset).is_mistake(400, Some("[1].op"));
    server.post("/v1/batch?atomic=yes", "[]").is_mistake(400, Some("atomic"));
    server.post("/v1/batch?atom=true", "[]").is_mistake(400, Some("atom"));
    assert_eq!(server.post("/v1/batch?atomic=false", "[]").body, "[]");
    assert_eq!(server.post("/v1/peek", REPLY).json()["remaining"], 5, "a refused batch counts nothing");
}

#[test]
fn a_limit_of_the_callers() {
    let server = Running::start("");
    let body = r#"{"key":"hist:42","limit":"2/60s"}"#;
    let expected = json!({"allowed": true, "action": "allow", "rule": null, "matched": true, "limit": 2, "remaining": 1,
        "retry_after": null, "reset_after": 60, "delay": 0, "exceeded": [], "shadow": [], "banned_until": null,
        "degraded": false});
    assert_eq!(server.post("/v1/limit", body).json(), expected);
    server.post("/v1/limit", body);
    let denied = server.post("/v1/limit", body).json();
    assert_eq!(denied["exceeded"], json!([{"rule": null, "limit": "sliding 2/60s", "retry_after": 60}]));
    assert_eq!((&denied["allowed"], &denied["action"]), (&json!(false), &json!("deny")));
    let never = server.post("/v1/limit", r#"{"key":"hist:42","limit":"2/60s","cost":3}"#).json();
    assert_eq!((&never["retry_after"], &never["never"]), (&json!(null), &json!(true)));

    server.post("/v1/limit", r#"{"key":"hist:42","limit":"bucket 2/60s"}"#).is_mistake(409, Some("limit"));
    let reset = server.post("/v1/limit", r#"{"key":"hist:42","limit":"bucket 2/60s","op":"reset"}"#).json();
    assert_eq!(reset["remaining"], 2);
    let unlimited = server.post("/v1/limit", r#"{"key":"x","limit":"unlimited"}"#).json();
    assert_eq!((&unlimited["limit"], &unlimited["remaining"]), (&json!(null), &json!(null)));
    let escaped = server.post("/v1/limit", r#"{"key":"\u0000\n\u00e9","limit":"\u0032/60s"}"#).json();
    assert_eq!(escaped["remaining"], 1);

    server.post("/v1/limit", r#"{"key":"x","limit":"2/parsec"}"#).is_mistake(400, Some("limit"));
    server.post("/v1/limit", r#"{"key":"x"}"#).is_mistake(400, None);
    server.post("/v1/limit", r#"{"key":"x","limit":"2/60s","cost":1000000000001}"#).is_mistake(400, Some("cost"));
    server.post("/v1/limit", r#"{"key":"x","limit":"2/60s","burst":2}"#).is_mistake(400, Some("burst"));
}

#[test]
fn explanations_change_nothing() {
    let server =
        Running::start(&format!("{RULES}\n[[rule]]\nname = \"all\"\nwhen = {{ user = \"*\" }}\naction = \"captcha\""));
    server.post("/v1/take", REPLY);
    let explained = server.post("/v1/explain", REPLY).json();
    assert_eq!(
        (&explained["decision"]["allowed"], &explained["decision"]["action"]),
        (&json!(false), &json!("captcha"))
    );
    let expected = json!({"rule": "reply", "title": "Replies", "matched": true, "failed": null, "reached": true,
        "shadow": false, "action": "deny", "limits": [{"limit": "sliding 5/60s", "allowed": true, "most": 5, "remaining": 5,
        "retry_after": null, "reset_after": 0, "delay": 0}], "banned_until": null, "ban_scope": null,
        "on_failure": null});
    assert_eq!(explained["rules"][0], expected);

    let other = server.post("/v1/explain", r#"{"fields":{"act":"post"}}"#).json();
    assert_eq!(other["rules"][0]["failed"], json!({"field": "act", "expected": "reply", "found": "post"}));
    assert_eq!(other["rules"][1]["failed"], json!({"field": "user", "expected": "*", "found": null}));
    assert_eq!(other["decision"]["matched"], false);
    assert_eq!(other["ban"], Value::Null);

    let ban = server.post("/v1/bans", r#"{"field":"user","value":"42","for":"1h","reason":"spam"}"#).json();
    let explain_by = |token: &str| {
        let headers = [("content-type", "application/json"), ("authorization", token)];
        server.connect().call("POST", "/v1/explain", &headers, REPLY).json()
    };
    let banned = explain_by(&format!("Bearer {ADMIN_TOKEN}"));
    assert_eq!((&banned["ban"], &banned["rules"][0]["reached"]), (&ban, &json!(false)));
    assert_eq!(banned["decision"]["banned_until"], ban["until"]);
    let ban = &explain_by("")["ban"];
    assert_eq!(
        (&ban["reason"], &ban["author"]),
        (&json!("spam"), &Value::Null),
        "authors are for those who may read bans"
    );
}

#[test]
fn bans_are_listed_imposed_and_lifted() {
    let server = Running::start(
        r#"rule = [{ name = "login", by = ["ip"], limits = ["1/60s"], ban = { after = 1, within = "10m", for = ["1h"] } }]"#,
    );
    assert_eq!(server.get("/v1/bans").json(), json!({"bans": [], "rule_bans": []}));
    let imposed = server.post("/v1/bans", r#"{"field":"ip","value":"192.0.2.0/24","for":"1h","reason":"scraper"}"#);
    let by_hand = imposed.json()["id"].as_str().unwrap().to_owned();
    assert!(by_hand.starts_with("h-") && by_hand.ends_with("-1"), "{by_hand}");
    let ban = json!({"id": by_hand, "field": "ip", "value": "192.0.2.0/24", "until": 1_700_003_600, "reason": "scraper",
        "author": {"by": "admin token", "from": "127.0.0.1"}});
    assert_eq!((imposed.status, imposed.json()), (201, ban.clone()));
    let denied = server.post("/v1/take", r#"{"fields":{"ip":"192.0.2.7"}}"#).json();
    assert_eq!(
        (&denied["allowed"], &denied["message"], &denied["banned_until"]),
        (&json!(false), &json!("scraper"), &json!(1_700_003_600))
    );

    for _ in 0..2 {
        server.post("/v1/take", r#"{"fields":{"ip":"198.51.100.9"}}"#);
    }
    let listed = server.get("/v1/bans").json();
    assert_eq!(listed["bans"], json!([ban]));
    let by_rule = format!("r{}2", &by_hand[1..by_hand.len() - 1]);
    assert_eq!(
        listed["rule_bans"],
        json!([{"id": by_rule, "rule": "login", "subject": {"ip": "198.51.100.9"}, "scope": "rule", "until": 1_700_003_600}])
    );
    let mut client = server.connect();
    for id in [&by_hand, &by_rule] {
        assert_eq!(client.call("DELETE", &format!("/v1/bans/{id}"), &[], "").status, 204);
        client.call("DELETE", &format!("/v1/bans/{id}"), &[], "").is_mistake(404, None);
    }
    for id in ["x", "1"] {
        client.call("DELETE", &format!("/v1/bans/{id}"), &[], "").is_mistake(404, None);
    }
    assert_eq!(server.get("/v1/bans").json(), json!({"bans": [], "rule_bans": []}));

    let unused = server.post("/v1/bans", r#"{"field":"usr","value":"7","for":"1h"}"#).json();
    assert_eq!(unused["warning"], "no rule uses the field \"usr\"; only requests that bring it are stopped");
    let denied = server.post("/v1/take", r#"{"fields":{"usr":"7"}}"#).json();
    assert_eq!(denied["allowed"], false, "it is a ban all the same");
    for (value, addresses) in [("0.0.0.0/0", "every IPv4 address"), ("2000::/3", "1 of 8 of all IPv6 addresses")] {
        let order = format!(r#"{{"field":"ip","value":"{value}","for":"1h"}}"#);
        let ban = server.post("/v1/bans", &order).json();
        assert_eq!(ban["warning"], format!("the ban holds for {addresses}: lift it if that is not meant"));
        let id = ban["id"].as_str().unwrap();
        assert_eq!(client.call("DELETE", &format!("/v1/bans/{id}"), &[], "").status, 204);
    }
    for (value, addresses) in [("0.0.0.0/0", "every IPv4 address"), ("::/0", "every IPv6 address")] {
        let order = format!(r#"{{"field":"user","value":"{value}","for":"1h"}}"#);
        let told = format!(
            "the ban holds for values of \"user\" that are addresses, {addresses}: lift it if that is not meant"
        );
        let ban = server.post("/v1/bans", &order).json();
        assert_eq!(ban["warning"], told);
        let family = &addresses[6..10];
        let values = json!({"family": family, "one_in": "1", "field": "user"});
        assert_eq!(ban["warning_code"], json!({"code": "ban-wide-in-field", "values": values}));
        assert_eq!(ban["author"], json!({"by": "admin token", "from": "127.0.0.1"}));
        let passes = server.post("/v1/take", r#"{"fields":{"user":"seven"}}"#).json();
        assert_eq!(passes["allowed"], true, "a value that is not an address");
        let id = ban["id"].as_str().unwrap();
        assert_eq!(client.call("DELETE", &format!("/v1/bans/{id}"), &[], "").status, 204);
    }
    for (field, value, gate) in [("path", "/Login/", "/login"), ("host", "Example.com:80", "example.com")] {
        let order = format!(r#"{{"field":"{field}","value":"{value}","for":"1h"}}"#);
        let told = format!("requests at the gate have {gate:?} in the field {field:?}: ban that to stop them");
        assert_eq!(server.post("/v1/bans", &order).json()["warning"], told);
    }

    for (body, field) in [
        (r#"{"field":"","value":"x","for":"1h"}"#, Some("field")),
        (r#"{"field":"ip","value":"","for":"1h"}"#, Some("value")),
        (r#"{"field":"ip","value":"1.2.3.0/33","for":"1h"}"#, Some("value")),
        (r#"{"field":"ip","value":"x","for":"soon"}"#, Some("for")),
        (r#"{"field":"ip","value":"x","for":"0s"}"#, Some("for")),
        (r#"{"field":"ip","value":"x","for":3600}"#, Some("for")),
        (r#"{"field":"ip","value":"x"}"#, None),
        (r#"{"field":"ip","value":"x","for":"1h","whom":"me"}"#, Some("whom")),
    ] {
        server.post("/v1/bans", body).is_mistake(400, field);
    }
    for (part, length) in [("field", 257), ("value", 1025), ("reason", 1025)] {
        let mut order = json!({"field": "user", "value": "42", "for": "1h", "reason": ""});
        order[part] = "x".repeat(length).into();
        let told = server.post("/v1/bans", &order.to_string());
        told.is_mistake(400, Some(part));
        assert_eq!(told.json()["error"], format!("{part}: {length} bytes, expected at most {}", length - 1));
    }
}

#[test]
fn the_hottest_subjects_are_for_administrators() {
    let server = Running::start(RULES);
    (0..7).for_each(|_| assert_eq!(server.post("/v1/take", REPLY).status, 200));
    server.clock.advance(Span::from_millis(1500));
    let stats = server.get("/v1/stats").json();
    let subject = |count| {
        let (at, fields) = (1_700_000_000, json!({"user": "42"}));
        let seen = json!({"count": count, "error": 0, "first": at, "last": at});
        let mut subject = json!({"rule": "reply", "subject": "user=42", "fields": fields, "banned": false});
        subject.as_object_mut().unwrap().extend(seen.as_object().unwrap().clone());
        json!([subject])
    };
    assert_eq!(stats["hottest"], json!({"since": 1_700_000_000, "subjects": subject(7)}));
    assert_eq!(stats["most_denied"]["subjects"], subject(2));
    assert_eq!((&stats["rules"], &stats["memory"]["keys"], &stats["uptime"]), (&json!(1), &json!(1), &json!(1.5)));

    let closed = Running::start("[auth]\nadmin_token = \"adm1n-token\"");
    assert_eq!(closed.get("/v1/stats").status, 401);
    assert!(closed.get("/metrics").status == 200, "metrics name no client");
}

#[test]
fn a_pause_is_told_everywhere_and_ends() {
    let server = Running::start("rule = [{ name = 'no', action = 'deny' }]");
    let allowed = || server.post("/v1/take", REPLY).json()["allowed"] == true;
    let ready = || server.get("/readyz").body;
    let metric = |value: u8| server.get("/metrics").body.contains(&format!("\nflowgate_rules_paused {value}\n"));
    let nothing = json!({"paused": false, "since": null, "until": null});
    assert_eq!(server.get("/v1/pause").json(), nothing);
    assert!(!allowed() && ready() == "ready" && metric(0));

    let pause = server.post("/v1/pause", r#"{"for":"10m"}"#);
    let started = server.get("/v1/stats").json()["started"].as_f64().unwrap();
    let until = json!(started as u64 + 600);
    assert_eq!(pause.json(), json!({"paused": true, "since": started as u64, "until": until}));
    assert_eq!(server.get("/v1/pause").json(), pause.json());
    assert!(allowed() && metric(1));
    assert_eq!(ready(), "ready; rules paused for another 600 seconds");
    assert_eq!(server.get("/v1/stats").json()["paused_until"], until);
    let explained = server.post("/v1/explain", REPLY).json();
    assert_eq!((&explained["rules"][0]["shadow"], &explained["decision"]["shadow"]), (&json!(true), &json!(["no"])));

    assert_eq!(server.connect().call("DELETE", "/v1/pause", &[], "").json(), nothing);
    assert!(!allowed() && ready() == "ready" && metric(0));
    assert_eq!(server.get("/v1/stats").json()["paused_until"], json!(null));
    assert_eq!(server.connect().call("DELETE", "/v1/pause", &[], "").json(), nothing, "there is none to end");
}

#[test]
fn the_length_of_a_pause_is_bounded() {
    let server = Running::start("");
    for (length, status) in [("24h", 200), ("24h1s", 400), ("25h", 400), ("0s", 400), ("soon", 400), ("", 400)] {
        let reply = server.post("/v1/pause", &format!("{{\"for\":\"{length}\"}}"));
        assert_eq!(reply.status, status, "{length}: {}", reply.body);
        if status == 400 {
            assert_eq!(reply.json()["field"], "for");
        }
    }
}
