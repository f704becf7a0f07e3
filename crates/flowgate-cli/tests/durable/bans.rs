//! Bans after a restart: they are in force, listed and liftable, and lifted bans stay lifted.

use std::fs;

use flowgate_testkit::http;
use flowgate_testkit::wait::eventually;
use serde_json::Value;

use crate::{Serving, State};

/// The first ban lasts an hour, the next one a day.
const RULES: &str = r#"
    [[rule]]
    name = "login"
    when = { act = "login" }
    by = ["ip"]
    limits = ["1/60s"]
    ban = { after = 1, within = "10m", for = ["1h", "24h"], forget = "240h" }
    [[rule]]
    name = "reply"
    when = { act = "reply" }
    by = ["user"]
    limits = ["2/1h"]
"#;

/// The bans in force as `flowgate ban --json` lists them.
#[track_caller]
fn bans(server: &Serving) -> Vec<Value> {
    let list: Value = serde_json::from_str(&server.run(&["ban", "--json"]).0).unwrap();
    ["bans", "rule_bans"].iter().flat_map(|kind| list[kind].as_array().unwrap().clone()).collect()
}

/// The subjects of the bans in force, in order.
#[track_caller]
fn banned(server: &Serving) -> Vec<String> {
    let mut names: Vec<String> = bans(server).iter().map(name).collect();
    names.sort();
    names
}

fn name(ban: &Value) -> String {
    match ban["rule"].as_str() {
        Some(rule) => format!("{rule}: {}", ban["subject"]),
        None => format!("{}={}", ban["field"].as_str().unwrap(), ban["value"].as_str().unwrap()),
    }
}

#[track_caller]
fn id_of(server: &Serving, whom: &str) -> String {
    let bans = bans(server);
    let found = bans.iter().find(|ban| name(ban).contains(whom)).unwrap_or_else(|| panic!("{whom}: {bans:?}"));
    found["id"].as_str().unwrap().to_owned()
}

/// Imposes a ban by the command, over HTTP and over RESP.
fn ban_by_hand(server: &Serving) {
    assert!(server.run(&["ban", "user=7", "--for", "2h", "--reason", "spam"]).1);
    let token = fs::read_to_string(server.0.directory().join("admin-token")).unwrap();
    let token = format!("Bearer {}", token.trim());
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    let order = r#"{"field":"ip","value":"192.0.2.0/24","for":"1h","reason":"scraper"}"#;
    let reply = http::Client::connect(&*server.0.http).call("POST", "/v1/bans", &headers, order);
    assert!(matches!(reply.status, 200 | 201), "{reply:?}");
    assert_eq!(server.resp().call("FG.BAN user 8 3600 resp"), "OK");
}

#[test]
fn bans_by_hand_are_in_force_after_a_kill_that_follows_their_answer() {
    for mode in ["everysec", "always"] {
        // The ban causes a flush. No other flush is due before the kill.
        let state = State::new(mode, "flush = \"1s\"", RULES);
        let server = state.serve();
        ban_by_hand(&server);
        let before = bans(&server);
        server.resp().call("FG.BAN user 9 3600 last");
        server.kill();

        let server = state.serve();
        assert_eq!(banned(&server), ["ip=192.0.2.0/24", "user=7", "user=8", "user=9"], "{mode}");
        let after = bans(&server);
        assert!(before.iter().all(|ban| after.contains(ban)), "{mode}: {before:?} {after:?}");
        let (denied, passes) = server.run(&["take", "user=7"]);
        assert!(!passes && denied.contains("spam"), "{mode}: {denied}");
        assert!(!server.take(&["ip=192.0.2.77"]) && !server.take(&["user=8"]) && server.take(&["user=10"]), "{mode}");

        // Bans are lifted by value, by id and over RESP. None of them comes back after a kill.
        assert!(server.run(&["unban", "user=7"]).1);
        assert!(server.run(&["unban", &id_of(&server, "ip=")]).1);
        assert_eq!(server.resp().call("FG.UNBAN user 8"), "1");
        server.kill();
        let server = state.serve();
        assert_eq!(banned(&server), ["user=9"], "{mode}");
        assert!(server.take(&["user=7"]) && server.take(&["ip=192.0.2.77"]) && server.take(&["user=8"]), "{mode}");
        server.stop();
        let server = state.serve();
        assert_eq!(banned(&server), ["user=9"], "{mode}");
        assert!(server.run(&["unban", "user=9"]).1);
        server.stop();
        assert_eq!(banned(&state.serve()), [""; 0], "{mode}");
    }
}

