//! The binary from outside: what it prints, what it answers, how it ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

fn flowgate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A server on free ports, killed if a test fails before it has ended.
struct Serving {
    child: Child,
    stderr: BufReader<ChildStderr>,
    http: String,
    resp: String,
}

impl Serving {
    fn start() -> Self {
        let mut child = flowgate(&["serve", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"]).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut serving = Self { child, stderr, http: String::new(), resp: String::new() };
        serving.http = serving.announced("http://");
        serving.resp = serving.announced("redis://");
        serving
    }

    /// Reads standard error up to the line that announces an address of this kind.
    fn announced(&mut self, scheme: &str) -> String {
        for line in self.stderr.by_ref().lines() {
            if let Some((_, address)) = line.unwrap().split_once(scheme) {
                return address.to_owned();
            }
        }
        panic!("the server ended without announcing {scheme}");
    }

    /// Sends `request` and expects the answer to begin with `reply`.
    fn exchange(address: &str, request: &str, reply: &str) {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = vec![0; reply.len()];
        stream.read_exact(&mut said).unwrap();
        assert_eq!(text(&said), reply, "in answer to {request:?}");
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Fails when it has ended by itself, which is what tests want.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn serves_until_it_is_told_to_stop() {
    for signal in ["TERM", "INT"] {
        let mut serving = Serving::start();
        Serving::exchange(&serving.resp, "PING\r\n", "+PONG\r\n");
        Serving::exchange(&serving.http, "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n", "HTTP/1.1 200 OK\r\n");

        serving.signal(signal);
        let mut rest = String::new();
        serving.stderr.read_to_string(&mut rest).unwrap();
        assert!(serving.child.wait().unwrap().success(), "after SIG{signal}: {rest}");
        let try_it = format!("try: curl http://{}/healthz\n", serving.http);
        assert_eq!(rest, try_it + "stopping\n");
    }
}

#[test]
fn an_address_in_use_is_named_with_the_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (args, protocol) in [
        (["serve", "--http", &address, "--resp", "127.0.0.1:0"], "http"),
        (["serve", "--http", "127.0.0.1:0", "--resp", &address], "resp"),
    ] {
        let Output { status, stdout, stderr } = flowgate(&args).output().unwrap();
        assert_eq!(status.code(), Some(1));
        assert_eq!(text(&stdout), "");
        let expected = format!("error: cannot listen on {address} for {protocol}: ");
        assert!(text(&stderr).starts_with(&expected), "{}", text(&stderr));
        assert!(text(&stderr).len() > expected.len() + 1, "no reason given");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for args in [&["serve", "--http", "nowhere"][..], &["no-such-command"], &[]] {
        assert_eq!(flowgate(args).output().unwrap().status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn the_version_names_the_commit_of_a_checkout() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| text(&output.stdout).trim().to_owned())
    };
    let mut expected = concat!("flowgate ", env!("CARGO_PKG_VERSION")).to_owned();
    if git(&["rev-parse", "--show-prefix"]).as_deref() == Some("crates/flowgate-cli/")
        && let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"])
    {
        expected += &format!(" ({commit})");
    }
    let output = flowgate(&["--version"]).output().unwrap();
    assert_eq!(text(&output.stdout).trim(), expected);
}
