//! The real Envoy in front of a real upstream, with `examples/envoy.yaml` and `examples/envoy.toml`. `scripts/test` installs it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use flowgate_server::Config;
use flowgate_testkit::files::repository;
use flowgate_testkit::port::Port;
use flowgate_testkit::server::RunningServer;
use flowgate_testkit::wait::eventually;
use tempfile::TempDir;

/// An upstream that counts what reaches it. It answers `x-tokens` with what the request has in `x-tokens`, after the
/// milliseconds in `x-slow`.
struct Upstream {
    address: SocketAddr,
    reached: Arc<AtomicUsize>,
}

impl Upstream {
    fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, reached) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&reached);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || answer(&stream, &counter));
            }
        });
        Upstream { address, reached }
    }
}

fn answer(stream: &TcpStream, reached: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let (mut tokens, mut slow, mut line) = ("0".to_owned(), 0, String::new());
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        let header = line.trim_end().to_owned();
        line.clear();
        match header.split_once(": ") {
            Some(("x-tokens", value)) => tokens = value.to_owned(),
            Some(("x-slow", value)) => slow = value.parse().unwrap(),
            _ if header.is_empty() => {
                reached.fetch_add(1, Relaxed);
                std::thread::sleep(Duration::from_millis(slow));
                let reply = format!("HTTP/1.1 200 OK\r\nx-tokens: {tokens}\r\ncontent-length: 2\r\n\r\nok");
                if (&*stream).write_all(reply.as_bytes()).is_err() {
                    return;
                }
                (tokens, slow) = ("0".to_owned(), 0);
            }
            _ => {}
        }
    }
}

