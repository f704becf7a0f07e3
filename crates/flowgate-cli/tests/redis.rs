//! Several servers on one Redis: together they admit exactly the limit, and never more, also if one of them is killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use flowgate_testkit::certificates::Authority;
use flowgate_testkit::port::Port;
use flowgate_testkit::redis::Redis;
use flowgate_testkit::resp::Client;
use flowgate_testkit::server_process::{ServerProcess, serve_command};
use flowgate_testkit::wait::{eventually, until_listening};

/// Every algorithm with an allowance of 100 units, none of which comes back during a test. (The last free unit of
/// `after=` counts for the limit, too.)
const ALGORITHMS: [(&str, &str); 6] = [
    ("sliding", "100/366d"),
    ("fixed", "fixed 100/366d"),
    ("bucket", "bucket 1/1d burst=100"),
    ("pace", "pace 1/1d burst=100 max_wait=0s"),
    ("approx", "approx 100/366d"),
    ("after", "fixed 61/366d after=40/366d"),
];
const ALLOWANCE: usize = 100;
const CLIENTS: usize = 64;

fn start(config: &Path) -> ServerProcess {
    run(&mut serve_command(env!("CARGO_BIN_EXE_flowgate")), config)
}

fn run(command: &mut Command, config: &Path) -> ServerProcess {
    command.arg("--config").arg(config).env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
    ServerProcess::spawn(command)
}

fn configuration(redis: &Redis) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    writeln!(file, "[store]\ntype = 'redis'\nurl = '{}'\ntimeout = '5s'\non_failure = 'deny'", redis.url()).unwrap();
    for (name, limit) in ALGORITHMS {
        writeln!(file, "[[rule]]\nname = '{name}'\nwhen = {{ act = '{name}', user = '*' }}").unwrap();
        writeln!(file, "by = ['user']\nlimits = ['{limit}']").unwrap();
    }
    file
}

/// Takes one unit of each algorithm, in one pipeline. Returns which takes passed; `None` if the server is gone.
fn take_all(client: &mut Client, user: usize) -> Option<[bool; ALGORITHMS.len()]> {
    let command = |(name, _)| format!("FG.TAKE 1 act {name} user {user}\r\n");
    let pipeline: String = ALGORITHMS.into_iter().map(command).collect();
    client.try_send(pipeline)?;
    let mut passed = [false; ALGORITHMS.len()];
    for passed in &mut passed {
        *passed = client.try_reply()?.starts_with("[1 ");
    }
    Some(passed)
}

type Admitted = [AtomicUsize; ALGORITHMS.len()];

fn read(admitted: &[Admitted]) -> Vec<[usize; ALGORITHMS.len()]> {
    admitted.iter().map(|user| std::array::from_fn(|index| user[index].load(SeqCst))).collect()
}

const USERS: usize = 3;

struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

#[test]
fn four_servers_admit_exactly_what_is_allowed() {
    let redis = Redis::start();
    let config = configuration(&redis);
    let servers: Vec<ServerProcess> = (0..4).map(|_| start(config.path())).collect();
    let addresses: Vec<&str> = servers.iter().map(|server| server.resp.as_str()).collect();
    let admitted: Vec<Admitted> = (0..USERS).map(|_| Admitted::default()).collect();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (addresses, admitted) = (&addresses, &admitted);
            scope.spawn(move || {
                let mut connection = Client::connect(addresses[client % addresses.len()]);
                for round in 0..24 {
                    let user = (client + round) % USERS;
                    let passed = take_all(&mut connection, user).unwrap();
                    passed.iter().zip(&admitted[user]).for_each(|(passed, count)| {
                        count.fetch_add(usize::from(*passed), SeqCst);
                    });
                }
            });
        }
    });
    assert_eq!(read(&admitted), [[ALLOWANCE; ALGORITHMS.len()]; USERS]);
}

