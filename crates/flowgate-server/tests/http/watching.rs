//! What people see of the traffic: the history, the rules in force, subjects, denials and bans.

use flowgate::Span;
use flowgate_testkit::resp;
use serde_json::json;

use super::*;

const RULES: &str = r#"
    [[rule]]
    name = "blocked"
    when = { ip = "192.0.2.7" }
    action = "deny"
    [[rule]]
    name = "reply"
    title = "Replies"
    when = { act = "reply" }
    by = ["user"]
    limits = ["5/60s"]
    ban = { after = 100, within = "10m", for = ["1m", "1h"], forget = "24h" }
    [[rule]]
    name = "stricter"
    by = ["user"]
    limits = ["3/60s"]
    shadow = true
"#;

fn take(server: &Running, fields: &str, times: usize) {
    let mut client = server.connect();
    let json = [("content-type", "application/json")];
    for _ in 0..times {
        assert_eq!(client.call("POST", "/v1/take", &json, &format!(r#"{{"fields":{fields}}}"#)).status, 200);
    }
}

/// The values of a series that were measured.
fn measured(series: &Value) -> Vec<u64> {
    series.as_array().unwrap().iter().filter_map(Value::as_u64).collect()
}

#[test]
fn the_history_tells_decisions_by_second_and_rule() {
    let server = Running::start(RULES);
    let history = |query: &str| server.get(&format!("/v1/stats/history{query}")).json();
    history("");
    take(&server, r#"{"act":"reply","user":"42"}"#, 7);
    let answer = history("?range=5m&rules=reply,stricter,nothing");
    let last = |series: &Value| series.as_array().unwrap().last().unwrap().as_u64().unwrap();
    assert_eq!((last(&answer["total"]["allowed"]), last(&answer["total"]["denied"])), (5, 2), "{answer}");
    assert_eq!(answer["total"]["allowed"].as_array().unwrap().len(), 300);
    let rules: Vec<_> = answer["rules"].as_array().unwrap().iter().map(|rule| rule["rule"].clone()).collect();
    assert_eq!(rules, ["reply", "stricter"]);
    assert_eq!(last(&answer["rules"][1]["shadow"]), 4, "from the fourth on");
    assert_eq!(answer["step"], 1);
    assert!(answer["end"].as_f64() > answer["now"].as_f64());
    assert_eq!(answer["marks"][0]["kind"], "start");

    server.clock.advance(Span::from_secs(1));
    history("");
    take(&server, r#"{"act":"x","user":"7"}"#, 1);
    server.clock.advance(Span::from_secs(60));
    let answer = history("?range=1h&rules=top");
    assert_eq!(answer["step"], 10);
    assert_eq!(measured(&answer["total"]["allowed"]).iter().sum::<u64>(), 6);
    assert_eq!(answer["rules"][0]["rule"], "stricter", "what a shadow would deny counts");
    assert_eq!(history("?range=24h")["total"]["allowed"].as_array().unwrap().len(), 1_440);
    assert_eq!(history("?range=24h")["rules"], json!([]));
}

#[test]
fn wrong_queries_are_told() {
    let server = Running::start(RULES);
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    for (path, field) in [
        ("/v1/stats/history?range=2h", "range"),
        ("/v1/stats/history?ranges=1h", "ranges"),
        ("/v1/stats/history?range=1h&range=5m", "range"),
        (&format!("/v1/stats/history?rules={}", many.join(",")), "rules"),
        ("/v1/policy?limit=0", "limit"),
        ("/v1/policy?limit=1001", "limit"),
        ("/v1/policy?from=-1", "from"),
        ("/v1/denials?after=x", "after"),
        ("/v1/denials?limit=100000", "limit"),
        ("/v1/subjects/reply?x=1", "x"),
    ] {
        server.get(path).is_mistake(400, Some(field));
    }
    server.get("/v1/subjects/nothing").is_mistake(404, None);
}

#[test]
fn the_policy_is_what_is_in_force() {
    let server = Running::start(RULES);
    take(&server, r#"{"act":"reply","user":"42"}"#, 7);
    let policy = server.get("/v1/policy").json();
    assert_eq!((&policy["total"], &policy["broken"]), (&json!(3), &Value::Null));
    assert_eq!(policy["fields"], json!(["ip", "act", "user"]));
    let reply = &policy["rules"][1];
    assert_eq!((&reply["name"], &reply["title"], &reply["line"]), (&json!("reply"), &json!("Replies"), &json!(7)));
    assert_eq!(reply["when"], json!([{"field": "act", "is": ["reply"]}]));
    assert_eq!((&reply["by"], &reply["limits"]), (&json!(["user"]), &json!(["sliding 5/60s"])));
    let ban = json!({"after": 100, "within": 600, "for": [60, 3600], "forget": 86400, "scope": "rule"});
    assert_eq!(reply["ban"], ban);
    let total = json!({"allowed": 5, "denied": 2, "banned": 0, "shadow": 0, "bans_started": 0});
    assert_eq!(reply["total"], total);
    assert_eq!(policy["rules"][2]["shadow"], true);
    assert_eq!(policy["etag"], server.get("/v1/stats").json()["policy_etag"]);
    let page = server.get("/v1/policy?from=2&limit=5").json();
    assert_eq!((&page["from"], page["rules"].as_array().unwrap().len()), (&json!(2), 1));
    server.post("/v1/pause", r#"{"for":"10m"}"#);
    assert_eq!(server.get("/v1/policy").json()["rules"][1]["shadow"], false, "what the end of the pause puts in force");
}

#[test]
fn a_list_of_values_is_told_item_by_item() {
    let server =
        Running::start("rule = [{ name = 'a', when = { act = ['x, y', 'z', { eq = '*' }] }, action = 'deny' }]");
    let policy = server.get("/v1/policy").json();
    let is = json!(["x, y", "z", "{ eq = \"*\" }"]);
    assert_eq!(policy["rules"][0]["when"], json!([{"field": "act", "is": is}]));
}

#[test]
fn denials_with_an_action_of_their_own_are_told_apart() {
    let rules = "rule = [
        { name = 'robots', when = { act = 'post' }, by = ['user'], limits = ['1/60s'], action = 'captcha' },
        { name = 'reply', when = { act = 'reply' }, by = ['user'], limits = ['1/60s'] },
    ]";
    let server = Running::start(rules);
    take(&server, r#"{"act":"post","user":"42"}"#, 4);
    take(&server, r#"{"act":"reply","user":"42"}"#, 3);
    let history = server.get("/v1/stats/history?rules=top").json();
    let sum = |series: &Value| series.as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>();
    assert_eq!((sum(&history["total"]["denied"]), sum(&history["total"]["own_action"])), (5, 3));
    let actions: Vec<_> =
        history["rules"].as_array().unwrap().iter().map(|rule| (&rule["rule"], &rule["action"])).collect();
    assert_eq!(actions, [(&json!("robots"), &json!("captcha")), (&json!("reply"), &json!("deny"))]);
}

#[test]
fn a_subject_that_is_banned_by_hand_is_told_as_banned() {
    let server = Running::start(RULES);
    take(&server, r#"{"act":"reply","user":"42"}"#, 9);
    take(&server, r#"{"act":"reply","user":"7"}"#, 9);
    server.post("/v1/bans", r#"{"field":"user","value":"42","for":"1h"}"#);
    let banned = |subjects: &Value, user: &str| {
        let of_user = |each: &&Value| each["subject"]["user"] == user || each["fields"]["user"] == user;
        subjects.as_array().unwrap().iter().find(of_user).unwrap()["banned"].clone()
    };
    let subjects = server.get("/v1/subjects/reply").json();
    assert_eq!((banned(&subjects["denied"], "42"), banned(&subjects["denied"], "7")), (json!(true), json!(false)));
    let most = &server.get("/v1/stats").json()["most_denied"]["subjects"];
    assert_eq!((banned(most, "42"), banned(most, "7")), (json!(true), json!(false)));
}

#[test]
fn subjects_that_bans_by_hand_deny_are_among_the_most_denied() {
    let server = Running::start(RULES);
    take(&server, r#"{"act":"reply","user":"7","ip":"192.0.2.7"}"#, 9);
    server.post("/v1/bans", r#"{"field":"ip","value":"192.0.2.0/24","for":"1h"}"#);
    take(&server, r#"{"act":"view","user":"7","ip":"192.0.2.9"}"#, 20);
    let most = &server.get("/v1/stats").json()["most_denied"]["subjects"][0];
    assert_eq!((&most["rule"], &most["count"], &most["banned"]), (&json!("(ban)"), &json!(20), &json!(true)));
    assert_eq!((&most["fields"], &most["subject"]), (&json!({"ip":"192.0.2.9"}), &json!("ip=192.0.2.9")));
}

#[test]
fn subjects_are_those_that_ask_are_denied_and_would_be() {
    let server = Running::start(RULES);
    assert_eq!(server.get("/v1/subjects/reply").json()["since"], Value::Null);
    take(&server, r#"{"act":"reply","user":"42"}"#, 9);
    take(&server, r#"{"act":"reply","user":"7"}"#, 1);
    let subjects = server.get("/v1/subjects/reply").json();
    let first = |kind: &str| (subjects[kind][0]["subject"].clone(), subjects[kind][0]["count"].clone());
    assert_eq!(first("asked"), (json!({"user": "42"}), json!(9)));
    assert_eq!(first("denied"), (json!({"user": "42"}), json!(4)));
    assert_eq!(subjects["shadow"], json!([]));
    let shadow = server.get("/v1/subjects/stricter").json();
    assert_eq!(shadow["shadow"][0]["subject"], json!({"user": "42"}));
    let most = &server.get("/v1/stats").json()["most_denied"]["subjects"][0];
    assert_eq!((&most["subject"], &most["fields"]), (&json!("user=42"), &json!({"user": "42"})));
    assert_eq!(most["first"], most["last"]);
}

#[test]
fn denials_are_told_one_by_one() {
    let server = Running::start(RULES);
    assert_eq!(server.get("/v1/denials").json()["events"], json!([]));
    take(&server, r#"{"act":"reply","user":"42","header.cookie":"secret"}"#, 6);
    take(&server, r#"{"ip":"192.0.2.7"}"#, 1);
    server.post("/v1/limit", r#"{"key":"k","limit":"1/60s"}"#);
    server.post("/v1/limit", r#"{"key":"k","limit":"1/60s"}"#);
    let answer = server.get("/v1/denials").json();
    let events = answer["events"].as_array().unwrap();
    assert_eq!((events.len(), &answer["next"], &answer["lost"]), (3, &json!(3), &json!(0)));
    let by: Vec<_> = events.iter().map(|event| (event["rule"].clone(), event["by"].clone())).collect();
    assert_eq!(
        by,
        [(json!("reply"), json!("limit")), (json!("blocked"), json!("rule")), (Value::Null, json!("limit"))]
    );
    assert_eq!((&events[0]["subject"], &events[0]["fields"]), (&json!({"user": "42"}), &json!({"act": "reply"})));
    assert_eq!(events[0]["retry_after"], 60);
    assert_eq!(events[2]["subject"], json!({"key": "k"}));
    assert!(!answer.to_string().contains("secret"));
    let later = server.get("/v1/denials?after=1&rule=blocked&limit=10").json();
    assert_eq!((later["events"].as_array().unwrap().len(), &later["next"]), (1, &json!(3)));
}

/// Takes of a pipeline are planned together; those between other commands are not.
#[test]
fn denials_of_a_pipeline_are_told_as_those_of_single_commands() {
    let rules = "[[rule]]\nname = \"post\"\nwhen = { act = \"post\" }\nby = [\"user\"]\nlimits = [\"2/60s\", \"3/10s\"]\n\
                 action = \"captcha\"\n";
    let config = format!("listen = {{ http = '127.0.0.1:0', resp = '127.0.0.1:0' }}\n{rules}");
    let [together, apart] = [(); 2].map(|()| {
        let mut config = Config::from_toml(&config).unwrap();
        config.auth.admin_token.get_or_insert_with(|| Secret::new(ADMIN_TOKEN));
        let server = Running::serve(config, |_| {});
        assert_eq!(server.post("/v1/sample", r#"{"for":"1m"}"#).status, 200);
        server
    });
    let take = |user: usize| {
        let user = user.to_string();
        resp::encode(&[b"FG.TAKE", b"1", b"act", b"post", b"page", b"7", b"user", user.as_bytes()])
    };
    let users: Vec<usize> = (0..40).map(|number| number % 5).collect();
    let connect = |server: &Running| resp::Client::connect(server.server.resp.unwrap());
    let mut client = connect(&together);
    client.send(users.iter().flat_map(|user| take(*user)).collect::<Vec<u8>>());
    let pipelined: Vec<String> = users.iter().map(|_| client.reply()).collect();
    let mut client = connect(&apart);
    let single: Vec<String> = users
        .iter()
        .map(|user| {
            assert_eq!(client.call("PING"), "PONG");
            client.send(take(*user));
            client.reply()
        })
        .collect();
    assert_eq!(pipelined, single);
    assert_eq!(pipelined.iter().filter(|reply| reply.contains("captcha post")).count(), 30);
    for path in ["/v1/denials", "/v1/subjects/post", "/v1/stats"] {
        let [pipelined, single] = [&together, &apart].map(|server| server.get(path).json());
        let told = |answer: &Value| match path {
            "/v1/stats" => json!([answer["most_denied"]["subjects"], answer["hottest"]["subjects"]]),
            _ => answer.clone(),
        };
        assert_eq!(told(&pipelined), told(&single), "{path}");
    }
    let recorded = [&together, &apart].map(|server| server.get("/v1/sample").json()["requests"].clone());
    assert_eq!(recorded, [json!(40), json!(40)]);
}

#[test]
fn bans_by_hand_are_marked_with_their_author() {
    let server = Running::start(RULES);
    let ban = server.post("/v1/bans", r#"{"field":"user","value":"42","for":"1h"}"#).json();
    let author = json!({"by": "admin token", "from": "127.0.0.1"});
    assert_eq!(server.get("/v1/bans").json()["bans"][0]["author"], author);
    assert_eq!(server.post("/v1/bans/find", "{}").json()["bans"][0]["author"], author);
    let id = ban["id"].as_str().unwrap();
    server.connect().call("DELETE", &format!("/v1/bans/{id}"), &[], "");
    let history = server.get("/v1/stats/history").json();
    let marks: Vec<_> = history["marks"].as_array().unwrap().iter().map(|mark| (&mark["kind"], &mark["ban"])).collect();
    let marked = json!({"field": "user", "value": "42", "author": author});
    let expected = [(&json!("start"), &Value::Null), (&json!("ban"), &marked), (&json!("lift"), &marked)];
    assert_eq!(marks, expected);
}

#[test]
fn bans_are_found_page_by_page() {
    let server = Running::start(RULES);
    for number in 0..25 {
        let ban = json!({"field": "user", "value": format!("u{number}"), "for": "1h", "reason": "Scraping"});
        assert_eq!(server.post("/v1/bans", &ban.to_string()).status, 201);
    }
    let find = |body: Value| server.post("/v1/bans/find", &body.to_string()).json();
    let all = find(json!({}));
    assert_eq!((&all["total"], &all["found"], &all["next"]), (&json!(25), &json!(25), &Value::Null));
    assert_eq!((&all["bans"][0]["value"], &all["bans"][0]["origin"]), (&json!("u24"), &json!("hand")), "the newest");
    assert!(all["bans"][0]["since"].is_number());
    let (mut after, mut seen) = (Value::Null, Vec::new());
    loop {
        let page = find(json!({"limit": 10, "after": after}));
        seen.extend(page["bans"].as_array().unwrap().iter().map(|ban| ban["id"].as_str().unwrap().to_owned()));
        // A page goes on, though the last ban of the one before is gone.
        let last = seen.last().unwrap();
        server.connect().call("DELETE", &format!("/v1/bans/{last}"), &[], "");
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(seen.len(), 25);
    seen.dedup();
    assert_eq!(seen.len(), 25, "each once");
    assert_eq!(find(json!({"text": "USER=u2"}))["found"], 6);
    assert_eq!(find(json!({"text": "127.0.0.1"}))["found"], 22, "by the address of the author");
    assert_eq!(find(json!({"text": "scrap", "origin": "rule"}))["found"], 0);
    let wrong = |body: Value| server.post("/v1/bans/find", &body.to_string());
    wrong(json!({"limit": 0})).is_mistake(400, Some("limit"));
    wrong(json!({"limit": 1_001})).is_mistake(400, Some("limit"));
    wrong(json!({"after": "x"})).is_mistake(400, Some("after"));
    wrong(json!({"origin": "me"})).is_mistake(400, Some("origin"));
    wrong(json!({"text": "x".repeat(1_025)})).is_mistake(400, Some("text"));
}

#[test]
fn a_ban_by_a_rule_is_found_by_its_rule_and_subject() {
    let toml = "rule = [{ name = 'login', by = ['ip'], limits = ['1/60s'], \
                ban = { after = 1, within = '1m', for = ['1h'], forget = '1d' } }]";
    let server = Running::start(toml);
    take(&server, r#"{"ip":"192.0.2.1"}"#, 2);
    for text in ["login", "192.0.2", "ip=192"] {
        let found = server.post("/v1/bans/find", &json!({"text": text, "origin": "rule"}).to_string()).json();
        assert_eq!(found["bans"][0]["subject"], json!({"ip": "192.0.2.1"}), "{text}");
        assert_eq!((&found["bans"][0]["rule"], &found["by_hand"]), (&json!("login"), &json!(0)));
    }
}

#[test]
fn only_readers_see_it() {
    let server = Running::start(RULES);
    let json = ("content-type", "application/json");
    for path in ["/v1/stats/history", "/v1/policy", "/v1/subjects/reply", "/v1/denials"] {
        for token in ["", "Bearer wrong"] {
            let refused = server.connect().call("GET", path, &[("authorization", token)], "");
            refused.is_mistake(401, Some("authorization"));
        }
        server.connect().call("POST", path, &[json], "{}").is_mistake(405, None);
    }
    let refused = server.connect().call("POST", "/v1/bans/find", &[("authorization", ""), json], "{}");
    refused.is_mistake(401, Some("authorization"));
    let stats = server.get("/v1/stats").json();
    assert_eq!((&stats["state"], &stats["store"]), (&json!("ready"), &json!({"type": "memory", "durable": false})));
    assert_eq!(
        (&stats["file_etag"], &stats["broken"], &stats["connections"]["max"]),
        (&Value::Null, &Value::Null, &json!(10_000))
    );
    let settings = &stats["settings"];
    assert_eq!((&settings["console.session"], &settings["store.type"]), (&json!("\"8h\""), &json!("\"memory\"")));
    assert_eq!(settings["auth.admin_token"], "\"***\"", "secrets are hidden");
    assert!(!settings.to_string().contains(ADMIN_TOKEN), "{settings}");
    assert!(stats["node"].as_str().is_some_and(|node| !node.is_empty()) && stats["since"] == stats["started"]);
}
