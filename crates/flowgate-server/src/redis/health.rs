//! The health of the shared store: logged once per change, counted, and reported to the server's readiness.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio::sync::Notify;

use crate::lock::Lock;
use crate::metrics::Counter;
use crate::readiness::Readiness;

/// What happened to the shared store, and how it stands.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// The number of servers whose breaker is open.
    away: AtomicUsize,
    outages: Counter,
    /// Decisions that were made without the store.
    pub(crate) degraded: Counter,
    /// Requests that Redis may have carried out, without an answer in time.
    pub(crate) unanswered: Counter,
    /// Values that the script could not read.
    pub(crate) unreadable: Counter,
    /// Questions that the deny cache has answered.
    pub(crate) deny_cache_hits: Counter,
    /// The readiness that gets each change. It is locked during a report, so that changes arrive in their order.
    readiness: Lock<Option<Readiness>>,
    /// Wakes tasks when a server goes away.
    outage: Notify,
}

/// How a store that several nodes share is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// The number of Redis servers that do not answer and are not asked.
    pub away: u64,
    /// The number of times that a server stopped answering.
    pub outages: u64,
    /// Decisions that were made without the store.
    pub degraded: u64,
    /// Requests that were sent and had no answer in time, or were lost.
    pub unanswered: u64,
    /// Values in the store that could not be read. They counted as absent.
    pub unreadable: u64,
    /// Questions that the deny cache has answered, without the store.
    pub deny_cache_hits: u64,
}

impl Health {
    pub(crate) fn stats(&self) -> SharedStats {
        SharedStats {
            away: self.away.load(Relaxed) as u64,
            outages: self.outages.get(),
            degraded: self.degraded.get(),
            unanswered: self.unanswered.get(),
            unreadable: self.unreadable.get(),
            deny_cache_hits: self.deny_cache_hits.get(),
        }
    }

    /// Reports to `readiness` from now on whether the store answers.
    pub(crate) fn report_to(&self, readiness: Readiness) {
        if self.away.load(Relaxed) > 0 {
            readiness.degrade(AWAY);
        }
        *self.readiness.lock() = Some(readiness);
    }

    /// Waits until a server goes away.
    pub(crate) async fn outage(&self) {
        self.outage.notified().await;
    }

    pub(crate) fn away(&self, target: &dyn fmt::Display, why: &str) {
        self.outages.add(1);
        tracing::warn!(redis = %target, error = why, "Redis is away: deciding by on_failure");
        let listener = self.readiness.lock();
        self.away.fetch_add(1, Relaxed);
        self.outage.notify_one();
        if let Some(readiness) = &*listener {
            readiness.degrade(AWAY);
        }
    }

    pub(crate) fn back(&self, target: &dyn fmt::Display) {
        tracing::info!(redis = %target, "Redis is back");
        self.gone();
    }

    /// Notes that a server that was away is back, or has left the cluster.
    pub(crate) fn gone(&self) {
        let listener = self.readiness.lock();
        if self.away.fetch_sub(1, Relaxed) > 1 {
            return;
        }
        if let Some(readiness) = &*listener {
            readiness.recover();
        }
    }
}

const AWAY: &str = "redis away";
