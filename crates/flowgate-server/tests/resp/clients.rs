//! Real clients connect and are content: redis-cli, redis-benchmark, redis-py, the `redis` crate. `scripts/test`
//! installs what cargo does not.

mod python;
mod rust;

use std::process::Command;

use crate::Running;

const RULES: &str = "rule = [{ name = 'reply', by = ['user'], limits = ['2/60s'], action = 'captcha' }]";

/// What a program prints, to both outputs.
fn output(program: &str, server: &Running, args: &[&str]) -> String {
    let port = server.address.port().to_string();
    let output = Command::new(program).args(["-p", &port]).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error} (scripts/test installs it)"));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn redis_cli_is_answered() {
    let server = Running::plain();
    assert_eq!(output("redis-cli", &server, &["CL.THROTTLE", "user:42", "15", "30", "60"]), "0\n16\n15\n-1\n2\n");
    assert_eq!(output("redis-cli", &server, &["-3", "FG.LIMIT", "k", "5/60s"]), "1\n5\n4\n-1\n60000\n0\n\n\n");
    assert_eq!(output("redis-cli", &server, &["PING"]), "PONG\n");
    assert!(output("redis-cli", &server, &["INFO"]).contains("flowgate_version:"));
}

#[test]
fn redis_benchmark_runs() {
    let server = Running::plain();
    let args = ["-n", "2000", "-c", "10", "-P", "16", "-r", "100", "--csv"];
    let said =
        output("redis-benchmark", &server, &[&args[..], &["CL.THROTTLE", "__rand_int__", "15", "30", "60"]].concat());
    assert!(!said.contains("WARNING") && !said.contains("rror"), "{said}");
    assert!(said.contains("CL.THROTTLE"), "{said}");
}
