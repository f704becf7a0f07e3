//! The counts of a summary.

use serde_json::{Value, json};

use crate::{Trial, trace};

const POLICY: &str = r#"
[[rule]]
name = "blocked"
when = { user = "evil" }
action = "deny"

[[rule]]
name = "per-user"
by = ["user"]
limits = ["2/60s"]
ban = { after = 2, within = "1m", for = ["10m"], forget = "1h" }

[[rule]]
name = "all"
limits = ["4/60s"]
shadow = true

[[rule]]
name = "unused"
when = { act = "never" }
limits = ["1/s"]
"#;

fn events() -> Vec<u8> {
    // User a passes twice and is denied three times: the second denial bans it. User b passes once, evil is denied
    // twice.
    let mut events = trace(&[
        (60, "a"),
        (61, "a"),
        (62, "a"),
        (63, "a"),
        (64, "a"),
        (64, "b"),
        (120, "evil"),
        (121, "evil"),
        (90, "b"),
    ]);
    events.extend_from_slice(b"{\"ts\":130,\"op\":\"reset\",\"fields\":{\"user\":\"a\"}}\n");
    events.extend_from_slice(b"{\"ts\":131,\"op\":\"peek\",\"fields\":{\"user\":\"a\"}}\n");
    events.extend(trace(&[(132, "a")]));
    events
}

#[test]
fn the_summary_has_every_count() {
    let summary = Trial::new(POLICY, &events()).json();
    let counts = |keys: &[&str]| -> Vec<Value> { keys.iter().map(|key| summary[key].clone()).collect() };
    assert_eq!(counts(&["lines", "skipped", "other_operations"]), [12, 0, 2].map(Value::from));
    assert_eq!(counts(&["reordered", "reordered_by_seconds", "late"]), [1, 31, 0].map(Value::from));
    assert_eq!(counts(&["requests", "passed", "denied", "unmatched"]), [10, 5, 5, 0].map(Value::from));
    assert_eq!(counts(&["first", "last"]), ["1970-01-01T00:01:00Z", "1970-01-01T00:02:12Z"].map(Value::from));
    assert_eq!(
        summary["rules"],
        json!([
            {"name": "blocked", "shadow": false, "seen": 2, "passed": 0, "denied": 2, "banned": 0, "would_deny": 0},
            {"name": "per-user", "shadow": false, "seen": 8, "passed": 5, "denied": 3, "banned": 1, "would_deny": 0},
            {"name": "all", "shadow": true, "seen": 8, "passed": 8, "denied": 0, "banned": 0, "would_deny": 3},
            {"name": "unused", "shadow": false, "seen": 0, "passed": 0, "denied": 0, "banned": 0, "would_deny": 0},
        ])
    );
    let hits = |list: &str| -> Vec<Value> {
        let hits = summary[list].as_array().unwrap().iter();
        hits.map(|hit| json!([hit["rule"], hit["subject"], hit["count"]])).collect()
    };
    assert_eq!(hits("hardest_hit"), [json!(["per-user", "a", 3]), json!(["blocked", "everyone", 2])]);
    assert_eq!(hits("shadow_hits"), [json!(["all", "everyone", 3])], "shadow rules deny nothing");
    assert_eq!(summary["subjects_denied"]["count"], 2);
    assert_eq!(summary["hardest_hit"][0]["first"], "1970-01-01T00:01:02Z");
    assert_eq!(summary["hardest_hit"][0]["last"], "1970-01-01T00:01:04Z");
    assert_eq!(summary["worst_minute"], json!({"start": "1970-01-01T00:01:00Z", "passed": 4, "denied": 3}));
    assert_eq!(summary["worst_hour"], json!({"start": "1970-01-01T00:00:00Z", "passed": 5, "denied": 5}));
    let timeline = summary["timeline"].as_array().unwrap();
    assert_eq!((summary["period_seconds"].as_u64(), timeline.len()), (Some(1), 73));
    let sum = |key: &str| timeline.iter().map(|period| period[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("passed"), sum("denied")), (5, 5));
}

#[test]
fn text_of_a_summary() {
    let summary = Trial::new(POLICY, &events()).summary();
    let warning = "no line has the field \"act\", so rule \"unused\" matched no request; lines have user";
    assert_eq!(summary.warnings(), [warning]);
    assert_eq!(
        summary.text(),
        "\
requests  10  1970-01-01 00:01:00 to 1970-01-01 00:02:12 UTC (1 min 12 s)
passed     5  50.0 %
denied     5  50.0 %

warning: no line has the field \"act\", so rule \"unused\" matched no request; lines have user
1 line was older than one before, by at most 31 s, and put in order
2 lines were no take and in no count

rule      seen  passed  denied   share
blocked      2       0       2   100 %
per-user     8       5       3  37.5 %  1 of them by its ban
all          8       8       0     0 %  shadow: would deny 3, 37.5 %
unused       0       0       0     0 %

hit hardest, of 2 subjects:

rule      subject   denied  first                last
per-user  a              3  1970-01-01 00:01:02  1970-01-01 00:01:04
blocked   everyone       2  1970-01-01 00:02:00  1970-01-01 00:02:01

shadow rules would hit hardest:

rule  subject   would deny  first                last
all   everyone           3  1970-01-01 00:01:04  1970-01-01 00:01:30

worst minute  1970-01-01 00:01  3 denied of 7
worst hour    1970-01-01 00:00  5 denied of 10
"
    );
}

#[test]
fn control_characters_of_a_log_are_escaped() {
    let policy = "rule = [{ name = 'per-user', by = ['user'], limits = ['1/60s'] }]";
    let line = r#"{"ts":1,"fields":{"user":"\u001b[2Jgone"}}"#;
    let text = Trial::new(policy, format!("{line}\n{line}\n").as_bytes()).summary().text();
    assert!(!text.contains('\u{1b}') && text.contains(r"\u{1b}[2Jgone"), "{text}");
}
