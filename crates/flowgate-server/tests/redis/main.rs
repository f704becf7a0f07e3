//! Redis as the shared store, with a real `redis-server`: what it answers, and what happens while it does not.
//!
//! Every test has a server of its own. Tests sleep only between two looks at a condition.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod cluster;
mod counted_work;
mod deny_cache;
mod faults;
mod joint;
mod koala;
mod pipelines;
mod proxy;
mod replays;
mod sentinel;
mod sharing;
mod slow;
mod values;
mod warnings;

use std::time::{Duration, Instant};

use flowgate::{Clock, Span, Throttle, ThrottleError, ThrottleReply};
use flowgate_engine::{Decision, Request};
use flowgate_server::{Answer, Author, Config, Operation, Readiness, Ready, Service};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::HANG_TIMEOUT;

/// The most that recovery may take.
const RECOVERY: Duration = Duration::from_secs(2);

/// One node: a service on a Redis, watched as a server does.
struct Node {
    service: Service,
    readiness: Readiness,
}

/// Rules of every kind, none of which gives anything back within a test.
const RULES: &str = r#"
    [[rule]]
    name = "five"
    when = { user = "*" }
    by = ["user"]
    limits = ["5/1h"]
    "#;

impl Node {
    fn new(url: &str, settings: &str, rules: &str) -> Node {
        // Longer than a busy machine makes a Redis wait, unless a test says otherwise.
        let timeout = if settings.contains("timeout") { "" } else { "timeout = '500ms'" };
        Node::from_toml(&format!("{rules}\n[store]\ntype = 'redis'\nurl = '{url}'\n{timeout}\n{settings}"))
    }

    fn from_toml(config: &str) -> Node {
        Node::with_clock(config, Clock::System)
    }

    fn with_clock(config: &str, clock: Clock) -> Node {
        let service = Service::start_with_clock(&flowgate_koala::config_from_toml(config).unwrap(), clock).unwrap();
        let readiness = Readiness::default();
        service.watch(&readiness);
        Node { service, readiness }
    }

    fn on(redis: &Redis, settings: &str) -> Node {
        Node::new(&redis.url(), settings, RULES)
    }

    async fn decide(&self, operation: Operation, user: &str, cost: u64) -> Decision {
        self.service.decide(operation, &Request::new().field("user", user).cost(cost)).await
    }

    async fn take(&self, user: &str) -> Decision {
        self.decide(Operation::Take, user, 1).await
    }

    fn throttle(&self, key: &[u8], throttle: &Throttle) -> Answer<Result<ThrottleReply, ThrottleError>> {
        self.service.throttle_at(key, throttle, Clock::System.now())
    }

    /// The number of `requests` that pass.
    async fn admits(&self, user: &str, requests: usize) -> usize {
        let mut admitted = 0;
        for _ in 0..requests {
            admitted += usize::from(self.take(user).await.allowed());
        }
        admitted
    }

    /// Waits until decisions are Redis's again (or no longer are); how long that took.
    async fn until_degraded(&self, degraded: bool) -> Duration {
        let started = Instant::now();
        while self.decide(Operation::Peek, "nobody", 0).await.degraded != degraded {
            assert!(started.elapsed() < HANG_TIMEOUT, "still not degraded = {degraded}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        started.elapsed()
    }

    /// Waits until the server says so of itself.
    async fn says(&self, ready: Ready) {
        let started = Instant::now();
        while self.readiness.get() != ready {
            assert!(started.elapsed() < RECOVERY, "{:?}", self.readiness.get());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn recovers(&self) {
        let took = self.until_degraded(false).await;
        assert!(took < RECOVERY, "{took:?}");
    }
}
