//! A Redis server as all links to it see it: where it is, and whether it is asked at all.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use flowgate::{Clock, Span, Time};

use super::breaker::{Breaker, Change};
use super::health::Health;
use super::target::Target;
use super::wire;

/// A server, its deadline and its breaker.
#[derive(Debug)]
pub(crate) struct Node {
    target: Target,
    timeout: Span,
    breaker: Mutex<Breaker>,
    /// Whether the breaker is open, for those who only look.
    open: AtomicBool,
    probe_key: Vec<u8>,
    health: Arc<Health>,
}

/// How long a probe leaves its trace.
const PROBE_LIFETIME: &[u8] = b"1000";

impl Node {
    pub(crate) fn new(target: Target, timeout: Span, prefix: &str, health: Arc<Health>) -> Node {
        let probe_key = format!("{prefix}probe").into_bytes();
        Node { target, timeout, breaker: Mutex::default(), open: AtomicBool::new(false), probe_key, health }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The longest to wait for an answer.
    pub(crate) fn timeout(&self) -> Span {
        self.timeout
    }

    /// The time by which deadlines towards Redis are kept: monotonic, whatever clock decides. A step of the wall clock
    /// neither ends requests under way nor doubles the timeout.
    pub(crate) fn now(&self) -> Time {
        Clock::System.monotonic()
    }

    /// Whether it is left alone.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }

    /// A request was answered.
    pub(crate) fn succeeded(&self) {
        self.change("", |breaker| {
            breaker.succeeded();
            None
        });
    }

    /// A request was not answered, or by a failure.
    pub(crate) fn failed(&self, now: Time) {
        self.change("it does not answer in time, or with errors", |breaker| breaker.failed(now));
    }

    /// There is no connection to be had, or not to a server that takes writes.
    pub(crate) fn trip(&self, why: &str) {
        let now = self.now();
        self.change(why, |breaker| breaker.trip(now));
    }

    /// Whether to send a probe now.
    pub(crate) fn may_probe(&self, now: Time) -> bool {
        let mut may = false;
        if self.is_open() {
            self.change("", |breaker| {
                may = breaker.probe(now);
                None
            });
        }
        may
    }

    /// How a probe went: what was wrong, if anything.
    pub(crate) fn probed(&self, wrong: Option<&str>) {
        let now = self.now();
        if let Some(wrong) = wrong {
            tracing::debug!(redis = %self.target, error = wrong, "Redis is still away");
        }
        self.change("", |breaker| breaker.probed(wrong.is_none(), now));
    }

    /// Appends a probe: a write, since a server may well be full or a replica by now and still answer reads.
    pub(crate) fn write_probe(&self, out: &mut Vec<u8>) {
        wire::command(out, &[b"SET", &self.probe_key, b"1", b"PX", PROBE_LIFETIME]);
    }

    fn change(&self, why: &str, change: impl FnOnce(&mut Breaker) -> Option<Change>) {
        // A breaker is changed whole; a panic elsewhere leaves it as good as it was.
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut breaker);
        self.open.store(breaker.is_open(), Relaxed);
        drop(breaker);
        match changed {
            None => {}
            Some(Change::Opened) => self.health.away(&self.target, why),
            Some(Change::Closed) => self.health.back(&self.target),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A cluster that no longer has this server does not miss it.
        if self.is_open() {
            self.health.gone();
        }
    }
}