/// Envoy, which is killed with this value.
struct Envoy {
    process: Child,
    address: SocketAddr,
    _port: Port,
    _directory: TempDir,
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Envoy {
    /// Starts Envoy with the example; `edit` changes its text.
    fn start(upstream: SocketAddr, flowgate: SocketAddr, edit: impl FnOnce(String) -> String) -> Envoy {
        let port = Port::claim();
        let mut text = fs::read_to_string(repository("examples/envoy.yaml")).unwrap();
        for (old, new) in [("10000", port.number), ("8000", upstream.port()), ("7072", flowgate.port())] {
            let (old, new) = (format!("port_value: {old}"), format!("port_value: {new}"));
            assert!(text.contains(&old), "{old}");
            text = text.replace(&old, &new);
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("envoy.yaml");
        fs::write(&file, edit(text)).unwrap();
        let mut command = Command::new(program());
        command.arg("-c").arg(&file).args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.unwrap_or_else(|error| panic!("envoy: {error} (scripts/test installs it)"));
        let envoy = Envoy { process, address: port.address(), _port: port, _directory: directory };
        // It listens once its first health check of Flowgate is done.
        eventually("Envoy listens", || TcpStream::connect(envoy.address).is_ok());
        envoy
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: edge\r\nconnection: close\r\n");
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        Reply { status: reply[9..12].parse().unwrap(), text: reply }
    }
}

fn program() -> PathBuf {
    let installed = repository("target/python/bin/envoy");
    if installed.exists() { installed } else { "envoy".into() }
}

struct Reply {
    status: u16,
    text: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.text.lines().take_while(|line| !line.is_empty());
        headers.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Flowgate with the example's rules, of which some are tighter.
fn flowgate() -> RunningServer {
    flowgate_with(|text| text)
}

fn flowgate_with(edit: impl FnOnce(String) -> String) -> RunningServer {
    let text = fs::read_to_string(repository("examples/envoy.toml")).unwrap();
    let text = text.replace("127.0.0.1:7072", "127.0.0.1:0").replace("127.0.0.1:7070", "127.0.0.1:0");
    let text = text.replace("\"300/60s\", \"100/5s\"", "\"fixed 10/h\"").replace("bucket 10/s burst=20", "fixed 3/h");
    RunningServer::start(Config::from_toml(&edit(text)).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn exact_counts_headers_and_all_or_nothing() {
    let (upstream, server) = (Upstream::start(), flowgate());
    let envoy = Envoy::start(upstream.address, server.grpc.unwrap(), |text| text);
    // The user has 3, the address 10.
    for (number, status) in [200, 200, 200, 429, 429, 429].into_iter().enumerate() {
        let reply = envoy.get("/api/x", &[("x-user", "42")]);
        assert_eq!(reply.status, status, "request {number}: {}", reply.text);
    }
    assert_eq!(upstream.reached.load(Relaxed), 3);
    let denied = envoy.get("/api/x", &[("x-user", "42")]);
    assert_eq!(denied.header("x-envoy-ratelimited"), Some("true"));
    assert_eq!(denied.header("x-flowgate-rule"), Some("per-user"));
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    assert!(denied.header("retry-after").unwrap().parse::<u64>().unwrap() > 3000);
    assert!(denied.text.contains("Quota exceeded"));
    assert_eq!(
        denied.header("x-ratelimit-limit"),
        Some("3, 10;w=3600;name=\"per-address\", 3;w=3600;name=\"per-user\"")
    );
    assert_eq!(denied.text.matches("x-ratelimit-limit").count(), 1);
    // Denied requests took nothing from the address.
    let other = envoy.get("/api/x", &[("x-user", "7")]);
    assert_eq!((other.status, other.header("x-ratelimit-remaining")), (200, Some("2")));
    for number in 0..6 {
        assert_eq!(envoy.get("/", &[]).status, 200, "request {number}");
    }
    assert_eq!(envoy.get("/", &[]).status, 429, "10 of the address are used");
    assert_eq!(upstream.reached.load(Relaxed), 10);
}

#[test]
fn payments_after_the_fact_and_requests_in_flight() {
    let (upstream, server) = (Upstream::start(), flowgate_with(|text| text.replace("fixed 20/h", "fixed 2/h")));
    let envoy = Arc::new(Envoy::start(upstream.address, server.grpc.unwrap(), |text| text));
    assert_eq!(envoy.get("/llm", &[("x-user", "42"), ("x-tokens", "5000")]).status, 200);
    // Envoy pays when the stream has ended.
    eventually("the payment is counted", || envoy.get("/llm", &[("x-user", "42")]).status == 429);
    assert_eq!(envoy.get("/llm", &[("x-user", "7")]).status, 200);

    let before = upstream.reached.load(Relaxed);
    let slow: Vec<_> = (0..2)
        .map(|_| {
            let envoy = Arc::clone(&envoy);
            std::thread::spawn(move || envoy.get("/slow", &[("x-user", "42"), ("x-slow", "1500")]).status)
        })
        .collect();
    eventually("two are under way", || upstream.reached.load(Relaxed) == before + 2);
    for _ in 0..5 {
        assert_eq!(envoy.get("/slow", &[("x-user", "42")]).status, 429, "a denied request gives nothing back");
    }
    assert!(slow.into_iter().all(|slow| slow.join().unwrap() == 200));
    eventually("the slots are free again", || envoy.get("/slow", &[("x-user", "42")]).status == 200);
}

#[test]
fn an_absent_service_lets_pass_or_denies_as_configured() {
    let upstream = Upstream::start();
    let port = Port::claim();
    let nobody = port.address();
    let open = Envoy::start(upstream.address, nobody, |text| text);
    assert_eq!(open.get("/", &[]).status, 200);
    let closed = Envoy::start(upstream.address, nobody, |text| {
        text.replace("failure_mode_deny: false", "failure_mode_deny: true")
    });
    assert_eq!(closed.get("/", &[]).status, 500);
    assert_eq!(upstream.reached.load(Relaxed), 1);
}

/// One of two servers stops. Envoy hears it by the health check, while the server still answers, and asks the other.
#[test]
fn a_server_that_stops_loses_no_request() {
    let (upstream, first, second) = (Upstream::start(), flowgate(), flowgate());
    let (first_port, second_port) = (first.grpc.unwrap().port(), second.grpc.unwrap().port());
    let envoy = Envoy::start(upstream.address, first.grpc.unwrap(), |text| {
        let endpoint = |port: u16| {
            format!("{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }} }} }}")
        };
        let (one, both) = (endpoint(first_port), format!("{}, {}", endpoint(first_port), endpoint(second_port)));
        assert!(text.contains(&one));
        text.replace(&one, &both).replace("failure_mode_deny: false", "failure_mode_deny: true")
    });
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let asking = {
        let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
        std::thread::spawn(move || {
            let mut statuses = Vec::new();
            while !stop.load(Relaxed) {
                statuses.push(envoy.get("/other", &[]).status);
                answered.fetch_add(1, Relaxed);
            }
            statuses
        })
    };
    let twenty_more = || {
        let before = answered.load(Relaxed);
        eventually("twenty more answers", || answered.load(Relaxed) >= before + 20);
    };
    twenty_more();
    drop(first);
    twenty_more();
    stop.store(true, Relaxed);
    let statuses = asking.join().unwrap();
    let lost = statuses.iter().filter(|status| !matches!(status, 200 | 429)).count();
    assert_eq!(lost, 0, "of {}", statuses.len());
}

/// Passes on bytes to a server, unless it is told to hold them.
struct Proxy {
    address: SocketAddr,
    holds: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (holds, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let proxy = Proxy { address, holds: Arc::clone(&holds), connections: Arc::clone(&connections) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                connections.fetch_add(1, Relaxed);
                let server = TcpStream::connect(server).unwrap();
                let pairs = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
                for (from, to) in pairs {
                    let holds = Arc::clone(&holds);
                    std::thread::spawn(move || pass_on(from, to, &holds));
                }
            }
        });
        proxy
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, holds: &AtomicBool) {
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        while holds.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Calls that Envoy has given up during a stall are reset, and all resets arrive at once.
#[test]
fn a_stall_loses_no_connection() {
    let (upstream, server) = (Upstream::start(), flowgate_with(|text| text.replace("fixed 10/h", "fixed 1000/h")));
    let proxy = Proxy::start(server.grpc.unwrap());
    let envoy =
        Arc::new(Envoy::start(upstream.address, proxy.address, |text| text.replace("timeout: 0.25s", "timeout: 0.1s")));
    let is_counted = |envoy: &Envoy| envoy.get("/", &[]).header("x-ratelimit-limit").is_some();
    eventually("Flowgate is asked", || is_counted(&envoy));
    let before = proxy.connections.load(Relaxed);
    for _ in 0..3 {
        proxy.holds.store(true, Relaxed);
        let calls = (0..60).map(|_| {
            let envoy = Arc::clone(&envoy);
            std::thread::spawn(move || envoy.get("/", &[]).status)
        });
        let calls: Vec<_> = calls.collect();
        std::thread::sleep(Duration::from_millis(350));
        proxy.holds.store(false, Relaxed);
        assert!(calls.into_iter().all(|call| call.join().unwrap() == 200), "Envoy lets pass what has no answer");
        eventually("Flowgate is asked again", || is_counted(&envoy));
    }
    assert_eq!(proxy.connections.load(Relaxed), before, "no connection was lost");
}
