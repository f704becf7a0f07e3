//! Values in Redis that no script of ours has written: they concern one subject, and no other.

use flowgate_engine::AdHoc;
use flowgate_server::Operation;
use flowgate_testkit::redis::Redis;

use crate::Node;

const KEY: &str = "fg:{s:user=evil}:2";

#[tokio::test]
async fn a_value_that_cannot_be_read_counts_as_absent_and_is_overwritten() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache = false");
    node.recovers().await;
    let spoil: [&[&str]; 4] =
        [&["SET", KEY, "s"], &["RPUSH", KEY, "a", "b"], &["HSET", KEY, "a", "b"], &["SET", KEY, "f................"]];
    for (number, spoil) in spoil.into_iter().enumerate() {
        redis.cli(&["DEL", KEY]);
        let reply = redis.cli(spoil);
        assert!(!reply.starts_with('-'), "{reply}");
        assert_eq!(node.admits("evil", 12).await, 5, "{spoil:?}");
        let stats = node.service.shared_stats().unwrap();
        assert_eq!((stats.outages, stats.degraded), (0, 0), "{spoil:?}");
        assert_eq!(stats.unreadable, 1 + number as u64, "{spoil:?}");
        assert!(!node.take(&format!("healthy{number}")).await.degraded);
    }
}

#[tokio::test]
async fn an_ad_hoc_key_whose_value_cannot_be_read_counts_as_absent() {
    let redis = Redis::start();
    let node = Node::on(&redis, "deny_cache = false");
    node.recovers().await;
    let limit = "bucket 3/1h".parse().unwrap();
    let throttle = flowgate::Throttle::new(2, 3, 3600).unwrap();
    for (key, spoil) in [("k", "b short"), ("t", "c short")] {
        redis.cli(&["SET", &format!("fg:{{k:{key}}}:2"), spoil]);
    }
    let call = AdHoc { key: b"k".into(), limit: &limit, cost: 1 };
    let mut admitted = (0, 0);
    for _ in 0..9 {
        admitted.0 += usize::from(
            node.service.limit(Operation::Take, call, node.service.read()).await.unwrap().decision.allowed(),
        );
        admitted.1 += usize::from(!node.throttle(b"t", &throttle).await.unwrap().limited);
    }
    assert_eq!(admitted, (3, 3));
    let stats = node.service.shared_stats().unwrap();
    assert_eq!((stats.outages, stats.degraded, stats.unreadable), (0, 0, 2));
}
