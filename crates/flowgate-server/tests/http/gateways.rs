//! Real gateways with the configurations of `docs/gateways`, on other ports.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown as Close, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flowgate_testkit::port::Port;
use flowgate_testkit::wait::until_listening;
use tempfile::TempDir;

use super::*;

/// Three a minute for each address and path below `/api`; whoever asks for `/private` is refused.
const RULES: &str = r#"
    [gate]
    trusted_proxies = ["127.0.0.1"]

    [[rule]]
    name = "private"
    when = { path = "/private" }
    action = "deny"

    [[rule]]
    name = "token"
    when = { "query.tok" = "*" }
    by = ["query.tok"]
    limits = ["1/60s"]

    [[rule]]
    name = "api"
    when = { path = "/api" }
    by = ["ip"]
    limits = ["3/60s"]
"#;

/// A gateway before a site that says `welcome`, and Flowgate beside it.
struct Site {
    port: Port,
    flowgate: Option<Running>,
    gateway: Child,
    _directory: TempDir,
}

impl Site {
    /// Starts the gateway that `command` makes of a directory with its configuration.
    fn start(files: &[&str], edit: impl Fn(String) -> String, command: impl FnOnce(&Path) -> Command) -> Site {
        let directory = TempDir::new().unwrap();
        let flowgate = Running::start(RULES);
        let port = Port::claim();
        let address = port.address();
        for file in files {
            let text = fs::read_to_string(docs().join(file)).unwrap();
            let text = text
                .replace("127.0.0.1:7070", &flowgate.address.to_string())
                .replace("127.0.0.1:8080", &backend().to_string())
                .replace("listen 80;", &format!("listen {address};"))
                .replace("bind :80", &format!("bind {address}"))
                .replace(":80 {", &format!("http://:{} {{\n\tbind 127.0.0.1", address.port()))
                .replace("/etc/haproxy/", &format!("{}/", directory.path().display()));
            fs::write(directory.path().join(file), edit(text)).unwrap();
        }
        let mut command = command(directory.path());
        let name = format!("{:?}", command.get_program());
        let gateway = command.stdout(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut site = Site { port, flowgate: Some(flowgate), gateway, _directory: directory };
        until_listening(&mut site.gateway, address);
        site
    }

    /// A client at an address that is not the gateway's.
    fn connect(&self) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
            socket.connect(self.port.address()).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        Client { http: http::Client::from_stream(stream), described: false }
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.connect().call("GET", path, headers, "")
    }

    /// What every gateway must do.
    fn check(mut self, denied_at_once: u16) {
        for path in ["/api", "//api", "/%61pi?x=1"] {
            let passed = self.get(path, &[]);
            assert_eq!((passed.status, passed.body.as_str()), (200, "welcome"), "{path}");
        }
        for (path, headers) in [
            ("/api", &[][..]),
            ("/./api", &[]),
            ("/x/../api", &[]),
            ("/api", &[("X-Forwarded-For", "6.6.6.6")]),
            ("/api", &[("X-Forwarded-Uri", "/")]),
            ("/api", &[("X-Original-URI", "/")]),
            ("/api", &[("X-Forwarded-Uri", "/"), ("X-Original-URI", "/"), ("x-original-method", "PUT")]),
        ] {
            let denied = self.get(path, headers);
            assert_eq!((denied.status, denied.header("retry-after")), (429, Some("60")), "{path} {headers:?}");
            assert_eq!(denied.header("ratelimit"), Some(r#""api";r=0;t=60"#));
        }
        for path in ["/API", "/api/", "/api;x", "/api%20", "//Api;x/"] {
            assert_eq!(self.get(path, &[]).status, 429, "{path}");
        }
        // The query is the client's, and no part of what the gateway asks for.
        assert_eq!(self.get("/private?deny=418", &[]).status, denied_at_once);
        assert_eq!(self.get("/elsewhere?deny=1", &[]).status, 200);
        assert_eq!(self.get("/elsewhere?tok=a", &[]).status, 200);
        for path in ["/elsewhere?tok=a", "/elsewhere?tok=a#1", "/elsewhere?tok=a#2", "/elsewhere?%74ok=%61#"] {
            let status = self.get(path, &[]).status;
            assert!((400..500).contains(&status), "{status} {path}");
        }
        for count in [20, 60, 80, 90, 93, 94, 95, 96, 97, 98, 99, 100, 150] {
            let status = self.get("/api", &vec![("x-many", "1"); count]).status;
            assert!(status >= 400, "{status} with {count} headers");
        }
        assert_eq!(self.get("/private", &[]).status, denied_at_once);
        assert_eq!(self.get("/elsewhere", &[]).status, 200);
        self.flowgate = None;
        let open = self.get("/api", &[]);
        assert_eq!((open.status, open.body.as_str()), (200, "welcome"), "Flowgate is away");
    }

    /// What one must do that is to stay closed.
    fn check_closed(mut self, status: u16) {
        assert_eq!(self.get("/api", &[]).status, 200);
        self.flowgate = None;
        assert_eq!(self.get("/api", &[]).status, status);
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gateways")
}

/// A site that says `welcome` to everybody, for as long as the tests run.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let mut stream = reader.into_inner();
            // A client that has left does not matter to the next one.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 7\r\n\r\nwelcome");
            let _ = stream.shutdown(Close::Write);
        }
    });
    address
}

