//! What is logged of a Redis whose settings do not suit.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::HANG_TIMEOUT;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::Node;

/// Keeps warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_redis_that_evicts_keys_is_warned_of_once() {
    for (policy, expected) in [("allkeys-lru", 1), ("noeviction", 0)] {
        let redis = Redis::start_with(&["--maxmemory-policy", policy]);
        let warnings = Warnings::default();
        let _guard = tracing::subscriber::set_default(warnings.clone());
        let node = Node::on(&redis, "");
        node.recovers().await;
        // The settings are asked for between the first and the second look at the bans by hand.
        let started = Instant::now();
        while redis.ban_reads() < 2 {
            assert!(started.elapsed() < HANG_TIMEOUT);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut said: Vec<String> = warnings.0.lock().unwrap().clone();
        said.retain(|text| text.contains("evicts keys"));
        assert_eq!(said.len(), expected, "{policy}: {said:?}");
        assert!(said.iter().all(|text| text.contains(policy)), "{said:?}");
    }
}
