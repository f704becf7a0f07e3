//! The flowgate binary as a server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::Value;
use tempfile::TempDir;

use crate::files;
use crate::wait::{HANG_TIMEOUT, eventually};

/// A server. Its process is killed with this value.
#[derive(Debug)]
#[must_use = "a server that nobody holds is killed"]
pub struct ServerProcess {
    process: Child,
    /// The URL for HTTP, as announced: `http://127.0.0.1:8080`, `unix:/run/flowgate.sock` or `off`.
    pub url: String,
    /// The address for HTTP: the URL without its scheme.
    pub http: String,
    /// The address for the Redis protocol.
    pub resp: String,
    /// What the server wrote to standard error up to its addresses.
    pub announcement: Vec<String>,
    lines: Receiver<String>,
    directory: Option<TempDir>,
}

/// `flowgate serve` on free ports.
pub fn serve_command(binary: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]);
    command
}

impl ServerProcess {
    /// Starts a server with this configuration on free ports. Its state is in a directory of its own.
    pub fn start(binary: &str, configuration: &str) -> ServerProcess {
        ServerProcess::start_with(&mut serve_command(binary), configuration)
    }

    /// Starts a server by this command, with a configuration and a directory of its own.
    pub fn start_with(command: &mut Command, configuration: &str) -> ServerProcess {
        let directory = files::directory(&[("flowgate.toml", configuration)]);
        command.arg("--config").arg(directory.path().join("flowgate.toml"));
        command.env("STATE_DIRECTORY", directory.path());
        let mut server = ServerProcess::spawn(command);
        server.directory = Some(directory);
        server
    }

    /// Starts a server by this command, and waits until it has announced its addresses.
    ///
    /// # Panics
    ///
    /// If the server ends before that.
    pub fn spawn(command: &mut Command) -> ServerProcess {
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // The thread reads without pause, because a server that cannot write to standard error blocks.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (url, resp) = (String::new(), String::new());
        let mut server =
            ServerProcess { process, http: String::new(), url, resp, announcement: Vec::new(), lines, directory: None };
        while server.url.is_empty() || server.resp.is_empty() {
            let line = server.line();
            if let Some(url) = announced(&line, "http") {
                server.http = without_scheme(&url);
                server.url = url;
            }
            if let Some(url) = announced(&line, "resp") {
                server.resp = without_scheme(&url);
            }
            server.announcement.push(line);
        }
        server
    }

    /// The directory of the server's configuration and state.
    ///
    /// # Panics
    ///
    /// If the server was started by [`ServerProcess::spawn`].
    pub fn directory(&self) -> &Path {
        self.directory.as_ref().unwrap().path()
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line that the server writes to standard error.
    ///
    /// # Panics
    ///
    /// If it has ended.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(HANG_TIMEOUT).expect("the server writes another line")
    }

    /// The next line with this text.
    ///
    /// # Panics
    ///
    /// If the server ends before.
    #[track_caller]
    pub fn line_with(&self, text: &str) -> String {
        loop {
            let line = self.line();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// The first line with this text since the server's start.
    ///
    /// # Panics
    ///
    /// If the server ends before.
    #[track_caller]
    pub fn first_line_with(&self, text: &str) -> String {
        match self.announcement.iter().find(|line| line.contains(text)) {
            Some(line) => line.clone(),
            None => self.line_with(text),
        }
    }

    /// Sends a signal by name, such as `HUP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
        if name == "STOP" {
            // `kill` returns before the last thread stands still.
            let stat = format!("/proc/{}/stat", self.id());
            let is_stopped = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
            eventually("the server is stopped", is_stopped);
        }
    }

    /// Waits until the server ends. Returns its status and the lines that were not read yet.
    pub fn wait(&mut self) -> (ExitStatus, Vec<String>) {
        let status = self.process.wait().unwrap();
        (status, self.lines.iter().collect())
    }

    /// Kills the server. Returns the lines that were not read yet.
    pub fn kill(&mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.wait().1
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Fails if the server has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The URL that a line announces for a protocol: `  http    http://127.0.0.1:8080`, or the same in a JSON event.
fn announced(line: &str, protocol: &str) -> Option<String> {
    if let Ok(event) = serde_json::from_str::<Value>(line) {
        return Some(event[protocol].as_str()?.to_owned());
    }
    let url = line.strip_prefix("  ")?.strip_prefix(protocol)?.strip_prefix("  ")?;
    Some(url.trim().to_owned())
}

fn without_scheme(url: &str) -> String {
    url.split_once("://").map_or(url, |(_, address)| address).to_owned()
}
