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

use flowgate_engine::config::{Input, Report, load};
use flowgate_testkit::snapshots;

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

/// Checks all cases of a folder. Returns their number.
fn check_all(folder: &str, rendered: impl Fn(Result<Report, Report>, &str) -> String) -> usize {
    snapshots::check(&format!("config/{folder}"), "toml", |name, base, text| {
        let result = load(Input::Text { name, base, text }, environment(text)).map(|loaded| loaded.warnings);
        let found = rendered(result, name);
        for secret in SECRETS {
            assert!(!found.contains(secret), "{name} shows a secret:\n{found}");
        }
        found
    })
}

fn environment(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map_while(|line| line.strip_prefix("# env: "));
    lines.map(|line| line.split_once('=').unwrap()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
