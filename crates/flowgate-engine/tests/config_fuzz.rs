//! Whatever a file holds: an answer, no panic, no hang, and never more findings than anybody reads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use flowgate_engine::config::{Config, Input, load};
use proptest::prelude::*;

/// Loads a text and walks through everything that can be said about it.
fn digest(text: &str) {
    // Relative paths lead into an empty directory, so that what is read does not depend on the machine.
    static NOWHERE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let base = NOWHERE.get_or_init(|| tempfile::tempdir().unwrap()).path();
    let report = match load(Input::Text { name: "fuzz.toml", base, text }, []) {
        Ok(loaded) => {
            check_round_trip(&loaded.config);
            loaded.warnings
        }
        Err(report) => {
            assert!(report.has_errors());
            report
        }
    };
    let rendered = report.to_string();
    assert!(rendered.len() < 200_000, "{} bytes", rendered.len());
    assert!(report.entries().count() <= 100);
}

/// What can be loaded can be written and is the same when it is read again, unless a secret was hidden.
fn check_round_trip(config: &Config) {
    let written = config.to_toml();
    if written.contains("***") {
        return;
    }
    match Config::from_toml(&written) {
        Ok(again) => assert_eq!(again.to_toml(), written),
        Err(report) => panic!("{report}\nin\n{written}"),
    }
}

/// Every file under `testdata/config`, right and wrong ones.
fn samples() -> &'static [String] {
    static SAMPLES: OnceLock<Vec<String>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/config");
        let mut texts = Vec::new();
        for directory in [root.clone(), root.join("errors"), root.join("warnings")] {
            let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
            paths.sort();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
            texts.extend(paths.iter().map(|path| fs::read_to_string(path).unwrap()));
        }
        assert!(texts.len() > 100);
        texts
    })
}

/// One change of a text.
#[derive(Clone, Debug)]
enum Edit {
    Delete {
        at: usize,
        length: usize,
    },
    Insert {
        at: usize,
        piece: String,
    },
    /// Copies a part of another sample over.
    Splice {
        at: usize,
        sample: usize,
        from: usize,
        length: usize,
    },
}

