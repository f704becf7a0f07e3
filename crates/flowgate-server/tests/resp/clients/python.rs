//! redis-py.

use std::path::Path;
use std::process::Command;

use super::RULES;
use crate::{Running, config, locked};

fn run(server: &Running, password: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../target/python/bin/python");
    let script = root.join("tests/resp/clients/redis_py.py");
    let output = Command::new(&python).arg(script).arg(server.address.port().to_string()).arg(password).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error} (scripts/test makes it)", python.display()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{said}");
}

#[test]
fn redis_py_is_answered() {
    run(&Running::start(config(""), RULES), "");
}

#[test]
fn redis_py_with_a_password() {
    run(&Running::start(locked(), RULES), "sesame");
}
