//! A Redis of a test's own that can be killed, stopped, started again: on a socket in a directory of its own, which
//! ends with it.
//!
//! `FLOWGATE_TEST_REDIS` names another server program, such as Valkey's.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test binary uses its part; a server that does not start is to panic

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Much longer than anything takes: a test that hangs fails instead.
pub const STUCK: Duration = Duration::from_secs(30);

/// A TCP port for a server that must be told one.
///
/// Between the look whether it is free and the server's start somebody else may look, too: another test, each of which may
/// be a process. So whoever takes one also binds the UDP port of the same number, which no server of ours uses.
pub struct Port {
    pub number: u16,
    _claim: UdpSocket,
}

impl Port {
    /// Claims one that is free, below those that the system hands out.
    pub fn claim() -> Port {
        const PORTS: std::ops::Range<u16> = 20_000..32_000;
        let claimed = PORTS.into_iter().find_map(|number| {
            let claim = UdpSocket::bind(("127.0.0.1", number)).ok()?;
            TcpListener::bind(("127.0.0.1", number)).ok()?;
            Some(Port { number, _claim: claim })
        });
        claimed.expect("a free port")
    }
}

/// A server, which ends with this.
pub struct Redis {
    process: Option<Child>,
    directory: TempDir,
    options: Vec<String>,
}

impl Redis {
    /// One that keeps nothing on disk.
    pub fn start() -> Redis {
        Redis::start_with(&[])
    }

    /// One with further options.
    pub fn start_with(options: &[&str]) -> Redis {
        let mut redis = Redis::absent(options);
        redis.up();
        redis
    }

    /// A place where none is yet.
    pub fn absent(options: &[&str]) -> Redis {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Redis { process: None, directory: tempfile::tempdir().unwrap(), options }
    }

    /// Starts it, empty.
    pub fn up(&mut self) {
        let program = std::env::var("FLOWGATE_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned());
        let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
        let process = Command::new(&program)
            // Options that come later win.
            .args(["--port", "0", "--unixsocket"])
            .arg(self.socket())
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.directory.path())
            .args(&self.options)
            .stdout(log)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        self.process = Some(process);
        // One with a password answers by asking for it.
        let is_up = |reply: String| reply.contains("PONG") || reply.contains("NOAUTH");
        eventually("Redis answers", || self.try_cli(&["PING"]).is_some_and(is_up));
    }

    /// Ends it without a chance to say or keep anything.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Stops it where it is: connections stay open, nothing is answered.
    pub fn stop(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Sends a command and gives the reply as it comes.
    pub fn cli(&self, words: &[&str]) -> String {
        self.try_cli(words).unwrap()
    }

    fn try_cli(&self, words: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(STUCK)).ok()?;
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        // The end of everything is seen by what follows.
        command.push_str("*2\r\n$4\r\nECHO\r\n$9\r\n<the end>\r\n");
        stream.write_all(command.as_bytes()).ok()?;
        let (mut reply, mut chunk) = (Vec::new(), [0; 4096]);
        while !reply.ends_with(b"$9\r\n<the end>\r\n") && !reply.starts_with(b"-NOAUTH") {
            match stream.read(&mut chunk).ok()? {
                0 => return None,
                read => reply.extend_from_slice(&chunk[..read]),
            }
        }
        let text = String::from_utf8_lossy(&reply).into_owned();
        Some(text.strip_suffix("$9\r\n<the end>\r\n").unwrap_or(&text).to_owned())
    }

    /// How often a command was carried out, as Redis counts.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.cli(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        let calls = line.and_then(|line| line.split_once("calls=")?.1.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }
}

impl Redis {
    /// How many calls of scripts there were that were not about bans, for which nodes ask each second.
    pub fn decisions(&self) -> u64 {
        self.calls("evalsha") - self.looks_at_bans()
    }

    /// How many calls of scripts there were that were about bans by hand.
    pub fn looks_at_bans(&self) -> u64 {
        self.calls("hmget")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // One that is stopped ends by this, too.
            _ = process.kill();
            _ = process.wait();
        }
    }
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < STUCK, "not in {STUCK:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
