//! docs/configuration.md names every key, each with its default and its variable, and no other.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::process::Command;

const REFERENCE: &str = include_str!("../../../docs/configuration.md");

/// A row of the reference. A key that `flowgate config` does not print has no default.
#[derive(PartialEq)]
struct Row<'a> {
    section: &'a str,
    key: &'a str,
    default: &'a str,
    variable: &'a str,
}

fn documented() -> Vec<Row<'static>> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in REFERENCE.lines() {
        if let Some(name) = line.strip_prefix("## `[").and_then(|rest| rest.strip_suffix("]`")) {
            section = name;
        } else if line.starts_with("| `") {
            let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            rows.push(Row { section, key: cells[1], default: cells[2], variable: cells[3] });
        }
    }
    rows
}

/// The output of `flowgate config` with these variables and no file.
fn printed(variables: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_flowgate"));
    // Without a home of its own, the binary would find the configuration of the user who runs the tests.
    command.arg("config").current_dir(&directory).env_clear().env("HOME", directory.path());
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_key_is_there_with_its_default() {
    let rows = documented();
    for variables in [&[][..], &[("FLOWGATE_STORE__TYPE", "redis")]] {
        let mut section = String::new();
        for line in printed(variables).lines().filter(|line| *line != "type = \"redis\"") {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, default)) = line.split_once(" = ") {
                let variable = format!("FLOWGATE_{section}__{key}").to_uppercase();
                let expected = Row { section: &section, key, default, variable: &variable };
                assert!(rows.contains(&expected), "docs/configuration.md lacks [{section}] {line} {variable}");
            }
        }
        assert_eq!(section, "koala", "all sections were printed");
    }
}

/// The server refuses an unknown variable, and a variable with the default value changes nothing.
#[test]
fn every_row_is_a_key_and_its_default() {
    let rows = documented();
    assert!(rows.len() > 30, "the tables were found");
    let redis = ("FLOWGATE_STORE__TYPE", "redis");
    let alone = printed(&[redis]);
    for row in rows.iter().filter(|row| row.variable != redis.0) {
        let default = (row.variable, row.default.trim_matches('"'));
        assert_eq!(printed(&[redis, default]), alone, "{default:?}");
    }
}
