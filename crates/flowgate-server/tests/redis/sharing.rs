//! What nodes share: counters, bans, and the keys of their callers.

use std::time::{Duration, Instant};

use flowgate::{Clock, ManualClock, Span, Throttle, Time};
use flowgate_engine::{AdHoc, AdHocKey, Request, bans::BanOrder};
use flowgate_server::{Author, Operation};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::HANG_TIMEOUT;

use crate::Node;

#[tokio::test]
async fn one_decision_is_one_command() {
    let redis = Redis::start();
    let rules = r#"
        rule = [
            { name = "user", when = { user = "*" }, by = ["user"], limits = ["50/1h", "bucket 9/1h burst=60"] },
            { name = "all", limits = ["fixed 70/1h", "approx 80/1h after=3/1d"] },
        ]"#;
    let node = Node::new(&redis.url(), "", rules);
    node.recovers().await;
    redis.cli(&["CONFIG", "RESETSTAT"]);
    assert_eq!(node.admits("42", 40).await, 40);
    assert_eq!(redis.decisions(), 40);
    for command in ["eval", "script|load", "ping", "multi", "cluster|slots"] {
        assert_eq!(redis.calls(command), 0, "{command}");
    }
}

#[tokio::test]
async fn two_nodes_count_together() {
    let redis = Redis::start();
    let (one, other) = (Node::on(&redis, ""), Node::on(&redis, ""));
    one.recovers().await;
    other.recovers().await;
    assert_eq!(one.admits("42", 3).await + other.admits("42", 9).await, 5);
    assert_eq!(one.admits("42", 9).await, 0);
    let explained = other.service.explain(&other.service.snapshot(), &Request::new().field("user", "42")).await;
    assert_eq!(explained.rules[0].limits[0].outcome.remaining, Some(0));

    let limit = "bucket 2/1h".parse().unwrap();
    let call = AdHoc { key: b"upload:42".into(), limit: &limit, cost: 2 };
    assert!(one.service.limit(Operation::Take, call, one.service.read()).await.unwrap().decision.allowed());
    assert!(!other.service.limit(Operation::Take, call, other.service.read()).await.unwrap().decision.allowed());
    let lifetime = other.service.key_lifetime(b"upload:42", other.service.read()).await.unwrap().unwrap();
    assert!(lifetime > Span::from_secs(3500) && lifetime <= Span::from_secs(3601), "{lifetime}");
    let other_algorithm = "5/1h".parse().unwrap();
    let wrong = AdHoc { limit: &other_algorithm, ..call };
    assert!(other.service.limit(Operation::Take, wrong, other.service.read()).await.is_err());
    assert_eq!(other.service.key_reset(b"upload:42", other.service.read()).await, Ok(true));
    assert_eq!(one.service.key_lifetime(b"upload:42", one.service.read()).await, Ok(None));
}

/// A denied login bans the address from everything.
const LOGIN: &str = r#"
    rule = [
        { name = "login", when = { act = "login" }, by = ["ip"], limits = ["1/1h"], on_failure = "deny",
          ban = { after = 1, within = "1m", for = ["1h"], scope = "subject" } },
        { name = "user", when = { user = "*" }, by = ["user"], limits = ["5/1h"] },
    ]"#;

#[tokio::test]
async fn a_ban_everywhere_holds_on_every_node_in_the_same_command() {
    let redis = Redis::start();
    let (one, other) = (Node::new(&redis.url(), "", LOGIN), Node::new(&redis.url(), "", LOGIN));
    one.recovers().await;
    other.recovers().await;
    let login = Request::new().field("act", "login").field("ip", "10.0.0.1").cost(2);
    assert!(one.service.decide(Operation::Take, &login).await.banned_until().is_some());
    redis.cli(&["CONFIG", "RESETSTAT"]);
    for (ip, allowed) in [("10.0.0.1", false), ("10.0.0.2", true), ("10.0.0.2", true)] {
        let request = Request::new().field("ip", ip).field("user", "42");
        let decision = other.service.decide(Operation::Take, &request).await;
        assert_eq!((decision.allowed(), decision.degraded), (allowed, false), "{ip}");
        assert_eq!(decision.banned_until().is_some(), !allowed);
    }
    assert_eq!(redis.decisions(), 3);
    assert_eq!(other.decide(Operation::Peek, "42", 0).await.remaining(), Some(3), "a banned request counts nothing");
    let explained = other.service.explain(&other.service.snapshot(), &Request::new().field("ip", "10.0.0.1")).await;
    assert!(!explained.decision.allowed() && explained.rules[0].banned_until.is_some());
    let ban = one.service.rule_bans().await.unwrap().remove(0);
    assert_eq!((ban.rule.name(), ban.subject[0].1.as_str()), ("login", "10.0.0.1"));
    assert_eq!(one.service.unban(ban.id, &Author::PROGRAM).await, Ok(true));
    assert!(other.service.decide(Operation::Take, &Request::new().field("ip", "10.0.0.1")).await.allowed());
}

