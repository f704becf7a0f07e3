//! Each way in which Redis may fail: the server goes on, says so, and is back by itself.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowgate_engine::{OnFailure, Request};
use flowgate_server::{Author, Operation, Ready};
use flowgate_testkit::redis::Redis;

use crate::{Node, RECOVERY, RULES};

fn away() -> Ready {
    Ready::Degraded("redis away".to_owned())
}

#[tokio::test]
async fn a_server_starts_while_redis_is_away() {
    let mut redis = Redis::absent(&[]);
    let node = Node::on(&redis, "");
    let decision = node.take("42").await;
    assert!(decision.degraded && decision.allowed());
    node.says(away()).await;
    redis.up();
    node.recovers().await;
    node.says(Ready::Yes).await;
    assert_eq!(node.admits("42", 9).await, 5, "what was granted meanwhile was this node's own");
}

#[tokio::test]
async fn a_reset_fails_while_redis_is_away() {
    let node = Node::on(&Redis::absent(&[]), "");
    let (service, limit) = (&node.service, "5/1h".parse().unwrap());
    let request = Request::new().field("user", "42");
    assert!(service.reset_by(&service.snapshot(), &request, service.read()).await.is_err());
    let call = flowgate_engine::AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
    assert!(service.limit_reset_at(call, service.read()).await.is_err());
}

#[tokio::test]
async fn an_explanation_shows_the_counts_that_decide_meanwhile() {
    let node = Node::on(&Redis::absent(&[]), "local_share = '2/5'");
    node.take("42").await;
    let explanation = node.service.explain(&node.service.snapshot(), &Request::new().field("user", "42")).await;
    assert!(explanation.decision.degraded);
    let report = &explanation.rules[0];
    let limit = &report.limits[0];
    assert_eq!((limit.limit.to_string().as_str(), limit.outcome.remaining), ("sliding 2/1h", Some(1)));
    assert!(Arc::ptr_eq(&report.rule, &node.service.rules().rules[0]), "the rule in force");
    assert_eq!(report.on_failure, Some(OnFailure::Local));
}

#[tokio::test]
async fn an_explanation_hides_no_rule_that_denies_meanwhile() {
    let rules = "rule = [
        { name = 'open', limits = ['5/1h'], on_failure = 'allow' },
        { name = 'shut', limits = ['7/1h', '9/2h'], on_failure = 'deny' },
        { name = 'other', when = { user = 'x' }, limits = ['1/1h'], on_failure = 'deny' },
    ]";
    let redis = Redis::absent(&[]);
    let node = Node::new(&redis.url(), "", rules);
    let explanation = node.service.explain(&node.service.snapshot(), &Request::new().field("user", "42")).await;
    assert_eq!(explanation.decision.rule().unwrap().name(), "shut");
    let told = explanation.rules.iter().map(|report| {
        let limits = report.limits.iter().map(|limit| (limit.limit.to_string(), limit.outcome.allowed()));
        (report.on_failure.unwrap().as_str(), limits.collect::<Vec<_>>())
    });
    let limit = |text: &str, allowed| (text.to_owned(), allowed);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("allow", vec![limit("sliding 5/1h", true)]),
            ("deny", vec![limit("sliding 7/1h", false), limit("sliding 9/2h", false)]),
            ("deny", vec![]),
        ]
    );
}

/// What may exceed the bound: a fresh allowance for what Redis has lost, and a node's share, once per
/// period, however many outages there are.
#[tokio::test]
async fn a_redis_that_loses_everything_grants_one_fresh_allowance() {
    let mut redis = Redis::start();
    let node = Node::on(&redis, "local_share = '2/5'\ndeny_cache = false");
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 5);
    for share in [2, 0] {
        redis.kill();
        assert_eq!(node.admits("42", 50).await, share, "the share of this node, once per period");
        node.says(away()).await;
        redis.up();
        node.recovers().await;
        assert_eq!(node.admits("42", 9).await, 5, "one fresh allowance per loss");
    }
    let stats = node.service.shared_stats().unwrap();
    assert_eq!((stats.away, stats.outages), (0, 2));
    assert!(stats.degraded >= 100, "{stats:?}");
}

