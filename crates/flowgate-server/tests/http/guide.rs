//! `docs/http.md` does what it says: its commands are run, and succeed.

use std::process::Command;

use super::rules::AdminFile;
use super::*;

const GUIDE: &str = include_str!("../../../../docs/http.md");

/// The commands of the guide, each block with what stands behind it.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let starts = GUIDE.split("```sh\n").skip(1);
    starts.map(|rest| rest.split_once("\n```\n").unwrap()).collect()
}

#[test]
fn the_examples_of_the_guide() {
    let admin = AdminFile::start(include_str!("../../../../examples/forum.toml"));
    let directory = tempfile::tempdir().unwrap();
    let blocks = blocks();
    assert!(blocks.len() >= 6, "{} examples found", blocks.len());
    for (commands, behind) in blocks {
        let commands = commands.replace("localhost:7070", &admin.server.address.to_string());
        let script = format!(
            "set -euo pipefail\ncurl() {{ command curl --fail-with-body \"$@\"; }}\nflowgate() {{ [[ $* == token ]] && echo \
             {ADMIN_TOKEN}; }}\n{commands}"
        );
        let output = Command::new("bash").args(["-c", &script]).current_dir(&directory).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{commands}\n{said}{}", String::from_utf8_lossy(&output.stderr));
        if let Some((expected, _)) = behind.strip_prefix("```json\n").and_then(|rest| rest.split_once("\n```")) {
            let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(json(&said), json(expected), "{commands}");
        }
    }
}
