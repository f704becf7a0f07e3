//! HAProxy, with the configuration of docs/gateways, while Flowgate is stopped or frozen.
//!
//! Of several requests the quickest counts: a gateway that waits for a timeout or a retry makes all of them wait, and a
//! busy machine only some.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use flowgate_testkit::files;
use flowgate_testkit::http;
use flowgate_testkit::wait::until_listening;

use super::*;

/// The same value as `TIMEOUT_SECONDS` in flowgate.lua.
const TIMEOUT: Duration = Duration::from_secs(2);

/// HAProxy notices within this time that a stopped Flowgate refuses a connection.
const AT_ONCE: Duration = Duration::from_millis(50);

struct HaProxy {
    port: Port,
    process: Child,
}

impl HaProxy {
    fn start(directory: &Path, flowgate: SocketAddr, site: SocketAddr) -> HaProxy {
        let port = Port::claim();
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateways");
        for name in ["haproxy.cfg", "flowgate.lua"] {
            let text = fs::read_to_string(docs.join(name)).unwrap();
            let text = text
                .replace("\"127.0.0.1\", 7070", &format!("\"127.0.0.1\", {}", flowgate.port()))
                .replace("127.0.0.1:8080", &site.to_string())
                .replace("bind :80", &format!("bind {}", port.address()))
                .replace("/etc/haproxy/", &format!("{}/", directory.display()));
            fs::write(directory.join(name), text).unwrap();
        }
        let mut command = Command::new("haproxy");
        command.args(["-db", "-q", "-f"]).arg(directory.join("haproxy.cfg"));
        let mut haproxy = HaProxy { port, process: command.stdout(Stdio::null()).spawn().unwrap() };
        until_listening(&mut haproxy.process, haproxy.port.address());
        haproxy
    }

    /// Expects that the site answers. Returns whether HAProxy asked Flowgate, and the time of the request.
    fn get(&self) -> (bool, Duration) {
        let started = Instant::now();
        let reply = http::Client::connect(self.port.address()).call("GET", "/", &[], "");
        assert_eq!((reply.status, reply.body.as_str()), (200, "welcome"));
        (reply.header("ratelimit").is_some(), started.elapsed())
    }

    /// The shortest time of `requests` requests, which must pass without a question to Flowgate.
    fn quickest_unasked(&self, requests: usize) -> Duration {
        let times = (0..requests).map(|_| {
            let (asked, time) = self.get();
            assert!(!asked, "Flowgate is away");
            time
        });
        times.min().unwrap()
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // The process may have ended by itself. The test has noticed that.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A site that says `welcome`, for as long as the tests run.
fn site() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
            // A client that has left does not affect the next one.
            let _ =
                reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 7\r\n\r\nwelcome");
        }
    });
    address
}

#[test]
fn haproxy_waits_for_a_frozen_server_no_longer_than_its_timeout_and_for_a_stopped_one_not_at_all() {
    let rules = "rule = [{ name = 'all', by = ['ip'], limits = ['1000/60s'] }]";
    let claimed = Port::claim();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        let address = claimed.address().to_string();
        ServerProcess::start_with(command.args(["serve", "--resp", "off", "--http", &address]), rules)
    };
    let mut flowgate = start();
    let directory = files::directory(&[]);
    let haproxy = HaProxy::start(directory.path(), claimed.address(), site());
    for _ in 0..3 {
        assert!(haproxy.get().0, "Flowgate is asked");
    }

    // The first request finds a kept connection, the others open new ones.
    flowgate.signal("STOP");
    let first = haproxy.get();
    assert!(!first.0 && first.1 < TIMEOUT * 3 / 2, "{first:?}");
    let quickest = haproxy.quickest_unasked(2);
    assert!(quickest < TIMEOUT + AT_ONCE, "{quickest:?}");

    flowgate.signal("CONT");
    assert!(haproxy.get().0, "Flowgate is back");
    flowgate.kill();
    let quickest = haproxy.quickest_unasked(10);
    assert!(quickest < AT_ONCE, "{quickest:?}");

    let _flowgate = start();
    assert!(haproxy.get().0, "Flowgate is back");
}
