//! A Koala rule file as Flowgate's TOML.
//!
//! Rule       A `peek` by the TOML passes, or is denied by the same rule, as Koala's browse answers after the same
//!            counted history; a `record` counts as Koala's update, unless a direct rule matches: Koala counts the
//!            rules below it, too. The counters have the same names, so both may count side by side on one store.
//! Rule       What cannot be said in TOML is said in a comment: a rule that answers a pass when it is exceeded, what
//!            feedback gives back, the length and the type of a captcha.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use flowgate::Limit;
use flowgate_engine::Limits;
use flowgate_engine::front::{is_name, toml_key, toml_list, toml_string, write_conditions};
use flowgate_engine::lists::ListSource;
use flowgate_engine::rules::{Condition, Matcher};

use super::KoalaFile;
use super::result::{KoalaCaptcha, KoalaResult};
use super::rule::{KoalaRule, Method};

const HEAD: &str = "\
#
# A peek by these rules answers as /rule/browse does, a record counts as /rule/update does. A take is both in one step:
# it counts what passes, and nothing when it denies. docs/koala.md tells what else differs.
";

/// What an operator can do instead of `erase1` and `erase2`.
const REFUND_INSTEAD: &str =
    "a caller gives units back by a refund of that cost, which holds for every limit of the request";

impl KoalaFile {
    /// The same policy as TOML, with a comment on the origin of each rule. The TOML is meant for `directory`: a dict
    /// beneath it has a path relative to it, any other dict has its whole path.
    pub fn to_toml(&self, directory: &Path) -> String {
        let mut out = format!("# From {}, by `flowgate import koala`.\n{HEAD}", one_line(&self.name));
        let names = self.list_names();
        if !self.dicts.is_empty() {
            out.push_str("\n[lists]\n");
        }
        for dict in &self.dicts {
            let ListSource::File(path) = &dict.source else { continue };
            let path = path.strip_prefix(directory).unwrap_or(path);
            let file = toml_string(&path.display().to_string());
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "{} = {{ file = {file}, kind = \"mixed\" }}", toml_key(&names[dict.name.as_str()]));
        }
        for rule in &self.rules {
            self.write_rule(&mut out, rule, &names);
        }
        out
    }

    /// What the TOML cannot express, one sentence for each rule and loss.
    pub fn inexpressible(&self) -> Vec<String> {
        let mut losses = Vec::new();
        for rule in &self.rules {
            let number = rule.number;
            if self.passes_when_exceeded(rule) {
                losses.push(format!("rule {number} answers a pass when it is exceeded; the TOML has it as a shadow"));
            }
            if let Some(erased) = erased(rule) {
                losses.push(format!("rule {number} has {erased}, which the TOML leaves out; {REFUND_INSTEAD}"));
            }
        }
        losses
    }

    fn passes_when_exceeded(&self, rule: &KoalaRule) -> bool {
        let limited = matches!(&rule.def.limits, Limits::Fixed(limits) if limits[0].rate().is_some());
        limited && self.results.get(&rule.result).is_some_and(|result| result.passes())
    }

    /// A name for each dict that is valid as a list's name.
    fn list_names(&self) -> BTreeMap<&str, String> {
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        for dict in &self.dicts {
            let fitting = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
            let mut wanted: String = dict.name.chars().take(100).map(fitting).collect();
            if !is_name(&wanted) {
                wanted = "dict".to_owned();
            }
            let is_taken = |name: &String| names.values().any(|known| known == name);
            let numbered = (2..).map(|number| format!("{wanted}-{number}"));
            let free = std::iter::once(wanted.clone()).chain(numbered).find(|name| !is_taken(name));
            names.insert(&dict.name, free.unwrap_or(wanted));
        }
        names
    }

    fn write_rule(&self, out: &mut String, rule: &KoalaRule, names: &BTreeMap<&str, String>) {
        out.push('\n');
        for line in rule.comment.iter().map(|line| line.trim_matches('#').trim()).filter(|line| !line.is_empty()) {
            let _ = writeln!(out, "# {}", one_line(line));
        }
        let _ = writeln!(out, "# {}", one_line(&rule.written));
        if matches!(&rule.def.limits, Limits::Fixed(limits) if limits[..] == [Limit::unlimited()]) {
            out.push_str("# count=0: never exceeded.\n");
        }
        let def = &rule.def;
        if let Some(captcha) = self.results.get(&rule.result).and_then(KoalaResult::captcha) {
            let KoalaCaptcha { length, kind } = captcha;
            let _ = writeln!(
                out,
                "# The captcha: Vcode_len {length}, Vcode_type {kind}. The caller must know that itself."
            );
        }
        if let Some(erased) = erased(rule) {
            let _ = writeln!(out, "# Left out: {erased}; {REFUND_INSTEAD}.");
        }
        let shadow = self.passes_when_exceeded(rule);
        if shadow {
            out.push_str(
                "# Exceeded, Koala answers a pass and asks no further rule. Here it is a shadow: it never denies.\n",
            );
        }
        let conditions: Vec<Condition> = def.when.iter().map(|condition| renamed(condition, names)).collect();
        let _ = writeln!(out, "[[rule]]\nname = {}", toml_string(&def.name));
        let _ = writeln!(out, "when = {}", write_conditions(&conditions));
        if let Limits::Fixed(limits) = &def.limits {
            if !def.by.is_empty() {
                let _ = writeln!(out, "by = {}", toml_list(&def.by));
            }
            let _ = writeln!(out, "limits = {}", toml_list(limits.iter().map(ToString::to_string)));
        }
        let _ = writeln!(out, "action = {}", toml_string(def.action.as_str()));
        let _ = writeln!(out, "code = {}", rule.number);
        if let Some(message) = &def.message {
            let _ = writeln!(out, "message = {}", toml_string(message));
        }
        if shadow {
            out.push_str("shadow = true\n");
        }
    }
}

/// The rule's `erase1` and `erase2`, as they are written; `None`: feedback gives nothing back.
fn erased(rule: &KoalaRule) -> Option<String> {
    let set = ["erase1", "erase2"].into_iter().zip(rule.erase).filter(|(_, units)| *units > 0);
    let written: Vec<String> = set.map(|(name, units)| format!("{name}={units}")).collect();
    Some(written.join(" and ")).filter(|_| rule.method == Method::Leak && !written.is_empty())
}

fn renamed(condition: &Condition, names: &BTreeMap<&str, String>) -> Condition {
    let matcher = match &condition.matcher {
        Matcher::List(name) => list_matcher(name, names),
        Matcher::Not(inner) => match &**inner {
            Matcher::List(name) => Matcher::Not(Box::new(list_matcher(name, names))),
            _ => condition.matcher.clone(),
        },
        other => other.clone(),
    };
    Condition::new(condition.field.clone(), matcher)
}

fn list_matcher(name: &str, names: &BTreeMap<&str, String>) -> Matcher {
    Matcher::List(names.get(name).map_or(name, String::as_str).into())
}

/// Makes a text fit into one comment line of TOML.
fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() && char != '\t' { ' ' } else { char }).collect()
}
