//! What the server counts about itself, for Prometheus (`/metrics`) and for people (`/v1/stats`).
//!
//! Rule       Counting is cheap: an addition to memory that other threads seldom touch, without a lock, an allocation,
//!            a lookup or a reading of the clock. Costlier figures (latencies, top subjects) are [sampled](sampling).
//! Bound      Label values are bounded: protocols, kinds and reasons are fixed sets, one file failed a reload, rules are
//!            at most [`render::MAX_RULES`], the rest adds up under one label. What a client sends never becomes a label;
//!            subjects are named only in the [top lists](top), which have a fixed size.

mod exposition;
mod histogram;
mod process;
mod render;
pub(crate) mod sampling;
mod top;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use flowgate::Time;
use flowgate_engine::RuleCounters;

pub(crate) use exposition::Exposition;
pub(crate) use histogram::{Histogram, quantile_micros};
pub(crate) use render::{BAN_BY_HAND, KEY_LIMITS, MAX_RULES, NO_RULE, OTHER_RULES, render};
pub(crate) use top::TopList;

use crate::grpc::GrpcCounters;
use crate::lock::Lock;
use crate::resp::Counters;
use crate::service::Operation;

/// The content type of [`render`]'s text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All counts of a service.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Requests that no rule decided.
    pub(crate) unruled: RuleCounters,
    /// Requests that were denied by a ban by hand.
    pub(crate) banned: RuleCounters,
    /// Requests on ad hoc keys.
    pub(crate) keys: RuleCounters,
    /// Decisions without the shared store, while it was away.
    pub(crate) degraded: Counter,
    operations: [Counter; OPERATIONS.len()],
    pub(crate) resp: Arc<Counters>,
    pub(crate) resp_latency: Histogram,
    pub(crate) http: ListenerCounters,
    pub(crate) http_latency: Histogram,
    pub(crate) grpc: GrpcCounters,
    pub(crate) grpc_latency: Histogram,
    pub(crate) reloads: Reloads,
    /// The latency of decisions by the shared store.
    pub(crate) store_latency: Histogram,
    /// All requests, by subject.
    pub(crate) hottest: TopList,
    /// Denied requests, by subject.
    pub(crate) most_denied: TopList,
}

/// The operations besides taking, each with a counter. Takes are counted as decisions.
const OPERATIONS: [Operation; 4] = [Operation::Peek, Operation::Record, Operation::Refund, Operation::Reset];

impl Metrics {
    /// Counts an operation besides taking.
    pub(crate) fn count_operation(&self, operation: Operation) {
        if let Some(index) = OPERATIONS.iter().position(|known| *known == operation) {
            self.operations[index].add(1);
        }
    }
}

/// One count. Different counts are independent, so their updates are not ordered.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// Takes back a part of what was added.
    pub(crate) fn subtract(&self, number: u64) {
        self.0.fetch_sub(number, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What the listener of every protocol counts.
#[derive(Debug, Default)]
pub(crate) struct ListenerCounters {
    /// Connections that are open now.
    pub(crate) open: Counter,
    /// Connections that were accepted.
    pub(crate) connections: Counter,
    /// Connections beyond `max_connections`.
    pub(crate) refused: Counter,
    /// Failed TLS handshakes.
    pub(crate) handshakes: Counter,
    /// Requests, commands and calls.
    pub(crate) requests: Counter,
    /// Wrong passwords and tokens.
    pub(crate) unauthorized: Counter,
}

impl ListenerCounters {
    /// Counts a connection that begins.
    pub(crate) fn begin_connection(&self) {
        self.connections.add(1);
        self.open.add(1);
    }
}

/// How the attempts to load the configuration again went.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    succeeded: Counter,
    failed: Counter,
    /// True if the last attempt failed.
    failing: AtomicBool,
    wrong_file: Lock<Option<String>>,
    last_success: AtomicU64,
    last_nanos: AtomicU64,
}

impl Reloads {
    /// Notes an attempt that began at `start`. A failed one names the file that is wrong, if it is known.
    pub(crate) fn note(&self, outcome: Result<(), Option<String>>, start: Time, end: Time) {
        self.failing.store(outcome.is_err(), Relaxed);
        self.last_nanos.store(end.since(start).as_nanos(), Relaxed);
        let wrong_file = match outcome {
            Ok(()) => {
                self.succeeded.add(1);
                self.last_success.store(end.as_nanos(), Relaxed);
                None
            }
            Err(file) => {
                self.failed.add(1);
                file
            }
        };
        *self.wrong_file.lock() = wrong_file;
    }

    /// Whether the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Relaxed)
    }
}
