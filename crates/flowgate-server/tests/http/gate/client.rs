//! Who is behind the gateway, and as whom a client is counted.

use serde_json::json;

use super::*;

#[test]
fn the_client_is_found_from_the_right() {
    let server = Running::start(&format!("gate = {{ trusted_proxies = ['127.0.0.0/8', '10.0.0.0/8'] }}\n{API}"));
    let left = |forwarded: &str| {
        let reply = server.gate(&about(forwarded, "/api/x"));
        reply.header("x-ratelimit-remaining").unwrap().to_owned()
    };
    assert_eq!(left("203.0.113.7"), "1");
    assert_eq!(left("6.6.6.6, 203.0.113.7"), "0", "what a client writes at the left changes nothing");
    assert_eq!(left("6.6.6.6, 203.0.113.8, 10.1.2.3"), "1", "trusted proxies are walked past");
    assert_eq!(left("\u{e9}, 203.0.113.8"), "0", "nor does text that is not ASCII");
    assert_eq!(left("2001:db8:1:2:3:4:5:6"), "1");
    assert_eq!(left("[2001:db8:1:2::9]:443"), "0", "an IPv6 client is its network");
    assert_eq!(left("::ffff:203.0.113.9"), "1");
    assert_eq!(left("203.0.113.9:5555"), "0", "one address however it is written");
}

#[test]
fn an_ipv6_client_is_matched_by_its_address_and_counted_by_its_network() {
    let server = Running::start(
        r#"
        lists = { guests = { values = ["2001:db8:1:2::7"] } }
        [[rule]]
        name = "one"
        when = { ip = "2001:db8:1:2::6" }
        action = "deny"
        [[rule]]
        name = "guests"
        when = { ip = "@guests" }
        action = "allow"
        [[rule]]
        name = "all"
        by = ["ip"]
        limits = ["2/60s"]
        ban = { after = 1, within = "1m", for = ["1m"], forget = "1m" }
        "#,
    );
    let ask = |client: &str| server.gate(&about(client, "/")).status;
    server.post("/v1/bans", r#"{"field":"ip","value":"2001:db8:1:2::5","for":"1h"}"#);
    assert_eq!([ask("2001:db8:1:2::6"), ask("2001:db8:1:2::5")], [403, 403], "a condition, a ban by hand");
    assert_eq!([(); 3].map(|()| ask("2001:db8:1:2::7")), [200; 3], "a list");
    assert_eq!([ask("2001:db8:1:2::8"), ask("2001:db8:1:2::9"), ask("2001:db8:1:2:a::")], [200, 200, 429]);
    assert_eq!(ask("2001:db8:1:3::8"), 200, "another network");
    let bans = server.get("/v1/bans").json();
    assert_eq!(bans["rule_bans"][0]["subject"], json!({"ip": "2001:db8:1:2::"}), "the network is banned");
    assert_eq!(ask("2001:db8:1:2::b"), 403);
}

/// What the log tells of a client is enough to ask for what was counted for it.
#[test]
fn the_api_counts_an_address_as_the_gate_does_if_asked_to() {
    let server = Running::start("rule = [{ name = 'all', when = { ip = '*::8' }, by = ['ip'], limits = ['2/60s'] }]");
    assert_eq!(server.gate(&about("2001:db8:1:2::8", "/")).status, 200);
    let ask = |path: &str, ip: &str, gate: bool| {
        server.post(path, &json!({"fields": {"ip": ip}, "cost": 0, "gate": gate}).to_string()).json()
    };
    let left = |ip, gate| ask("/v1/peek", ip, gate)["remaining"].clone();
    assert_eq!(left("2001:db8:1:2::8", false), 2, "counted by what was sent");
    assert_eq!(left("2001:db8:1:2::8", true), 1);
    assert_eq!(left("2001:DB8:1:2:0::8", true), 1, "in whatever spelling");
    assert_eq!(left("2001:db8:1:2::9", true), json!(null), "conditions see all of it");
    assert_eq!(ask("/v1/explain", "2001:db8:1:2::8", true)["rules"][0]["limits"][0]["remaining"], 1);
    let batch = r#"[{"op":"peek","fields":{"ip":"2001:db8:1:2::8"},"cost":0,"gate":true}]"#;
    assert_eq!(server.post("/v1/batch", batch).json()[0]["remaining"], 1);
    assert_eq!(ask("/v1/reset", "2001:db8:1:2::8", true)["remaining"], 2);
    assert_eq!(left("not an address", true), json!(null));
}

#[test]
fn what_an_untrusted_peer_says_is_ignored() {
    let rules = "gate = { trusted_proxies = ['192.0.2.1'] }\nrule = [{ name = 'all', by = ['ip', 'method'], limits = ['2/60s'] }]";
    let server = Running::start(rules);
    for remaining in ["1", "0"] {
        let client = format!("203.0.113.{remaining}");
        let headers = [("x-forwarded-for", client.as_str()), ("x-forwarded-method", client.as_str())];
        assert_eq!(server.gate(&headers).header("x-ratelimit-remaining"), Some(remaining));
    }
    let locked = Running::start(&format!("auth = {{ api_token = 'decide' }}\n{rules}"));
    locked.gate(&[]).is_mistake(401, Some("authorization"));
    let metrics = locked.get("/metrics").body;
    assert!(metrics.contains("flowgate_authentication_failures_total{protocol=\"http\"} 1\n"), "{metrics}");
    assert_eq!(locked.gate(&[("authorization", "Bearer decide")]).status, 200);
    let trusting = Running::start("auth = { api_token = 'decide' }");
    assert_eq!(trusting.gate(&[]).status, 200, "a trusted proxy needs no token");
}
