//! `[store]`: the store of the counters.

use std::path::PathBuf;
use std::time::Duration;

use flowgate::{Share, WhenFull};

use super::form;
use super::redis_url::RedisUrl;
use super::report::Report;
use super::secret;
use super::section::Keys;
use super::sentinel::Sentinel;
use super::size::ByteSize;
use super::source::{Location, SourceKind};
use super::table_reader::TableReader;
use super::tree::Node;
use super::value;
use super::writer::Writer;
use crate::rules::OnFailure;

/// The store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The memory of all counters; with Redis, of those that a node keeps while Redis is away.
    pub max_memory: ByteSize,
    /// What to do when that memory is full.
    pub when_full: WhenFull,
    /// `None`: counters live in memory alone.
    pub redis: Option<Redis>,
    /// Whether counters in memory outlive the process.
    pub durable: Durable,
}

/// How counters in memory outlive the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durable {
    /// When changes are on the disk.
    pub mode: Durability,
    /// The directory of the journal; `None`: the state directory.
    pub dir: Option<PathBuf>,
    /// How often changes are written with [`Durability::EverySec`].
    pub flush: Duration,
    /// What to do when a part of the journal is damaged.
    pub on_damage: OnDamage,
}

/// When changes are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Never.
    Off,
    /// Within a second.
    EverySec,
    /// Before the request is answered.
    Always,
}

/// What to do when a part of the journal is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDamage {
    /// Read the rest.
    Salvage,
    /// Do not start.
    Refuse,
}

impl Default for Durable {
    fn default() -> Durable {
        let (mode, on_damage) = (Durability::Off, OnDamage::Salvage);
        Durable { mode, dir: None, flush: Duration::from_millis(250), on_damage }
    }
}

/// Counters shared by several nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redis {
    /// Its addresses.
    pub servers: RedisServers,
    /// The prefix of every key.
    pub prefix: String,
    /// The longest wait for an answer.
    pub timeout: Duration,
    /// What to do without an answer.
    pub on_failure: OnFailure,
    /// The part of each limit that a node grants by itself while Redis is away.
    pub local_share: Share,
    /// True: denials are remembered locally until they end.
    pub deny_cache: bool,
    /// The longest time that a denial is remembered. For that time, a refund or a reset through another node may go
    /// unnoticed.
    pub deny_cache_max: Duration,
}

/// One server, a cluster, or a server that sentinels know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisServers {
    /// One server.
    One(RedisUrl),
    /// Some of the nodes of a cluster; at least one.
    Cluster(Vec<RedisUrl>),
    /// The master that sentinels name.
    Sentinel(Sentinel),
}

