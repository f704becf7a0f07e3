//! Several servers on one Redis: what they admit together is exact, and never more, whoever of them is killed.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use flowgate_testkit::port::Port;
use flowgate_testkit::redis::Redis;
use flowgate_testkit::wait::{HANG_TIMEOUT, eventually};

/// Every algorithm, each with an allowance of 100 of which nothing comes back during a test. (The last of the free ones
/// counts for the limit, too.)
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

/// A server process, killed with this.
struct Flowgate {
    process: Child,
    resp: String,
    /// What it writes to standard error.
    says: Receiver<String>,
}

impl Flowgate {
    fn start(config: &Path) -> Flowgate {
        Flowgate::run(&mut Command::new(env!("CARGO_BIN_EXE_flowgate")), config)
    }

    fn run(command: &mut Command, config: &Path) -> Flowgate {
        command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--config"]).arg(config);
        command.env("STATE_DIRECTORY", env!("CARGO_TARGET_TMPDIR"));
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let (told, says) = mpsc::channel();
        // Lines before the announcement count, too.
        let line = stderr
            .by_ref()
            .inspect(|line| drop(told.send(line.clone())))
            .find(|line| line.trim_start().starts_with("resp "))
            .expect("the server announces its address");
        // Read whether or not anybody listens: what it says must not stop it.
        thread::spawn(move || stderr.for_each(|line| drop(told.send(line))));
        let resp = line.split_once("redis://").unwrap().1.to_owned();
        Flowgate { process, resp, says }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Flowgate {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
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

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: &str) -> Option<Client> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(HANG_TIMEOUT)).ok()?;
        Some(Client(BufReader::new(stream)))
    }

    /// Takes one for each algorithm, in one pipeline; which of them passed. `None`: the server is gone.
    fn take_all(&mut self, user: usize) -> Option<[bool; ALGORITHMS.len()]> {
        let command = |(name, _)| format!("FG.TAKE 1 act {name} user {user}\r\n");
        let pipeline: String = ALGORITHMS.into_iter().map(command).collect();
        self.0.get_mut().write_all(pipeline.as_bytes()).ok()?;
        let mut passed = [false; ALGORITHMS.len()];
        for passed in &mut passed {
            *passed = self.reply()?;
        }
        Some(passed)
    }

    /// Whether the next decision allows.
    fn reply(&mut self) -> Option<bool> {
        assert_eq!(self.line()?, "*8");
        let numbers: Vec<String> = (0..6).map(|_| self.line()).collect::<Option<_>>()?;
        for _ in 0..2 {
            let length: usize = self.line()?.strip_prefix('$')?.parse().unwrap();
            self.0.read_exact(&mut vec![0; length + 2]).ok()?;
        }
        Some(numbers[0] == ":1")
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok()?;
        line.strip_suffix("\r\n").map(str::to_owned)
    }
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
    let servers: Vec<Flowgate> = (0..4).map(|_| Flowgate::start(config.path())).collect();
    let addresses: Vec<&str> = servers.iter().map(|server| server.resp.as_str()).collect();
    let admitted: Vec<Admitted> = (0..USERS).map(|_| Admitted::default()).collect();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (addresses, admitted) = (&addresses, &admitted);
            scope.spawn(move || {
                let mut connection = Client::connect(addresses[client % addresses.len()]).unwrap();
                for round in 0..24 {
                    let user = (client + round) % USERS;
                    let passed = connection.take_all(user).unwrap();
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
    let mut servers: Vec<Flowgate> = (0..4).map(|_| Flowgate::start(config.path())).collect();
    let addresses: Vec<String> = servers.iter().map(|server| server.resp.clone()).collect();
    let admitted: Vec<Admitted> = (0..USERS).map(|_| Admitted::default()).collect();
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        // Also when something fails: clients must not go on for ever.
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
                    match connection.as_mut().and_then(|connection: &mut Client| connection.take_all(user)) {
                        Some(passed) => {
                            answered.fetch_add(1, SeqCst);
                            passed.iter().zip(&admitted[user]).for_each(|(passed, count)| {
                                count.fetch_add(usize::from(*passed), SeqCst);
                            });
                        }
                        None => {
                            at += 1;
                            connection = Client::connect(&addresses[at % addresses.len()]);
                        }
                    }
                }
            });
        }
        // One after the other, each while all are at work; the last one stays.
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
    // What was granted by a server that was killed before it could say so is lost: at most what was under way.
    assert!(admitted.iter().flatten().all(|count| *count + CLIENTS >= ALLOWANCE), "{admitted:?}");
}

#[test]
fn over_tls_only_with_a_certificate_that_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let script = "
        key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
        openssl req -x509 $key -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca &&
        openssl req $key -keyout key.pem -out request.pem -subj /CN=redis &&
        echo subjectAltName=IP:127.0.0.1 > names &&
        openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(directory.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let file = |name: &str| directory.path().join(name).display().to_string();
    let claimed = Port::claim();
    let port = claimed.number.to_string();
    let (cert, key, ca) = (file("cert.pem"), file("key.pem"), file("ca.pem"));
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let _redis = Redis::start_with(&[&["--tls-port", &port, "--tls-auth-clients", "no"][..], &files].concat());
    let mut config = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    writeln!(config, "[store]\ntype = 'redis'\nurl = 'rediss://127.0.0.1:{port}'\ntimeout = '5s'").unwrap();
    writeln!(config, "on_failure = 'deny'").unwrap();
    let trusting = |trusted: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        Flowgate::run(command.env("SSL_CERT_FILE", trusted), config.path())
    };
    let allowed = |server: &Flowgate| {
        let mut client = Client::connect(&server.resp).unwrap();
        client.0.get_mut().write_all(b"FG.LIMIT k 500/60s\r\n").unwrap();
        client.reply().unwrap()
    };
    let server = trusting(&ca);
    eventually("it has connected", || allowed(&server));
    let server = trusting(&cert);
    let away =
        std::iter::repeat_with(|| server.says.recv_timeout(HANG_TIMEOUT).unwrap()).find(|line| line.contains("away"));
    assert!(away.as_ref().unwrap().contains("certificate"), "{away:?}");
    assert!(!allowed(&server), "a server whose certificate nobody vouches for is not asked");
}
