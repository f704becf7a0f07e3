//! A Redis behind sentinels: found at the start and after a failover, and kept when a sentinel lies or is cut off.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flowgate_server::{Operation, Ready};
use flowgate_testkit::port::Port;
use flowgate_testkit::redis::Redis;
use flowgate_testkit::sentinel::{MASTER, SentinelSetup};
use flowgate_testkit::wait::{HANG_TIMEOUT, eventually};

use crate::{Node, RECOVERY, RULES};

/// A node that knows these sentinels.
fn node(sentinels: &[String], settings: &str) -> Node {
    let store = format!("[store]\ntype = 'redis'\nsentinel = {sentinels:?}\nmaster = '{MASTER}'\ntimeout = '500ms'");
    Node::from_toml(&format!("{RULES}\n{store}\n{settings}"))
}

/// Takes until a take is counted here; how long that took.
async fn until_counted(node: &Node, server: &Redis, user: &str) -> Duration {
    let (started, before) = (Instant::now(), server.calls("evalsha"));
    loop {
        let decision = node.decide(Operation::Peek, user, 1).await;
        if !decision.degraded && server.decisions() > 0 && server.calls("evalsha") > before {
            return started.elapsed();
        }
        assert!(started.elapsed() < HANG_TIMEOUT, "not counted there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_is_found_and_left_for_the_next_one() {
    let mut watched = SentinelSetup::start(3, &[], "");
    let node = node(&watched.addresses(), "");
    node.until_degraded(false).await;
    assert_eq!(node.admits("42", 3).await, 3);
    assert!(watched.servers[0].decisions() >= 3 && watched.servers[1].decisions() == 0);
    watched.settle();
    // What has reached the replica is not lost.
    assert_eq!(watched.servers[0].cli(&["WAIT", "1", "10000"]), ":1\r\n");
    watched.servers[0].kill();
    node.until_degraded(true).await;
    watched.until_master_is(1);
    let took = until_counted(&node, &watched.servers[1], "42").await;
    assert!(took < RECOVERY, "{took:?}");
    assert_eq!(node.admits("42", 5).await, 2, "the counters went along");
    node.says(Ready::Yes).await;
    // The old master comes back empty and takes writes, until the sentinels make it a replica.
    watched.servers[0].up();
    assert!(watched.servers[0].cli(&["ROLE"]).contains("master"));
    // The node asks for bans as often as it asks the sentinels.
    let rounds = watched.servers[1].ban_reads() + 4;
    eventually("it has been there for a while", || watched.servers[1].ban_reads() >= rounds);
    assert_eq!(node.admits("42", 2).await, 0);
    assert_eq!(watched.servers[0].calls("evalsha"), 0, "nothing was counted on the old master");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_by_hand_moves_the_node() {
    let watched = SentinelSetup::start(3, &[], "");
    let node = node(&watched.addresses(), "");
    node.until_degraded(false).await;
    watched.settle();
    watched.fail_over();
    watched.until_master_is(1);
    let took = until_counted(&node, &watched.servers[1], "42").await;
    assert!(took < RECOVERY, "{took:?}");
}

/// A sentinel that says what a test tells it to say.
struct FakeSentinel {
    address: String,
    says: Arc<Mutex<Says>>,
    /// How often it was asked.
    rounds: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
enum Says {
    Master { port: u16, epoch: u64 },
    Nothing,
}

impl FakeSentinel {
    fn start(says: Says) -> FakeSentinel {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, says) = (listener.local_addr().unwrap().to_string(), Arc::new(Mutex::new(says)));
        let sentinel = FakeSentinel { address, says, rounds: Arc::default() };
        let (says, rounds) = (Arc::clone(&sentinel.says), Arc::clone(&sentinel.rounds));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, says, rounds) = (stream.unwrap(), Arc::clone(&says), Arc::clone(&rounds));
                std::thread::spawn(move || answer(stream, &says, &rounds));
            }
        });
        sentinel
    }

    /// Waits until the node has drawn its conclusions from what this sentinel says now.
    async fn is_heard(&self) {
        let (started, before) = (Instant::now(), self.rounds.load(SeqCst));
        while self.rounds.load(SeqCst) < before + 4 {
            assert!(started.elapsed() < HANG_TIMEOUT, "the sentinel is not asked");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn say(&self, says: Says) {
        *self.says.lock().unwrap() = says;
    }
}

/// Answers until the other side leaves.
fn answer(mut stream: TcpStream, says: &Mutex<Says>, rounds: &AtomicUsize) -> Option<()> {
    let mut chunk = [0; 4096];
    loop {
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        let asked = String::from_utf8_lossy(&chunk[..read]).into_owned();
        let says = *says.lock().unwrap();
        let reply = match says {
            Says::Nothing => continue,
            Says::Master { .. } if asked.contains("PING") => "+PONG\r\n".to_owned(),
            Says::Master { port, epoch } => {
                rounds.fetch_add(1, SeqCst);
                let text = |text: String| format!("${}\r\n{text}\r\n", text.len());
                let address = text("127.0.0.1".to_owned()) + &text(port.to_string());
                format!("*2\r\n{address}*2\r\n$12\r\nconfig-epoch\r\n{}", text(epoch.to_string()))
            }
        };
        stream.write_all(reply.as_bytes()).ok()?;
    }
}

/// A server on a port.
fn server() -> (Redis, u16) {
    let port = Port::claim();
    let number = port.number.to_string();
    (Redis::start_with(&["--bind", "127.0.0.1", "--port", &number]), port.number)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentinel_that_lies_or_is_cut_off_does_not_move_the_node() {
    let ((one, one_port), (two, two_port), (replica, replica_port)) = (server(), server(), server());
    replica.cli(&["REPLICAOF", "127.0.0.1", &one_port.to_string()]);
    let honest = FakeSentinel::start(Says::Master { port: one_port, epoch: 1 });
    let other = FakeSentinel::start(Says::Master { port: replica_port, epoch: 9 });
    let silent = FakeSentinel::start(Says::Nothing);
    let node = node(&[silent.address.clone(), other.address.clone(), honest.address.clone()], "");
    // The newest epoch belongs to a replica, so the next one counts; a silent sentinel holds nothing up.
    let took = until_counted(&node, &one, "42").await;
    assert!(took < RECOVERY * 2, "{took:?}");

    let closed = Port::claim();
    other.say(Says::Master { port: closed.number, epoch: 10 });
    other.is_heard().await;
    assert!(!node.take("42").await.degraded && two.decisions() == 0, "nothing listens there");

    honest.say(Says::Master { port: two_port, epoch: 2 });
    until_counted(&node, &two, "42").await;
    // Both take writes now. Only a sentinel that knows the old one is left.
    honest.say(Says::Nothing);
    other.say(Says::Master { port: one_port, epoch: 1 });
    let before = one.decisions();
    other.is_heard().await;
    assert!(!node.take("42").await.degraded);
    assert_eq!(one.decisions(), before, "the old master is left");

    // Sentinels that were set up anew begin at epoch 0, and agree.
    for sentinel in [&silent, &other, &honest] {
        sentinel.say(Says::Master { port: one_port, epoch: 0 });
    }
    until_counted(&node, &one, "42").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_of_sentinels_and_of_servers_are_apart() {
    let watched = SentinelSetup::start(1, &[], "requirepass s3same");
    let wrong = node(&watched.addresses(), "sentinel_password = 'other'");
    let stranger = node(&watched.addresses(), "");
    let unknown = Node::from_toml(&format!(
        "[store]\ntype = 'redis'\nsentinel = {:?}\nmaster = 'other'\nsentinel_password = 's3same'",
        watched.addresses()
    ));
    for node in [&wrong, &stranger, &unknown] {
        node.says(Ready::Degraded("redis away".to_owned())).await;
    }
    watched.servers[0].cli(&["ACL", "SETUSER", "alice", "on", ">w0nder", "~*", "&*", "+@all"]);
    let settings = "sentinel_password = 's3same'\nusername = 'alice'\npassword = 'w0nder'\ndatabase = 3";
    let node = node(&watched.addresses(), settings);
    node.until_degraded(false).await;
    assert_eq!(node.admits("42", 7).await, 5);
    assert!(watched.servers[0].cli(&["CLIENT", "LIST"]).contains("user=alice"));
    assert!(watched.servers[0].cli(&["INFO", "keyspace"]).contains("db3:"));
}
