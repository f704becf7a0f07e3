//! `[lists]`: named sets of texts and addresses, in the configuration or in files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::files;
use super::name;
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::table_reader::{self, TableReader};
use super::tree::{Node, Table, TableEntry};
use super::value;
use super::writer::{self, Writer};
use crate::lists::{List, ListDef, ListError, ListSource};

/// The largest list file: ten million addresses fit.
pub const MAX_LIST_BYTES: u64 = 256 << 20;

/// The lists that were read.
#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) defs: Vec<ListDef>,
    pub(crate) loaded: BTreeMap<String, Arc<List>>,
    /// Every name with its place, also of lists with mistakes: a rule that refers to one is not a second mistake.
    pub(crate) names: BTreeMap<String, Location>,
}

impl Lists {
    pub(crate) fn read(report: &mut Report, table: Option<&Table>) -> Lists {
        let mut lists = Lists::default();
        for entry in table.into_iter().flat_map(|table| &table.entries) {
            lists.names.insert(entry.key.clone(), entry.key_at);
            if !name::check(report, &entry.key, entry.key_at, "a list") {
                continue;
            }
            if let Some((source, list)) = read_one(report, entry) {
                lists.defs.push(ListDef { name: entry.key.clone(), source });
                lists.loaded.insert(entry.key.clone(), Arc::new(list));
            }
        }
        lists
    }

    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }
}

fn read_one(report: &mut Report, entry: &TableEntry) -> Option<(ListSource, List)> {
    const FORMS: &str = "write { values = [\"7\", \"42\"] } or { file = \"list.txt\" }";
    let table = table_reader::table(report, &entry.node, &format!("the list {}", quoted(&entry.key)), FORMS)?;
    let before = report.errors();
    let mut fields = TableReader::new("a list", table);
    let values = fields.entry("values");
    let file = fields.entry("file");
    fields.finish(report);
    // An unknown key is probably one of the two, mistyped.
    if report.errors() > before {
        return None;
    }
    match (values, file) {
        (Some(values), None) => from_values(report, &values.node),
        (None, Some(file)) => from_file(report, &file.node),
        (None, None) => {
            let message = format!("the list {} has neither values nor a file", quoted(&entry.key));
            report.error(entry.node.at, message).hint(FORMS).done();
            None
        }
        (Some(_), Some(file)) => {
            let hint = "keep one of the two";
            report.error(file.key_at, "\"values\" and \"file\" exclude each other").hint(hint).done();
            None
        }
    }
}

fn from_values(report: &mut Report, node: &Node) -> Option<(ListSource, List)> {
    let before = report.errors();
    let items = value::list(report, node, |report, item| {
        value::full_text(report, item).map(|text| (text.to_owned(), item.at))
    })?;
    let (values, places): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    match List::from_values(values.iter().map(String::as_str)) {
        Ok(list) => (report.errors() == before).then_some((ListSource::Values(values), list)),
        Err(error) => {
            // Positions count from 1.
            let at = places.get(error.line() - 1).copied().unwrap_or(node.at);
            report.error(at, wrong_entry(&error)).done();
            None
        }
    }
}

fn from_file(report: &mut Report, node: &Node) -> Option<(ListSource, List)> {
    value::full_text(report, node)?;
    let path = value::path(report, node)??;
    let text = match files::read(report, &path, MAX_LIST_BYTES) {
        Ok(text) => text,
        Err(cause) => {
            let hint = "the path starts from the file that names it";
            report.error(node.at, format!("cannot read {}: {cause}", path.display())).hint(hint).done();
            return None;
        }
    };
    match List::parse(&text) {
        Ok(list) => Some((ListSource::File(path), list)),
        Err(error) => {
            let place = format!("{}:{}", path.display(), error.line());
            let discreet = format!("{place}: expected {}", error.expected());
            report.error(node.at, format!("{place}: {}", wrong_entry(&error))).discreet(discreet).done();
            None
        }
    }
}

/// What is wrong with an entry of a list.
pub fn wrong_entry(error: &ListError) -> String {
    format!("expected {}, found {}", error.expected(), quoted(error.found()))
}

pub(crate) fn write(defs: &[ListDef], out: &mut Writer) {
    if defs.is_empty() {
        return;
    }
    out.section("lists");
    for def in defs {
        let inner = match &def.source {
            ListSource::Values(values) => format!("{{ values = {} }}", writer::list(values)),
            ListSource::File(path) => format!("{{ file = {} }}", writer::string(&files::shown(Some(path)))),
        };
        out.raw(&def.name, inner);
    }
}
