//! `include = ["rules.d/*.toml"]`: the files that a configuration names, and how they are joined.
//!
//! Patterns start from the including file. The files of a pattern come in the order of their names, each once;
//! their rules follow those of the including file. Included files include nothing themselves.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::files::{self, MAX_CONFIG_BYTES};
use super::origin::{self, Origin};
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::tree::{self, Node, Table, TableEntry, Value};
use super::value;
use crate::rules::glob;

/// The most files of one configuration.
const MAX_INCLUDED_FILES: usize = 1000;

/// A configuration file that is being read.
#[derive(Clone, Debug)]
pub(crate) struct FilePath {
    /// The path in reports.
    pub(crate) shown: PathBuf,
    /// The absolute path.
    pub(crate) real: PathBuf,
}

impl FilePath {
    /// The tree of the file's text.
    pub(crate) fn parse(&self, report: &mut Report, text: &str) -> Table {
        tree::read_file(report, self.shown.display().to_string(), &files::directory(&self.real), text)
    }

    fn beside(&self, relative: &Path) -> FilePath {
        FilePath {
            shown: files::directory(&self.shown).join(relative),
            real: files::directory(&self.real).join(relative),
        }
    }
}

/// Reads the files of `include` and joins them to the root.
pub(crate) fn join(report: &mut Report, root: &mut Table, main: &FilePath) {
    let Some(include) = root.take("include") else { return };
    let patterns = value::list(report, &include.node, |report, node| {
        value::full_text(report, node).map(|text| (text.to_owned(), node.clone()))
    });
    let mut seen: HashSet<PathBuf> = HashSet::new();
    seen.extend(main.real.canonicalize());
    let mut files = 0;
    for (pattern, node) in patterns.unwrap_or_default() {
        for file in matching(report, main, &pattern, &node) {
            let is_new = file.real.canonicalize().map_or(true, |real| seen.insert(real));
            if !is_new {
                continue;
            }
            if files == MAX_INCLUDED_FILES {
                report.error(node.at, format!("more than {MAX_INCLUDED_FILES} files")).done();
                return;
            }
            if let Some(table) = read(report, &file, &node) {
                merge(report, root, table);
            }
            files += 1;
        }
    }
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The files that a pattern names, in the order of their names.
fn matching(report: &mut Report, main: &FilePath, pattern: &str, node: &Node) -> Vec<FilePath> {
    let path = Path::new(pattern);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let directory = files::directory(path);
    if has_wildcard(&directory.to_string_lossy()) {
        let hint = "name the directory, as in \"rules.d/*.toml\"";
        report.error(node.at, "* and ? stand in the last part of a pattern only").hint(hint).done();
        return Vec::new();
    }
    if !has_wildcard(name) {
        return vec![main.beside(path)];
    }
    let looked_into = main.beside(&directory).real;
    let entries = origin::entry_names(&looked_into).ok();
    // A new file in the directory is a change of the configuration, too.
    report.add_origin(Origin::directory(&looked_into, entries.as_deref()));
    let mut names: Vec<_> = entries.into_iter().flatten().filter_map(|name| String::from_utf8(name).ok()).collect();
    names.retain(|candidate: &String| {
        // As in a shell, a wildcard skips hidden files, which may be half-written copies of editors.
        let hidden = candidate.starts_with('.') && !name.starts_with('.');
        !hidden && fits(name, candidate)
    });
    if names.is_empty() {
        let shown = main.beside(path).shown;
        report.warning(node.at, format!("no file is called {}", shown.display())).done();
    }
    names.into_iter().map(|name| main.beside(&directory.join(name))).collect()
}

/// True if a name fits a pattern with `*` and `?`.
fn fits(pattern: &str, name: &str) -> bool {
    glob::matches(pattern.as_bytes(), name.as_bytes(), |wanted, found| wanted == b'?' || wanted == found)
}

fn read(report: &mut Report, file: &FilePath, node: &Node) -> Option<Table> {
    match files::read(report, &file.real, MAX_CONFIG_BYTES) {
        Ok(text) => Some(file.parse(report, &text)),
        Err(cause) => report.error(node.at, format!("cannot read {}: {cause}", file.shown.display())).refuse(),
    }
}

/// Adds an included file: its rules after the rules so far, its lists, and its sections. A section must not exist
/// already.
fn merge(report: &mut Report, root: &mut Table, included: Table) {
    for entry in included.entries {
        if entry.key == "include" {
            let hint = "name the file in the main file's include";
            report.error(entry.key_at, "an included file cannot include others").hint(hint).done();
            continue;
        }
        let Some(known) = root.get_mut(&entry.key) else {
            root.set(entry);
            continue;
        };
        match (&mut known.node.value, entry) {
            (Value::Array(rules), TableEntry { key, node: Node { value: Value::Array(more), .. }, .. })
                if key == "rule" =>
            {
                rules.extend(more);
            }
            (Value::Table(lists), TableEntry { key, node: Node { value: Value::Table(more), .. }, .. })
                if key == "lists" =>
            {
                merge_lists(report, lists, more);
            }
            (_, entry) => {
                let message = format!("{} is given twice", quoted(&entry.key));
                let hint = "a section stands in one file, whole";
                let first = known.key_at;
                report.error(entry.key_at, message).hint(hint).place("the first one is at", first).done();
            }
        }
    }
}

fn merge_lists(report: &mut Report, lists: &mut Table, more: Table) {
    let known: HashMap<String, Location> =
        lists.entries.iter().map(|entry| (entry.key.clone(), entry.key_at)).collect();
    for entry in more.entries {
        match known.get(&entry.key) {
            Some(&first) => {
                let message = format!("the list {} is given twice", quoted(&entry.key));
                report.error(entry.key_at, message).place("the first one is at", first).done();
            }
            // Within a file each name is unique, so entries that were added here need no comparison.
            None => lists.entries.push(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_match_file_names() {
        for (pattern, name) in [("*.toml", "a.toml"), ("a*b*c", "aXbXbc"), ("?.t", "a.t"), ("*", ""), ("**", "x")] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.toml", "a.tom"), ("?", ""), ("a", "ab"), ("a*b", "ac"), ("", "x")] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
        assert!(!fits(&"*a".repeat(50), &"a".repeat(5000).replace('a', "aab")));
    }
}
