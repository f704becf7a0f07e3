//! A Redis of a master and a replica, and the sentinels that watch over them: real processes on ports of a test's own.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::port::Port;
use crate::redis::{Redis, program};
use crate::resp::Client;
use crate::wait::{eventually, until_listening};

/// The name of the master.
pub const MASTER: &str = "mymaster";

/// Sentinels take a server for dead after this many milliseconds without an answer. A busy machine makes a server wait
/// for less.
const DOWN_AFTER: &str = "2000";

/// A master, its replica, and sentinels. All of them end with this value.
#[derive(Debug)]
#[must_use = "servers that nobody holds are stopped"]
pub struct SentinelSetup {
    /// The first master and its first replica.
    pub servers: [Redis; 2],
    ports: [Port; 2],
    sentinels: Vec<Sentinel>,
}

/// A sentinel.
#[derive(Debug)]
struct Sentinel {
    port: Port,
    process: Child,
    _directory: TempDir,
}

impl SentinelSetup {
    /// Starts both servers with these options, and this number of sentinels with these lines in their configuration.
    pub fn start(sentinels: usize, server_options: &[&str], sentinel_lines: &str) -> SentinelSetup {
        let ports = [Port::claim(), Port::claim()];
        let start = |port: &Port| {
            let number = port.number.to_string();
            let own = ["--bind", "127.0.0.1", "--port", &number, "--repl-diskless-sync-delay", "0"];
            Redis::start_with(&[&own, server_options].concat())
        };
        // The replica becomes one by a command: a server that is started again is a master that takes writes.
        let servers = [start(&ports[0]), start(&ports[1])];
        follow(&servers[1], ports[0].number);
        let quorum = sentinels / 2 + 1;
        let sentinels = (0..sentinels).map(|_| Sentinel::start(ports[0].number, quorum, sentinel_lines)).collect();
        SentinelSetup { servers, ports, sentinels }
    }

    /// The addresses of the sentinels.
    pub fn addresses(&self) -> Vec<String> {
        self.sentinels.iter().map(|sentinel| sentinel.port.address().to_string()).collect()
    }

    /// The port of a server.
    pub fn port(&self, server: usize) -> u16 {
        self.ports[server].number
    }

    /// Waits until every sentinel knows the others and the replica, so that it can carry out a failover.
    pub fn settle(&self) {
        let others = format!("num-other-sentinels {}", self.sentinels.len() - 1);
        let knows_all = |sentinel: &Sentinel| {
            let master = sentinel.call(&format!("SENTINEL MASTER {MASTER}"));
            master.contains("num-slaves 1") && master.contains(&others)
        };
        eventually("the sentinels know all", || self.sentinels.iter().all(knows_all));
    }

    /// Waits until the first sentinel names this server as the master.
    pub fn until_master_is(&self, server: usize) {
        let expected = format!("[127.0.0.1 {}]", self.port(server));
        let is_named = || self.sentinels[0].call(&format!("SENTINEL GET-MASTER-ADDR-BY-NAME {MASTER}")) == expected;
        eventually("another master", is_named);
    }

    /// Has the first sentinel carry out a failover now.
    pub fn fail_over(&self) {
        let asked = || self.sentinels[0].call(&format!("SENTINEL FAILOVER {MASTER}")) == "OK";
        eventually("a failover begins", asked);
    }
}

/// Makes a server the replica of another, and waits until it has all data.
fn follow(replica: &Redis, master: u16) {
    replica.cli(&["REPLICAOF", "127.0.0.1", &master.to_string()]);
    eventually("the replica follows", || replica.cli(&["INFO", "replication"]).contains("master_link_status:up"));
}

impl Sentinel {
    fn start(master: u16, quorum: usize, lines: &str) -> Sentinel {
        let (port, directory) = (Port::claim(), tempfile::tempdir().unwrap());
        let file = directory.path().join("sentinel.conf");
        let (number, place) = (port.number, directory.path().display());
        let config = format!(
            "bind 127.0.0.1\nport {number}\ndir {place}\nsentinel monitor {MASTER} 127.0.0.1 {master} {quorum}\n\
             sentinel down-after-milliseconds {MASTER} {DOWN_AFTER}\nsentinel failover-timeout {MASTER} 10000\n{lines}\n"
        );
        std::fs::write(&file, config).unwrap();
        let log = File::create(directory.path().join("log")).unwrap();
        let process = Command::new(program()).arg(&file).arg("--sentinel").stdout(log).stderr(Stdio::inherit()).spawn();
        let mut process = process.unwrap_or_else(|error| panic!("{}: {error}", program()));
        until_listening(&mut process, port.address());
        Sentinel { port, process, _directory: directory }
    }

    fn call(&self, command: &str) -> String {
        let client = Client::try_connect(self.port.address());
        client.map(|mut client| client.call(command)).unwrap_or_default()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
