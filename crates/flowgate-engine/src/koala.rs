//! Koala compatibility: its rule file, decided by the engine.
//!
//! ```text
//! rule file -> sections -> dicts, results, rules (each with its place) -> KoalaFile -> KoalaRules
//! ```
//!
//! [`KoalaFile`] reads the whole language, old and new spellings, and reports all mistakes at once, as the
//! configuration does. [`KoalaRules`] is the file in force on a store. How Koala decides differs from the engine's own
//! evaluation, but not what its rules count: they are limits of the engine on counters of the same store.
//!
//! `docs/koala.md` tells users about it; `testdata/koala` shows every message.

mod browse;
mod condition;
mod dict;
mod flat_object;
mod import;
mod numbers;
mod piece;
mod result;
mod rule;
mod sections;
mod tally;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use flowgate::Limit;

pub use browse::{KoalaAnswer, KoalaAsk, KoalaErase, KoalaPlan, KoalaRules};
pub use result::{KoalaResult, KoalaValue};
pub use tally::{KoalaTally, RuleTally};

use crate::config::files::{self, MAX_CONFIG_BYTES};
use crate::config::load::absolute;
use crate::config::render::quoted;
use crate::config::report::Report;
use crate::config::{Input, Origin};
use crate::http::PathSpelling;
use crate::lists::{List, ListDef};
use crate::rules::Policy;
use dict::Dicts;
use piece::Piece;
use result::Results;
use rule::{Context, KoalaRule, PlacedRule};
use sections::Sections;

/// A Koala rule file that is right as a whole.
///
/// ```
/// use flowgate_engine::KoalaFile;
/// use flowgate_engine::config::Input;
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
    text: Arc<str>,
    tz: String,
    dicts: Vec<ListDef>,
    lists: BTreeMap<String, Arc<List>>,
    rules: Vec<KoalaRule>,
    results: BTreeMap<u32, KoalaResult>,
}

/// A rule file that can be used.
#[derive(Clone, Debug)]
pub struct LoadedKoala {
    /// The file.
    pub file: KoalaFile,
    /// What looks wrong; no mistakes.
    pub warnings: Report,
    /// What it was made of: the rule file and its dicts. When one of them changes, so may the rules.
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
                let origins = report.origins().to_vec();
                Ok(LoadedKoala { file, warnings: report, origins })
            }
            _ => Err(report),
        }
    }

    /// The rules as the engine's, with the dicts as lists.
    pub fn policy(&self) -> Policy {
        let rules = self.rules.iter().map(|rule| rule.def.clone()).collect();
        // Koala compares what it is sent.
        Policy { rules, lists: self.lists.clone(), path_spelling: PathSpelling::ignoring([]) }
    }

    /// The file's text.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// How many dicts there are.
    pub fn dicts(&self) -> usize {
        self.dicts.len()
    }
}

/// Reads a rule file; mistakes are reported.
pub(crate) fn read(report: &mut Report, input: Input<'_>, tz: &str) -> Option<KoalaFile> {
    if format!("fixed 1/day tz={tz}").parse::<Limit>().is_err() {
        report.error_anywhere(format!("there is no time zone {}", quoted(tz))).done();
        return None;
    }
    let (name, path, text) = match input {
        Input::Defaults => (String::new(), absolute(Path::new("")), String::new()),
        Input::Text { name, base, text } => (name.to_owned(), absolute(base).join(name), text.to_owned()),
        Input::File(path) => {
            let (name, path) = (path.display().to_string(), absolute(path));
            match files::read(report, &path, MAX_CONFIG_BYTES) {
                Ok(text) => (name, path, text),
                Err(cause) => {
                    report.error_anywhere(format!("cannot read {name}: {cause}")).done();
                    return None;
                }
            }
        }
    };
    let base = files::directory(&path);
    let source = report.sources_mut().add_file(&name, &base, text.clone());
    let sections = Sections::read(report, Piece::whole(source, &text));
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
    let file = KoalaFile {
        name,
        text: text.into(),
        tz: tz.to_owned(),
        dicts: defs,
        lists: loaded,
        rules,
        results: results.by_number,
    };
    if !report.has_errors() {
        browse::check(report, &file);
    }
    Some(file)
}
