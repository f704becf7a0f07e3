//! A Redis that answers, but later than `timeout`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flowgate::Throttle;
use flowgate_engine::{AdHoc, Request};
use flowgate_server::Operation;
use flowgate_testkit::redis::Redis;

use crate::proxy::Proxy;
use crate::{Node, RECOVERY, RULES};

/// Eight clients ask for a while.
async fn ask(node: &Arc<Node>, lasting: Duration) {
    let started = Instant::now();
    let clients = (0..8).map(|client| {
        let node = Arc::clone(node);
        tokio::spawn(async move {
            while started.elapsed() < lasting {
                node.take(&client.to_string()).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_always_late_is_one_outage() {
    let redis = Redis::start();
    let proxy = Proxy::before(&redis);
    let node = Arc::new(Node::new(&proxy.url(), "timeout = '50ms'\ndeny_cache = false", RULES));
    node.recovers().await;
    let stats = || node.service.shared_stats().unwrap();
    for delay in [60, 200, 700] {
        let before = stats();
        proxy.delay(Duration::from_millis(delay));
        ask(&node, Duration::from_millis(800)).await;
        assert_eq!(stats().outages - before.outages, 1, "at {delay} ms");
        // One of each client, and those that were sent before the fifth failure.
        let waited = stats().unanswered - before.unanswered;
        assert!(waited <= 16, "{waited} requests have waited for Redis at {delay} ms");
        proxy.delay(Duration::ZERO);
        node.recovers().await;
    }
}

/// How many of five requests that Redis answers late stay charged to the user, to an ad hoc key and to a throttle.
async fn charged_by_late_replies(on_failure: &str) -> (u64, u64, i64) {
    let redis = Redis::start();
    let proxy = Proxy::before(&redis);
    let settings = format!("timeout = '50ms'\ndeny_cache = false\non_failure = '{on_failure}'");
    let rules = RULES.replace("limits = [\"5/1h\"]", "limits = [\"9/1h\", \"bucket 9/1h\"]");
    let node = Node::new(&proxy.url(), &settings, &rules);
    node.recovers().await;
    let (limit, throttle) = ("fixed 9/1h".parse().unwrap(), Throttle::new(8, 9, 3600).unwrap());
    let call = AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
    // Loads the script.
    node.throttle(b"t", &throttle.quantity(0).unwrap()).await.unwrap();
    proxy.delay(Duration::from_millis(150));
    let request = Request::new().field("user", "42");
    let one = || node.service.decide(Operation::Take, &request);
    let (first, second) = (one(), one());
    let (key, throttled) =
        (node.service.limit(Operation::Take, call, node.service.read()), node.throttle(b"t", &throttle));
    let allowed = on_failure == "allow";
    for decision in [first.await, second.await] {
        assert_eq!((decision.degraded, decision.allowed()), (true, allowed));
    }
    assert_eq!(key.await.unwrap().decision.allowed(), allowed);
    assert_eq!(throttled.await.unwrap().limited, !allowed);
    // Until the replies have come, and what they name was taken back.
    proxy.delay(Duration::ZERO);
    let expected = if allowed { (2, 1, 1) } else { (0, 0, 0) };
    let started = Instant::now();
    loop {
        let left = node.decide(Operation::Peek, "42", 0).await;
        let key = node.service.limit(Operation::Peek, AdHoc { cost: 0, ..call }, node.service.read()).await.unwrap();
        let throttled = node.throttle(b"t", &throttle.quantity(0).unwrap()).await.unwrap();
        if !left.degraded && !key.degraded {
            let found = (9 - left.remaining().unwrap(), 9 - key.decision.remaining.unwrap(), 9 - throttled.remaining);
            if found == expected || started.elapsed() > RECOVERY {
                return found;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_late_charge_of_a_denied_request_is_rolled_back() {
    assert_eq!(charged_by_late_replies("deny").await, (0, 0, 0));
}

#[tokio::test]
async fn a_late_charge_of_a_request_that_passed_stays() {
    assert_eq!(charged_by_late_replies("allow").await, (2, 1, 1));
}

/// The first rollback needs a script that Redis does not know yet, and a Redis that stays slow says so later than
/// `timeout`.
#[tokio::test]
async fn a_late_charge_is_rolled_back_while_redis_stays_slow() {
    let redis = Redis::start();
    let proxy = Proxy::before(&redis);
    let node = Node::new(&proxy.url(), "timeout = '50ms'\non_failure = 'deny'", RULES);
    let near = Node::on(&redis, "deny_cache = false");
    node.recovers().await;
    near.recovers().await;
    // Not as long as a connection is waited for.
    proxy.delay(Duration::from_millis(600));
    let denied = node.take("42").await;
    assert_eq!((denied.degraded, denied.allowed()), (true, false));
    for left in [4, 5] {
        let started = Instant::now();
        while near.decide(Operation::Peek, "42", 0).await.remaining() != Some(left) {
            assert!(started.elapsed() < RECOVERY, "not {left} left");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
