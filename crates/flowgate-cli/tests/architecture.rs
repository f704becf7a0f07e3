//! Rules about the source itself: which crate may use which, where time is read, and how tests share code.
//!
//! ARCHITECTURE.md gives the reasons. Every check is a function from text to complaints, run on the real text
//! and on text that breaks its rule.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

/// Each crate of the workspace and those of the workspace that it may use. Every crate may use the [`TESTKIT`] besides, as
/// a dev-dependency.
const MAY_USE: &[(&str, &[&str])] = &[
    ("flowgate", &[]),
    ("flowgate-journal", &["flowgate"]),
    ("flowgate-engine", &["flowgate"]),
    ("flowgate-api", &["flowgate-engine", "flowgate"]),
    ("flowgate-koala", &["flowgate-engine", "flowgate"]),
    (
        "flowgate-server",
        &["flowgate-replay", "flowgate-koala", "flowgate-api", "flowgate-engine", "flowgate-journal", "flowgate"],
    ),
    ("flowgate-tower", &["flowgate-api", "flowgate-engine", "flowgate"]),
    ("flowgate-replay", &["flowgate-api", "flowgate-engine", "flowgate"]),
    (
        "flowgate-cli",
        &[
            "flowgate-replay",
            "flowgate-server",
            "flowgate-koala",
            "flowgate-api",
            "flowgate-engine",
            "flowgate-journal",
            "flowgate",
        ],
    ),
    (TESTKIT, &["flowgate-server", "flowgate-api", "flowgate-engine", "flowgate"]),
];

/// A crate and one that its tests compare it with.
const COMPARED: (&str, &str) = ("flowgate-server", "flowgate-tower");

/// What the tests of several crates share.
const TESTKIT: &str = "flowgate-testkit";

/// Crates that the library must not depend on by default: runtimes, networking, wire formats.
const NOT_IN_LIBRARY: &[&str] = &[
    "async-std",
    "axum",
    "futures-util",
    "h2",
    "http",
    "hyper",
    "mio",
    "prost",
    "redis",
    "reqwest",
    "serde_json",
    "smol",
    "socket2",
    "tokio",
    "tonic",
    "tower",
];

/// Wire formats that stay in the server. The engine's Redis store only says what to send; the server sends it.
const NOT_IN_ENGINE: &[&str] = &["axum", "hyper", "prost", "serde_json", "tonic"];

/// Names that read a clock.
const CLOCKS: &[&str] =
    &["SystemTime::now", "Instant::now", "UNIX_EPOCH.elapsed", "Timestamp::now", "Zoned::now", "quanta"];

/// The most source files that a new algorithm touches.
const MAX_ALGORITHM_FILES: usize = 6;

/// The most source files outside a front's own crate and folders that name the front.
const MAX_FRONT_FILES: usize = 12;

#[test]
fn crates_use_only_those_to_their_left() {
    let mut seen = 0;
    for directory in crates() {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        assert_eq!(wrong_dependencies(&manifest), [""; 0]);
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} crates found");
}

#[test]
fn the_library_brings_no_io() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "-p", "flowgate", "--edges", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(tree.starts_with("flowgate v"), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(io_crates(&tree), [""; 0]);
}

#[test]
fn only_the_clock_module_reads_time() {
    let mut seen = 0;
    for directory in crates() {
        for file in rust_files(&directory.join("src")) {
            let path = file.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            let source = fs::read_to_string(&file).unwrap();
            assert_eq!(clock_reads(&path, &source), [""; 0]);
            assert_eq!(unsafe_lines(&path, &source), [""; 0]);
            seen += 1;
        }
    }
    assert!(seen >= 10, "only {seen} source files found");
}

/// Crates share code by dependencies, and tests by the testkit.
#[test]
fn no_module_has_a_path_attribute() {
    for file in rust_files(&root().join("crates")) {
        let source = fs::read_to_string(&file).unwrap();
        assert_eq!(path_attributes(&file.display().to_string(), &source), [""; 0]);
    }
}

