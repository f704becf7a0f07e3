//! HTTP from outside: what each endpoint answers, to whom, and what it says about mistakes.
//!
//! Servers listen on a port that the system chooses and run on a clock that is moved by hand; nothing sleeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod access;
mod api;
mod bounds;
mod flood;
mod gate;
mod gateways;
mod guide;
mod koala;
mod openapi;
mod proxied;
mod recorded;
mod rules;
#[path = "../running/mod.rs"]
mod running;
#[cfg(unix)]
mod special_files;
mod stepped_clock;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use flowgate_engine::config::Secret;
use flowgate_server::{Config, Server};
use running::{Running, STUCK};
use serde_json::Value;

/// The admin token of servers whose configuration has none.
const ADMIN_TOKEN: &str = "adm1n";

/// What only the admin token opens.
const ADMIN_PATHS: [&str; 4] = ["/v1/bans", "/v1/rules", "/v1/stats", "/admin/"];

impl Running {
    /// A server with this configuration, rules included, but on a free port.
    fn start(toml: &str) -> Running {
        Running::start_with(Config::from_toml(toml).unwrap(), |_| {})
    }

    /// As [`Running::start`]; `prepare` sees the server before it runs.
    fn start_with(mut config: Config, prepare: impl FnOnce(&Server) + Send + 'static) -> Running {
        config.auth.admin_token.get_or_insert_with(|| Secret::new(ADMIN_TOKEN));
        config.listen = Config::from_toml("listen = { http = '127.0.0.1:0', resp = 'off' }").unwrap().listen;
        Running::serve(config, prepare)
    }

    fn connect(&self) -> Client {
        Client { reader: self.stream(), described: !self.koala }
    }

    fn get(&self, path: &str) -> Reply {
        self.connect().call("GET", path, &[], "")
    }

    fn post(&self, path: &str, body: &str) -> Reply {
        self.connect().call("POST", path, &[("content-type", "application/json")], body)
    }
}

struct Client {
    reader: BufReader<TcpStream>,
    /// Whether answers are those of Flowgate, and so described.
    described: bool,
}

impl Client {
    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a request and reads its answer.
    fn call(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send(request(method, path, headers, body));
        let reply = self.reply(method);
        if self.described {
            openapi::check(method, path, &reply);
        }
        reply
    }

    /// The next answer, to a request by this method.
    fn reply(&mut self, method: &str) -> Reply {
        let line = self.line();
        let status = line.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("no answer: {line:?}"));
        let status = status[..3].parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_owned(), value.to_owned()));
        }
        let mut reply = Reply { status, headers, body: String::new() };
        if method != "HEAD" && status != 204 {
            let mut body = vec![0; reply.header("content-length").unwrap().parse().unwrap()];
            self.reader.read_exact(&mut body).unwrap();
            reply.body = String::from_utf8(body).unwrap();
        }
        reply
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.strip_suffix("\r\n").unwrap_or_else(|| panic!("cut off: {line:?}")).to_owned()
    }

    /// What the server says until it closes the connection.
    fn rest(&mut self) -> String {
        let mut said = Vec::new();
        // A connection that is closed with input unread may end in an error; what came before counts.
        let _ = self.reader.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// A request's bytes. Where no header says so, it comes for `localhost`, and with the admin token where one is needed.
fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    let given = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    if !given("host") {
        text += "host: localhost\r\n";
    }
    if !given("authorization") && ADMIN_PATHS.iter().any(|admin| path.starts_with(admin)) {
        text += &format!("authorization: Bearer {ADMIN_TOKEN}\r\n");
    }
    if !given("content-length") && !given("transfer-encoding") && (!body.is_empty() || method == "POST") {
        text += &format!("content-length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text + "\r\n" + body
}

#[derive(Debug)]
struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Expects a mistake in this field, and nothing else.
    #[track_caller]
    fn is_mistake(&self, status: u16, field: Option<&str>) {
        let json = self.json();
        assert_eq!((self.status, json["field"].as_str()), (status, field), "{self:?}");
        assert!(!json["error"].as_str().unwrap().is_empty());
        assert_eq!(json.as_object().unwrap().len(), 2);
    }
}
