//! Environment variables, which override files: `FLOWGATE_STORE__URL` is the key `url` of `[store]`. Options of a
//! command line override both.
//!
//! A variable or an option becomes an entry of the tree with a place of its own, so it is read, checked and reported
//! like a key of a file. Rules and lists are set in files only.

use super::SECTIONS;
use super::report::Report;
use super::source::{Location, SourceKind};
use super::suggest::nearest;
use super::tree::{Node, Table, TableEntry, Value};

/// An option of a command line that sets a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flag {
    /// The option, such as `--http`.
    pub name: &'static str,
    /// The section of the key.
    pub section: &'static str,
    /// The key that it sets.
    pub key: &'static str,
    /// The value.
    pub value: String,
}

const PREFIX: &str = "FLOWGATE_";

/// Variables that are not settings: the path of the configuration file, the directory of the console during
/// development, the variables of the command line's client, and one variable of the build.
const FOREIGN_NAMES: [&str; 6] = [
    "FLOWGATE_CONFIG",
    "FLOWGATE_CONSOLE_DIR",
    "FLOWGATE_VERSION",
    "FLOWGATE_SERVER",
    "FLOWGATE_TOKEN",
    "FLOWGATE_RESP",
];

/// Puts the variables into the tree, over the files. Variables of other programs are ignored.
pub(crate) fn overlay(report: &mut Report, root: &mut Table, variables: impl IntoIterator<Item = (String, String)>) {
    let mut ours: Vec<_> = variables.into_iter().filter(|(name, _)| is_ours(name)).collect();
    // The order of an environment is arbitrary, and reports should be the same in each run.
    ours.sort();
    for (name, value) in ours {
        let source = report.sources.add_variable(&name, &value);
        let value_at = Location::new(source, name.len() + 1..name.len() + 1 + value.len());
        let rest = name[PREFIX.len()..].to_ascii_lowercase();
        let (section, key) = match rest.split_once("__") {
            Some((section, key)) if SECTIONS.contains(&section) => (section.to_owned(), key.to_owned()),
            _ => {
                // The meaning of the variable is unknown, so its value may be a secret.
                report.sources.hide(value_at);
                let name_at = Location::new(source, 0..name.len());
                report.error(name_at, format!("unknown environment variable {name}")).hint(better_name(&rest)).done();
                continue;
            }
        };
        let key_at = Location::new(source, name.len() - key.len()..name.len());
        let node = Node { at: value_at, value: Value::Untyped(value) };
        set(report, root, &section, TableEntry { key, key_at, node });
    }
}

/// Puts the options into the tree, over files and variables.
pub(crate) fn overlay_flags(report: &mut Report, root: &mut Table, flags: &[Flag]) {
    for Flag { name, section, key, value } in flags {
        let source = report.sources.add_flag(name, value);
        let node = Node {
            at: Location::new(source, name.len() + 1..name.len() + 1 + value.len()),
            value: Value::Untyped(value.clone()),
        };
        let key_at = Location::new(source, 0..name.len());
        set(report, root, section, TableEntry { key: (*key).to_owned(), key_at, node });
    }
}

fn set(report: &Report, root: &mut Table, section: &str, entry: TableEntry) {
    let name_at = Location { start: 0, ..entry.key_at };
    if root.get(section).is_none() {
        let node = Node { at: name_at, value: Value::Table(Table::default()) };
        root.set(TableEntry { key: section.to_owned(), key_at: name_at, node });
    }
    // A section that is not a table is a mistake of the file, and is reported there.
    let Some(Value::Table(table)) = root.get_mut(section).map(|entry| &mut entry.node.value) else { return };
    // A secret and its file exclude each other within the files. Here the variable replaces both.
    let other = match entry.key.strip_suffix("_file") {
        Some(value_key) => value_key.to_owned(),
        None => format!("{}_file", entry.key),
    };
    let in_file = |other: &TableEntry| report.sources.get(other.key_at.source).kind == SourceKind::File;
    table.entries.retain(|known| known.key != other || !in_file(known));
    table.set(entry);
}

fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX) && !FOREIGN_NAMES.contains(&name) && !is_from_kubernetes(&name[PREFIX.len()..])
}

/// Kubernetes sets variables such as `FLOWGATE_PORT`, `FLOWGATE_SERVICE_HOST` or `FLOWGATE_PORT_7070_TCP_ADDR` in every
/// container if a service is called `flowgate`. No key has such a name.
fn is_from_kubernetes(rest: &str) -> bool {
    let is_port = |(at, _): (usize, &str)| {
        let starts_word = at == 0 || rest[..at].ends_with('_');
        let after = &rest[at + "PORT".len()..];
        starts_word && (after.is_empty() || after.starts_with('_'))
    };
    rest.ends_with("SERVICE_HOST") || rest.match_indices("PORT").any(is_port)
}

/// The variable that was probably meant.
fn better_name(rest: &str) -> String {
    let (written, key) = match rest.split_once("__") {
        Some(parts) => parts,
        // One underscore instead of two is the usual mistake.
        None => rest.split_once('_').unwrap_or((rest, "")),
    };
    if ["rule", "rules", "list", "lists", "include"].contains(&written) {
        return "rules, lists and includes are set in files only".to_owned();
    }
    let section = nearest(written, SECTIONS);
    match section {
        Some(section) if !key.is_empty() => {
            format!("did you mean {PREFIX}{}__{}?", section.to_uppercase(), key.to_uppercase())
        }
        _ => format!("a variable is {PREFIX}SECTION__KEY with two underscores, such as FLOWGATE_STORE__URL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_variables_are_passed_over() {
        for name in [
            "PATH",
            "FLOWGATE",
            "FLOWGATE_CONFIG",
            "FLOWGATE_PORT",
            "FLOWGATE_PORT_7070_TCP",
            "FLOWGATE_PORT_7070_TCP_ADDR",
            "FLOWGATE_SERVICE_HOST",
            "FLOWGATE_SERVICE_PORT",
            "FLOWGATE_SERVICE_PORT_HTTP",
            "FLOWGATE_REDIS_SERVICE_HOST",
            "FLOWGATE_REDIS_PORT_6379_TCP",
        ] {
            assert!(!is_ours(name), "{name}");
        }
        for name in ["FLOWGATE_STORE__URL", "FLOWGATE_STORE_URL", "FLOWGATE_X", "FLOWGATE_SUPPORT"] {
            assert!(is_ours(name), "{name}");
        }
    }

    #[test]
    fn the_usual_slips_get_a_hint() {
        let check = |rest, hint: &str| assert_eq!(better_name(rest), hint);
        check("store_url", "did you mean FLOWGATE_STORE__URL?");
        check("stoer__url", "did you mean FLOWGATE_STORE__URL?");
        check("store__type", "did you mean FLOWGATE_STORE__TYPE?");
        check("rule__name", "rules, lists and includes are set in files only");
        assert!(better_name("x").starts_with("a variable is"));
    }
}
