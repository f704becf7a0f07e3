//! How the shared store is: logged once per change, counted, and reported to the server's readiness.

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::readiness::Readiness;

/// What happened to the shared store, and how it stands.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Servers whose breaker is open.
    away: AtomicUsize,
    counts: Counts,
    /// Where a change is reported.
    readiness: Mutex<Option<Readiness>>,
    /// A server has gone away.
    outage: Notify,
}

/// Counts since the start.
#[derive(Debug, Default)]
struct Counts {
    degraded: AtomicU64,
    outages: AtomicU64,
    deny_cache_hits: AtomicU64,
    unanswered: AtomicU64,
    unreadable: AtomicU64,
}

/// How a store that several nodes share is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedStats {
    /// How many Redis servers do not answer and are left alone.
    pub away: u64,
    /// How often a server stopped answering.
    pub outages: u64,
    /// Decisions that were made without the store.
    pub degraded: u64,
    /// Requests that were sent and had no answer in time, or were lost.
    pub unanswered: u64,
    /// Values in the store that could not be read and counted as absent.
    pub unreadable: u64,
    /// Denials that were remembered and cost the store nothing.
    pub deny_cache_hits: u64,
}

impl Health {
    pub(crate) fn stats(&self) -> SharedStats {
        SharedStats {
            away: self.away.load(Relaxed) as u64,
            outages: self.counts.outages.load(Relaxed),
            degraded: self.counts.degraded.load(Relaxed),
            unanswered: self.counts.unanswered.load(Relaxed),
            unreadable: self.counts.unreadable.load(Relaxed),
            deny_cache_hits: self.counts.deny_cache_hits.load(Relaxed),
        }
    }

    /// Tells `readiness` from now on whether the store is there.
    pub(crate) fn report_to(&self, readiness: Readiness) {
        if self.away.load(Relaxed) > 0 {
            readiness.degrade(AWAY);
        }
        *self.listener() = Some(readiness);
    }

    /// A decision was made without the store.
    pub(crate) fn degraded(&self) {
        self.counts.degraded.fetch_add(1, Relaxed);
    }

    /// A request was sent, and may have been carried out without an answer.
    pub(crate) fn unanswered(&self) {
        self.counts.unanswered.fetch_add(1, Relaxed);
    }

    /// The script could not read this number of values.
    pub(crate) fn unreadable(&self, values: usize) {
        if values > 0 {
            self.counts.unreadable.fetch_add(values as u64, Relaxed);
        }
    }

    /// A denial was remembered.
    #[inline]
    pub(crate) fn deny_cache_hit(&self) {
        self.counts.deny_cache_hits.fetch_add(1, Relaxed);
    }

    /// Waits until a server goes away.
    pub(crate) async fn outage(&self) {
        self.outage.notified().await;
    }

    pub(crate) fn away(&self, target: &dyn fmt::Display, why: &str) {
        self.counts.outages.fetch_add(1, Relaxed);
        tracing::warn!(redis = %target, error = why, "Redis is away: deciding by on_failure");
        let listener = self.listener();
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

    /// A server that was away is back, or has left the cluster.
    pub(crate) fn gone(&self) {
        let listener = self.listener();
        if self.away.fetch_sub(1, Relaxed) > 1 {
            return;
        }
        if let Some(readiness) = &*listener {
            readiness.recover();
        }
    }

    /// Locked while readiness learns of a change, so that it learns of changes in their order.
    fn listener(&self) -> std::sync::MutexGuard<'_, Option<Readiness>> {
        self.readiness.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const AWAY: &str = "redis away";