#[tokio::test]
async fn a_rule_that_bans_everywhere_has_a_say_only_where_it_matches_while_redis_is_away() {
    let node = Node::new(&Redis::absent(&[]).url(), "", LOGIN);
    let decide = |request| node.service.decide(Operation::Take, request);
    let login = Request::new().field("act", "login").field("ip", "10.0.0.1");
    assert_eq!(decide(&login).await.rule().unwrap().name(), "login", "it denies while the store is away");
    let other = decide(&Request::new().field("ip", "10.0.0.1").field("user", "42")).await;
    assert_eq!((other.allowed(), other.degraded, other.rule().unwrap().name()), (true, true, "user"));
}

#[tokio::test]
async fn bans_by_hand_reach_every_node() {
    let redis = Redis::start();
    let (one, other) = (Node::on(&redis, ""), Node::on(&redis, ""));
    one.recovers().await;
    other.recovers().await;
    let order = BanOrder { field: "user", value: "7", length: Span::from_secs(60), reason: "spam", author: None };
    let ban = one.service.ban(order, &Author::PROGRAM).await.unwrap();
    assert!(!one.take("7").await.allowed(), "at once");
    reaches(&other, "7", false).await;
    assert_eq!(other.service.bans().len(), 1);
    assert_eq!(other.service.unban(ban.id, &Author::PROGRAM).await, Ok(true));
    assert!(other.take("7").await.allowed(), "at once");
    reaches(&one, "7", true).await;
    assert_eq!(one.service.unban_value("user", "7", &Author::PROGRAM).await, Ok(false));
    // A ban that another node imposed a moment ago is lifted by its id and by its value.
    let ban = one.service.ban(order, &Author::PROGRAM).await.unwrap();
    assert_eq!(other.service.unban(ban.id, &Author::PROGRAM).await, Ok(true));
    one.service.ban(order, &Author::PROGRAM).await.unwrap();
    assert_eq!(other.service.unban_value("user", "7", &Author::PROGRAM).await, Ok(true));
    let late = Node::on(&redis, "");
    one.service.ban(order, &Author::PROGRAM).await.unwrap();
    reaches(&late, "7", false).await;
}

