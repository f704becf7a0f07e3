//! A Redis Cluster: three masters and a replica of the first, which nodes reach through proxies.
//!
//! Servers announce the ports of their proxies, so redirections lead nodes there; the replica follows its master
//! through the master's proxy, too.

use flowgate_testkit::port::Port;
use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::eventually;
use tokio::runtime::Handle;

use crate::world::Server;

/// The cluster replaces a master that is silent for this many milliseconds. A fault pauses or stops a master for less.
const NODE_TIMEOUT: &str = "3000";

const RANGES: [(u16, u16); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// Starts the servers and waits until they are a cluster.
pub(crate) fn start(seed: u64, runtime: &Handle) -> Vec<Server> {
    let buses: Vec<Port> = std::iter::repeat_with(Port::claim).take(RANGES.len() + 1).collect();
    let mut servers: Vec<Server> = Vec::new();
    for (index, bus) in buses.iter().enumerate() {
        let number = bus.number.to_string();
        let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT, "--cluster-port", &number];
        let announced = ["--cluster-announce-ip", "127.0.0.1", "--cluster-announce-bus-port", &number];
        // The other slots are served while the slots of one master are away.
        let more = ["--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"];
        let options = [&cluster[..], &announced, &more].concat();
        servers.push(Server::start(seed.wrapping_add(index as u64), &options, runtime));
    }
    for (index, (first, last)) in RANGES.into_iter().enumerate() {
        let redis = &servers[index].redis;
        redis.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        ok(redis, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
    }
    for (server, bus) in servers.iter().zip(&buses).skip(1) {
        let (port, bus) = (server.port.number.to_string(), bus.number.to_string());
        ok(&servers[0].redis, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
    }
    let all = |is: &dyn Fn(&Redis) -> bool| servers.iter().all(|server| is(&server.redis));
    let knows_all = |redis: &Redis| redis.cli(&["CLUSTER", "INFO"]).contains("cluster_known_nodes:4");
    eventually("all servers know each other", || all(&knows_all));
    let (first, replica) = (id(&servers[0].redis), &servers[3].redis);
    eventually("a replica", || replica.cli(&["CLUSTER", "REPLICATE", &first]).contains("OK"));
    eventually("the cluster is there", || all(&|redis| is_ok(redis)));
    eventually("the replica has all data", || follows(replica));
    for (server, bus) in servers.iter_mut().zip(buses) {
        server.bus = Some(bus);
    }
    servers
}

/// The server that has a slot.
pub(crate) fn owner(servers: &[Server], slot: u16) -> usize {
    let has = |server: &Server| {
        let nodes = server.redis.cli(&["CLUSTER", "NODES"]);
        let myself = nodes.lines().find(|line| line.contains("myself")).unwrap_or_default();
        // The slots follow eight other words. Slots in brackets are being moved.
        let mut ranges = myself.split(' ').skip(8).filter(|range| !range.starts_with('['));
        ranges.any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            (first.parse::<u16>().unwrap()..=last.parse::<u16>().unwrap()).contains(&slot)
        })
    };
    servers.iter().position(has).unwrap_or_else(|| panic!("no server has slot {slot}"))
}

/// The slot of a key.
pub(crate) fn slot(servers: &[Server], key: &str) -> u16 {
    let reply = servers[0].redis.cli(&["CLUSTER", "KEYSLOT", key]);
    reply.trim_start_matches(':').trim().parse().unwrap()
}

/// Moves a slot with all its keys to another server, one key at a time, as a reshard does.
pub(crate) fn move_slot(servers: &[Server], slot: u16, from: usize, to: usize) {
    let (source, target) = (&servers[from].redis, &servers[to].redis);
    let (source_id, target_id, slot) = (id(source), id(target), slot.to_string());
    let port = servers[to].port.number.to_string();
    ok(target, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
    ok(source, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
    loop {
        let reply = source.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
        let keys: Vec<&str> = reply.lines().filter(|line| !line.starts_with(['*', '$'])).collect();
        if keys.is_empty() {
            break;
        }
        for key in keys {
            // A key may expire before it is moved.
            let moved = source.cli(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
            assert!(moved.contains("OK") || moved.contains("NOKEY"), "{key}: {moved}");
        }
    }
    // The new owner learns of the move first, so that it does not redirect to the old owner.
    ok(target, &["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
    for server in servers.iter().filter(|server| is_master(&server.redis)) {
        ok(&server.redis, &["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
    }
}

/// The master that has a replica, and its replica.
pub(crate) fn master_and_replica(servers: &[Server]) -> (usize, usize) {
    let replica = servers.iter().position(|server| !is_master(&server.redis)).expect("a replica");
    let nodes = servers[replica].redis.cli(&["CLUSTER", "NODES"]);
    let myself = nodes.lines().find(|line| line.contains("myself")).unwrap();
    let followed = myself.split(' ').nth(3).unwrap();
    let master = servers.iter().position(|server| id(&server.redis) == followed).expect("its master");
    (master, replica)
}

pub(crate) fn is_master(redis: &Redis) -> bool {
    redis.cli(&["ROLE"]).contains("master")
}

/// Whether a replica has all of its master's data.
pub(crate) fn follows(redis: &Redis) -> bool {
    redis.cli(&["INFO", "replication"]).contains("master_link_status:up")
}

pub(crate) fn is_ok(redis: &Redis) -> bool {
    redis.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
}

fn id(redis: &Redis) -> String {
    redis.cli(&["CLUSTER", "MYID"]).lines().nth(1).unwrap().to_owned()
}

#[track_caller]
fn ok(redis: &Redis, words: &[&str]) {
    let reply = redis.cli(words);
    assert!(reply.contains("OK"), "{words:?}: {reply}");
}
