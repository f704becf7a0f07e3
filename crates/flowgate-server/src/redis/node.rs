//! A Redis server as all links to it see it: where it is, and whether it is asked at all.
//!
//! Rule       All links lead to the same address. A name may lead to several servers, one after the other or at the
//!            same time, and counters on two servers would grant a limit twice.
//! Rule       The server is away if no link has a connection, or if it does not answer. If only some links fail to connect
//!            (Redis has reached `maxclients`), the server is not away, and only the requests of these links fail.
//! Rule       A probe is a write to a slot that the server has, and only its `OK` is a success: a server that is full
//!            still answers `MOVED` to what is not its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use flowgate::{Clock, Span, Time};
use flowgate_api::RedisServer;

use super::breaker::{Breaker, Change};
use super::health::Health;
use super::slots;
use super::target::Target;
use super::wire::{self, Reply};
use crate::lock::Lock;
use crate::metrics::Counter;

/// A server, its deadline and its breaker.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) target: Target,
    /// The longest wait for an answer.
    pub(crate) timeout: Span,
    breaker: Lock<Breaker>,
    /// True if the breaker is open. A copy for readers that change nothing.
    open: AtomicBool,
    probe: Lock<Probe>,
    /// The address that the links lead to; `None`: unknown.
    address: Lock<Option<SocketAddr>>,
    /// The number of times that `address` has changed.
    places: AtomicU64,
    /// The number of links with a connection.
    pub(crate) connections: Counter,
    /// True once the settings of the server were inspected.
    pub(crate) is_inspected: AtomicBool,
    health: Arc<Health>,
}

/// The key that a probe writes to.
#[derive(Debug)]
struct Probe {
    prefix: String,
    /// The number in the hash tag that chooses the slot; `None`: every slot belongs to the server.
    tag: Option<u32>,
    /// True if the slot did not belong to the server at the last probe.
    is_misplaced: bool,
}

/// The lifetime of the key that a probe writes, in milliseconds.
const PROBE_LIFETIME: &[u8] = b"1000";

/// The most tags that are tried to find a slot of the server: ten times the number of slots.
const MOST_TAGS: u32 = 10 * slots::SLOTS as u32;

impl Node {
    pub(crate) fn new(target: Target, timeout: Span, prefix: &str, health: Arc<Health>) -> Node {
        let probe = Lock::new(Probe { prefix: prefix.to_owned(), tag: None, is_misplaced: false });
        let (breaker, address) = (Lock::default(), Lock::default());
        let (open, is_inspected, places) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
        let connections = Counter::default();
        Node { target, timeout, breaker, open, probe, address, places, connections, is_inspected, health }
    }

    /// The time by which deadlines towards Redis are kept. It is monotonic, whatever clock decides: a step of the wall
    /// clock neither ends requests under way nor doubles the timeout.
    pub(crate) fn now(&self) -> Time {
        Clock::System.monotonic()
    }

    /// The address that links lead to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock()
    }

    /// The number of the address. Another number means that links must lead to another address.
    pub(crate) fn place(&self) -> u64 {
        self.places.load(Relaxed)
    }

    /// Notes that a link leads to this address, which the other links then use, too. Returns the number of the address.
    pub(crate) fn is_at(&self, address: Option<SocketAddr>) -> u64 {
        let mut known = self.address.lock();
        if *known != address {
            if let (Some(old), Some(new)) = (*known, address) {
                tracing::info!(redis = %self.target, %old, %new, "Redis has another address now");
            }
            *known = address;
            self.places.fetch_add(1, Relaxed);
        }
        self.places.load(Relaxed)
    }

    /// Whether the breaker is open, so that the server is not asked.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }

    /// The state of the server, for people.
    pub(crate) fn standing(&self) -> RedisServer<'static> {
        let state = if self.is_open() { "away" } else { "ready" }.into();
        RedisServer { at: self.target.to_string().into(), state, connections: self.connections.get() }
    }

    /// Notes that a request was answered.
    pub(crate) fn succeeded(&self) {
        self.change("", |breaker| {
            breaker.succeeded();
            None
        });
    }

    /// Notes that a request had no answer in time, or got an error.
    pub(crate) fn failed(&self, now: Time) {
        self.change("it does not answer in time, or with errors", |breaker| breaker.failed(now));
    }

    /// Notes that a link gets no connection; true if no link has one.
    pub(crate) fn unreachable(&self, why: &str) -> bool {
        let for_all = self.connections.get() == 0;
        if for_all {
            self.trip(why);
        }
        for_all
    }

    /// Notes that the server does not serve.
    pub(crate) fn trip(&self, why: &str) {
        let now = self.now();
        self.change(why, |breaker| breaker.trip(now));
    }

    /// True if a probe is to be sent now.
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

    /// Notes the reply to a probe.
    pub(crate) fn probed(&self, reply: &Reply) {
        match reply {
            Reply::Text(text) if text.as_slice() == b"OK" => {
                let now = self.now();
                self.change("", |breaker| breaker.probed(true, now));
            }
            Reply::Error(error) => {
                self.probe.lock().is_misplaced |= slots::elsewhere(error).is_some();
                self.probe_failed(error);
            }
            _ => self.probe_failed("an answer to something else"),
        }
    }

    /// Notes that a probe has failed.
    pub(crate) fn probe_failed(&self, why: &str) {
        tracing::debug!(redis = %self.target, error = why, "Redis is still away");
        let now = self.now();
        self.change("", |breaker| breaker.probed(false, now));
    }

    /// Appends a probe: a write, since a server may well be full or a replica by now and still answer reads.
    pub(crate) fn write_probe(&self, out: &mut Vec<u8>) {
        let key = self.probe.lock().key();
        wire::command(out, &[b"SET", &key, b"1", b"PX", PROBE_LIFETIME]);
    }

    /// In a cluster, lets probes write to a slot for which `is_own` holds.
    pub(crate) fn probe_in(&self, is_own: impl Fn(u16) -> bool) {
        let mut probe = self.probe.lock();
        if probe.tag.is_some() && !probe.is_misplaced && is_own(slots::slot_of(&probe.key())) {
            return;
        }
        // Each number leads to another slot; a server that has any slot is found long before the last number.
        let next = probe.tag.map_or(0, |tag| tag.wrapping_add(1));
        for tag in next..next.saturating_add(MOST_TAGS) {
            probe.tag = Some(tag);
            if is_own(slots::slot_of(&probe.key())) {
                break;
            }
        }
        probe.is_misplaced = false;
    }

    fn change(&self, why: &str, change: impl FnOnce(&mut Breaker) -> Option<Change>) {
        let mut breaker = self.breaker.lock();
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

impl Probe {
    fn key(&self) -> Vec<u8> {
        let prefix = &self.prefix;
        match self.tag {
            None => format!("{prefix}probe").into_bytes(),
            Some(tag) => format!("{prefix}{{probe:{tag}}}").into_bytes(),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A server that has left the cluster no longer counts as away.
        if self.is_open() {
            self.health.gone();
        }
    }
}