impl Default for Store {
    fn default() -> Store {
        Store {
            max_memory: ByteSize::new(1_000_000_000),
            when_full: WhenFull::Evict,
            redis: None,
            durable: Durable::default(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreType {
    Memory,
    Redis,
}

const TYPES: [(&str, StoreType); 2] = [("memory", StoreType::Memory), ("redis", StoreType::Redis)];
const WHEN_FULL: [(&str, WhenFull); 2] = [("evict", WhenFull::Evict), ("deny", WhenFull::Deny)];
pub(crate) const ON_FAILURE: [(&str, OnFailure); 3] = [
    (OnFailure::Local.as_str(), OnFailure::Local),
    (OnFailure::Allow.as_str(), OnFailure::Allow),
    (OnFailure::Deny.as_str(), OnFailure::Deny),
];

const DURABILITIES: [(&str, Durability); 3] =
    [("off", Durability::Off), ("everysec", Durability::EverySec), ("always", Durability::Always)];
const ON_DAMAGE: [(&str, OnDamage); 2] = [("salvage", OnDamage::Salvage), ("refuse", OnDamage::Refuse)];
/// A shorter time makes the disk write small pieces all the time. After a longer time, a kill loses changes of more
/// than a second.
const FLUSH_TIMES: std::ops::RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(1);

const DEFAULT_URL: &str = "redis://127.0.0.1:6379/0";
/// Below the lower bound too few counters fit to be useful. No machine has more memory than the upper bound.
const MEMORY_SIZES: std::ops::RangeInclusive<ByteSize> = ByteSize::new(1_000_000)..=ByteSize::new(1 << 44);
/// The longest wait for a decision: after a minute, an answer is useless.
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);
/// A time below the lower bound saves no work. The upper bound is one hour, so that a refund through another node takes
/// effect within that time.
const DENY_CACHE_TIMES: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
const MAX_PREFIX_BYTES: usize = 100;

impl Store {
    pub(crate) fn read(report: &mut Report, root: &mut TableReader<'_>) -> Store {
        let mut store = Store::default();
        let mut fields = root.section(report, "store");
        let has_type = fields.node("type").is_some();
        let store_type = fields.read(report, "type", |report, node| value::word(report, node, &TYPES));
        store.visit_memory(&mut Keys::Read(report, &mut fields));
        let durable_at = fields.entry("durable").map(|entry| entry.key_at);
        store.durable.visit(&mut Keys::Read(report, &mut fields));
        let own_keys = fields.known.len();
        let redis = Redis::read(report, &mut fields);
        match store_type {
            Some(StoreType::Redis) => {
                if let Some(at) = durable_at.filter(|_| store.durable.mode != Durability::Off) {
                    let message =
                        "\"durable\" is for counters in memory: with type = \"redis\" the counters are Redis's";
                    report.error(at, message).hint("set appendonly in Redis, and leave \"durable\" out").done();
                }
                store.redis = redis;
            }
            // With a wrong type it is unknown which of the two stores was meant.
            None if has_type => {}
            // A default that is written out has no effect, and needs no warning.
            Some(StoreType::Memory) | None if redis == Redis::with_defaults() => {}
            Some(StoreType::Memory) | None => warn_unused(report, &mut fields, own_keys),
        }
        fields.finish(report);
        store
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("store");
        let store_type = if self.redis.is_some() { StoreType::Redis } else { StoreType::Memory };
        out.text("type", value::word_of(&TYPES, store_type));
        let mut store = self.clone();
        store.visit_memory(&mut Keys::Write(out));
        // Keys without an effect are left out.
        match &mut store.redis {
            Some(redis) => {
                redis.servers.write(out);
                redis.visit(&mut Keys::Write(out));
            }
            None if store.durable.mode == Durability::Off => store.durable.visit_mode(&mut Keys::Write(out)),
            None => store.durable.visit(&mut Keys::Write(out)),
        }
    }

    fn visit_memory(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("max_memory", &mut self.max_memory, form::size(MEMORY_SIZES));
        keys.key("when_full", &mut self.when_full, form::word(&WHEN_FULL));
    }
}

impl Durable {
    fn visit_mode(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("durable", &mut self.mode, form::word(&DURABILITIES));
    }

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        self.visit_mode(keys);
        keys.key("dir", &mut self.dir, form::path());
        keys.key("flush", &mut self.flush, form::span(FLUSH_TIMES));
        keys.key("on_damage", &mut self.on_damage, form::word(&ON_DAMAGE));
    }
}

impl Redis {
    fn read(report: &mut Report, fields: &mut TableReader<'_>) -> Option<Redis> {
        let servers = RedisServers::read(report, fields);
        let mut redis = Redis::with_defaults()?;
        redis.visit(&mut Keys::Read(report, fields));
        Some(Redis { servers: servers?, ..redis })
    }

    /// Always `Some`: the default address is valid.
    fn with_defaults() -> Option<Redis> {
        Some(Redis {
            servers: RedisServers::One(RedisUrl::parse(DEFAULT_URL).ok()?),
            prefix: "fg:".to_owned(),
            timeout: Duration::from_millis(50),
            on_failure: OnFailure::Local,
            local_share: Share::ALL,
            deny_cache: true,
            deny_cache_max: Duration::from_secs(1),
        })
    }

    /// Visits the keys beside those of the servers.
    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        let share = |report: &mut Report, node: &Node| {
            value::parsed(report, node, "a share above 0 and up to 1 such as \"1/3\" or \"50%\"")
        };
        keys.key("prefix", &mut self.prefix, form::text(prefix));
        keys.key("timeout", &mut self.timeout, form::span(TIMEOUTS));
        keys.key("on_failure", &mut self.on_failure, form::word(&ON_FAILURE));
        keys.key("local_share", &mut self.local_share, form::text(share));
        keys.key("deny_cache", &mut self.deny_cache, form::boolean());
        keys.key("deny_cache_max", &mut self.deny_cache_max, form::span(DENY_CACHE_TIMES));
    }
}

impl RedisServers {
    /// The one of `url`, `cluster` and `sentinel` that is given, or the default address.
    fn read(report: &mut Report, fields: &mut TableReader<'_>) -> Option<RedisServers> {
        let url = secret::read(report, fields, "url", "url_file");
        let url = url.and_then(|given| Some((RedisServers::One(accept(report, &given.text, given.at)?), given.at)));
        let cluster_at = fields.entry("cluster").map(|entry| entry.key_at);
        let cluster = fields.read(report, "cluster", |report, node| value::list(report, node, server));
        let cluster = cluster.filter(|nodes| !nodes.is_empty()).map(RedisServers::Cluster).zip(cluster_at);
        let sentinel = Sentinel::read(report, fields).ok()?;
        let sentinel = sentinel.map(|(sentinel, at)| (RedisServers::Sentinel(sentinel), at));
        let given = [("url", url), ("cluster", cluster), ("sentinel", sentinel)];
        let mut given = given.into_iter().filter_map(|(key, servers)| servers.map(|(servers, at)| (key, servers, at)));
        match (given.next(), given.next()) {
            (Some((first, _, first_at)), Some((second, _, at))) => {
                let message = format!("\"{first}\" and \"{second}\" exclude each other");
                let hint = match second {
                    "cluster" => "keep \"url\" for a single server, \"cluster\" for Redis Cluster",
                    _ if first == "cluster" => "keep \"cluster\" for Redis Cluster, which needs no sentinels",
                    _ => "the sentinels tell where Redis is; its login stands in \"username\" and \"password\"",
                };
                let notes = report.error(at, message).hint(hint);
                notes.place(format!("the {first} is given at"), first_at).refuse()
            }
            (Some((_, servers, _)), None) => Some(servers),
            (None, _) => Redis::with_defaults().map(|redis| redis.servers),
        }
    }