async fn reaches(node: &Node, user: &str, allowed: bool) {
    let started = Instant::now();
    while node.decide(Operation::Peek, user, 1).await.allowed() != allowed {
        assert!(started.elapsed() < HANG_TIMEOUT);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(started.elapsed() < Duration::from_millis(2000), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_ban_lasts_equally_long_on_nodes_whose_clocks_are_an_hour_off() {
    let redis = Redis::start();
    let now = Clock::System.now();
    let hour = Span::from_secs(3600);
    let clocks = [now + hour, now, Time::from_nanos(now.as_nanos() - hour.as_nanos())];
    let config = format!("{}\n[store]\ntype = 'redis'\nurl = '{}'\ntimeout = '500ms'", crate::RULES, redis.url());
    let nodes = clocks.map(|time| Node::with_clock(&config, ManualClock::new(time).into()));
    for (through, user) in nodes.iter().zip(["7", "8", "9"]) {
        through.recovers().await;
        let order = BanOrder { field: "user", value: user, length: Span::from_secs(20), reason: "", author: None };
        let ban = through.service.ban(order, &Author::PROGRAM).await.unwrap();
        assert!(ban.until > now + Span::from_secs(20) && ban.until < now + Span::from_secs(120));
        for node in &nodes {
            reaches(node, user, false).await;
            let left = node.decide(Operation::Peek, user, 1).await.retry_after().unwrap();
            assert!(left > Span::from_secs(10) && left <= Span::from_secs(21), "{left}");
        }
    }
}

#[tokio::test]
async fn bans_by_rules_are_shared_and_can_be_lifted() {
    let redis = Redis::start();
    let rules = r#"rule = [{ name = "r", when = { user = "*" }, by = ["user"], limits = ["1/1h"], ban = { after = 2, within = "1h", for = ["2h"] } }]"#;
    let (one, other) = (Node::new(&redis.url(), "", rules), Node::new(&redis.url(), "", rules));
    one.recovers().await;
    other.recovers().await;
    assert_eq!(one.admits("42", 3).await, 1);
    assert!(other.take("42").await.banned_until().is_some());
    let bans = one.service.rule_bans().await.unwrap();
    assert_eq!(bans[0].subject, [("user".to_owned(), "42".to_owned())]);
    assert_eq!(one.service.unban(bans[0].id, &Author::PROGRAM).await, Ok(true));
    assert!(other.take("42").await.banned_until().is_none());
}

#[tokio::test]
async fn an_id_names_one_ban_on_every_node() {
    let redis = Redis::start();
    let rules = r#"rule = [{ name = "r", when = { user = "*" }, by = ["user"], limits = ["1/1h"], ban = { after = 2, within = "1h", for = ["2h"] } }]"#;
    let (one, other) = (Node::new(&redis.url(), "", rules), Node::new(&redis.url(), "", rules));
    one.recovers().await;
    other.recovers().await;
    let order = |value| BanOrder { field: "user", value, length: Span::from_secs(60), reason: "", author: None };
    let by_hand = one.service.ban(order("7"), &Author::PROGRAM).await.unwrap().id;
    let elsewhere = other.service.ban(order("8"), &Author::PROGRAM).await.unwrap().id;
    one.admits("42", 3).await;
    other.admits("43", 3).await;
    let by_rule = one.service.rule_bans().await.unwrap()[0].id;
    let by_rule_elsewhere = other.service.rule_bans().await.unwrap()[0].id;
    let restarted = Node::new(&redis.url(), "", rules);
    restarted.recovers().await;
    let later = restarted.service.ban(order("9"), &Author::PROGRAM).await.unwrap().id;
    let ids = [by_hand, elsewhere, by_rule, by_rule_elsewhere, later];
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
    assert_eq!(one.service.unban(by_rule, &Author::PROGRAM).await, Ok(true));
    assert!(one.take("42").await.banned_until().is_none() && !one.take("7").await.allowed());
}

#[tokio::test]
async fn a_password_a_database_and_what_is_wrong_with_them() {
    let redis = Redis::start_with(&["--requirepass", "p@ss"]);
    let socket = redis.socket();
    let node = Node::new(&format!("unix://:p%40ss@{}?db=3", socket.display()), "", crate::RULES);
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 5);
    for wrong in [format!("unix://:other@{}", socket.display()), format!("unix://:p%40ss@{}?db=99", socket.display())] {
        let node = Node::new(&wrong, "", crate::RULES);
        assert!(node.take("42").await.degraded);
        node.says(flowgate_server::Ready::Degraded("redis away".to_owned())).await;
    }
}

#[tokio::test]
async fn a_turn_that_is_too_far_away_is_denied() {
    let redis = Redis::start();
    let node = Node::new(&redis.url(), "", "rule = [{ name = 'turns', limits = ['pace 1/1h max_wait=none'] }]");
    node.recovers().await;
    let ask =
        || node.service.take_within(&node.service.snapshot(), Span::from_secs(1), &Request::new(), node.service.read());
    assert!(ask().await.allowed());
    for _ in 0..3 {
        let wait = ask().await.retry_after().unwrap();
        assert!(wait > Span::from_secs(3500) && wait <= Span::from_secs(3600), "no client holds the turn: {wait}");
    }
    let metrics = node.service.prometheus();
    assert!(metrics.contains("flowgate_decisions_total{rule=\"turns\",action=\"deny\"} 3\n"), "{metrics}");
    let patient = node.service.decide(Operation::Take, &Request::new()).await;
    assert!(patient.delay() > Span::from_secs(3500), "who would wait is not told what was said to others: {patient:?}");
}

#[tokio::test]
async fn a_turn_that_this_node_alone_has_granted_is_given_back_to_this_node() {
    let redis = Redis::start();
    let rules = "rule = [{ name = 'turns', limits = ['pace 1/1h max_wait=100h'] }]";
    let node = Node::new(&redis.url(), "", rules);
    node.recovers().await;
    let request = Request::new();
    let take = || node.service.decide(Operation::Take, &request);
    assert!(take().await.delay().is_zero());
    redis.pause();
    node.until_degraded(true).await;
    assert!(take().await.delay().is_zero(), "this node has counted nothing");
    let held = take().await;
    assert!(held.degraded && !held.delay().is_zero());
    redis.resume();
    node.recovers().await;
    node.service.give_back(&node.service.snapshot(), &request, &held);
    let of_redis = take().await;
    assert!(!of_redis.degraded && of_redis.delay() > Span::from_secs(3500), "{of_redis:?}");
    redis.pause();
    node.until_degraded(true).await;
    let again = take().await;
    assert!(again.degraded && again.delay() <= held.delay(), "{again:?} after {held:?}");
    redis.resume();
}

#[tokio::test]
async fn an_address_is_counted_by_its_network() {
    let redis = Redis::start();
    let rules = "rule = [{ name = 'r', when = { ip = '2001:db8::/126' }, by = ['ip'], limits = ['2/1h'] }]";
    let node = Node::new(&redis.url(), "deny_cache = false", rules);
    node.recovers().await;
    let mut left = Vec::new();
    for address in ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"] {
        let request = Request::new().field("ip", address).counted_as("ip", "2001:db8::");
        let decision = node.service.decide(Operation::Take, &request).await;
        left.push((decision.allowed(), decision.remaining()));
    }
    assert_eq!(left, [(true, Some(1)), (true, Some(0)), (false, Some(0)), (true, None)]);
}

#[tokio::test]
async fn databases_are_apart_on_redis_and_while_it_is_away() {
    let mut redis = Redis::start();
    // Without the deny cache, which would answer for a moment after Redis has gone.
    let nodes = [Node::on(&redis, "deny_cache = false"), Node::on(&redis, "deny_cache = false")];
    for node in &nodes {
        node.recovers().await;
    }
    let throttle = Throttle::new(1, 1, 3600).unwrap();
    let take = |node: usize, number: u8| {
        let key = AdHocKey { bytes: b"k", database: nodes[node].service.database(number).unwrap() };
        nodes[node].service.throttle_at(key, &throttle, nodes[node].service.now())
    };
    for number in [0, 3, 15] {
        let limited = [take(0, number).await, take(1, number).await, take(0, number).await];
        assert_eq!(limited.map(|reply| reply.unwrap().limited), [false, false, true], "in database {number}");
    }
    let keys = redis.cli(&["KEYS", "*{k*"]);
    for name in ["fg:{k:k}:2", "fg:{k3:k}:2", "fg:{k15:k}:2"] {
        assert!(keys.contains(name), "{keys}");
    }
    let key = |number| AdHocKey { bytes: b"k", database: nodes[0].service.database(number).unwrap() };
    assert_eq!(nodes[1].service.key_reset(key(3), nodes[1].service.read()).await, Ok(true));
    assert_eq!(nodes[0].service.key_lifetime(key(3), nodes[0].service.read()).await, Ok(None));
    assert!(nodes[0].service.key_lifetime(key(15), nodes[0].service.read()).await.unwrap().is_some());
    let call = AdHoc { key: key(5), limit: &"1/60s".parse().unwrap(), cost: 1 };
    assert!(nodes[0].service.limit(Operation::Take, call, nodes[0].service.read()).await.unwrap().decision.allowed());
    assert!(!nodes[1].service.limit(Operation::Take, call, nodes[1].service.read()).await.unwrap().decision.allowed());
    let other = AdHoc { key: key(6), ..call };
    assert!(nodes[1].service.limit(Operation::Take, other, nodes[1].service.read()).await.unwrap().decision.allowed());

    redis.kill();
    nodes[0].until_degraded(true).await;
    for number in [0, 3] {
        let limited = [take(0, number).await, take(0, number).await, take(0, number).await];
        assert_eq!(limited.map(|reply| reply.unwrap().limited), [false, false, true], "in database {number}, alone");
    }
    assert_eq!(nodes[0].service.counters_in(key(3).database), 1);
}

/// Records of bans outlive the pause, unless the subject is reset meanwhile.
#[tokio::test]
async fn a_reset_while_the_rules_are_paused_lifts_bans() {
    let redis = Redis::start();
    let ban = "ban = { after = 1, within = '1m', for = ['1h'], forget = '1d'";
    let rules = format!(
        "rule = [{{ name = 'login', when = {{ act = 'login' }}, by = ['ip'], limits = ['1/1h'], {ban}, scope = 'subject' }} }},
                 {{ name = 'reply', when = {{ act = 'reply' }}, by = ['user'], limits = ['1/1h'], {ban} }} }}]"
    );
    let node = Node::new(&redis.url(), "", &rules);
    node.recovers().await;
    let allowed = async |fields: [(&str, &str); 2]| {
        let request: Request<'_> = fields.into_iter().collect();
        node.service.decide(Operation::Take, &request).await.allowed()
    };
    let (login, reply) = ([("act", "login"), ("ip", "192.0.2.1")], [("act", "reply"), ("user", "42")]);
    let anything = [("act", "see"), ("ip", "192.0.2.1")];
    for banned in [login, reply] {
        assert!(allowed(banned).await && !allowed(banned).await && !allowed(banned).await);
    }
    assert!(!allowed(anything).await, "banned everywhere");
    node.service.pause(Span::from_secs(600), &Author::PROGRAM);
    assert!(allowed(anything).await && allowed(reply).await, "paused");
    for fields in [anything, reply] {
        let request: Request<'_> = fields.into_iter().collect();
        node.service.reset_by(&node.service.snapshot(), &request, node.service.read()).await.unwrap();
    }
    node.service.resume(&Author::PROGRAM);
    assert!(allowed(anything).await && allowed(reply).await, "the bans are lifted");
}