#[tokio::test]
async fn a_restart_of_a_redis_that_keeps_its_data_loses_nothing() {
    let mut redis = Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let node = Node::on(&redis, "on_failure = 'deny'");
    node.recovers().await;
    assert_eq!(node.admits("42", 3).await, 3);
    redis.kill();
    assert_eq!(node.admits("42", 20).await, 0);
    redis.up();
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_redis_delays_no_client() {
    let redis = Redis::start();
    let node = Arc::new(Node::new(&redis.url(), "timeout = '50ms'", RULES));
    node.recovers().await;
    redis.pause();
    let clients = (0..50).map(|client| {
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            let mut times = Vec::new();
            for _ in 0..300 {
                let asked = Instant::now();
                assert!(node.take(&client.to_string()).await.degraded);
                times.push(asked.elapsed());
                tokio::task::yield_now().await;
            }
            times
        })
    });
    let mut times = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        times.extend(client.await.unwrap());
    }
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    assert!(p99 < Duration::from_millis(55), "p99 {p99:?} of {}", times.len());
    // The first of each client and no more: then none waits for Redis.
    let unanswered = node.service.shared_stats().unwrap().unanswered;
    assert!(unanswered <= 100, "{unanswered} of {} have waited for Redis", times.len());
    redis.resume();
    node.recovers().await;
    assert_eq!(node.admits("new", 9).await, 5);
}

#[tokio::test]
async fn scripts_that_are_gone_are_loaded_again_unnoticed() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache = false");
    node.recovers().await;
    let mut admitted = 0;
    for _ in 0..3 {
        redis.cli(&["SCRIPT", "FLUSH"]);
        // All at once: one of them loads the script.
        let answers: Vec<_> = (0..3).map(|_| node.service.decide(Operation::Take, &request())).collect();
        for answer in answers {
            let decision = answer.await;
            assert!(!decision.degraded);
            admitted += usize::from(decision.allowed());
        }
    }
    assert_eq!(admitted, 5);
    // Those for bans and for decisions at first, then one each time; that for bans is asked for each second.
    let loads = redis.calls("script|load");
    assert!((2 + 3..=2 + 6).contains(&loads), "{loads}");
    assert_eq!(node.service.shared_stats().unwrap().degraded, 0);
}

fn request() -> flowgate_engine::Request<'static> {
    flowgate_engine::Request::new().field("user", "42")
}

#[tokio::test]
async fn a_full_redis_is_treated_as_away() {
    let redis = Redis::start();
    let node = Node::on(&redis, "");
    node.recovers().await;
    assert_eq!(node.admits("42", 3).await, 3);
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(node.take("42").await.degraded);
    assert_eq!(node.admits("43", 20).await, 5, "its own counters");
    node.says(away()).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 2, "nothing was lost");
}

#[tokio::test]
async fn a_server_that_became_a_replica_is_treated_as_away() {
    let redis = Redis::start();
    let node = Node::on(&redis, "");
    node.recovers().await;
    assert_eq!(node.admits("42", 3).await, 3);
    redis.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    assert!(node.take("42").await.degraded);
    assert_eq!(node.admits("43", 20).await, 5, "its own counters");
    node.says(away()).await;
    redis.cli(&["REPLICAOF", "NO", "ONE"]);
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 2, "nothing was lost");
}

/// A ban that could not be lifted stays listed, so that it can be lifted once Redis is back.
#[tokio::test]
async fn a_ban_by_a_rule_that_could_not_be_lifted_can_be_lifted_later() {
    let redis = Redis::start();
    let rules = r#"rule = [{ name = "r", when = { user = "*" }, by = ["user"], limits = ["1/1h"], ban = { after = 2, within = "1h", for = ["2h"] } }]"#;
    let node = Node::new(&redis.url(), "timeout = '50ms'", rules);
    node.recovers().await;
    assert_eq!(node.admits("42", 3).await, 1);
    let id = node.service.rule_bans().await.unwrap()[0].id;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    node.admits("43", 9).await;
    node.says(away()).await;
    assert!(node.service.unban(id, &Author::PROGRAM).await.is_err());
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    node.recovers().await;
    assert_eq!(node.service.unban(id, &Author::PROGRAM).await, Ok(true));
    assert!(node.take("42").await.banned_until().is_none());
    assert_eq!(node.service.unban(id, &Author::PROGRAM).await, Ok(false));
}

