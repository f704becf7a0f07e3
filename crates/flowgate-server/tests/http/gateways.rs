//! Real gateways with the configurations of `docs/gateways`, on other ports.

mod cdn;
mod pages;
mod plan;
mod wrong_address;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown as Close, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use flowgate_testkit::port::Port;
use flowgate_testkit::wait::{eventually, until_listening};
use tempfile::TempDir;

use super::*;

/// Three a minute for each address on `/api`; a ban after the first denial of `/login`; `/private` is refused.
const RULES: &str = r#"
    [gate]
    trusted_proxies = ["127.0.0.1"]

    [[rule]]
    name = "private"
    when = { path = "/private" }
    action = "deny"
    code = 7
    message = "Not here. 禁止"

    [[rule]]
    name = "login"
    when = { path = "/login" }
    by = ["ip"]
    limits = ["1/60s"]
    ban = { after = 1, within = "10m", for = ["1h"] }
    message = "Too many attempts."

    [[rule]]
    name = "robot"
    when = { path = "/robot" }
    by = ["ip"]
    limits = ["1/60s"]
    action = "captcha"

    [[rule]]
    name = "socket"
    when = { path = "/socket" }
    by = ["ip"]
    limits = ["1/60s"]

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
        Site::start_with(RULES, files, edit, command)
    }

    /// Like [`Site::start`], with other rules.
    fn start_with(
        rules: &str,
        files: &[&str],
        edit: impl Fn(String) -> String,
        command: impl FnOnce(&Path) -> Command,
    ) -> Site {
        let directory = TempDir::new().unwrap();
        let flowgate = Running::start(rules);
        let port = Port::claim();
        let address = port.address();
        for file in files {
            let text = edit(fs::read_to_string(docs().join(file)).unwrap());
            let text = text
                .replace("127.0.0.1:7070", &flowgate.address.to_string())
                .replace("\"127.0.0.1\", 7070", &format!("\"127.0.0.1\", {}", flowgate.address.port()))
                .replace("127.0.0.1:8080", &backend().to_string())
                .replace("listen 80;", &format!("listen {address};"))
                .replace("bind :80", &format!("bind {address}"))
                .replace(":80 {", &format!("http://:{} {{\n\tbind 127.0.0.1", address.port()))
                .replace("\":80\"", &format!("\"{address}\""))
                .replace("/etc/haproxy/", &format!("{}/", directory.path().display()))
                .replace("/etc/traefik/", &format!("{}/", directory.path().display()));
            fs::write(directory.path().join(file), text).unwrap();
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

    /// Traefik reads the file with its routes after the listener is there.
    fn until_traefik_has_its_routes(&self) {
        eventually("Traefik has read its routes", || self.get("/elsewhere", &[]).status == 200);
    }

    /// What every gateway must do: first its clients' view of what is allowed and denied.
    fn check(&self, passes_show_limits: bool) {
        for (path, left) in [("/api", 2), ("//api", 1), ("/%61pi?x=1", 0)] {
            let passed = self.get(path, &[]);
            assert_eq!((passed.status, passed.body.as_str()), (200, "welcome"), "{path}");
            let (policy, shown) = (r#""api";q=3;w=60"#.to_owned(), format!(r#""api";r={left};t=60"#));
            let (policy, shown) = if passes_show_limits { (Some(policy), Some(shown)) } else { (None, None) };
            assert_eq!(passed.header("ratelimit-policy"), policy.as_deref());
            assert_eq!(passed.header("ratelimit"), shown.as_deref());
        }
        // A page without a limit has no such headers, not even empty ones.
        let free = self.get("/elsewhere", &[("RateLimit", "a lie"), ("X-Flowgate-Status", "200")]);
        assert_eq!((free.status, free.body.as_str()), (200, "welcome"));
        assert_eq!((free.header("ratelimit"), free.header("ratelimit-policy")), (None, None));
        self.check_lies();
        self.check_denials();
        self.check_upgrade();
    }

    /// No spelling and no header of a client makes another request of it.
    fn check_lies(&self) {
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
        // The client chooses the query. It must not become part of the gateway's own question to Flowgate.
        assert_eq!(self.get("/private?deny=418", &[]).status, 403);
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
    }

    /// Clients get the status, the document and the action of a denial, as Flowgate means them.
    fn check_denials(&self) {
        let document = |reply: &Reply| {
            assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply:?}");
            let json = reply.json();
            assert_eq!(json["status"], reply.status, "{reply:?}");
            json
        };
        let limited = self.get("/api", &[]);
        assert_eq!((limited.status, limited.header("x-flowgate-action")), (429, Some("deny")));
        let json = document(&limited);
        assert_eq!((&json["title"], &json["retry_after"]), (&"Quota exceeded".into(), &60.into()));

        let refused = self.get("/private", &[]);
        assert_eq!((refused.status, refused.header("retry-after")), (403, None));
        let json = document(&refused);
        assert_eq!((&json["detail"], &json["code"]), (&"Not here. 禁止".into(), &7.into()));

        assert_eq!(self.get("/login", &[]).status, 200);
        assert_eq!(self.get("/login", &[]).status, 429, "the limit, and a strike");
        let banned = self.get("/login", &[]);
        assert_eq!((banned.status, banned.header("retry-after")), (403, Some("3600")), "{banned:?}");
        assert_eq!(document(&banned)["detail"], "Too many attempts.");

        assert_eq!(self.get("/robot", &[]).status, 200);
        let captcha = self.get("/robot", &[]);
        assert_eq!((captcha.status, captcha.header("x-flowgate-action")), (429, Some("captcha")));
        assert_eq!(document(&captcha)["action"], "captcha");

        // A status that the site itself gives passes as it is.
        let own = self.get("/own-403", &[]);
        assert_eq!((own.status, own.body.as_str()), (403, "the site's own"));
        assert_eq!(self.get("/elsewhere", &[]).status, 200);
    }

    /// A websocket is a request that is asked about once, and then a connection to the site.
    fn check_upgrade(&self) {
        let upgrade = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let mut client = self.connect();
        client.send(request("GET", "/socket", &upgrade, ""));
        let status = client.line();
        assert!(status.starts_with("HTTP/1.1 101"), "{status}");
        while !client.line().is_empty() {}
        for message in ["ping\n", "pong\n"] {
            client.send(message);
            let mut echo = String::new();
            client.stream.read_line(&mut echo).unwrap();
            assert_eq!(echo, message);
        }
        assert_eq!(self.connect().call("GET", "/socket", &upgrade, "").status, 429);
    }

    /// A gateway that is to stay open lets requests through while Flowgate is away.
    fn check_open(mut self) {
        self.flowgate = None;
        let open = self.get("/api", &[]);
        assert_eq!((open.status, open.body.as_str()), (200, "welcome"), "Flowgate is away");
    }

    /// What one must do that is to stay closed.
    fn check_closed(self, status: u16) {
        assert_eq!(self.get("/api", &[]).status, 200);
        self.check_closed_from_now(status);
    }

    fn check_closed_from_now(mut self, status: u16) {
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

/// A site for as long as the tests run: it says `welcome`, has a page that it refuses itself, and speaks on upgraded
/// connections as an echo.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

/// Answers one request. A client that has left does not matter.
fn serve(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
    let (mut stream, head) = (reader.get_ref().try_clone().unwrap(), head.to_lowercase());
    if head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nconnection: upgrade\r\n") {
        let accept = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        let switching =
            format!("HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n{accept}\r\n\r\n");
        let _ = stream.write_all(switching.as_bytes());
        let _ = std::io::copy(&mut reader, &mut stream);
        return;
    }
    let (status, body) =
        if head.starts_with("get /own-403 ") { ("403 Forbidden", "the site's own") } else { ("200 OK", "welcome") };
    let length = body.len();
    let reply = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    let _ = stream.write_all(reply.as_bytes());
    let _ = stream.shutdown(Close::Write);
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

/// Traefik as scripts/test installs it, or another one.
fn traefik(directory: &Path) -> Command {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/traefik");
    let mut command = Command::new(if installed.exists() { installed } else { "traefik".into() });
    command.arg(format!("--configFile={}", directory.join("traefik.yml").display()));
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
    let site = Site::start(&["nginx.conf"], |text| text, nginx);
    site.check(true);
    site.check_open();
}

#[test]
fn nginx_shows_another_status_of_a_limit_if_it_is_told_so() {
    let other = |text: String| text.replace("= 429)", "= 420)").replace("return 429", "return 420");
    let rules = RULES.replacen("[gate]", "[gate]\n    deny_status = 420", 1);
    let site = Site::start_with(&rules, &["nginx.conf"], other, nginx);
    let statuses = [(); 4].map(|()| site.get("/api", &[]).status);
    assert_eq!(statuses, [200, 200, 200, 420]);
    assert_eq!(site.get("/private", &[]).status, 403);
}

/// The longest head of an answer still means a denial, and not that Flowgate is away.
#[test]
fn nginx_is_not_opened_by_a_long_message() {
    let rules = RULES.replace("Not here. 禁止", &"试".repeat(300_000)).replace("Too many", &"x".repeat(1600));
    let site = Site::start_with(&rules, &["nginx.conf"], |text| text, nginx);
    let refused = site.get("/private", &[]);
    assert_eq!((refused.status, &refused.json()["code"]), (403, &7.into()));
    assert_eq!(site.get("/login", &[]).status, 200);
    let limited = site.get("/login", &[]);
    assert_eq!((limited.status, limited.json()["detail"].as_str().unwrap().len()), (429, 1610));
}

#[test]
fn nginx_stays_closed_if_it_is_to() {
    let closed = |text: String| without(&text, "proxy_intercept_errors on;", "= @open;");
    Site::start(&["nginx.conf"], closed, nginx).check_closed(500);
}

#[test]
fn haproxy_lets_through_what_is_allowed() {
    let site = Site::start(&["haproxy.cfg", "flowgate.lua"], |text| text, haproxy);
    site.check(true);
    site.check_open();
}

#[test]
fn haproxy_knows_every_status_of_a_denial() {
    let other = |text: String| text.replace("\"/gate\"", "\"/gate/418\"");
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
    let site = Site::start(&["Caddyfile"], |text| text, caddy);
    site.check(true);
    site.check_open();
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

#[test]
fn traefik_lets_through_what_is_allowed_and_stays_closed() {
    let site = Site::start(&["traefik.yml", "traefik-flowgate.yml"], |text| text, traefik);
    site.until_traefik_has_its_routes();
    // Traefik cannot add what the gate says to the response of the site.
    site.check(false);
    site.check_closed_from_now(500);
}
