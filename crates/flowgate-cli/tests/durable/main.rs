//! Durable counters of the real process: what outlives a stop and a kill, the messages at the start, and faults of the
//! disk.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod bans;
mod clock;
mod counters;
mod disk;
mod start;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flowgate_testkit::server_process::{ServerProcess, serve_command};
use flowgate_testkit::{files, http, resp};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_flowgate");

/// A directory of counters, with the configuration of the servers that use it.
struct State {
    directory: TempDir,
    configuration: String,
}

impl State {
    /// A configuration whose `[store]` contains `store`.
    fn new(mode: &str, store: &str, rest: &str) -> State {
        let directory = tempfile::tempdir().unwrap();
        State::at(&directory.path().join("state"), mode, store, rest).within(directory)
    }

    /// Counters in another directory.
    fn at(path: &Path, mode: &str, store: &str, rest: &str) -> State {
        let store = format!("[store]\ndurable = \"{mode}\"\ndir = \"{}\"\n{store}\n", path.display());
        State { directory: tempfile::tempdir().unwrap(), configuration: store + rest }
    }

    fn within(self, directory: TempDir) -> State {
        State { directory, ..self }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn serve(&self) -> Serving {
        self.serve_by(&mut serve_command(BINARY))
    }

    fn serve_by(&self, command: &mut Command) -> Serving {
        Serving(ServerProcess::start_with(command, &self.configuration))
    }

    /// The message of a server that does not start.
    #[track_caller]
    fn refusal(&self) -> String {
        let directory = files::directory(&[("flowgate.toml", &self.configuration)]);
        let mut command = serve_command(BINARY);
        command.arg("--config").arg(directory.path().join("flowgate.toml")).env("STATE_DIRECTORY", directory.path());
        let Output { status, stderr, .. } = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert!(!status.success() && !said.contains("panicked"), "{status}: {said}");
        said
    }

    fn inspect(&self) -> (bool, String) {
        let output = Command::new(BINARY).args(["journal", "inspect"]).arg(self.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }
}

/// A server, and commands that ask it.
struct Serving(ServerProcess);

impl Serving {
    fn resp(&self) -> resp::Client {
        resp::Client::connect(&*self.0.resp)
    }

    fn get(&self, path: &str) -> String {
        http::Client::connect(&*self.0.http).call("GET", path, &[], "").body
    }

    /// The output of a command, and whether it succeeds.
    #[track_caller]
    fn run(&self, args: &[&str]) -> (String, bool) {
        let mut command = Command::new(BINARY);
        command.args(args).env("FLOWGATE_SERVER", &self.0.url).env("STATE_DIRECTORY", self.0.directory());
        let Output { stdout, stderr, status } = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8(stderr).unwrap(), "", "{args:?}");
        (String::from_utf8(stdout).unwrap(), status.success())
    }

    /// Whether a request passes.
    #[track_caller]
    fn take(&self, fields: &[&str]) -> bool {
        self.run(&[&["take"], fields].concat()).1
    }

    /// Stops the server in order.
    #[track_caller]
    fn stop(mut self) {
        self.0.signal("TERM");
        assert!(self.0.wait().0.success());
    }

    fn kill(mut self) {
        self.0.kill();
    }
}

/// Takes one of `most` units a year, none of which comes back during a test. Returns whether it passes; `None` if the
/// server is gone.
fn throttle(client: &mut resp::Client, key: &str, most: u32) -> Option<bool> {
    client.try_send(format!("CL.THROTTLE {key} {} {most} 31536000\r\n", most - 1))?;
    let reply = client.try_reply()?;
    assert!(reply.starts_with("[0 ") || reply.starts_with("[1 "), "{reply}");
    Some(reply.starts_with("[0 "))
}
