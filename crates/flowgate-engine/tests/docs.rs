//! The examples of the guide to rules are right, and its wrong one is reported as the guide says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::Path;

use flowgate_engine::config::{Input, LoadedConfig, Report, load};

const GUIDE: &str = include_str!("../../../docs/rules.md");

/// The blocks of the guide: what stands behind the opening fence, the line, and the text.
fn blocks() -> Vec<(String, usize, String)> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for (number, line) in (1..).zip(GUIDE.lines()) {
        match (line.strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.to_owned(), number, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, _, text))) => text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block does not end");
    blocks
}

fn read(text: &str) -> Result<LoadedConfig, Report> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("blocked.txt"), "192.0.2.0/24\n").unwrap();
    fs::write(directory.path().join("more.txt"), "").unwrap();
    load(Input::Text { name: "flowgate.toml", base: Path::new(directory.path()), text }, [])
}

#[test]
fn every_example_is_right() {
    let examples: Vec<_> = blocks().into_iter().filter(|(kind, ..)| kind == "toml").collect();
    assert!(examples.len() >= 6, "only {} examples found", examples.len());
    for (_, line, text) in examples {
        match read(&text) {
            Ok(loaded) => assert!(loaded.warnings.is_empty(), "docs/rules.md:{line}:\n{}", loaded.warnings),
            Err(report) => panic!("docs/rules.md:{line}:\n{report}"),
        }
    }
}

#[test]
fn the_wrong_example_is_reported_as_shown() {
    let blocks = blocks();
    let at = blocks.iter().position(|(kind, ..)| kind == "toml wrong").unwrap();
    let (kind, line, shown) = &blocks[at + 1];
    assert_eq!(kind, "text", "docs/rules.md:{line}");
    assert_eq!(read(&blocks[at].2).unwrap_err().to_string(), *shown, "docs/rules.md:{line}");
}
