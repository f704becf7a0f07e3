//! A real Redis cluster of three masters and a replica.

use crate::port::Port;
use crate::redis::Redis;
use crate::wait::eventually;

/// Three masters, and a replica of the first.
#[derive(Debug)]
#[must_use = "a cluster that nobody holds is stopped"]
pub struct Cluster {
    /// The masters in the order of [`RANGES`], then the replica.
    pub servers: Vec<Redis>,
    /// The ports of the servers, then those of the cluster's bus.
    pub ports: Vec<Port>,
}

/// The slots of each master.
pub const RANGES: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// A server counts as dead after this many milliseconds without an answer. A busy machine makes a server wait for less.
const NODE_TIMEOUT: &str = "2000";

impl Cluster {
    /// Starts a cluster, and waits until every server knows all others.
    ///
    /// # Panics
    ///
    /// If it does not come up.
    pub fn start() -> Cluster {
        let ports: Vec<Port> = std::iter::repeat_with(Port::claim).take(8).collect();
        let start = |index: usize| {
            let (port, bus) = (ports[index].number.to_string(), ports[index + 4].number.to_string());
            let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT];
            let ports = ["--bind", "127.0.0.1", "--port", &port, "--cluster-port", &bus];
            Redis::start_with(&[&cluster[..], &ports, &["--repl-diskless-sync-delay", "0"]].concat())
        };
        let servers: Vec<Redis> = (0..4).map(start).collect();
        for (index, (first, last)) in RANGES.into_iter().enumerate() {
            let (first, last) = (first.to_string(), last.to_string());
            servers[index].cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
            assert!(servers[index].cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).contains("OK"));
        }
        for index in 1..4 {
            let (port, bus) = (ports[index].number.to_string(), ports[index + 4].number.to_string());
            assert!(servers[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).contains("OK"));
        }
        let cluster = Cluster { servers, ports };
        let knows_all = |server: &Redis| server.cli(&["CLUSTER", "INFO"]).contains("cluster_known_nodes:4");
        eventually("all know each other", || cluster.servers.iter().all(knows_all));
        let id = cluster.id(0);
        eventually("a replica", || cluster.servers[3].cli(&["CLUSTER", "REPLICATE", &id]).contains("OK"));
        let is_ok = |server: &Redis| server.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        eventually("the cluster is there", || cluster.servers.iter().all(is_ok));
        let synced = || cluster.servers[3].cli(&["INFO", "replication"]).contains("master_link_status:up");
        eventually("the replica has it all", synced);
        cluster
    }

    /// The name of a server in the cluster.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn id(&self, index: usize) -> String {
        let reply = self.servers[index].cli(&["CLUSTER", "MYID"]);
        reply.lines().nth(1).unwrap().to_owned()
    }

    /// A configuration with these settings of `[store]` that names one of the servers.
    pub fn config(&self, settings: &str, rules: &str) -> String {
        let seeds = format!("cluster = ['redis://127.0.0.1:{}']", self.ports[1].number);
        format!("{rules}\n[store]\ntype = 'redis'\n{seeds}\ntimeout = '500ms'\n{settings}")
    }

    /// The slot of the counters of a user.
    pub fn slot(&self, user: &str) -> u16 {
        self.slot_of(&format!("fg:{{s:user={user}}}:2"))
    }

    /// The slot of a key.
    ///
    /// # Panics
    ///
    /// If the cluster does not answer.
    pub fn slot_of(&self, key: &str) -> u16 {
        let reply = self.servers[0].cli(&["CLUSTER", "KEYSLOT", key]);
        reply.trim_start_matches(':').trim().parse().unwrap()
    }

    /// Users whose slots a master has.
    pub fn users_of(&self, index: usize, count: usize) -> Vec<String> {
        let (first, last) = RANGES[index];
        let users = (0..).map(|user: u32| user.to_string());
        users.filter(|user| (first..=last).contains(&self.slot(user))).take(count).collect()
    }
}
