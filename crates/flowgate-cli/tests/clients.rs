//! The programs in `docs/clients` do what their page says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod serving;

use std::path::{Path, PathBuf};
use std::process::Command;

use serving::Serving;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[track_caller]
fn check(program: &str, file: &str) {
    let serving = Serving::start("");
    let mut command = Command::new(program);
    command.arg(file).current_dir(root().join("docs/clients"));
    command.env("FLOWGATE_SERVER", &serving.url).env("FLOWGATE_RESP", &serving.resp);
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error} (see scripts/test)"));
    let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((said.replace("\r\n", "\n").as_str(), &*complaints), ("go 1\ngo 0\nwait 0\nwait 0\n", ""), "{file}");
}

#[test]
fn python() {
    let environment = root().join("target/python/bin/python");
    check(environment.to_str().unwrap(), "client.py");
}

#[test]
fn node() {
    check("node", "client.mjs");
}

#[test]
fn php() {
    check("php", "client.php");
}

#[test]
fn java() {
    check("java", "Client.java");
}
