//! The parts of a run: a Redis or a cluster, a proxy before each server, and four nodes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowgate_testkit::port::Port;
use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::HANG_TIMEOUT;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::client::{Field, body, post};
use crate::exceptions::{Exception, Whose};
use crate::faults::Fault;
use crate::node::Node;
use crate::proxy::Proxy;
use crate::random::Random;
use crate::workload::{Asked, KINDS, Subjects, configuration};

pub(crate) const NODES: usize = 4;

pub(crate) struct World {
    // The nodes end before the servers that they use.
    pub(crate) nodes: Vec<Node>,
    pub(crate) servers: Vec<Server>,
    pub(crate) field: Arc<Field>,
    pub(crate) random: Random,
    /// The `timeout` of the nodes' store.
    pub(crate) timeout: Duration,
    pub(crate) exceptions: Vec<Exception>,
    /// Problems that the faults themselves have found.
    pub(crate) complaints: Vec<String>,
    /// The current fault, or the last one.
    pub(crate) fault: Option<Fault>,
    /// The directory of the nodes' configuration and logs. It is kept unless all went well.
    pub(crate) directory: PathBuf,
    runtime: Handle,
}

/// A Redis server, and the proxy through which nodes reach it.
pub(crate) struct Server {
    pub(crate) redis: Redis,
    pub(crate) proxy: Proxy,
    pub(crate) port: Port,
    /// The port by which servers of a cluster talk to each other.
    pub(crate) bus: Option<Port>,
}

impl Server {
    /// Starts a server that loses nothing when it is killed, since it writes to its log before it answers.
    pub(crate) fn start(seed: u64, options: &[&str], runtime: &Handle) -> Server {
        let port = Port::claim();
        let proxy = Proxy::start(port.number, seed, runtime);
        let (number, announced) = (port.number.to_string(), proxy.port.to_string());
        let address = ["--bind", "127.0.0.1", "--port", &number, "--cluster-announce-port", &announced];
        let log = ["--appendonly", "yes", "--appendfsync", "no"];
        let redis = Redis::start_with(&[&address[..], &log, options].concat());
        Server { redis, proxy, port, bus: None }
    }
}

impl World {
    /// Four nodes on these servers; `store` names them for the configuration.
    pub(crate) fn start(servers: Vec<Server>, store: &str, timeout: Duration, seed: u64, runtime: &Handle) -> World {
        let directory =
            tempfile::Builder::new().prefix("soak-").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
        eprintln!("logs in {}", directory.display());
        let store = format!("{store}\ntimeout = '{}ms'", timeout.as_millis());
        std::fs::write(directory.join("flowgate.toml"), configuration(&store)).unwrap();
        let field = Field::new();
        let nodes = (0..NODES).map(|number| Node::start(number, &directory, &field)).collect();
        let (random, runtime) = (Random::new(seed), runtime.clone());
        World {
            nodes,
            servers,
            field,
            random,
            timeout,
            exceptions: Vec::new(),
            complaints: Vec::new(),
            fault: None,
            directory,
            runtime,
        }
    }

    /// Notes an event since `from` after which an allowance may be granted again.
    pub(crate) fn excepts(&mut self, whose: Whose, from: Duration) {
        let to = self.field.now();
        self.exceptions.push(Exception { whose, from, to });
    }

    /// Waits until every node asks the store again for every subject. Returns the time that it took.
    pub(crate) fn recovers(&self) -> Duration {
        let started = Instant::now();
        for node in 0..NODES {
            while self.runtime.block_on(self.is_degraded(node)) {
                assert!(started.elapsed() < HANG_TIMEOUT, "node {node} is still degraded after {:?}", self.fault);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        started.elapsed()
    }

    /// Whether a node does not answer, or decides some subject without the store.
    async fn is_degraded(&self, node: usize) -> bool {
        let peeks: Vec<_> = hot_subjects().iter().map(peek).collect();
        let replies = self.batch(node, &peeks).await;
        replies.is_none_or(|replies| replies.iter().any(|reply| reply["degraded"] != false))
    }

    /// The replies of a node to a batch; `None`: the node does not answer.
    pub(crate) async fn batch(&self, node: usize, items: &[serde_json::Value]) -> Option<Vec<serde_json::Value>> {
        self.post(node, "/v1/batch", &items.into()).await?.as_array().cloned()
    }

    /// Asks a node over HTTP; `None`: the node does not answer.
    pub(crate) fn ask(&self, node: usize, path: &str, body: &serde_json::Value) -> Option<serde_json::Value> {
        self.runtime.block_on(self.post(node, path, body))
    }

    async fn post(&self, node: usize, path: &str, body: &serde_json::Value) -> Option<serde_json::Value> {
        let asked = async {
            let stream = TcpStream::connect(self.field.address(node).http).await.ok()?;
            post(&mut BufReader::new(stream), path, body).await
        };
        timeout(Duration::from_secs(5), asked).await.ok().flatten()
    }
}

/// A look at what a request would find, without counting.
pub(crate) fn peek(asked: &Asked) -> serde_json::Value {
    let mut peek = body(asked);
    peek["op"] = "peek".into();
    peek["cost"] = 0.into();
    peek
}

/// Busy subjects, enough of them to lie on every server of a cluster.
fn hot_subjects() -> Vec<Asked> {
    let mut found = Vec::new();
    for (kind, of) in KINDS.iter().enumerate() {
        if let Subjects::Few(count) = of.subjects {
            found.extend((0..count).map(|subject| Asked { kind, subject, fresh: None }));
        }
    }
    found
}
