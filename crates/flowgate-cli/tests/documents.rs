//! What the documents name exists: the tests of docs/bounds.md, the paths of ARCHITECTURE.md, and the targets of links.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn bounds_name_tests_that_exist() {
    let mut sources = String::new();
    for file in files(&root().join("crates"), "rs") {
        sources.push_str(&fs::read_to_string(file).unwrap());
    }
    let bounds = read("docs/bounds.md");
    let names: Vec<&str> =
        bounds.lines().filter_map(last_cell).flat_map(quoted).filter(|name| is_function(name)).collect();
    assert!(names.len() > 30, "the table was found");
    for name in names {
        assert!(sources.contains(&format!("fn {name}(")), "docs/bounds.md names a test that is gone: {name}");
    }
}

#[test]
fn architecture_names_paths_that_exist() {
    let text = read("ARCHITECTURE.md");
    let paths: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|word| is_path(word)).collect();
    assert!(paths.len() > 20, "the code map was found");
    for path in paths {
        assert!(root().join(path).exists(), "ARCHITECTURE.md names a path that is gone: {path}");
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = files(&root().join("docs"), "md");
    documents
        .extend(["README.md", "README.zh-CN.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for target in link_targets(&text) {
            let path = document.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(path.exists(), "{} links to {target}, which is gone", document.display());
        }
    }
}

/// The targets of links that are paths.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains(':') && !target.starts_with('#') && !target.contains(char::is_whitespace))
}

/// The last cell of a row of a table.
fn last_cell(line: &str) -> Option<&str> {
    line.strip_prefix('|')?.trim_end().strip_suffix('|')?.rsplit('|').next()
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_function(name: &str) -> bool {
    name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

fn is_path(word: &str) -> bool {
    ["crates/", "docs/", "bench/", "fuzz/", "scripts/", "testdata/", "packaging/"]
        .iter()
        .any(|top| word.starts_with(top))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|has| has == extension) {
            found.push(path);
        }
    }
    found
}