#[test]
fn bans_by_rules_are_listed_and_liftable_after_a_stop_and_a_kill() {
    let state = State::new("everysec", "flush = \"50ms\"", RULES);
    let login = |server: &Serving, ip: &str| server.take(&["act=login", &format!("ip={ip}")]);
    let server = state.serve();
    for ip in ["198.51.100.1", "198.51.100.2", "198.51.100.3"] {
        assert!(login(&server, ip) && !login(&server, ip));
    }
    let (before, names) = (bans(&server), banned(&server));
    assert_eq!(before.len(), 3, "{before:?}");
    assert!(names[0].starts_with("login: ") && names[0].contains("198.51.100.1"), "{names:?}");
    server.stop();

    let server = state.serve();
    assert_eq!(bans(&server), before);
    let (explained, _) = server.run(&["explain", "act=login", "ip=198.51.100.1"]);
    assert!(explained.contains("ban"), "{explained}");
    assert!(!login(&server, "198.51.100.1"));
    // Bans of two server processes are listed side by side.
    assert!(login(&server, "198.51.100.4") && !login(&server, "198.51.100.4"));
    let first = id_of(&server, "198.51.100.1\"");
    assert!(server.run(&["unban", &first]).1);
    let whole = bans(&server);
    wait_for_flush(&server);
    server.kill();

    let server = state.serve();
    assert_eq!(bans(&server), whole);
    assert!(!banned(&server).iter().any(|name| name.contains("198.51.100.1\"")));
    assert!(server.run(&["unban", &id_of(&server, "198.51.100.2")]).1);
    assert!(server.run(&["unban", &id_of(&server, "198.51.100.4")]).1);
    server.stop();
    let server = state.serve();
    let names = banned(&server);
    assert!(names.len() == 1 && names[0].contains("198.51.100.3"), "{names:?}");
}

#[test]
fn the_second_ban_is_longer_although_the_server_was_restarted_between() {
    let rules = RULES.replace("[\"1h\", \"24h\"]", "[\"1s\", \"24h\"]").replace("1/60s", "1/365d");
    let state = State::new("everysec", "", &rules);
    let request = ["act=login", "ip=198.51.100.1"];
    let server = state.serve();
    assert!(server.take(&request) && !server.take(&request));
    server.stop();
    let server = state.serve();
    eventually("the first ban ends and the second begins", || {
        assert!(!server.take(&request), "the limit of a year is kept");
        server.run(&["ban"]).0.contains("(in 1d)")
    });
}

#[test]
fn what_was_reset_does_not_come_back() {
    let state = State::new("everysec", "", RULES);
    let request = ["act=reply", "user=42"];
    let server = state.serve();
    assert!(server.take(&request) && server.take(&request) && !server.take(&request));
    server.stop();
    let server = state.serve();
    assert!(!server.take(&request));
    assert!(server.run(&["reset", "act=reply", "user=42"]).1);
    server.stop();
    let server = state.serve();
    assert!(server.take(&request) && server.take(&request) && !server.take(&request));
}

/// Waits until all earlier changes are on the disk.
fn wait_for_flush(server: &Serving) {
    // The server answers an order of an administrator after it has synced all earlier changes.
    server.resp().call("FG.UNBAN user nobody");
}
