//! Where calls go: to the one server, to the master that sentinels name, or in a cluster to the server that has the
//! key.
//!
//! Rule       A cluster is asked which server has which slots at the start, and again when a server points elsewhere or
//!            does not answer. Until the answer is there, what was known holds: a server that no longer has a key says
//!            so.
//! Rule       Servers that the cluster no longer names are let go, with their connections; so is the old master when
//!            the sentinels' word moves the node to another, whatever the old one says of itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use arc_swap::ArcSwapOption;
use flowgate::Span;
use flowgate_api::RedisServer;
use tokio::sync::Notify;

use super::health::Health;
use super::link::{CommandResult, Failure};
use super::node::Node;
use super::pool::Pool;
use super::sentinel::Sentinels;
use super::slots::{self, Part, SLOTS};
use super::target::Target;
use super::wire;
use crate::lock::Lock;

/// The servers of a store.
#[derive(Debug)]
pub(crate) struct Servers {
    seeds: Vec<Target>,
    pub(crate) is_cluster: bool,
    sentinels: Option<Sentinels>,
    timeout: Span,
    prefix: String,
    health: Arc<Health>,
    /// The links to each server, by address: those of the map, and those that a server has pointed to.
    pub(super) pools: Lock<HashMap<String, Arc<Pool>>>,
    /// The one server, or the servers of all slots; `None`: not known yet.
    map: ArcSwapOption<Map>,
    asking: AtomicBool,
    /// True while the sentinels name no master, which counts as a server that is away.
    is_lost: AtomicBool,
    /// Wakes the task that asks the cluster, after a server has pointed elsewhere.
    outdated: Notify,
}

#[derive(Debug)]
enum Map {
    One(Arc<Pool>),
    Slots(Vec<Option<Arc<Pool>>>),
}

/// What all servers of a store have in common.
pub(crate) struct Common<'a> {
    pub(crate) timeout: Span,
    pub(crate) prefix: &'a str,
    pub(crate) health: Arc<Health>,
}

impl Servers {
    /// A store of one server.
    pub(crate) fn one(target: Target, common: Common<'_>) -> Servers {
        let servers = Servers::new(vec![target.clone()], false, common);
        let pool = servers.pool_at(&target);
        servers.map.store(Some(Arc::new(Map::One(pool))));
        servers
    }

    /// A store on a cluster. `seeds` are some of its servers.
    pub(crate) fn cluster(seeds: Vec<Target>, common: Common<'_>) -> Servers {
        Servers::new(seeds, true, common)
    }

    /// A store on the master that sentinels name.
    pub(crate) fn behind(sentinels: Sentinels, common: Common<'_>) -> Servers {
        Servers { sentinels: Some(sentinels), ..Servers::new(Vec::new(), false, common) }
    }

    fn new(seeds: Vec<Target>, is_cluster: bool, Common { timeout, prefix, health }: Common<'_>) -> Servers {
        let (pools, map, prefix) = (Lock::default(), ArcSwapOption::empty(), prefix.to_owned());
        let (asking, is_lost, outdated) = (AtomicBool::new(false), AtomicBool::new(false), Notify::new());
        let sentinels = None;
        Servers { seeds, is_cluster, sentinels, timeout, prefix, health, pools, map, asking, is_lost, outdated }
    }

    pub(crate) fn has_sentinels(&self) -> bool {
        self.sentinels.is_some()
    }

