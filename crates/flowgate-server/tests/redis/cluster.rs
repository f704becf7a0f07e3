//! A real cluster of three masters and a replica: subjects in several slots, a slot that moves, a master that is
//! killed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowgate::Span;
use flowgate_engine::{Request, Work, bans::BanOrder};
use flowgate_server::{Author, Operation};
use flowgate_testkit::cluster::{Cluster, RANGES};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::HANG_TIMEOUT;

use crate::counted_work::{ONCE, work_since};
use crate::{Node, RECOVERY};

/// A node that knows one of the servers.
fn node_on(cluster: &Cluster, settings: &str, rules: &str) -> Node {
    Node::from_toml(&cluster.config(settings, rules))
}

/// Once each master has been asked by a node.
async fn knows_its_way(cluster: &Cluster, node: &Node) {
    let started = Instant::now();
    for master in 0..3 {
        let user = cluster.users_of(master, 1).remove(0);
        while node.decide(Operation::Peek, &user, 0).await.degraded {
            assert!(started.elapsed() < HANG_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn steps_of_several_requests_across_slots_are_rolled_back_by_name() {
    let cluster = Cluster::start();
    let node = || node_on(&cluster, "deny_cache = true", crate::joint::TWO_SUBJECTS);
    let (one, other) = (node(), node());
    one.recovers().await;
    other.recovers().await;
    crate::joint::check_steps(&one, &other).await;
}

#[tokio::test]
async fn subjects_in_several_slots_are_decided_together() {
    let cluster = Cluster::start();
    let rules = r#"
        rule = [
            { name = "five", when = { user = "*" }, by = ["user"], limits = ["5/1h"] },
            { name = "ip", when = { ip = "*" }, by = ["ip"], limits = ["3/1h", "bucket 1/1h burst=9"] },
        ]"#;
    let (node, other) = (node_on(&cluster, "", rules), node_on(&cluster, "deny_cache = false", rules));
    knows_its_way(&cluster, &node).await;
    knows_its_way(&cluster, &other).await;
    let users: Vec<String> = (0..3).flat_map(|master| cluster.users_of(master, 2)).collect();
    let mut slots = HashSet::new();
    for (number, user) in users.iter().enumerate() {
        slots.insert(cluster.slot(user));
        let ip = format!("10.0.0.{number}");
        let request = Request::new().field("user", user).field("ip", &ip);
        for round in 0..8 {
            let before = Work::done();
            let decision = [&node, &other][round % 2].service.decide(Operation::Take, &request).await;
            assert_eq!(work_since(before), ONCE, "all slots share one evaluation and one plan");
            assert!(!decision.degraded);
            assert_eq!(decision.allowed(), round < 3, "{user} {round}");
            let rule = decision.rule().unwrap().name();
            assert_eq!((rule, decision.remaining()), ("ip", Some(2_u64.saturating_sub(round as u64))));
            // What the address has denied is taken back from the user, a moment after the answer.
            let started = Instant::now();
            while round >= 3 && node.decide(Operation::Peek, user, 0).await.remaining() != Some(2) {
                assert!(started.elapsed() < HANG_TIMEOUT, "{user} {round}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        assert_eq!(node.admits(user, 9).await, 2);
        let explained = other.service.explain(&other.service.snapshot(), &request).await;
        let of_rule = |index: usize| explained.rules[index].limits[0].outcome.remaining;
        assert_eq!((of_rule(0), of_rule(1)), (Some(0), Some(0)));
        assert_eq!(other.service.decide(Operation::Reset, &request).await.remaining(), Some(3));
    }
    assert!(slots.len() > 3);
}

#[tokio::test]
async fn a_ban_everywhere_denies_what_another_slot_has_counted() {
    let cluster = Cluster::start();
    let rules = r#"
        rule = [
            { name = "login", when = { act = "login" }, by = ["ip"], limits = ["1/1h"],
              ban = { after = 1, within = "1m", for = ["1h"], scope = "subject" } },
            { name = "five", when = { user = "*" }, by = ["user"], limits = ["5/1h"] },
        ]"#;
    let node = node_on(&cluster, "", rules);
    knows_its_way(&cluster, &node).await;
    let login = Request::new().field("act", "login").field("ip", "10.0.0.1").cost(2);
    assert!(node.service.decide(Operation::Take, &login).await.banned_until().is_some());
    for user in (0..3).flat_map(|master| cluster.users_of(master, 2)) {
        let take = |ip| {
            let request = Request::new().field("user", &user).field("ip", ip);
            node.service.decide(Operation::Take, &request)
        };
        assert_eq!(take("10.0.0.2").await.remaining(), Some(4));
        let denied = take("10.0.0.1").await;
        assert_eq!((denied.allowed(), denied.rule().unwrap().name()), (false, "login"));
        let started = Instant::now();
        while node.decide(Operation::Peek, &user, 0).await.remaining() != Some(4) {
            assert!(started.elapsed() < HANG_TIMEOUT, "{user}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_denied_request_is_rolled_back_although_its_client_is_gone() {
    let cluster = Cluster::start();
    let rules = r#"
        rule = [
            { name = "five", when = { user = "*" }, by = ["user"], limits = ["5/1h"] },
            { name = "ip", when = { ip = "*" }, by = ["ip"], limits = ["1/1h"] },
        ]"#;
    let node = node_on(&cluster, "deny_cache = false", rules);
    knows_its_way(&cluster, &node).await;
    let request = Request::new().field("user", "42").field("ip", "10.0.0.1");
    assert!(node.service.decide(Operation::Take, &request).await.allowed());
    let decisions = || cluster.servers.iter().map(Redis::decisions).sum::<u64>();
    let before = decisions();
    for _ in 0..3 {
        drop(node.service.decide(Operation::Take, &request));
    }
    // Three calls for each of two subjects, and three that take back. A call may count that found no script, so the
    // count alone does not tell that all have arrived.
    let started = Instant::now();
    while decisions() < before + 9 || node.decide(Operation::Peek, "42", 0).await.remaining() != Some(4) {
        assert!(started.elapsed() < HANG_TIMEOUT, "{} of 9", decisions() - before);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_loses_nothing() {
    let cluster = Cluster::start();
    let node = Arc::new(node_on(&cluster, "deny_cache = false\non_failure = 'deny'", crate::RULES));
    knows_its_way(&cluster, &node).await;
    let user = cluster.users_of(0, 1).remove(0);
    let slot = cluster.slot(&user).to_string();
    assert_eq!(node.admits(&user, 1).await, 1);
    let hammering = {
        let (node, user) = (Arc::clone(&node), user.clone());
        tokio::spawn(async move {
            let (mut admitted, mut degraded) = (0, 0);
            for _ in 0..400 {
                let decision = node.take(&user).await;
                admitted += usize::from(decision.allowed());
                degraded += usize::from(decision.degraded);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            (admitted, degraded)
        })
    };
    let (from, to) = (&cluster.servers[0], &cluster.servers[1]);
    let (from_id, to_id) = (cluster.id(0), cluster.id(1));
    assert!(to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).contains("OK"));
    assert!(from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).contains("OK"));
    let key = format!("fg:{{s:user={user}}}:2");
    let port = cluster.ports[1].number.to_string();
    let moved = from.cli(&["MIGRATE", "127.0.0.1", &port, &key, "0", "1000"]);
    assert!(moved.contains("OK"), "{moved}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    for server in [to, from] {
        assert!(server.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).contains("OK"));
    }
    assert_eq!(hammering.await.unwrap(), (4, 0));
    assert_eq!(node.service.shared_stats().unwrap().outages, 0);
}

#[tokio::test]
async fn a_master_that_is_killed_is_replaced_by_its_replica() {
    let mut cluster = Cluster::start();
    let node = node_on(&cluster, "local_share = '1/5'", crate::RULES);
    knows_its_way(&cluster, &node).await;
    let (hit, spared) = (cluster.users_of(0, 1).remove(0), cluster.users_of(1, 1).remove(0));
    assert_eq!((node.admits(&hit, 2).await, node.admits(&spared, 2).await), (2, 2));
    cluster.servers[0].kill();
    assert!(node.take(&hit).await.degraded);
    let promoted = || cluster.servers[3].cli(&["ROLE"]).contains("master");
    let is_ok = || cluster.servers[3].cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    while !(promoted() && is_ok()) {
        assert!(node.admits(&hit, 1).await <= 1, "its share of the outage");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let back = Instant::now();
    for user in [&hit, &spared] {
        while node.decide(Operation::Peek, user, 0).await.degraded {
            assert!(back.elapsed() < HANG_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(back.elapsed() < RECOVERY, "{:?}", back.elapsed());
    assert_eq!(node.admits(&spared, 9).await, 3);
    let left = node.admits(&hit, 9).await;
    assert!((3..=5).contains(&left), "what the replica had not yet got is granted again: {left}");
}

#[tokio::test]
async fn a_master_that_is_full_is_one_outage() {
    let cluster = Cluster::start();
    let node = node_on(&cluster, "deny_cache = false", crate::RULES);
    knows_its_way(&cluster, &node).await;
    let outages = || node.service.shared_stats().unwrap().outages;
    for master in 0..3 {
        let (user, spared) = (cluster.users_of(master, 1).remove(0), cluster.users_of((master + 1) % 3, 2).remove(1));
        let before = outages();
        cluster.servers[master].cli(&["CONFIG", "SET", "maxmemory", "1"]);
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(500) || outages() == before {
            assert!(started.elapsed() < HANG_TIMEOUT, "master {master}");
            assert!(node.take(&user).await.degraded);
            assert!(!node.take(&spared).await.degraded);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(outages() - before, 1, "master {master}");
        cluster.servers[master].cli(&["CONFIG", "SET", "maxmemory", "0"]);
        let started = Instant::now();
        while node.decide(Operation::Peek, &user, 0).await.degraded {
            assert!(started.elapsed() < RECOVERY, "master {master}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A subject of two keys, none of which exists when its slot begins to move.
#[tokio::test]
async fn a_subject_of_several_keys_is_decided_while_its_slot_moves() {
    let cluster = Cluster::start();
    let rules = crate::RULES.replace("\"5/1h\"", "\"5/1h\", \"bucket 9/1h\"");
    let node = node_on(&cluster, "deny_cache = false\non_failure = 'deny'", &rules);
    knows_its_way(&cluster, &node).await;
    let user = cluster.users_of(0, 1).remove(0);
    let slot = cluster.slot(&user).to_string();
    let (from, to) = (&cluster.servers[0], &cluster.servers[1]);
    let (from_id, to_id) = (cluster.id(0), cluster.id(1));
    let take = async |expected: bool| {
        let decision = node.take(&user).await;
        assert_eq!((decision.degraded, decision.allowed()), (false, expected));
    };
    assert!(to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).contains("OK"));
    assert!(from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).contains("OK"));
    for _ in 0..3 {
        take(true).await;
    }
    let request = Request::new().field("user", &user);
    assert_eq!(node.service.decide(Operation::Reset, &request).await.remaining(), Some(5));
    for _ in 0..4 {
        take(true).await;
    }
    for server in [to, from] {
        assert!(server.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).contains("OK"));
    }
    take(true).await;
    take(false).await;
    let stats = node.service.shared_stats().unwrap();
    assert_eq!((stats.outages, stats.unreadable), (0, 0));
}

/// A long log has a key of its own, which moves earlier or later than that of its subject.
#[tokio::test]
async fn a_long_log_grants_no_more_while_its_slot_moves() {
    let cluster = Cluster::start();
    let rules = crate::RULES.replace("\"5/1h\"", "\"100/1h\"");
    let node = node_on(&cluster, "deny_cache = false\non_failure = 'deny'", &rules);
    knows_its_way(&cluster, &node).await;
    let (from, to) = (&cluster.servers[0], &cluster.servers[1]);
    let (from_id, to_id) = (cluster.id(0), cluster.id(1));
    let port = cluster.ports[1].number.to_string();
    for (user, log_first) in cluster.users_of(0, 2).iter().zip([true, false]) {
        let slot = cluster.slot(user).to_string();
        let key = format!("fg:{{s:user={user}}}:2");
        assert_eq!(node.admits(user, 40).await, 40);
        let keys = from.cli(&["KEYS", &format!("{key}:*")]);
        let log = keys.lines().find(|line| line.starts_with(&key)).unwrap_or_else(|| panic!("{keys}"));
        assert!(to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).contains("OK"));
        assert!(from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).contains("OK"));
        let moves = |key: &str| {
            let moved = from.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "1000"]);
            assert!(moved.contains("OK"), "{moved}");
        };
        moves(if log_first { log } else { &key });
        let decision = node.take(user).await;
        assert_eq!((decision.degraded, decision.allowed()), (log_first, !log_first), "{user}");
        moves(if log_first { &key } else { log });
        for server in [to, from] {
            assert!(server.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).contains("OK"));
        }
        assert_eq!(node.admits(user, 99).await, if log_first { 60 } else { 59 }, "{user}");
    }
}

/// A log that becomes long while its slot moves stays where it is.
#[tokio::test]
async fn a_log_becomes_long_while_its_slot_moves() {
    let cluster = Cluster::start();
    let rules = crate::RULES.replace("\"5/1h\"", "\"100/1h\"");
    let node = node_on(&cluster, "deny_cache = false\non_failure = 'deny'", &rules);
    knows_its_way(&cluster, &node).await;
    let user = cluster.users_of(0, 1).remove(0);
    let slot = cluster.slot(&user).to_string();
    assert_eq!(node.admits(&user, 5).await, 5);
    let (from, to) = (&cluster.servers[0], &cluster.servers[1]);
    assert!(to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &cluster.id(0)]).contains("OK"));
    assert!(from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &cluster.id(1)]).contains("OK"));
    assert_eq!(node.admits(&user, 40).await, 40);
    assert!(!node.decide(Operation::Peek, &user, 0).await.degraded);
    let keys = from.cli(&["KEYS", &format!("fg:{{s:user={user}}}:2:*")]);
    assert!(!keys.contains("fg:"), "{keys}");
    for server in [from, to] {
        assert!(server.cli(&["CLUSTER", "SETSLOT", &slot, "STABLE"]).contains("OK"));
    }
    assert_eq!(node.admits(&user, 99).await, 55);
}

/// The table of bans has four keys, some of which do not exist while nothing was lifted, or nothing is banned.
#[tokio::test]
async fn bans_by_hand_are_imposed_and_lifted_while_their_slot_moves() {
    let cluster = Cluster::start();
    let node = node_on(&cluster, "deny_cache = false", crate::RULES);
    knows_its_way(&cluster, &node).await;
    let slot = cluster.slot_of("fg:{bans}");
    let of_slot = |(first, last): &(u16, u16)| (*first..=*last).contains(&slot);
    let owner = RANGES.iter().position(of_slot).unwrap();
    let other = (owner + 1) % 3;
    let (from, to, slot) = (&cluster.servers[owner], &cluster.servers[other], slot.to_string());
    let (from_id, to_id) = (cluster.id(owner), cluster.id(other));
    assert!(to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).contains("OK"));
    assert!(from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).contains("OK"));
    let ban = |value| BanOrder { field: "user", value, length: Span::from_secs(60), reason: "", author: None };
    for value in ["7", "8", "9"] {
        node.service.ban(ban(value), &Author::PROGRAM).await.unwrap();
        assert!(!node.take(value).await.allowed());
    }
    assert_eq!(node.service.unban_value("user", "8", &Author::PROGRAM).await, Ok(true));
    for server in [to, from] {
        assert!(server.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).contains("OK"));
    }
    let late = node_on(&cluster, "deny_cache = false", crate::RULES);
    knows_its_way(&cluster, &late).await;
    let started = Instant::now();
    while late.service.bans().len() != 2 {
        assert!(started.elapsed() < HANG_TIMEOUT, "{:?}", late.service.bans());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let allowed = [late.take("7").await, late.take("8").await, late.take("9").await].map(|taken| taken.allowed());
    assert_eq!(allowed, [false, true, false]);
}

/// A request of two subjects is denied as one of their masters pauses: neither keeps its charge.
#[tokio::test]
async fn a_master_that_pauses_keeps_no_charge_of_denied_requests() {
    let cluster = Cluster::start();
    let rules = r#"
        rule = [
            { name = "five", when = { user = "*" }, by = ["user"], limits = ["5/1h"] },
            { name = "other", when = { other = "*" }, by = ["other"], limits = ["5/1h"] },
        ]"#;
    let settings = "deny_cache = false\non_failure = 'deny'";
    let node = Node::from_toml(&cluster.config(settings, rules).replace("500ms", "200ms"));
    knows_its_way(&cluster, &node).await;
    let user = cluster.users_of(0, 1).remove(0);
    let other = (0..).map(|other: u32| other.to_string()).find(|other| {
        let (first, last) = RANGES[1];
        (first..=last).contains(&cluster.slot_of(&format!("fg:{{s:other={other}}}")))
    });
    let other = other.unwrap();
    let request = Request::new().field("user", &user).field("other", &other);
    assert!(!node.service.decide(Operation::Peek, &request).await.degraded);
    let decided = cluster.servers[1].decisions();
    cluster.servers[1].cli(&["CLIENT", "PAUSE", "500", "WRITE"]);
    let decision = node.service.decide(Operation::Take, &request).await;
    assert!(decision.degraded && !decision.allowed());
    let charges = || cluster.servers.iter().take(3).map(|server| server.cli(&["DBSIZE"])).collect::<Vec<_>>();
    // What pauses carries the request out, and then its rollback.
    let started = Instant::now();
    let paused = &cluster.servers[1];
    while paused.decisions() == decided || paused.calls("eval") == 0 || charges() != [":0\r\n"; 3] {
        assert!(started.elapsed() < HANG_TIMEOUT, "{:?}", charges());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
