//! `flowgate replay`: its options, its inputs and its messages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod inputs;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory for the files of a test.
struct Bench {
    directory: TempDir,
}

/// The output of a run.
struct Ran {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Bench {
    /// A directory with a policy in `flowgate.toml`.
    fn new(policy: &str) -> Bench {
        let bench = Bench { directory: tempfile::tempdir().unwrap() };
        bench.file("flowgate.toml", policy);
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// `flowgate replay` in this directory, with something on standard input.
    fn replay(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut child = Command::new(env!("CARGO_BIN_EXE_flowgate"))
            .arg("replay")
            .args(args)
            .current_dir(self.directory.path())
            .env("HOME", self.directory.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("FLOWGATE_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let (given, output) = std::thread::scope(|scope| {
            // A run that ends early leaves the rest unread.
            let writer = scope.spawn(move || pipe.write_all(stdin));
            (writer.join().unwrap(), child.wait_with_output().unwrap())
        });
        drop(given);
        let Output { status, stdout, stderr } = output;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: status.code().unwrap(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// The summary of a run that must succeed.
    fn summary(&self, args: &[&str], stdin: &[u8]) -> Value {
        let args = [args, &["--json"]].concat();
        let ran = self.replay(&args, stdin);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// The decision lines of a run that must succeed.
    fn decisions(&self, args: &[&str], stdin: &[u8]) -> Vec<Value> {
        let args = [args, &["--decisions", "decisions.jsonl"]].concat();
        let ran = self.replay(&args, stdin);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        self.read("decisions.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name).canonicalize().unwrap()
}

/// A trace of one field and whole seconds.
fn trace(requests: &[(u64, &str)]) -> Vec<u8> {
    let line = |(second, user): &(u64, &str)| format!("{{\"ts\":{second},\"fields\":{{\"user\":\"{user}\"}}}}\n");
    requests.iter().map(line).collect::<String>().into_bytes()
}
