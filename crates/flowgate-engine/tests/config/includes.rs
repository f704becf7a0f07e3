//! Included files.

use flowgate_testkit::files::directory;

use super::*;

fn rule(name: &str) -> String {
    format!("[[rule]]\nname = \"{name}\"\nlimits = [\"5/60s\"]\n")
}

#[test]
fn includes_are_joined_in_the_order_of_their_names() {
    let main = format!("include = [\"last.toml\", \"rules.d/*.toml\", \"*.toml\"]\n{}", rule("main"));
    let directory = directory(&[
        ("flowgate.toml", &main),
        ("last.toml", &rule("named-first")),
        ("rules.d/20-b.toml", &rule("b")),
        ("rules.d/10-a.toml", &format!("[log]\nlevel = \"debug\"\n{}", rule("a"))),
        ("rules.d/.hidden.toml", "not toml at all"),
        ("rules.d/notes.txt", "not toml at all"),
    ]);
    let path = directory.path().join("flowgate.toml");
    let loaded = load(Input::File(&path), []).unwrap();
    let names: Vec<_> = loaded.config.policy.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["main", "named-first", "a", "b"], "each file once, the main file not again");
    assert_eq!(loaded.config.log.level, LogLevel::Debug);
    let names = ["flowgate.toml", "last.toml", "rules.d", "rules.d/10-a.toml", "rules.d/20-b.toml", ""];
    let expected: Vec<_> = names.iter().map(|name| directory.path().join(name)).collect();
    let origins: Vec<_> = loaded.origins.iter().map(|origin| origin.path.clone()).collect();
    assert_eq!(origins, expected, "what to watch: the files, and where the patterns look");
}

#[test]
fn includes_are_listed_in_a_report_so_that_they_can_be_watched() {
    let main = "include = [\"rules.toml\", \"gone.toml\"]";
    let directory = directory(&[("flowgate.toml", main), ("rules.toml", "not toml at all")]);
    let path = directory.path().join("flowgate.toml");
    let report = load(Input::File(&path), []).unwrap_err();
    let names: Vec<_> = report.origins.iter().map(|origin| origin.path.file_name().unwrap()).collect();
    assert_eq!(names, ["flowgate.toml", "rules.toml", "gone.toml"]);
    assert!(!report.origins.iter().any(Origin::has_changed));
    fs::write(directory.path().join("gone.toml"), rule("new")).unwrap();
    assert!(report.origins[2].has_changed());
}

#[test]
fn lists_of_an_include_are_beside_it() {
    let part = "[lists]\nblocked = { file = \"blocked.txt\" }\n[[rule]]\nname = \"b\"\nwhen = { ip = \"@blocked\" }\n\
        action = \"deny\"";
    let directory = directory(&[
        ("flowgate.toml", "include = [\"rules.d/b.toml\"]\n[lists]\nvip = { values = [\"7\"] }"),
        ("rules.d/b.toml", part),
        ("rules.d/blocked.txt", "192.0.2.7"),
    ]);
    let path = directory.path().join("flowgate.toml");
    let loaded = load(Input::File(&path), []).unwrap();
    assert!(loaded.config.policy.lists["blocked"].contains("192.0.2.7"));
    assert_eq!(loaded.config.policy.lists.len(), 2);
    assert_eq!(loaded.origins.last().unwrap().path, directory.path().join("rules.d/blocked.txt"));
}

#[test]
fn mistakes_name_the_included_file() {
    let directory = directory(&[
        ("flowgate.toml", "include = [\"rules.d/*.toml\"]\n[server]\nthread = 1"),
        ("rules.d/a.toml", "[[rule]]\nname = \"a\"\nlimits = [\"5/60x\"]"),
    ]);
    let path = directory.path().join("flowgate.toml");
    let report = load(Input::File(&path), []).unwrap_err();
    let places: Vec<_> = report.entries().map(|entry| (entry.source.unwrap(), entry.position.unwrap())).collect();
    assert_eq!(places.len(), 2);
    assert!(places[0].0.ends_with("flowgate.toml") && places[0].1.line == 3);
    assert!(places[1].0.ends_with("a.toml") && (places[1].1.line, places[1].1.column) == (3, 14));
}

#[test]
fn includes_that_are_not_files_are_refused() {
    let directory = directory(&[("flowgate.toml", "include = [\"rules.d\"]"), ("rules.d/a.toml", "")]);
    let report = load(Input::File(&directory.path().join("flowgate.toml")), []).unwrap_err();
    assert!(report.to_string().contains("it is not a regular file"), "{report}");
}

#[test]
fn files_may_have_a_byte_order_mark_and_any_line_end() {
    let config = config("\u{feff}[log]\r\nlevel = \"debug\"\r\n", &[]);
    assert_eq!(config.log.level, LogLevel::Debug);
}

#[test]
fn files_that_are_not_text_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flowgate.toml");
    fs::write(&path, b"[log]\nlevel = \"\xff\"\n").unwrap();
    let report = load(Input::File(&path), []).unwrap_err();
    assert!(report.to_string().contains("it is not UTF-8 at line 2, column 10"), "{report}");
}

#[test]
fn a_missing_main_file_is_reported() {
    let report = load(Input::File(Path::new("/no/such/flowgate.toml")), []).unwrap_err();
    assert_eq!(report.to_string(), "error: cannot read /no/such/flowgate.toml: there is no such file\n");
}