impl Edit {
    fn apply(&self, text: &mut String) {
        let boundary = |text: &str, at: usize| text.floor_char_boundary(at % (text.len() + 1));
        match self {
            Edit::Delete { at, length } => {
                let start = boundary(text, *at);
                let end = text.floor_char_boundary((start + length).min(text.len()));
                text.replace_range(start..end.max(start), "");
            }
            Edit::Insert { at, piece } => {
                let at = boundary(text, *at);
                text.insert_str(at, piece);
            }
            Edit::Splice { at, sample, from, length } => {
                let donor = &samples()[sample % samples().len()];
                let start = boundary(donor, *from);
                let end = donor.floor_char_boundary((start + length).min(donor.len())).max(start);
                let at = boundary(text, *at);
                text.insert_str(at, &donor[start..end]);
            }
        }
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    let pieces = prop_oneof![
        "\\PC{0,8}",
        proptest::sample::select(vec![
            "[",
            "]",
            "[[rule]]\n",
            "{",
            "}",
            "=",
            "\"",
            "'",
            "\"\"\"",
            "\n",
            ",",
            ".",
            "#",
            "\\",
            "\u{feff}",
            "\0",
            "回",
            "-1",
            "0",
            "99999999999999999999",
            "1e9",
            "nan",
            "true",
            "1979-05-27",
            "@",
            "!",
            "~(",
            "*",
            "**",
            "> ",
            "..",
            "/33",
            "10.0.0.0/8",
            "::1",
            "5/60s",
            "fixed",
            " after=1/day",
            "burst=",
            "name",
            "when",
            "lists",
            "include",
        ])
        .prop_map(str::to_owned),
    ];
    prop_oneof![
        (any::<usize>(), 0..20_usize).prop_map(|(at, length)| Edit::Delete { at, length }),
        (any::<usize>(), pieces).prop_map(|(at, piece)| Edit::Insert { at, piece }),
        (any::<usize>(), any::<usize>(), any::<usize>(), 0..60_usize)
            .prop_map(|(at, sample, from, length)| Edit::Splice { at, sample, from, length }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_samples_are_read_or_reported(sample in any::<usize>(), edits in prop::collection::vec(edit(), 1..6)) {
        let mut text = samples()[sample % samples().len()].clone();
        for edit in &edits {
            edit.apply(&mut text);
        }
        digest(&text);
    }

    #[test]
    fn any_bytes_are_read_or_reported(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        digest(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_variables_are_read_or_reported(name in "FLOWGATE_[A-Z_]{0,20}", value in "\\PC{0,30}") {
        let _ = load(Input::Defaults, [(name, value)]).map_err(|report| report.to_string());
    }

    #[test]
    fn any_value_of_a_known_variable(
        name in proptest::sample::select(vec![
            "LISTEN__HTTP", "SERVER__DRAIN", "SERVER__MAX_REQUEST", "AUTH__API_TOKEN", "LOG__DENIALS", "STORE__URL",
            "STORE__CLUSTER", "STORE__LOCAL_SHARE", "GATE__TRUSTED_PROXIES", "GATE__HEADERS", "KOALA__TZ", "TLS__CERT",
        ]),
        value in prop_oneof!["\\PC{0,30}", "[0-9a-z:/.,%@\\[\\]\" ]{0,30}"],
    ) {
        let variable = (format!("FLOWGATE_{name}"), value);
        match load(Input::Defaults, [("FLOWGATE_STORE__TYPE".to_owned(), "redis".to_owned()), variable]) {
            Ok(loaded) => check_round_trip(&loaded.config),
            Err(report) => drop(report.to_string()),
        }
    }
}

/// Sizes at which anything that grows with the square of its input would take minutes.
mod large {
    use super::*;

    #[test]
    fn one_long_line_is_read_in_time() {
        digest(&"x".repeat(1 << 20));
        digest(&format!("[log]\nlevel = \"{}\"", "y".repeat(1 << 20)));
        digest(&format!("[[rule]]\nname = \"a\"\nlimits = [\"5/{}\"]", "回".repeat(1 << 18)));
    }

    #[test]
    fn many_mistakes_are_reported_in_time() {
        digest(&"= @\n".repeat(100_000));
        digest(&(0..50_000).map(|n| format!("key{n} = 1\n")).collect::<String>());
        digest(
            &(0..20_000)
                .map(|n| format!("[[rule]]\nname = \"r{n}\"\nwhen = {{ a = \"@none{n}\" }}\n"))
                .collect::<String>(),
        );
        digest(&"[log]\n".repeat(50_000));
    }

    #[test]
    fn many_rules_and_lists() {
        let lists: String = (0..10_000).map(|n| format!("l{n} = {{ values = [\"{n}\"] }}\n")).collect();
        let rules: String = (0..10_000)
            .map(|n| {
                format!(
                    "[[rule]]\nname = \"r{n}\"\nwhen = {{ user = \"@l{n}\", act = \"x{n}\" }}\naction = \"allow\"\n"
                )
            })
            .collect();
        digest(&format!("[lists]\n{lists}{rules}"));
    }

    #[test]
    fn many_limits_are_read_in_time() {
        let limits = |count: u32| (1..=count).map(|n| format!("\"{n}/60s\", ")).collect::<String>();
        digest(&format!("[[rule]]\nname = \"a\"\nlimits = [{}]", limits(50_000)));
        digest(&format!("[[rule]]\nname = \"a\"\nlimits = [{}]", limits(32)));
    }

    #[test]
    fn deep_nesting_is_read_in_time() {
        digest(&format!("a = {}{}", "[".repeat(10_000), "]".repeat(10_000)));
        digest(&format!("a = {}", "{ a = ".repeat(10_000)));
        digest(&format!("{}x = 1", "a.".repeat(10_000)));
    }
}