    /// The state of each known server as this node sees it, by address.
    pub(crate) fn standings(&self) -> Vec<RedisServer<'static>> {
        let mut standings: Vec<_> = self.pools.lock().values().map(|pool| pool.node.standing()).collect();
        standings.sort_by(|a, b| a.at.cmp(&b.at));
        standings
    }

    /// True if the servers of the keys are known.
    pub(crate) fn is_known(&self) -> bool {
        self.map.load().is_some()
    }

    /// The links to the server that has a key.
    pub(crate) fn pool_of(&self, key: &[u8]) -> Result<Arc<Pool>, Failure> {
        match self.map.load().as_deref() {
            Some(Map::One(pool)) => Ok(Arc::clone(pool)),
            Some(Map::Slots(slots)) => slots[usize::from(slots::slot_of(key))].clone().ok_or(Failure::Down),
            None => Err(Failure::Down),
        }
    }

    /// The links to a server that another server has pointed to. If `host` is missing, it is the host of that other
    /// server.
    pub(crate) fn pool_elsewhere(&self, pointed_by: &Target, host: Option<&str>, port: u16) -> Option<Arc<Pool>> {
        let host = host.or_else(|| pointed_by.host())?;
        Some(self.pool_at(&pointed_by.at(host, port)))
    }

    fn pool_at(&self, target: &Target) -> Arc<Pool> {
        // Each entry is inserted and removed in one step.
        let mut pools = self.pools.lock();
        let make = || {
            let node = Node::new(target.clone(), self.timeout, &self.prefix, Arc::clone(&self.health));
            Arc::new(Pool::new(node))
        };
        Arc::clone(pools.entry(target.to_string()).or_insert_with(make))
    }

    /// Notes that the map of the cluster is outdated.
    pub(crate) fn ask_around(&self) {
        self.outdated.notify_one();
    }

    /// Waits until the map of the cluster is outdated.
    pub(crate) async fn is_outdated(&self) {
        self.outdated.notified().await;
    }

    /// Connects, and finds out which server has which slots. Of several callers at the same time, one does the work.
    pub(crate) async fn look_around(&self) {
        self.pools.lock().values().for_each(|pool| pool.wake());
        if !self.is_cluster {
            // A failure to connect shows when a command is sent.
            let _ = self.map.load().as_deref().map(|map| match map {
                Map::One(pool) => pool.link_even_if_open().map(drop),
                Map::Slots(_) => Ok(()),
            });
            return;
        }
        if self.asking.swap(true, SeqCst) {
            return;
        }
        // The mark is removed also when the caller gives up.
        let _done = Done(&self.asking);
        let known: Vec<Target> = {
            let pools = self.pools.lock();
            pools.values().map(|pool| pool.node.target.clone()).collect()
        };
        for target in known.iter().chain(&self.seeds) {
            if let Some(parts) = self.ask(target).await {
                self.adopt(target, &parts);
                return;
            }
        }
    }

    /// Asks the sentinels, and moves to the master that they name if it is another server.
    pub(crate) async fn ask_sentinels(&self) {
        let Some(sentinels) = &self.sentinels else { return };
        match sentinels.ask().await {
            Ok(None) => {}
            Ok(Some(target)) => {
                tracing::info!(redis = %target, "{sentinels} is at this address");
                self.follow(&target);
                if self.is_lost.swap(false, SeqCst) {
                    self.health.back(sentinels);
                }
            }
            Err(why) => {
                if !self.is_lost.swap(true, SeqCst) {
                    self.health.away(sentinels, &why);
                }
            }
        }
    }

    fn follow(&self, target: &Target) {
        let pool = self.pool_at(target);
        // A failure to connect shows when a command is sent.
        let _ = pool.link_even_if_open();
        self.map.store(Some(Arc::new(Map::One(Arc::clone(&pool)))));
        *self.pools.lock() = HashMap::from([(target.to_string(), pool)]);
    }

    async fn ask(&self, target: &Target) -> Option<Vec<Part>> {
        let link = self.pool_at(target).link_even_if_open().ok()?;
        let arrival = link.send(1, |out| wire::command(out, &[b"CLUSTER", b"SLOTS"])).ok()?;
        let CommandResult::Reply(reply) = arrival.await.ok()? else { return None };
        let parts = slots::parts(&reply)?;
        // A server that has left the cluster lists no slots.
        (!parts.is_empty()).then_some(parts)
    }

    fn adopt(&self, asked: &Target, parts: &[Part]) {
        let mut slots = vec![None; usize::from(SLOTS)];
        let mut kept: HashMap<String, Arc<Pool>> = HashMap::new();
        for part in parts {
            let Some(host) = part.host.as_deref().or_else(|| asked.host()) else { continue };
            let target = asked.at(host, part.port);
            let pool = self.pool_at(&target);
            slots[usize::from(part.first)..=usize::from(part.last)].fill(Some(Arc::clone(&pool)));
            kept.insert(target.to_string(), pool);
        }
        for pool in kept.values() {
            pool.node.probe_in(|slot| slots[usize::from(slot)].as_ref().is_some_and(|of| Arc::ptr_eq(of, pool)));
        }
        self.map.store(Some(Arc::new(Map::Slots(slots))));
        *self.pools.lock() = kept;
    }
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}
