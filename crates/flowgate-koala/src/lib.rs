//! Koala's rule files as a front of Flowgate's engine.
//!
//! ```text
//! rule file -> sections -> dicts, results, rules (each with its place) -> KoalaFile -> KoalaRules
//! ```
//!
//! [`KoalaFile`] reads the whole language, old and new spellings, and reports all mistakes at once, as the
//! configuration does. [`KoalaRules`] is the file in force on a store. Its rules are limits of the engine on counters
//! of the same store. Koala's own part is the order of evaluation and the answer.
//!
//! `docs/koala.md` is the guide for users; `testdata/koala` shows every message.

mod answer;
mod condition;
mod daily_counts;
mod description;
mod dict;
mod flat_object;
mod flowgate_configuration;
mod import;
mod main_configuration;
mod numbers;
mod piece;
mod plan;
#[cfg(feature = "redis")]
mod redis;
mod result;
mod rule;
mod rules;
mod sections;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub use answer::{KoalaAnswer, KoalaAsk};
pub use daily_counts::RuleCounts;
pub use description::RuleDescription;
use flowgate::TimeZone;
pub use plan::{KoalaErase, KoalaPlan};
#[cfg(feature = "redis")]
pub use redis::OwnedKoalaPlan;
pub use result::{KoalaResult, KoalaValue};
pub use rules::KoalaRules;

use flowgate_engine::Policy;
use flowgate_engine::config::{
    Config, Input, LoadedConfig, MAX_CONFIG_BYTES, Options, Origin, RuleFile, load_with, read_file,
};
use flowgate_engine::front::{self, Report, absolute, quoted};
use flowgate_engine::http::PathSpelling;
use flowgate_engine::lists::{List, ListDef};

use dict::Dicts;
use piece::Piece;
use result::Results;
use rule::{Context, KoalaRule, PlacedRule};
use sections::Sections;

/// A Koala rule file without mistakes.
///
/// ```
/// use flowgate_engine::config::Input;
/// use flowgate_koala::KoalaFile;
///
/// let text = "[rules]\nrule : [count] [act=ask; qid=+] [time=60; count=5] [result=2; return=111]\n\
///             [result]\n2 : { \"Ret_type\":2, \"Err_no\":10, \"Str_reason\":\"Deny\" }\n";
/// let loaded = KoalaFile::load(Input::Text { name: "koala_rule.conf", base: "".as_ref(), text }, "Asia/Shanghai")?;
/// assert_eq!(loaded.file.policy().rules[0].name, "koala-111");
/// # Ok::<(), flowgate_engine::config::Report>(())
/// ```
#[derive(Clone, Debug)]
pub struct KoalaFile {
    name: String,
    /// The file's text.
    pub text: Arc<str>,
    /// The zone whose midnight ends a day.
    tz: TimeZone,
    dicts: Vec<ListDef>,
    lists: BTreeMap<String, Arc<List>>,
    rules: Vec<KoalaRule>,
    results: BTreeMap<u32, KoalaResult>,
}

/// A rule file without mistakes, and how it was read.
#[derive(Clone, Debug)]
pub struct LoadedKoala {
    /// The file.
    pub file: KoalaFile,
    /// Warnings only: a file with mistakes is not loaded.
    pub warnings: Report,
    /// The files that were read: the rule file and its dicts. If one of them changes, the rules may change.
    pub origins: Vec<Origin>,
}

impl KoalaFile {
    /// Reads a rule file. `tz` is the zone whose midnight ends a day. ([`Input::Defaults`] is a file without rules.)
    ///
    /// # Errors
    /// All mistakes that were found, each with its place, and [what they were found in](Report::origins).
    pub fn load(input: Input<'_>, tz: &str) -> Result<LoadedKoala, Report> {
        let mut report = Report::default();
        let file = read(&mut report, input, tz);
        report.sort();
        match file {
            Some(file) if !report.has_errors() => {
                let origins = report.origins.to_vec();
                Ok(LoadedKoala { file, warnings: report, origins })
            }
            _ => Err(report),
        }
    }

    /// Reads a text in place of this file: by its name, from its directory, in its zone. Findings repeat nothing of the
    /// dicts, so the sender of a text cannot read a file by naming it as a dict.
    ///
    /// # Errors
    /// The same as for [`KoalaFile::load`].
    pub fn check(&self, text: &str) -> Result<LoadedKoala, Report> {
        let input = Input::Text { name: &self.name, base: Path::new(""), text };
        let loaded = KoalaFile::load(input, self.tz.name()).map_err(Report::confined_to_text)?;
        Ok(LoadedKoala { warnings: loaded.warnings.confined_to_text(), ..loaded })
    }

