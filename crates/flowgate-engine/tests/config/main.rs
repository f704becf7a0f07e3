//! The configuration as a whole: defaults, the documented example, variables, includes, secrets, and back to TOML.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod defaults;
mod example;
mod includes;
mod secrets;
mod variables;
mod written;

use std::fs;
use std::path::Path;
use std::time::Duration;

use flowgate::{MemoryStore, Op, Time, WhenFull};
use flowgate_engine::config::{
    ByteSize, Config, Denials, Flag, HeaderFamily, Input, ListenAddress, LoadedConfig, LogFormat, LogLevel, Options,
    Origin, Purpose, RedisServers, Report, Sampling, Share, load, load_with,
};
use flowgate_engine::{
    Engine, Limits, OnFailure, Request,
    rules::{Action, Matcher},
};

/// Every key of the documentation, with its default.
const DOCUMENTED_DEFAULTS: &str = include_str!("../../../../testdata/config/defaults.toml");

/// The rules of the documentation.
const DOCUMENTED_RULES: &str = include_str!("../../../../testdata/config/example.toml");

fn from_text(text: &str, environment: &[(&str, &str)]) -> Result<LoadedConfig, Report> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    load(Input::Text { name: "flowgate.toml", base: testdata(), text }, environment)
}

fn testdata() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/config"))
}

#[track_caller]
fn config(text: &str, environment: &[(&str, &str)]) -> Config {
    from_text(text, environment).unwrap_or_else(|report| panic!("{report}")).config
}

#[track_caller]
fn mistake(text: &str, environment: &[(&str, &str)]) -> String {
    from_text(text, environment).unwrap_err().entries().next().unwrap().message.text.clone()
}

#[test]
fn a_flag_wins_and_mistakes_name_it() {
    let flag = |value: &str| Flag { name: "--http", section: "listen", key: "http", value: value.to_owned() };
    let variable = || [("FLOWGATE_LISTEN__HTTP".to_owned(), "127.0.0.1:1".to_owned())];
    let input = || Input::Text { name: "x", base: testdata(), text: "[listen]\nhttp = \"off\"" };
    let load = |flags: &[Flag]| load_with(input(), variable(), Options { flags, ..Options::default() });
    let loaded = load(&[flag("127.0.0.1:2")]).unwrap();
    assert_eq!(loaded.config.listen.http, ListenAddress::Tcp("127.0.0.1:2".parse().unwrap()));
    let report = load(&[flag("0.0.0.0:2")]).unwrap_err().to_string();
    assert!(report.contains("--> option --http\n"), "{report}");
    assert!(report.contains("| --http=0.0.0.0:2\n"), "{report}");
    assert!(!report.contains("FLOWGATE_LISTEN"), "{report}");
}

#[test]
fn a_look_at_the_configuration_needs_no_certificates() {
    for (cert, cause) in [("none.pem", "there is no such file"), ("errors", "it is not a regular file")] {
        let text = format!("[tls]\ncert = \"{cert}\"\nkey = \"example.toml\"");
        let read = |purpose| {
            let input = Input::Text { name: "x", base: testdata(), text: &text };
            load_with(input, [], Options { purpose, ..Options::default() })
        };
        let report = read(Purpose::Serve).unwrap_err().to_string();
        assert!(report.starts_with("error: cannot read ") && report.contains(cause), "{report}");
        let loaded = read(Purpose::Study).unwrap();
        assert!(loaded.warnings.is_empty() && loaded.config.tls.is_some(), "{}", loaded.warnings);
    }
}

#[test]
fn all_of_several_must_hold_of_a_field() {
    let text = r#"rule = [{ name = "r", limits = ["5/60s"], when = { n = { all = ["*", ["1..9", "20"], "!7", { ne = "~x" }] } } }]"#;
    let config = Config::from_toml(text).unwrap();
    let engine = Engine::new(&config.policy, MemoryStore::default()).unwrap();
    let matched = |value| engine.decide(Op::Peek, &Request::new().field("n", value), Time::from_secs(1)).matched();
    assert!(matched("1") && matched("20") && !matched("7") && !matched("10") && !matched(""));
    assert_eq!(config.policy.rules[0].when.len(), 4);
    let again = Config::from_toml(&config.to_toml()).unwrap();
    assert_eq!(again.to_toml(), config.to_toml());
    assert!(config.to_toml().contains(r#"when = { n = { all = ["*", ["1..9", "20"], "!7", { ne = "~x" }] } }"#));
}