/// CONTRIBUTING.md lists at most six files that a new algorithm touches. To check that, this test counts the files that
/// name an existing algorithm without special cases.
#[test]
fn few_source_files_name_an_algorithm() {
    let mut naming = Vec::new();
    for directory in crates().iter().filter(|directory| !directory.ends_with(TESTKIT)) {
        for file in rust_files(&directory.join("src")) {
            let path = file.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            let source = fs::read_to_string(&file).unwrap();
            if names_an_algorithm(&path, &source) {
                naming.push(path);
            }
        }
    }
    assert!((2..=MAX_ALGORITHM_FILES).contains(&naming.len()), "{naming:#?}");
}

/// A front of another system has a crate and folders of its own; the rest knows it by `fronts.rs` and its settings.
#[test]
fn few_source_files_outside_its_folders_name_a_front() {
    let mut naming = Vec::new();
    for directory in crates() {
        for file in rust_files(&directory.join("src")) {
            let path = file.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
            let source = fs::read_to_string(&file).unwrap();
            if names_a_front(&path, &source) {
                naming.push(path);
            }
        }
    }
    assert!((2..=MAX_FRONT_FILES).contains(&naming.len()), "{naming:#?}");
}

/// The dependencies of a crate's manifest, in any of its tables, that it must not have.
fn wrong_dependencies(manifest: &str) -> Vec<String> {
    let manifest: Table = manifest.parse().unwrap();
    let name = manifest["package"]["name"].as_str().unwrap();
    let Some((_, allowed)) = MAY_USE.iter().find(|(krate, _)| *krate == name) else {
        return vec![format!("{name} has no line in MAY_USE: say what it may use")];
    };
    let is_ours = |used: &str| used == "flowgate" || used.starts_with("flowgate-");
    let mut wrong = Vec::new();
    for (table, used) in dependencies(&manifest) {
        let is_for_tests = used == TESTKIT || (name, used.as_str()) == COMPARED;
        let is_test_support = is_for_tests && table == "dev-dependencies";
        let forbidden = is_ours(&used) && !is_test_support && !allowed.contains(&used.as_str())
            || name == "flowgate-engine" && table == "dependencies" && NOT_IN_ENGINE.contains(&used.as_str());
        if forbidden {
            wrong.push(format!("{name} must not use {used} ({table})"));
        }
    }
    wrong
}

/// The packages that a manifest names, each with the table that does.
fn dependencies(manifest: &Table) -> Vec<(&'static str, String)> {
    let empty = Table::new();
    let targets = manifest.get("target").and_then(Value::as_table).unwrap_or(&empty);
    let mut found = Vec::new();
    for part in std::iter::once(manifest).chain(targets.values().filter_map(Value::as_table)) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = part.get(kind).and_then(Value::as_table) else {
                continue;
            };
            for (key, value) in table {
                let package = value.get("package").and_then(Value::as_str).unwrap_or(key);
                found.push((kind, package.to_owned()));
            }
        }
    }
    found
}

/// The crates in the output of `cargo tree --prefix none` that do I/O or know a wire format.
fn io_crates(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| NOT_IN_LIBRARY.contains(name)).collect()
}

/// The lines of a source file that read a clock although the file must not. Comments may speak of it. Test support waits
/// for processes in real time.
fn clock_reads(path: &str, source: &str) -> Vec<String> {
    let may_read = ["crates/flowgate/src/clock.rs", "crates/flowgate/src/clock/", "crates/flowgate-testkit/src/"];
    if may_read.iter().any(|place| path.starts_with(place)) {
        return Vec::new();
    }
    lines_with(path, source, CLOCKS)
}

/// The lines of a source file that are unsafe, or allow it, although the file must not.
fn unsafe_lines(path: &str, source: &str) -> Vec<String> {
    if path == "crates/flowgate/src/memory/shards.rs" {
        return Vec::new();
    }
    lines_with(path, source, &["unsafe {", "unsafe fn", "unsafe impl", "unsafe_code"])
}