/// Two event loops, of which the second has no connection: Redis takes no more clients.
#[test]
fn a_connection_that_cannot_be_made_is_not_an_outage_of_those_that_are_there() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (one, other) = (runtime(), runtime());
    let redis = Redis::start();
    let mut admin = std::os::unix::net::UnixStream::connect(redis.socket()).unwrap();
    let mut ask = |command: &str| {
        admin.write_all(format!("{command}\r\n").as_bytes()).unwrap();
        let mut reply = vec![0; 64 * 1024];
        let length = admin.read(&mut reply).unwrap();
        String::from_utf8_lossy(&reply[..length]).into_owned()
    };
    let node = one.block_on(async {
        let node = Node::on(&redis, "deny_cache = false");
        node.recovers().await;
        node
    });
    let users = std::cell::Cell::new(0);
    let take = |runtime: &tokio::runtime::Runtime| {
        users.set(users.get() + 1);
        runtime.block_on(node.take(&users.get().to_string())).degraded
    };
    let outages = || node.service.shared_stats().unwrap().outages;
    assert_eq!(ask("CONFIG SET maxclients 2"), "+OK\r\n");
    for _ in 0..20 {
        assert_eq!((take(&one), take(&other)), (false, true));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(outages(), 0);
    ask("CONFIG SET maxclients 3");
    let started = Instant::now();
    while take(&other) {
        assert!(started.elapsed() < RECOVERY);
        std::thread::sleep(Duration::from_millis(5));
    }
    // The second has nothing to do for longer than it would wait for an answer. The first sees an outage and loses its
    // connection, so the second is to see the end of the outage.
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(600) {
        assert!(!take(&one));
        std::thread::sleep(Duration::from_millis(10));
    }
    ask("CONFIG SET maxmemory 1");
    (0..9).for_each(|_| assert!(take(&one)));
    assert_eq!(outages(), 1);
    let id = |line: &str| line.split_once("id=")?.1.split(' ').next()?.parse().ok();
    let mut ids: Vec<u64> = ask("CLIENT LIST").lines().filter_map(id).collect();
    ids.sort_unstable();
    assert_eq!((ids.len(), ask("CONFIG SET maxclients 2").as_str()), (3, "+OK\r\n"), "ours, the first's, the second's");
    assert_eq!(ask(&format!("CLIENT KILL ID {}", ids[1])), ":1\r\n");
    ask("CONFIG SET maxmemory 0");
    let started = Instant::now();
    while node.service.shared_stats().unwrap().away > 0 {
        assert!(started.elapsed() < RECOVERY);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((take(&one), take(&other), outages()), (true, false, 1));
}

/// As a name does that is given to another server.
#[tokio::test]
async fn a_new_master_is_found_under_the_old_name() {
    let (old, new) = (Redis::start(), Redis::start());
    let name = old.directory().join("name");
    std::os::unix::fs::symlink(old.socket(), &name).unwrap();
    let node = Node::new(&old.url().replace(old.socket().to_str().unwrap(), name.to_str().unwrap()), "", crate::RULES);
    node.recovers().await;
    assert_eq!(node.admits("42", 3).await, 3);
    std::fs::remove_file(&name).unwrap();
    std::os::unix::fs::symlink(new.socket(), &name).unwrap();
    old.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    assert!(node.take("42").await.degraded);
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 5, "the other server has counted nothing yet");
}

#[tokio::test]
async fn a_cut_connection_is_opened_again() {
    let redis = Redis::start();
    let node = Node::on(&redis, "");
    node.recovers().await;
    for _ in 0..5 {
        redis.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        node.recovers().await;
    }
    assert_eq!(node.admits("42", 9).await, 5);
}

#[tokio::test]
async fn each_rule_says_what_happens_meanwhile() {
    let redis = Redis::absent(&[]);
    let rules = r#"
        rule = [
            { name = "blocked", when = { user = "evil" }, action = "deny" },
            { name = "open", when = { open = "*" }, limits = ["1/1h"], on_failure = "allow" },
            { name = "shut", when = { shut = "*" }, limits = ["9/1h"], on_failure = "deny", message = "later" },
            { name = "own", when = { own = "*" }, limits = ["4/1h"], on_failure = "local" },
        ]"#;
    let node = Node::new(&redis.url(), "local_share = '50%'\non_failure = 'deny'", rules);
    let admits = async |fields: &[&'static str]| {
        let mut admitted = 0;
        for _ in 0..9 {
            let request = fields.iter().map(|field| (*field, "1")).collect();
            let decision = node.service.decide(Operation::Take, &request).await;
            assert!(decision.degraded);
            admitted += usize::from(decision.allowed());
        }
        admitted
    };
    assert_eq!(admits(&["open"]).await, 9);
    assert_eq!(admits(&["shut"]).await, 0);
    assert_eq!(admits(&["open", "shut", "own"]).await, 0);
    assert_eq!(admits(&["own", "open"]).await, 2);
    let evil = node.take("evil").await;
    assert!(!evil.degraded && evil.never(), "what no counter decides needs no Redis");
    let limit = "5/60s".parse().unwrap();
    let call = flowgate_engine::AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
    let decision = node.service.limit(Operation::Take, call, node.service.read()).await.unwrap();
    assert!(decision.degraded && !decision.decision.allowed());
    assert!(
        node.service.key_reset(b"k", node.service.read()).await.is_err()
            && node.service.key_lifetime(b"k", node.service.read()).await.is_err()
    );
}
