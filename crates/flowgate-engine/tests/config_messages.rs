//! Every message about a configuration, as people see it.
//!
//! `testdata/config/errors/NAME.toml` is a file with a mistake, `NAME.txt` beside it the exact text that `flowgate
//! validate` prints; `testdata/config/warnings` likewise. A first line `# env: NAME=value` sets a variable. To add
//! a case write the `.toml`, run
//!
//! ```sh
//! UPDATE_SNAPSHOTS=1 cargo test -p flowgate-engine --test config_messages
//! ```
//!
//! and read the `.txt` as somebody would at night: does it say what is wrong, where, and what to write instead?

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::{Path, PathBuf};

use flowgate_engine::config::{Input, Report, load};

/// What the cases use as secrets; no message may show it.
const SECRETS: [&str; 2] = ["correct-horse", "battery"];

#[test]
fn mistakes_are_reported_as_recorded() {
    let cases = check_all("errors", |result, name| match result {
        Err(report) => {
            assert!(report.has_errors());
            report.to_string()
        }
        Ok(_) => panic!("{name} has no mistake"),
    });
    assert!(cases >= 100, "only {cases} mistakes found");
}

#[test]
fn warnings_are_given_as_recorded() {
    let cases = check_all("warnings", |result, name| match result {
        Ok(report) => {
            assert!(!report.has_errors());
            report.to_string()
        }
        Err(report) => panic!("{name} has mistakes:\n{report}"),
    });
    assert!(cases >= 10, "only {cases} warnings found");
}

/// Runs all cases of a directory and compares what `rendered` makes of them. Returns how many there are.
fn check_all(directory: &str, rendered: impl Fn(Result<Report, Report>, &str) -> String) -> usize {
    let directory = testdata().join(directory);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(path).unwrap();
        let input = Input::Text { name, base: &directory, text: &text };
        let result = load(input, environment(&text)).map(|loaded| loaded.warnings);
        // Messages name files in full; where the repository lies differs from machine to machine.
        let found = rendered(result, name).replace(directory.to_str().unwrap(), "..");
        for secret in SECRETS {
            assert!(!found.contains(secret), "{name} shows a secret:\n{found}");
        }
        let recorded = path.with_extension("txt");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&recorded, &found).unwrap();
        } else if fs::read_to_string(&recorded).unwrap_or_default() != found {
            wrong.push(format!("--- {name} now gives\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ from what is recorded:\n{}", wrong.len(), wrong.join("\n"));
    files.len()
}

fn environment(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map_while(|line| line.strip_prefix("# env: "));
    lines.map(|line| line.split_once('=').unwrap()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/config").canonicalize().unwrap()
}