/// The lines of a source file that give a module another path than its own.
fn path_attributes(path: &str, source: &str) -> Vec<String> {
    let lines = (1..).zip(source.lines()).filter(|(_, line)| line.trim_start().starts_with("#[path"));
    lines.map(|(number, line)| format!("{path}:{number}: {}", line.trim())).collect()
}

/// Whether the code of a source file, tests left aside, names the algorithm `approx`.
fn names_an_algorithm(path: &str, source: &str) -> bool {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    !path.contains("/tests/") && !lines_with(path, code, &["Approx", "\"approx\""]).is_empty()
}

/// Whether a source file, comments included, names the front of Koala without being its own.
fn names_a_front(path: &str, source: &str) -> bool {
    let is_own = path.contains("flowgate-koala/") || path.contains("/koala");
    !is_own && source.to_lowercase().contains("koala")
}

/// The lines whose code, comments left aside, contains one of these texts.
fn lines_with(path: &str, source: &str, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(source.lines()) {
        let code = without_comment(line);
        if texts.iter().any(|text| code.contains(text)) {
            found.push(format!("{path}:{number}: {}", line.trim()));
        }
    }
    found
}

/// A line up to its `//`. One inside a word, as in an address, is taken for text.
fn without_comment(line: &str) -> &str {
    let is_comment = |&(at, _): &(usize, &str)| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    line.match_indices("//").find(is_comment).map_or(line, |(at, _)| &line[..at])
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn crates() -> Vec<PathBuf> {
    entries(&root().join("crates")).into_iter().filter(|path| path.join("Cargo.toml").exists()).collect()
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

mod the_checks_find {
    use super::*;

    #[track_caller]
    fn check_manifest(name: &str, tables: &str, expected: &[&str]) {
        assert_eq!(wrong_dependencies(&format!("[package]\nname = \"{name}\"\n{tables}")), expected);
    }

    #[test]
    fn a_dependency_to_the_right() {
        check_manifest(
            "flowgate",
            "[dependencies]\nflowgate-engine.workspace = true",
            &["flowgate must not use flowgate-engine (dependencies)"],
        );
        check_manifest(
            "flowgate-engine",
            "[dependencies]\nflowgate.workspace = true\nflowgate-server = { path = \"../flowgate-server\" }",
            &["flowgate-engine must not use flowgate-server (dependencies)"],
        );
        check_manifest(
            "flowgate-tower",
            "[dependencies]\nflowgate-engine.workspace = true\nflowgate-server.workspace = true",
            &["flowgate-tower must not use flowgate-server (dependencies)"],
        );
        check_manifest(
            "flowgate-server",
            "[dependencies]\nflowgate-tower.workspace = true",
            &["flowgate-server must not use flowgate-tower (dependencies)"],
        );
        check_manifest("flowgate-server", "[dev-dependencies]\nflowgate-tower.workspace = true", &[]);
        check_manifest("flowgate-cli", "[dependencies]\nflowgate-server.workspace = true\ntokio = \"1\"", &[]);
    }

    #[test]
    fn a_dependency_in_another_table_or_by_another_name() {
        let wrong = "flowgate must not use flowgate-server";
        for (table, kind) in [
            ("[dev-dependencies]", "dev-dependencies"),
            ("[build-dependencies]", "build-dependencies"),
            ("[target.'cfg(unix)'.dependencies]", "dependencies"),
        ] {
            let renamed = format!("{table}\nserver = {{ package = \"flowgate-server\", path = \"..\" }}");
            check_manifest("flowgate", &renamed, &[&format!("{wrong} ({kind})")]);
        }
    }

    #[test]
    fn a_wire_format_in_the_engine() {
        let uses = "[dependencies]\nserde_json.workspace = true\n[dev-dependencies]\nserde_json.workspace = true";
        check_manifest("flowgate-engine", uses, &["flowgate-engine must not use serde_json (dependencies)"]);
        check_manifest("flowgate-server", uses, &[]);
    }

    #[test]
    fn a_crate_without_a_rule() {
        check_manifest("flowgate-new", "", &["flowgate-new has no line in MAY_USE: say what it may use"]);
    }

    #[test]
    fn the_testkit_outside_dev_dependencies() {
        check_manifest("flowgate", "[dev-dependencies]\nflowgate-testkit.workspace = true", &[]);
        check_manifest(
            "flowgate-cli",
            "[dependencies]\nflowgate-testkit.workspace = true",
            &["flowgate-cli must not use flowgate-testkit (dependencies)"],
        );
        check_manifest(
            "flowgate-server",
            "[build-dependencies]\nkit = { package = \"flowgate-testkit\", path = \"..\" }",
            &["flowgate-server must not use flowgate-testkit (build-dependencies)"],
        );
    }

    #[test]
    fn a_path_attribute() {
        let source = "    #[path = \"../other.rs\"]\nmod other;\n// #[path = \"x.rs\"]\nlet text = \"#[path\";";
        assert_eq!(path_attributes("x.rs", source), ["x.rs:1: #[path = \"../other.rs\"]"]);
    }

    #[test]
    fn an_io_crate_below_the_library() {
        let tree =
            "flowgate v0.1.0 (/somewhere)\nslab v0.4.12\ntokio v1.54.1\nserde_json v1.0.154 (*)\ntokio-like v1.0.0\n";
        assert_eq!(io_crates(tree), ["tokio", "serde_json"]);
    }

    #[test]
    fn a_clock_read_outside_the_clock_module() {
        let source = "fn now() {\n    std::time::Instant::now() // the time\n}\n";
        let found = ["crates/flowgate/src/limiter.rs:2: std::time::Instant::now() // the time"];
        assert_eq!(clock_reads("crates/flowgate/src/limiter.rs", source), found);
        assert_eq!(clock_reads("crates/flowgate/src/clock.rs", source), [""; 0]);
        assert_eq!(clock_reads("crates/flowgate/src/clock/system.rs", source), [""; 0]);
        assert_eq!(clock_reads("crates/flowgate-server/src/clock.rs", source).len(), 1);
        for clock in CLOCKS {
            assert_eq!(clock_reads("x.rs", &format!("let t = {clock}();")).len(), 1, "{clock}");
        }
    }

    #[test]
    fn a_file_that_names_an_algorithm() {
        assert!(names_an_algorithm("x.rs", "match law {\n    Law::Approx(approx) => 1,\n}"));
        assert!(names_an_algorithm("x.rs", "const NAMES: [&str; 1] = [\"approx\"];"));
        assert!(!names_an_algorithm("x.rs", "// Approx\n#[cfg(test)]\nmod tests {\n    use Approx;\n}"));
        assert!(!names_an_algorithm("src/limit/tests/random.rs", "Algorithm::Approx"));
    }

    #[test]
    fn a_file_that_names_a_front() {
        assert!(names_a_front("crates/flowgate-server/src/service.rs", "// as KoalaRules"));
        assert!(!names_a_front("crates/flowgate-server/src/service.rs", "mod fronts;"));
        for own in ["crates/flowgate-koala/src/lib.rs", "src/koala.rs", "src/koala/form.rs"] {
            assert!(!names_a_front(own, "struct KoalaRules;"), "{own}");
        }
    }

    #[test]
    fn unsafe_code_outside_its_one_module() {
        let source = "#[expect(unsafe_code)]\nfn f() {\n    unsafe { g() }\n}\n// unsafe { }\n";
        assert_eq!(unsafe_lines("crates/flowgate/src/memory.rs", source).len(), 2);
        assert_eq!(unsafe_lines("crates/flowgate/src/memory/shards.rs", source), [""; 0]);
    }

    #[test]
    fn no_clock_read_in_a_comment() {
        for line in ["//! SystemTime::now", "    /// `Instant::now`", "let x = 1; // not quanta"] {
            assert_eq!(clock_reads("x.rs", line), [""; 0]);
        }
        assert_eq!(clock_reads("x.rs", "get(\"http://x\", Instant::now())").len(), 1);
    }
}