pub(super) fn nginx(directory: &Path) -> Command {
    let at = directory.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};\n"))
        .concat();
    let main = format!(
        "daemon off;\nmaster_process off;\nerror_log stderr crit;\npid {at}/pid;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}include {at}/nginx.conf;\n}}\n"
    );
    fs::write(directory.join("main.conf"), main).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(directory).arg("-e").arg("stderr").arg("-c").arg(directory.join("main.conf"));
    command
}

fn haproxy(directory: &Path) -> Command {
    let mut command = Command::new("haproxy");
    command.args(["-db", "-q", "-f"]).arg(directory.join("haproxy.cfg"));
    command
}

fn caddy(directory: &Path) -> Command {
    let text = fs::read_to_string(directory.join("Caddyfile")).unwrap();
    let text = text.replacen("{\n", "{\n\tadmin off\n\tauto_https off\n", 1);
    fs::write(directory.join("Caddyfile"), text).unwrap();
    let mut command = Command::new("caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(directory.join("Caddyfile"));
    command
        .env("HOME", directory)
        .env("XDG_DATA_HOME", directory)
        .env("XDG_CONFIG_HOME", directory)
        .stderr(Stdio::null());
    command
}

/// A configuration without the part that keeps it open.
#[track_caller]
fn without(text: &str, from: &str, to: &str) -> String {
    let start = text.find(from).unwrap();
    let end = start + text[start..].find(to).unwrap() + to.len();
    text[..start].to_owned() + &text[end..]
}

#[test]
fn nginx_lets_through_what_is_allowed() {
    Site::start(&["nginx.conf"], |text| text, nginx).check(429);
}

#[test]
fn nginx_stays_closed_if_it_is_to() {
    let closed = |text: String| without(&text, "proxy_intercept_errors on;", "= @open;");
    Site::start(&["nginx.conf"], closed, nginx).check_closed(500);
}

#[test]
fn haproxy_lets_through_what_is_allowed() {
    Site::start(&["haproxy.cfg", "flowgate.lua"], |text| text, haproxy).check(403);
}

#[test]
fn haproxy_knows_every_status_of_a_denial() {
    let other = |text: String| text.replace("/gate\"", "/gate/418\"");
    let site = Site::start(&["haproxy.cfg", "flowgate.lua"], other, haproxy);
    assert_eq!(site.get("/private", &[]).status, 418);
    assert_eq!(site.get("/elsewhere", &[]).status, 200);
}

#[test]
fn haproxy_stays_closed_if_it_is_to() {
    let closed = |text: String| text.replace("WHEN_AWAY = \"open\"", "WHEN_AWAY = \"closed\"");
    Site::start(&["haproxy.cfg", "flowgate.lua"], closed, haproxy).check_closed(503);
}

#[test]
fn caddy_lets_through_what_is_allowed() {
    Site::start(&["Caddyfile"], |text| text, caddy).check(403);
}

#[test]
fn caddy_is_not_opened_by_a_large_head() {
    let mut site = Site::start(&["Caddyfile"], |text| text, caddy);
    // As for a head on which Flowgate hangs up, at any time: what is refused now is refused by Caddy.
    site.flowgate = None;
    for (size, status) in [(30_000, "200"), (60_000, "431"), (100_000, "431"), (900_000, "431")] {
        let mut client = site.connect();
        let mut stream = client.stream.get_ref().try_clone().unwrap();
        let head = request("GET", "/private", &[("x-large", &"x".repeat(size))], "");
        // Caddy answers before it has read all of it, and hangs up.
        let sent = std::thread::spawn(move || stream.write_all(head.as_ref()).is_ok());
        let line = client.line();
        assert_eq!(&line["HTTP/1.1 ".len()..][..3], status, "{size} bytes");
        drop(client);
        sent.join().unwrap();
    }
}

#[test]
fn caddy_stays_closed_if_it_is_to() {
    let closed = |text: String| without(&text, "handle_errors {", "\n\t}");
    Site::start(&["Caddyfile"], closed, caddy).check_closed(502);
}
