//! What Redis has denied is denied without asking, as long as that is certain.

use std::time::Duration;

use flowgate_engine::AdHoc;
use flowgate_server::{Config, Operation};
use flowgate_testkit::redis::Redis;

use crate::Node;

/// How many calls of scripts something takes.
async fn asked(redis: &Redis, work: impl Future<Output = ()>) -> u64 {
    let before = redis.decisions();
    work.await;
    redis.decisions() - before
}

#[tokio::test]
async fn denials_cost_redis_nothing_until_they_end() {
    let redis = Redis::start();
    let rules = "rule = [{ name = 'fast', when = { user = '*' }, by = ['user'], limits = ['2/400ms'] }]";
    let node = Node::new(&redis.url(), "", rules);
    node.recovers().await;
    assert_eq!(node.admits("42", 2).await, 2);
    let first = node.take("42").await;
    assert!(!first.allowed());
    let asked = asked(&redis, async {
        for _ in 0..20 {
            let denied = node.take("42").await;
            assert!(!denied.allowed() && !denied.degraded);
            assert_eq!((denied.limit(), denied.remaining(), denied.action()), (Some(2), Some(0), "deny"));
            assert!(denied.retry_after() <= first.retry_after() && denied.reset_after() <= first.reset_after());
        }
        assert!(node.decide(Operation::Take, "other", 1).await.allowed());
    });
    assert_eq!(asked.await, 1, "only the other one");
    assert_eq!(node.service.shared_stats().unwrap().deny_cache_hits, 20);
    let wait = node.take("42").await.retry_after().unwrap();
    tokio::time::sleep(Duration::from_nanos(wait.as_nanos())).await;
    assert!(node.take("42").await.allowed(), "a client that waits as long as told passes");
}

#[tokio::test]
async fn a_smaller_or_larger_cost_is_another_question() {
    let redis = Redis::start();
    let node = Node::on(&redis, "");
    node.recovers().await;
    assert_eq!(node.admits("42", 3).await, 3);
    assert!(!node.decide(Operation::Take, "42", 3).await.allowed());
    assert!(node.decide(Operation::Take, "42", 2).await.allowed());
    let larger = node.decide(Operation::Take, "42", 6).await;
    assert!(larger.never());
}

#[tokio::test]
async fn what_is_given_back_through_this_node_counts_at_once() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache_max = '1h'");
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 5);
    node.decide(Operation::Refund, "42", 1).await;
    assert_eq!(node.admits("42", 9).await, 1);
    assert_eq!(node.decide(Operation::Reset, "42", 1).await.remaining(), Some(5));
    assert_eq!(node.admits("42", 9).await, 5);

    let limit = "2/1h".parse().unwrap();
    let call = AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
    let admits = async || {
        let mut admitted = 0;
        for _ in 0..9 {
            admitted += usize::from(
                node.service.limit(Operation::Take, call, node.service.read()).await.unwrap().decision.allowed(),
            );
        }
        admitted
    };
    assert_eq!(admits().await, 2);
    node.service.limit(Operation::Refund, call, node.service.read()).await.unwrap();
    assert_eq!(admits().await, 1);
    assert_eq!(node.service.key_reset(b"k", node.service.read()).await, Ok(true));
    assert_eq!(admits().await, 2);
    node.service.limit(Operation::Reset, call, node.service.read()).await.unwrap();
    assert_eq!(admits().await, 2);

    let throttle = flowgate::Throttle::new(1, 1, 3600).unwrap();
    let passes = async || {
        let mut passed = 0;
        for _ in 0..9 {
            let reply = node.service.throttle_at(b"t", &throttle, node.service.now()).await.unwrap();
            passed += usize::from(!reply.limited);
        }
        passed
    };
    assert_eq!(passes().await, 2);
    let back = throttle.quantity(-1).unwrap();
    node.service.throttle_at(b"t", &back, node.service.now()).await.unwrap();
    assert_eq!(passes().await, 1);
}

#[tokio::test]
async fn what_is_given_back_through_another_node_counts_within_the_bound() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache_max = '300ms'");
    let other = Node::on(&redis, "");
    node.recovers().await;
    other.recovers().await;
    assert_eq!(node.admits("42", 9).await, 5);
    other.decide(Operation::Refund, "42", 1).await;
    assert!(!node.take("42").await.allowed());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(node.take("42").await.allowed());
}

#[tokio::test]
async fn other_rules_empty_it() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache_max = '1h'");
    node.recovers().await;
    assert_eq!(node.admits("42", 9).await, 5);
    let more = Config::from_toml(&crate::RULES.replace("5/1h", "6/1h")).unwrap();
    node.service.replace(&more.policy).unwrap();
    assert_eq!(node.admits("42", 9).await, 1);
}

#[tokio::test]
async fn what_a_denial_changes_is_asked_each_time() {
    let redis = Redis::start();
    let rules = r#"
        rule = [
            { name = "hammer", when = { a = "*" }, by = ["user"], limits = ["1/1h"], count_denied = true },
            { name = "bans", when = { b = "*" }, by = ["user"], limits = ["1/1h"], ban = { after = 3, within = "1h", for = ["2h"] } },
            { name = "plain", when = { c = "*" }, by = ["user"], limits = ["1/1h"] },
            { name = "shade", when = { c = "*" }, by = ["user"], limits = ["100/1h"], shadow = true },
        ]"#;
    let node = Node::new(&redis.url(), "", rules);
    node.recovers().await;
    for field in ["a", "b", "c"] {
        let request = flowgate_engine::Request::new().field(field, "1").field("user", "42");
        node.service.decide(Operation::Take, &request).await;
        let asked = asked(&redis, async {
            for _ in 0..6 {
                node.service.decide(Operation::Take, &request).await;
            }
        });
        assert_eq!(asked.await, 6, "{field}");
        let last = node.service.decide(Operation::Take, &request).await;
        assert_eq!(last.banned_until().is_some(), field == "b");
    }
}

#[tokio::test]
async fn the_deny_cache_can_be_turned_off() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache = false");
    node.recovers().await;
    let asked = asked(&redis, async { assert_eq!(node.admits("42", 20).await, 5) });
    assert_eq!(asked.await, 20);
}
