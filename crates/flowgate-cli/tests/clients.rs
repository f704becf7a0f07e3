//! The programs in `docs/clients` do what their page says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::process::Command;

use flowgate_testkit::files;
use flowgate_testkit::server_process::ServerProcess;

#[track_caller]
fn check(program: &str, file: &str) {
    let server = ServerProcess::start(env!("CARGO_BIN_EXE_flowgate"), "");
    let mut command = Command::new(program);
    command.arg(file).current_dir(files::repository("docs/clients"));
    command.env("FLOWGATE_SERVER", &server.url).env("FLOWGATE_RESP", &server.resp);
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error} (see scripts/test)"));
    let (said, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((said.replace("\r\n", "\n").as_str(), &*complaints), ("go 1\ngo 0\nwait 0\nwait 0\n", ""), "{file}");
}

#[test]
fn the_python_client_works() {
    let environment = files::repository("target/python/bin/python");
    check(environment.to_str().unwrap(), "client.py");
}

#[test]
fn the_node_client_works() {
    check("node", "client.mjs");
}

#[test]
fn the_php_client_works() {
    check("php", "client.php");
}

#[test]
fn the_java_client_works() {
    check("java", "Client.java");
}
