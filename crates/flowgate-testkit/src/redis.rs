//! A Redis server of a test's own. Tests can kill it, pause it and start it again.
//!
//! `FLOWGATE_TEST_REDIS` names another server program, such as Valkey's.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::wait::{HANG_TIMEOUT, eventually};

/// A server on a socket in a directory of its own. It ends with this value.
#[derive(Debug)]
#[must_use = "a Redis that nobody holds is stopped"]
pub struct Redis {
    process: Option<Child>,
    directory: TempDir,
    options: Vec<String>,
}

/// The server's program: `redis-server`, or what `FLOWGATE_TEST_REDIS` names.
pub fn program() -> String {
    std::env::var("FLOWGATE_TEST_REDIS").unwrap_or_else(|_| "redis-server".to_owned())
}

impl Redis {
    /// Starts a server that writes no data to disk.
    pub fn start() -> Redis {
        Redis::start_with(&[])
    }

    /// Starts a server with further options, such as `["--maxmemory", "2mb"]`.
    pub fn start_with(options: &[&str]) -> Redis {
        let mut redis = Redis::absent(options);
        redis.up();
        redis
    }

    /// A server that is not started yet. Its socket has a path already.
    pub fn absent(options: &[&str]) -> Redis {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        Redis { process: None, directory: tempfile::tempdir().unwrap(), options }
    }

    /// Starts the server, which is empty, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn up(&mut self) {
        let log = File::create(self.directory.path().join("log")).unwrap();
        let process = Command::new(program())
            // An option that is given twice has its last value.
            .args(["--port", "0", "--unixsocket"])
            .arg(self.socket())
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.directory.path())
            .args(&self.options)
            .stdout(log)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program()));
        self.process = Some(process);
        // A server with a password asks for it instead.
        let answers = |reply: String| reply.contains("PONG") || reply.contains("NOAUTH");
        eventually("Redis answers", || self.try_cli(&["PING"]).is_some_and(answers));
    }

    /// Ends the server without a chance to write anything.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Pauses the server: connections stay open, and nothing is answered.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// The socket that the server listens on.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("redis.sock")
    }

    /// The server's URL.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The server's directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A new connection.
    ///
    /// # Panics
    ///
    /// If the server does not accept it.
    pub fn connect(&self) -> redis::Connection {
        redis::Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    /// Sends a command and returns the bytes of its reply.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub fn cli(&self, words: &[&str]) -> String {
        self.try_cli(words).unwrap()
    }

    fn try_cli(&self, words: &[&str]) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(HANG_TIMEOUT)).ok()?;
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        // The reply to this command marks the end of the reply.
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

    /// The number of calls of a command that the server has carried out.
    pub fn calls(&self, command: &str) -> u64 {
        let stats = self.cli(&["INFO", "commandstats"]);
        let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
        let calls = line.and_then(|line| line.split_once("calls=")?.1.split(',').next()?.parse().ok());
        calls.unwrap_or(0)
    }

    /// The number of script calls that decide. Nodes also ask for manual bans every second.
    pub fn decisions(&self) -> u64 {
        self.calls("evalsha") - self.ban_reads()
    }

    /// The number of script calls that read manual bans.
    pub fn ban_reads(&self) -> u64 {
        self.calls("hmget")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // SIGKILL also ends a paused server.
            _ = process.kill();
            _ = process.wait();
        }
    }
}
