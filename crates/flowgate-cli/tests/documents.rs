//! What the documents name exists: the tests of docs/bounds.md, the paths and functions of ARCHITECTURE.md, and the targets of
//! links.

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
    let mut found = 0;
    for part in parts(&text) {
        found +=
            named_paths(part).unwrap_or_else(|path| panic!("ARCHITECTURE.md names a path that is gone: {path}")).len();
    }
    assert!(found > 60, "the code map was found");
}

/// The path of a request names functions, types and constants: each is defined in a file of its row or paragraph, and
/// `Type::function` in any file of the workspace that has both.
#[test]
fn architecture_names_functions_where_they_are() {
    let text = read("ARCHITECTURE.md");
    let section = text.split("## The path of a request").nth(1).unwrap().split("\n## ").next().unwrap();
    let workspace: Vec<String> =
        files(&root().join("crates"), "rs").iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let mut found = 0;
    for part in parts(section) {
        let here: Vec<String> = named_paths(part).unwrap().iter().flat_map(|path| sources(path)).collect();
        for name in quoted(part).filter(|name| is_item(name)) {
            assert!(
                is_defined(name, &here, &workspace),
                "ARCHITECTURE.md names {name}, which its row's files lack: {part}"
            );
            found += 1;
        }
    }
    assert!(found > 60, "the steps were found");
    let here = ["pub(crate) fn serve() {}\nstruct Listener;".to_owned()];
    for (name, is_there) in [("serve", true), ("Listener", true), ("Listener::serve", true), ("plan::serve", true)] {
        assert_eq!(is_defined(name, &here, &here), is_there, "{name}");
        assert!(!is_defined(name, &[], &[]), "{name}");
    }
    assert!(!is_defined("server", &here, &here) && !is_defined("Loop::serve", &here, &here));
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
    ["crates/", "docs/", "bench/", "fuzz/", "scripts/", "testdata/", "packaging/", "tests/"]
        .iter()
        .any(|top| word.starts_with(top))
}

/// The rows of tables and the paragraphs of a text, without its diagrams.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("```").step_by(2).flat_map(|prose| prose.split("\n\n"));
    prose.flat_map(|part| if part.starts_with('|') { part.split('\n').collect() } else { vec![part] })
}

/// The paths that a part of ARCHITECTURE.md names, or the first that does not exist. A short path, such as
/// `memory/step.rs`, lies in the `src` of the crate, or in the folder, that the part names before it; or it repeats the
/// name of a file.
fn named_paths(part: &str) -> Result<Vec<PathBuf>, &str> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut sources = None;
    for word in quoted(part) {
        let is_short = !word.contains(' ') && (word.ends_with(".rs") || word.ends_with(".lua"));
        if is_path(word) {
            sources = word.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).or(sources);
            paths.push(root().join(word));
        } else if is_short {
            let crate_sources = sources.map(|name| root().join("crates").join(name).join("src"));
            let folders = crate_sources.iter().chain(&paths).map(|folder| folder.join(word));
            let same = paths.iter().filter(|path| path.ends_with(word)).cloned();
            let path = folders.chain(same).find(|path| path.exists()).ok_or(word)?;
            paths.push(path);
        }
        if paths.last().is_some_and(|path| !path.exists()) {
            return Err(word);
        }
    }
    Ok(paths)
}

/// The texts of a file, or of all files below a folder.
fn sources(path: &Path) -> Vec<String> {
    let files = if path.is_dir() { [files(path, "rs"), files(path, "lua")].concat() } else { vec![path.to_owned()] };
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Whether a word is the name of a function, a type or a constant, such as `decide`, `Call::answer` or `COMMANDS`.
fn is_item(word: &str) -> bool {
    word.split("::").all(|part| {
        part.starts_with(|first: char| first.is_ascii_alphabetic())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

/// Whether one of these texts, or for `Type::function` one of the workspace, defines an item.
fn is_defined(name: &str, here: &[String], workspace: &[String]) -> bool {
    let is_type = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
    let defines = |text: &str, name: &str| {
        let kinds: &[&str] =
            if is_type(name) { &["struct", "enum", "trait", "type", "const", "static", "impl"] } else { &["fn"] };
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        kinds.iter().any(|kind| text.split(&format!("{kind} {name}")).skip(1).any(ends))
    };
    match name.rsplit_once("::") {
        Some((owner, function)) if is_type(owner) => {
            workspace.iter().any(|text| text.contains(owner) && defines(text, owner) && defines(text, function))
        }
        Some((_, function)) => here.iter().any(|text| defines(text, function)),
        None => here.iter().any(|text| defines(text, name)),
    }
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
