//! HTTP from outside: what each endpoint answers, to whom, and what it says about mistakes.
//!
//! Servers listen on a port that the system chooses and run on a clock that is moved by hand; nothing sleeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod access;
mod api;
mod bounds;
mod console;
mod direct;
mod flood;
mod gate;
mod gateways;
mod guide;
mod koala;
mod koala_rule_file;
mod openapi;
mod proxied;
mod recorded;
mod rules;
mod sample;
mod session;
#[cfg(unix)]
mod special_files;
mod stepped_clock;
mod watching;

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use flowgate::ManualClock;
use flowgate_engine::config::Secret;
use flowgate_server::{Config, Server};
use flowgate_testkit::http::{self, Reply};
use flowgate_testkit::server::RunningServer;
use serde_json::Value;

/// The admin token of servers whose configuration has none.
const ADMIN_TOKEN: &str = "adm1n";

/// What only the admin token opens.
const ADMIN_PATHS: [&str; 10] = [
    "/v1/bans",
    "/v1/denials",
    "/v1/koala",
    "/v1/pause",
    "/v1/policy",
    "/v1/rules",
    "/v1/sample",
    "/v1/stats",
    "/v1/subjects",
    "/admin/",
];

/// A server on a port that the system chooses, and its clock.
struct Running {
    address: SocketAddr,
    clock: ManualClock,
    /// Whether it serves Koala's endpoints, which only docs/koala.md describes.
    koala: bool,
    server: RunningServer,
}

impl Running {
    /// A server with this configuration, rules included, but on a free port.
    fn start(toml: &str) -> Running {
        Running::start_with(flowgate_koala::config_from_toml(toml).unwrap(), |_| {})
    }

    /// Like [`Running::start`]; `prepare` sees the server before it runs.
    fn start_with(mut config: Config, prepare: impl FnOnce(&Server) + Send + 'static) -> Running {
        config.auth.admin_token.get_or_insert_with(|| Secret::new(ADMIN_TOKEN));
        config.listen = Config::from_toml("listen = { http = '127.0.0.1:0', resp = 'off' }").unwrap().listen;
        Running::serve(config, prepare)
    }

    /// A server with exactly this configuration.
    fn serve(config: Config, prepare: impl FnOnce(&Server) + Send + 'static) -> Running {
        let koala = config.koala_file.is_some();
        let (server, clock) = RunningServer::start_on_manual_clock(config, prepare);
        Running { address: server.http.or(server.resp).unwrap(), clock, koala, server }
    }

    fn connect(&self) -> Client {
        Client { http: http::Client::connect(self.address), described: !self.koala }
    }

    fn get(&self, path: &str) -> Reply {
        self.connect().call("GET", path, &[], "")
    }

    fn post(&self, path: &str, body: &str) -> Reply {
        self.connect().call("POST", path, &[("content-type", "application/json")], body)
    }
}

/// A client with the admin token.
struct Client {
    http: http::Client,
    /// Whether openapi.json describes all replies of the server, not those of `/v1` alone.
    described: bool,
}

impl Client {
    /// Sends a [`request`] and reads the reply, which must be as described.
    fn call(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send(request(method, path, headers, body));
        let reply = self.reply(method);
        if self.described || path.starts_with("/v1/") {
            openapi::check(method, path, &reply);
        }
        reply
    }
}

impl Deref for Client {
    type Target = http::Client;

    fn deref(&self) -> &http::Client {
        &self.http
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut http::Client {
        &mut self.http
    }
}

/// A request's bytes, with the admin token where one is needed and no header says otherwise.
fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let authorized = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let mut headers = headers.to_vec();
    let token = format!("Bearer {ADMIN_TOKEN}");
    if !authorized && ADMIN_PATHS.iter().any(|admin| path.starts_with(admin)) {
        headers.push(("authorization", &token));
    }
    http::request(method, path, &headers, body)
}
