//! `flowgate validate` and `flowgate config` from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use flowgate_testkit::certificates::self_signed;
use flowgate_testkit::files::directory;

/// Runs the binary in a directory, with no variables but these.
fn run(directory: &Path, args: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    command.args(args).current_dir(directory).env_clear().envs(environment.iter().copied());
    // Without a home of its own, the binary would find the configuration of the user who runs the tests.
    command.env("HOME", directory.join("home"));
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

const RULE: &str = "[[rule]]\nname = \"reply\"\nlimits = [\"5/60s\"]\n";

#[test]
fn a_right_file_is_exit_code_0() {
    let directory = directory(&[("a.toml", RULE)]);
    let (code, stdout, stderr) = run(directory.path(), &["validate", "a.toml"], &[]);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "a.toml is fine: 1 rule, 0 lists\n", ""));
}

#[test]
fn a_mistake_is_exit_code_1_and_marked() {
    let directory = directory(&[("a.toml", "[[rule]]\nname = \"reply\"\nlimits = [\"5/60x\"]\n")]);
    let (code, stdout, stderr) = run(directory.path(), &["validate", "a.toml"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    let marked = "  --> a.toml:3:14\n   |\n 3 | limits = [\"5/60x\"]\n   |              ^^^\n";
    assert!(stderr.contains(marked) && stderr.ends_with("\n1 mistake\n"), "{stderr}");
    assert!(!stderr.contains('\x1b'), "no colours in a pipe: {stderr:?}");
}

#[cfg(unix)]
#[test]
fn a_fifo_is_a_mistake_and_is_not_waited_for() {
    let directory = directory(&[]);
    assert!(Command::new("mkfifo").arg(directory.path().join("a.toml")).status().unwrap().success());
    let (code, _, stderr) = run(directory.path(), &["validate", "a.toml"], &[]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("not a regular file"), "{stderr}");
}

#[test]
fn warnings_alone_are_exit_code_0() {
    let directory = directory(&[("a.toml", "[lists]\nvip = { values = [\"7\"] }\n")]);
    let (code, stdout, stderr) = run(directory.path(), &["validate", "a.toml"], &[]);
    assert_eq!((code, stdout.as_str()), (Some(0), "a.toml is fine: 0 rules, 1 list, 1 warning\n"));
    assert!(stderr.starts_with("warning: no rule uses the list \"vip\"\n"), "{stderr}");
}

#[test]
fn certificates_that_a_server_refuses_are_mistakes() {
    let directory = directory(&[]);
    for name in ["server", "other"] {
        self_signed(directory.path(), name, &[]);
    }
    let validate = |key: &str| {
        let text = format!("[tls]\ncert = \"server.pem\"\nkey = \"{key}\"\n[lists]\nvip = {{ values = [\"7\"] }}\n");
        fs::write(directory.path().join("a.toml"), text).unwrap();
        let (code, _, stderr) = run(directory.path(), &["validate", "a.toml"], &[]);
        (code, stderr)
    };
    assert_eq!(validate("server.key").0, Some(0));
    for (key, expected) in [
        ("other.key", "other.key cannot be used together: "),
        ("server.pem", "server.pem holds no private key in clear in PEM\n"),
    ] {
        let (code, stderr) = validate(key);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(expected) && stderr.ends_with("\n1 mistake, 1 warning\n"), "{stderr}");
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let directory = directory(&[]);
    for args in [&["validate"][..], &["validate", "a", "b"], &["config", "--file", "x"]] {
        assert_eq!(run(directory.path(), args, &[]).0, Some(2), "{args:?}");
    }
    let (code, _, stderr) = run(directory.path(), &["validate", "none.toml"], &[]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: cannot read none.toml: there is no such file\n"), "{stderr}");
}

#[test]
fn the_output_is_a_configuration_again() {
    let directory = directory(&[("flowgate.toml", RULE)]);
    let (code, first, stderr) = run(directory.path(), &["config"], &[("FLOWGATE_SERVER__THREADS", "3")]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(first.starts_with("# flowgate.toml, with the environment\n[listen]\n"), "{first}");
    assert!(first.contains("\nthreads = 3\n") && first.contains("name = \"reply\""), "{first}");
    fs::write(directory.path().join("again.toml"), &first).unwrap();
    let (_, second, _) = run(directory.path(), &["config", "--config", "again.toml"], &[]);
    assert_eq!(first.split_once('\n').unwrap().1, second.split_once('\n').unwrap().1);
}

#[test]
fn files_are_looked_for_in_the_usual_places() {
    let files = [
        ("named.toml", "named"),
        ("home/.config/flowgate/flowgate.toml", "home"),
        ("xdg/flowgate/flowgate.toml", "xdg"),
    ];
    let files = files.map(|(path, prefix)| (path, format!("[store]\ntype = \"redis\"\nprefix = \"{prefix}:\"\n")));
    let directory = directory(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
    let xdg = directory.path().join("xdg");
    let check = |args: &[&str], environment: &[(&str, &str)], prefix: &str| {
        let (_, stdout, stderr) = run(directory.path(), args, environment);
        assert!(stdout.contains(&format!("prefix = \"{prefix}:\"")), "{stdout}{stderr}");
    };
    check(&["config"], &[], "home");
    check(&["config"], &[("XDG_CONFIG_HOME", xdg.to_str().unwrap())], "xdg");
    check(&["config"], &[("FLOWGATE_CONFIG", "named.toml")], "named");
    check(&["config", "--config", "named.toml"], &[("FLOWGATE_CONFIG", "none.toml")], "named");
    fs::write(directory.path().join("flowgate.toml"), "[store]\ntype = \"redis\"\nprefix = \"here:\"\n").unwrap();
    check(&["config"], &[], "here");
}

#[test]
fn secrets_are_hidden() {
    let directory = directory(&[("flowgate.toml", "[auth]\napi_token = \"s3cret\"\n")]);
    let (_, stdout, _) = run(directory.path(), &["config"], &[("FLOWGATE_AUTH__ADMIN_TOKEN", "s3cret")]);
    assert!(!stdout.contains("s3cret") && stdout.contains("api_token = \"***\""), "{stdout}");
    // A mistake in the name of a variable does not reveal its secret value.
    let (code, stdout, stderr) = run(directory.path(), &["config"], &[("FLOWGATE_AUTH_ADMIN_TOKEN", "s3cret")]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(!stderr.contains("s3cret"), "{stderr}");
}

#[test]
fn certificates_are_needed_where_a_server_is_to_run() {
    let text = format!("[tls]\ncert = \"away.pem\"\nkey = \"away.key\"\n{RULE}");
    let directory = directory(&[("a.toml", &text), ("trace.jsonl", "{\"ts\":1,\"fields\":{}}\n")]);
    let code = |args: &[&str]| run(directory.path(), args, &[]).0;
    assert_eq!(code(&["validate", "a.toml"]), Some(1));
    assert_eq!(code(&["serve", "--config", "a.toml"]), Some(1));
    assert_eq!(code(&["config", "--config", "a.toml"]), Some(0));
    let replay = ["replay", "--config", "a.toml", "--input", "trace.jsonl", "--compare", "a.toml"];
    assert_eq!(code(&replay), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn validate_warns_of_more_memory_than_the_machine_has() {
    let directory = directory(&[("a.toml", "store.max_memory = \"16TiB\"\n")]);
    let (code, stdout, stderr) = run(directory.path(), &["validate", "a.toml"], &[]);
    assert_eq!(code, Some(0));
    assert!(stderr.contains("warning: store.max_memory is 16TiB, but this process may use only "), "{stderr}");
    assert!(stdout.ends_with("1 warning\n"), "{stdout}");
}
