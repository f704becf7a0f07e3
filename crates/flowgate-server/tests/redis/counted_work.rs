//! A question is evaluated once and planned once, whichever store answers it.

use flowgate_engine::Work;

use super::*;

const TWO_SUBJECTS: &str = r#"
    rule = [
        { name = "user", by = ["user"], limits = ["5/1h", "bucket 100/1h"] },
        { name = "ip", by = ["ip"], limits = ["2/1h"] },
        { name = "all", limits = ["unlimited"], shadow = true },
    ]"#;

/// What one take does, from the question to the decision.
async fn work_of_a_take(service: &Service) -> Work {
    let request = Request::new().field("user", "42").field("ip", "::1");
    let before = Work::done();
    service.decide(Operation::Take, &request).await;
    work_since(before)
}

/// What this thread has done since.
pub(crate) fn work_since(before: Work) -> Work {
    let now = Work::done();
    Work { evaluations: now.evaluations - before.evaluations, plans: now.plans - before.plans }
}

pub(crate) const ONCE: Work = Work { evaluations: 1, plans: 1 };

#[tokio::test]
async fn on_redis_with_the_deny_cache() {
    let redis = Redis::start();
    let node = Node::new(&redis.url(), "deny_cache = true", TWO_SUBJECTS);
    node.recovers().await;
    for take in ["passes", "passes", "is denied by Redis", "is denied by the cache"] {
        assert_eq!(work_of_a_take(&node.service).await, ONCE, "the take that {take}");
    }
}

#[tokio::test]
async fn in_memory() {
    let service = Service::start(&Config::from_toml(TWO_SUBJECTS).unwrap()).unwrap();
    assert_eq!(work_of_a_take(&service).await, ONCE);
}

#[tokio::test]
async fn while_redis_is_away() {
    let node = Node::new(&Redis::absent(&[]).url(), "", TWO_SUBJECTS);
    let local = Work { plans: 2, ..ONCE };
    assert_eq!(work_of_a_take(&node.service).await, local, "this node's share is a plan of its own");
}