    /// Whether the file at a path is one of Koala's: it begins with a section of theirs, which no configuration has, or
    /// it is the main configuration, which [`KoalaFile::load`] refuses by name.
    pub fn is_at(path: &Path) -> bool {
        let Ok(start) = read_file(path, MAX_CONFIG_BYTES) else { return false };
        let text = String::from_utf8_lossy(&start);
        let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        let is_section =
            |line: &str| ["[dicts]", "[rules]", "[result]"].iter().any(|name| line.eq_ignore_ascii_case(name));
        let mut report = Report::default();
        let source = report.add_file("", Path::new(""), text.to_string());
        first.is_some_and(is_section) || main_configuration::refuse(&mut report, Piece::whole(source, &text))
    }

    /// The rule file of a configuration that [`load_config`] has read; `None`: it names none.
    pub fn from_config(config: &Config) -> Option<&KoalaFile> {
        config.koala_file.as_ref()?.downcast_ref()
    }

    /// The rules as a policy of the engine, with the dicts as lists.
    pub fn policy(&self) -> Policy {
        let rules = self.rules.iter().map(|rule| rule.def.clone()).collect();
        // Koala compares paths as clients send them.
        Policy { rules, lists: self.lists.clone(), path_spelling: PathSpelling::ignoring([]) }
    }

    /// The number of rules.
    pub fn number_of_rules(&self) -> usize {
        self.rules.len()
    }

    /// The number of dicts.
    pub fn dicts(&self) -> usize {
        self.dicts.len()
    }
}

/// Reads a configuration and the Koala rule file that it names: the mistakes of both are reported together.
///
/// # Errors
/// The same as for [`load_with`].
pub fn load_config(
    input: Input<'_>,
    environment: impl IntoIterator<Item = (String, String)>,
    options: Options<'_>,
) -> Result<LoadedConfig, Report> {
    load_with(input, environment, Options { rule_file: Some(read_rule_file), ..options })
}

/// Like [`Config::from_toml`], with the Koala rule file that the configuration names.
///
/// # Errors
/// All mistakes that were found.
pub fn config_from_toml(text: &str) -> Result<Config, Report> {
    let input = Input::Text { name: "flowgate.toml", base: Path::new(""), text };
    load_config(input, [], Options::default()).map(|loaded| loaded.config)
}

fn read_rule_file(report: &mut Report, path: &Path, tz: &str) -> Option<RuleFile> {
    read(report, Input::File(path), tz).map(|file| Arc::new(file) as RuleFile)
}

/// Reads a rule file and reports its mistakes.
fn read(report: &mut Report, input: Input<'_>, tz: &str) -> Option<KoalaFile> {
    let Some(zone) = TimeZone::named(tz) else {
        return report.error_anywhere(format!("there is no time zone {}", quoted(tz))).refuse();
    };
    let (name, path, text) = match input {
        Input::Defaults => (String::new(), absolute(Path::new("")), String::new()),
        Input::Text { name, base, text } => (name.to_owned(), absolute(base).join(name), text.to_owned()),
        Input::File(path) => {
            let (name, path) = (path.display().to_string(), absolute(path));
            match front::read(report, &path, MAX_CONFIG_BYTES) {
                Ok(text) => (name, path, text),
                Err(cause) => {
                    return report.error_anywhere(format!("cannot read {name}: {cause}")).refuse();
                }
            }
        }
    };
    let base = front::directory(&path);
    let source = report.add_file(&name, &base, text.clone());
    let whole = Piece::whole(source, &text);
    if main_configuration::refuse(report, whole) || flowgate_configuration::refuse(report, &name, whole) {
        return None;
    }
    let sections = Sections::read(report, whole);
    let dicts = Dicts::read(report, &sections.dicts, &base);
    let results = Results::read(report, &sections.results);
    let context = Context { dicts: &dicts, results: &results, tz };
    let mut rules: Vec<PlacedRule> = Vec::new();
    let mut known = BTreeMap::new();
    for line in &sections.rules {
        let Some(rule) = rule::read(report, line, &context) else { continue };
        match known.get(&rule.rule.number) {
            Some(&first) => {
                let message = format!("another rule has the return {}", rule.rule.number);
                report.error(rule.number_at, message).place("it is at", first).done();
            }
            None => _ = known.insert(rule.rule.number, rule.number_at),
        }
        rules.push(rule);
    }
    let rules: Vec<KoalaRule> = rules.into_iter().map(|rule| rule.rule).collect();
    let Dicts { defs, loaded, .. } = dicts;
    let file =
        KoalaFile { name, text: text.into(), tz: zone, dicts: defs, lists: loaded, rules, results: results.by_number };
    if !report.has_errors() {
        rules::check(report, &file);
    }
    Some(file)
}
