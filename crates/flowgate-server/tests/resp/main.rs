//! The Redis protocol from outside: what each command answers, what real clients make of it, what hostile input does.
//!
//! Servers listen on a port that the system chooses and run on a clock that is moved by hand; nothing sleeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod admin;
mod bounds;
mod clients;
mod commands;
mod hostile;
mod recorded;
mod redis_words;

use std::net::SocketAddr;

use flowgate::ManualClock;
use flowgate_engine::config::Secret;
use flowgate_server::{Config, Server};
use flowgate_testkit::resp::{Client, encode};
use flowgate_testkit::server::RunningServer;

/// A server on a port that the system chooses, and its clock.
struct Running {
    address: SocketAddr,
    clock: ManualClock,
    _server: RunningServer,
}

impl Running {
    fn start(mut config: Config, rules: &str) -> Running {
        config.policy = Config::from_toml(rules).unwrap().policy;
        Running::serve(config, |_| {})
    }

    /// Like [`Running::start`] with the rules of the configuration; `prepare` sees the server before it runs.
    fn serve(config: Config, prepare: impl FnOnce(&Server) + Send + 'static) -> Running {
        let (server, clock) = RunningServer::start_on_manual_clock(config, prepare);
        Running { address: server.resp.unwrap(), clock, _server: server }
    }

    fn plain() -> Running {
        Running::start(config(""), "")
    }

    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// One of the numbers of `INFO`.
    fn count(&self, name: &str) -> u64 {
        let info = self.connect().call("INFO");
        let line = info.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).unwrap_or("0");
        line.parse().unwrap()
    }
}

/// A configuration with some settings of `[server]`, on ports that the system chooses.
fn config(server: &str) -> Config {
    let toml = format!("listen = {{ http = 'off', resp = '127.0.0.1:0' }}\n[server]\nthreads = 2\n{server}");
    Config::from_toml(&toml).unwrap()
}

/// One with a password.
fn locked() -> Config {
    let mut config = config("");
    config.auth.resp_password = Some(Secret::new("sesame"));
    config
}