#[test]
fn servers_that_are_killed_never_admit_more() {
    let redis = Redis::start();
    let config = configuration(&redis);
    let mut servers: Vec<ServerProcess> = (0..4).map(|_| start(config.path())).collect();
    let addresses: Vec<String> = servers.iter().map(|server| server.resp.clone()).collect();
    let admitted: Vec<Admitted> = (0..USERS).map(|_| Admitted::default()).collect();
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        // The clients also stop if the test fails.
        let _done = AtTheEnd(&done);
        for client in 0..CLIENTS {
            let (addresses, admitted, done, answered) = (&addresses, &admitted, &done, &answered);
            scope.spawn(move || {
                let (mut at, mut connection) = (client, None);
                for round in 0.. {
                    if done.load(SeqCst) {
                        return;
                    }
                    let user = (client + round) % USERS;
                    match connection.as_mut().and_then(|connection| take_all(connection, user)) {
                        Some(passed) => {
                            answered.fetch_add(1, SeqCst);
                            passed.iter().zip(&admitted[user]).for_each(|(passed, count)| {
                                count.fetch_add(usize::from(*passed), SeqCst);
                            });
                        }
                        None => {
                            at += 1;
                            connection = Client::try_connect(&addresses[at % addresses.len()]);
                        }
                    }
                }
            });
        }
        // Kills the servers one after the other, each while all clients are at work. The last server stays.
        for server in &mut servers[..3] {
            let before = answered.load(SeqCst);
            eventually("clients are answered", || answered.load(SeqCst) > before + 50);
            server.kill();
        }
        let before = answered.load(SeqCst);
        eventually("those that are left answer", || answered.load(SeqCst) > before + 300);
    });
    let admitted = read(&admitted);
    assert!(admitted.iter().flatten().all(|count| *count <= ALLOWANCE), "{admitted:?}");
    // A server that is killed before it replies has charged at most the requests under way.
    assert!(admitted.iter().flatten().all(|count| *count + CLIENTS >= ALLOWANCE), "{admitted:?}");
}

#[test]
fn over_tls_only_with_a_certificate_that_is_trusted() {
    let authority = Authority::new();
    authority.issue("redis");
    let claimed = Port::claim();
    let port = claimed.number.to_string();
    let (cert, key, ca) = (authority.text("redis.pem"), authority.text("redis.key"), authority.text("ca.pem"));
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let _redis = Redis::start_with(&[&["--tls-port", &port, "--tls-auth-clients", "no"][..], &files].concat());
    let mut config = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    writeln!(config, "[store]\ntype = 'redis'\nurl = 'rediss://127.0.0.1:{port}'\ntimeout = '5s'").unwrap();
    writeln!(config, "on_failure = 'deny'").unwrap();
    let trusting = |trusted: &str| {
        let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
        run(command.env("SSL_CERT_FILE", trusted), config.path())
    };
    let allowed = |server: &ServerProcess| {
        let mut client = Client::connect(&server.resp);
        client.send("FG.LIMIT k 500/60s\r\n");
        client.reply().starts_with("[1 ")
    };
    let server = trusting(&ca);
    eventually("it has connected", || allowed(&server));
    let server = trusting(&cert);
    let away = server.first_line_with("away");
    assert!(away.contains("certificate"), "{away}");
    assert!(!allowed(&server), "a server whose certificate has no known issuer is not asked");
}

#[test]
fn sentinels_and_their_servers_over_tls() {
    let authority = Authority::new();
    authority.issue("redis");
    let (sentinel_port, redis_port) = (Port::claim(), Port::claim());
    let (cert, key, ca) = (authority.text("redis.pem"), authority.text("redis.key"), authority.text("ca.pem"));
    let number = redis_port.number.to_string();
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let _redis = Redis::start_with(&[&["--tls-port", &number, "--tls-auth-clients", "no"][..], &files].concat());
    let sentinel = authority.path("sentinel.conf");
    let lines = format!(
        "port 0\ntls-port {}\ntls-auth-clients no\ntls-replication yes\ntls-cert-file {cert}\ntls-key-file {key}\n\
         tls-ca-cert-file {ca}\ndir {}\nsentinel monitor mymaster 127.0.0.1 {number} 1\n",
        sentinel_port.number,
        authority.directory().display()
    );
    std::fs::write(&sentinel, lines).unwrap();
    let program = flowgate_testkit::redis::program();
    let mut command = Command::new(program);
    let process = command.arg(&sentinel).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
    let mut child = EndedOnDrop(process);
    until_listening(&mut child.0, sentinel_port.address());
    let mut config = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    writeln!(config, "[store]\ntype = 'redis'\nsentinel = ['rediss://{}']", sentinel_port.address()).unwrap();
    writeln!(config, "master = 'mymaster'\ntls = true\ntimeout = '5s'\non_failure = 'deny'").unwrap();
    let trusting = |trusted: &str| {
        let mut command = serve_command(env!("CARGO_BIN_EXE_flowgate"));
        run(command.env("SSL_CERT_FILE", trusted), config.path())
    };
    let server = trusting(&ca);
    let allowed = || Client::connect(&server.resp).call("FG.LIMIT k 500/60s").starts_with("[1 ");
    eventually("it has found the master", allowed);
    let stranger = trusting(&cert);
    let away = stranger.first_line_with("away");
    assert!(away.contains("certificate") && away.contains("the master mymaster"), "{away}");
}

/// A process that ends with the test.
struct EndedOnDrop(Child);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