    fn write(&self, out: &mut Writer) {
        match self {
            RedisServers::One(url) => out.text("url", &url.to_string()),
            RedisServers::Cluster(nodes) => out.texts("cluster", nodes.iter().map(RedisUrl::to_string)),
            RedisServers::Sentinel(sentinel) => sentinel.write(out),
        }
    }
}

/// Warns of keys of Redis beside `type = "memory"`, unless the type comes from the environment, where it overrides the
/// file on purpose.
fn warn_unused(report: &mut Report, fields: &mut TableReader<'_>, own_keys: usize) {
    let set_by_variable = |report: &Report, at: Location| report.sources.get(at.source).kind == SourceKind::Variable;
    if fields.entry("type").is_some_and(|entry| set_by_variable(report, entry.node.at)) {
        return;
    }
    let redis_keys: Vec<_> = fields.known[own_keys..].to_vec();
    for key in redis_keys {
        if let Some(entry) = fields.entry(key) {
            let message = format!("\"{key}\" has no effect: counters live in memory");
            report.warning(entry.key_at, message).hint("to use Redis write type = \"redis\"").done();
        }
    }
}

fn server(report: &mut Report, node: &Node) -> Option<RedisUrl> {
    let text = value::text(report, node)?;
    accept(report, text, node.at)
}

fn accept(report: &mut Report, text: &str, at: Location) -> Option<RedisUrl> {
    match RedisUrl::parse(text) {
        Ok(url) if url.is_hidden() => {
            secret::refuse_hidden(report, super::render::HIDDEN, at);
            None
        }
        Ok(url) => {
            if let Some(name) = url.login_parameter() {
                let message = format!("the parameter \"{name}\" of the address has no effect");
                report.warning(at, message).hint("the login stands before the host: redis://USER:PASSWORD@HOST").done();
            }
            Some(url)
        }
        Err(expected) => {
            report.error(at, format!("expected {expected}")).hint("such as \"redis://127.0.0.1:6379/0\"").refuse()
        }
    }
}

fn prefix(report: &mut Report, node: &Node) -> Option<String> {
    let text = value::text(report, node)?;
    // Braces would make every key of every node share one slot of a cluster.
    if text.len() > MAX_PREFIX_BYTES || text.contains(['{', '}']) || text.chars().any(char::is_control) {
        let message =
            format!("expected a prefix of at most {MAX_PREFIX_BYTES} bytes without braces and control characters");
        return report.error(node.at, message).hint("such as \"fg:\"").refuse();
    }
    Some(text.to_owned())
}
