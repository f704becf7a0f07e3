//! Several requests in one step on the shared store: on one server, in a cluster, and while Redis is away.

use flowgate::Op;
use flowgate_engine::JointDecision;
use flowgate_server::JointRequest;

use super::*;

pub(crate) const TWO_SUBJECTS: &str = r#"
    rule = [
        { name = "user", by = ["user"], limits = ["5/1h"] },
        { name = "ip", by = ["ip"], limits = ["2/1h"] },
    ]"#;

pub(crate) async fn step(node: &Node, parts: &[(Op, &'static str, &'static str, u64)]) -> JointDecision {
    let request = |(op, field, value, cost): &(Op, &'static str, &'static str, u64)| {
        JointRequest::new(*op, Request::new().field(field, value).cost(*cost))
    };
    let requests: Vec<JointRequest<'_>> = parts.iter().map(request).collect();
    node.service.decide_together(&node.service.snapshot(), &requests, node.service.read()).await
}

/// `allowed: verdict remaining charged, ..`
pub(crate) fn seen(joint: &JointDecision) -> String {
    let part = |part: &flowgate_engine::PartDecision| {
        format!("{} {:?} {}", part.decision.allowed(), part.decision.remaining().unwrap(), part.charged)
    };
    let parts: Vec<String> = joint.parts().iter().map(part).collect();
    format!("{}: {}", joint.allowed(), parts.join(", "))
}

/// What two nodes on one store answer to steps that pass, and that are denied.
pub(crate) async fn check_steps(one: &Node, other: &Node) {
    let both = [(Op::Take, "user", "1", 2), (Op::Take, "ip", "1", 1)];
    assert_eq!(seen(&step(one, &both).await), "true: true 3 true, true 1 true");
    assert_eq!(seen(&step(other, &both).await), "true: true 1 true, true 0 true");
    let denied = step(one, &[(Op::Take, "user", "1", 1), (Op::Take, "ip", "1", 1)]).await;
    assert_eq!(seen(&denied), "false: true 1 false, false 0 false");
    let left = one.service.decide(Operation::Peek, &Request::new().field("user", "1")).await;
    assert_eq!(left.remaining(), Some(1), "a denied step leaves no charge");
    // A denial of a single request is remembered; a refund within a step ends it.
    assert!(!one.service.decide(Operation::Take, &Request::new().field("ip", "1")).await.allowed());
    let refund = step(one, &[(Op::Refund, "ip", "1", 1), (Op::Take, "user", "2", 9)]).await;
    assert_eq!(seen(&refund), "false: true 1 false, false 5 false");
    assert!(one.service.decide(Operation::Take, &Request::new().field("ip", "1")).await.allowed());
}

#[tokio::test]
async fn several_requests_pass_together_or_not_at_all_on_one_server() {
    let redis = Redis::start();
    let node = || Node::new(&redis.url(), "deny_cache = true", TWO_SUBJECTS);
    let (one, other) = (node(), node());
    one.recovers().await;
    other.recovers().await;
    check_steps(&one, &other).await;
}

#[tokio::test]
async fn a_step_follows_on_failure_while_redis_is_away() {
    let away = Redis::absent(&[]);
    let local = Node::new(&away.url(), "on_failure = 'local'", TWO_SUBJECTS);
    let both = [(Op::Take, "user", "1", 2), (Op::Take, "ip", "1", 1)];
    let passed = step(&local, &both).await;
    assert!(passed.allowed() && passed.parts().iter().all(|part| part.decision.degraded && part.charged));
    step(&local, &both).await;
    assert!(!step(&local, &both).await.allowed(), "this node counts by itself");
    let rules = TWO_SUBJECTS.replace(r#"["2/1h"] }"#, r#"["2/1h"], on_failure = "deny" }"#);
    let denying = Node::new(&away.url(), "on_failure = 'local'", &rules);
    let denied = step(&denying, &both).await;
    let parts: Vec<_> = denied.parts().iter().map(|part| (part.decision.allowed(), part.charged)).collect();
    assert_eq!(parts, [(true, false), (false, false)]);
    let left = denying.service.decide(Operation::Peek, &Request::new().field("user", "1")).await;
    assert_eq!(left.remaining(), Some(5), "a denied step leaves no charge");
}
