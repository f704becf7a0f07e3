//! A Redis of a test's own: started on a socket in a directory of its own, ended and removed with it.
//!
//! `FLOWGATE_TEST_REDIS` names another server program, such as Valkey's.
#![allow(dead_code, clippy::unwrap_used)] // each test binary uses its part; a server that does not start is to panic

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A server, which ends with this.
pub(crate) struct RedisServer {
    process: Child,
    directory: TempDir,
}

/// The program: `redis-server`, or what `FLOWGATE_TEST_REDIS` names.
pub(crate) fn program() -> String {
    std::env::var("FLOWGATE_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned())
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    pub(crate) fn start() -> RedisServer {
        RedisServer::start_with(&[])
    }

    /// Starts one with further options, such as `["--maxmemory", "2mb"]`.
    pub(crate) fn start_with(options: &[&str]) -> RedisServer {
        let directory = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new(program())
            .args(["--port", "0", "--unixsocket"])
            .arg(directory.path().join("redis.sock"))
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .args(options)
            .stdout(log)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program()));
        let server = RedisServer { process, directory };
        let started = Instant::now();
        while server.try_connect().is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "{} does not answer: {}", program(), server.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// A connection of its own.
    pub(crate) fn connect(&self) -> redis::Connection {
        self.try_connect().unwrap()
    }

    fn try_connect(&self) -> redis::RedisResult<redis::Connection> {
        let client = redis::Client::open(format!("unix://{}", self.socket().display()))?;
        let mut connection = client.get_connection()?;
        redis::cmd("PING").query::<String>(&mut connection)?;
        Ok(connection)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
