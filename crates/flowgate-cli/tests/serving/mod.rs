//! The binary as a server on free ports, for tests of what talks to it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// A server, killed when the test ends.
pub(crate) struct Serving {
    child: Child,
    /// Where it speaks HTTP.
    pub(crate) url: String,
    /// Where it speaks the Redis protocol.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) resp: String,
    lines: Receiver<String>,
    /// What it said until it had announced where it is.
    before: Vec<String>,
    directory: tempfile::TempDir,
}

impl Serving {
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn start(configuration: &str) -> Serving {
        Serving::start_at("127.0.0.1:0", configuration)
    }

    /// One that speaks HTTP there.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn start_at(http: &str, configuration: &str) -> Serving {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("flowgate.toml");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
        command.args(["serve", "--http", http, "--resp", "127.0.0.1:0", "--config"]).arg(&file);
        command.env("STATE_DIRECTORY", directory.path());
        let url = if http.starts_with("unix:") { http.to_owned() } else { String::new() };
        Serving::started_by(&mut command, url, directory)
    }

    /// One that a command starts, at a URL that it announces unless it is known.
    pub(crate) fn started_by(command: &mut Command, url: String, directory: tempfile::TempDir) -> Serving {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        // Read all the time, for a server that cannot write stands still.
        let (told, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).take_while(|line| told.send(line.clone()).is_ok()).for_each(drop);
        });
        let mut serving = Serving { child, url, resp: String::new(), lines, before: Vec::new(), directory };
        while serving.url.is_empty() || serving.resp.is_empty() {
            let line = serving.line();
            let address = |scheme: &str| {
                let text = &line[line.find(scheme)? + scheme.len()..];
                let end = text.find(|end: char| end == '"' || end.is_whitespace()).unwrap_or(text.len());
                Some(text[..end].to_owned())
            };
            for scheme in ["http://", "https://"] {
                if let Some(address) = address(scheme) {
                    serving.url = format!("{scheme}{address}");
                }
            }
            if let Some(address) = address("redis://").or_else(|| address("rediss://")) {
                serving.resp = address;
            }
            serving.before.push(line);
        }
        serving
    }

    /// Where it keeps its admin token.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn state_directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// Ends it, and gives all that it has said since it was heard last.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn stop(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Ends it, and gives all that it has said, from its start on.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn stop_and_tell_all(mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.before);
        all.extend(self.stop());
        all
    }

    /// The next line that it writes to standard error.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(30)).expect("the server says no more")
    }

    /// The next line that has a text in it.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn said(&self, text: &str) -> String {
        std::iter::repeat_with(|| self.line()).find(|line| line.contains(text)).unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Fails when it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
