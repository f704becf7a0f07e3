//! `[lists]`: named sets of texts and addresses, in the configuration or in files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::files;
use super::name;
use super::render::quoted;
use super::report::Report;
use super::source::Location;
use super::table_reader::{self, TableReader};
use super::tree::{Node, Table, TableEntry};
use super::value;
use super::when;
use super::writer::{self, Writer};
use crate::bans::ADDRESS_FIELD;
use crate::lists::{List, ListDef, ListError, ListErrors, ListKind, ListSource};

/// The largest list file: ten million addresses fit.
pub const MAX_LIST_BYTES: u64 = 256 << 20;

/// The lists that were read.
#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) defs: Vec<ListDef>,
    pub(crate) loaded: BTreeMap<String, Arc<List>>,
    /// The place of every name, including lists with mistakes: a rule that refers to such a list is not reported as a
    /// second mistake.
    pub(crate) names: BTreeMap<String, Location>,
}

impl Lists {
    /// Reads the lists. The rules say which of them hold addresses.
    pub(crate) fn read(report: &mut Report, table: Option<&Table>, rules: Option<&TableEntry>) -> Lists {
        let mut lists = Lists::default();
        let of_addresses = rules.map(|rules| when::lists_of(ADDRESS_FIELD, &rules.node)).unwrap_or_default();
        for entry in table.into_iter().flat_map(|table| &table.entries) {
            lists.names.insert(entry.key.clone(), entry.key_at);
            if !name::check(report, &entry.key, entry.key_at, "a list") {
                continue;
            }
            let use_at = of_addresses.get(entry.key.as_str()).copied();
            if let Some((source, kind, list)) = read_one(report, entry, use_at) {
                lists.defs.push(ListDef { name: entry.key.clone(), source, kind });
                lists.loaded.insert(entry.key.clone(), Arc::new(list));
            }
        }
        lists
    }

    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }
}

const KINDS: [(&str, ListKind); 2] =
    [(ListKind::Mixed.as_str(), ListKind::Mixed), (ListKind::Addresses.as_str(), ListKind::Addresses)];

/// What the entries of a list must be, and the reason.
#[derive(Clone, Copy)]
struct Kind {
    written: Option<ListKind>,
    /// The place of a condition on addresses that uses the list.
    use_at: Option<Location>,
}

impl Kind {
    fn kind(self) -> ListKind {
        let by_use = if self.use_at.is_some() { ListKind::Addresses } else { ListKind::Mixed };
        self.written.unwrap_or(by_use)
    }
}

/// `use_at`: the place of a condition on addresses that uses the list.
fn read_one(
    report: &mut Report,
    entry: &TableEntry,
    use_at: Option<Location>,
) -> Option<(ListSource, Option<ListKind>, List)> {
    const FORMS: &str = "write { values = [\"7\", \"42\"] } or { file = \"list.txt\" }";
    let table = table_reader::table(report, &entry.node, &format!("the list {}", quoted(&entry.key)), FORMS)?;
    let before = report.errors();
    let mut fields = TableReader::new("a list", table);
    let values = fields.entry("values");
    let file = fields.entry("file");
    let written = fields.read(report, "kind", |report, node| value::word(report, node, &KINDS));
    fields.finish(report);
    // An unknown key is probably one of them, mistyped.
    if report.errors() > before {
        return None;
    }
    let kind = Kind { written, use_at };
    let (source, list) = match (values, file) {
        (Some(values), None) => from_values(report, &values.node, kind)?,
        (None, Some(file)) => from_file(report, &file.node, kind)?,
        (None, None) => {
            let message = format!("the list {} has neither values nor a file", quoted(&entry.key));
            return report.error(entry.node.at, message).hint(FORMS).refuse();
        }
        (Some(_), Some(file)) => {
            let hint = "keep one of the two";
            return report.error(file.key_at, "\"values\" and \"file\" exclude each other").hint(hint).refuse();
        }
    };
    Some((source, written, list))
}

fn from_values(report: &mut Report, node: &Node, kind: Kind) -> Option<(ListSource, List)> {
    let before = report.errors();
    let items = value::list(report, node, |report, item| {
        value::full_text(report, item).map(|text| (text.to_owned(), item.at))
    })?;
    let (values, places): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    match List::all_from_values(values.iter().map(String::as_str), kind.kind()) {
        Ok(list) => (report.errors() == before).then_some((ListSource::Values(values), list)),
        Err(errors) => {
            // Positions count from 1.
            report_entries(report, &errors, kind, |line| places.get(line - 1).copied().unwrap_or(node.at));
            None
        }
    }
}

fn from_file(report: &mut Report, node: &Node, kind: Kind) -> Option<(ListSource, List)> {
    value::full_text(report, node)?;
    let path = value::path(report, node)??;
    let text = match files::read(report, &path, MAX_LIST_BYTES) {
        Ok(text) => text,
        Err(cause) => {
            let hint = "the path starts from the file that names it";
            return report.error(node.at, format!("cannot read {}: {cause}", path.display())).hint(hint).refuse();
        }
    };
    match List::parse_all(&text, kind.kind()) {
        Ok(list) => Some((ListSource::File(path), list)),
        Err(errors) => {
            let lines = line_places(&text, &errors);
            let source = report.add_file(path.display().to_string(), &files::directory(&path), text);
            let place = |line| lines.iter().find(|(known, _)| *known == line).map(|(_, place)| place.clone());
            report_entries(report, &errors, kind, |line| Location::new(source, place(line).unwrap_or(0..0)));
            None
        }
    }
}

/// The places of the lines with mistakes, without the blanks around them.
fn line_places(text: &str, errors: &ListErrors) -> Vec<(usize, Range<usize>)> {
    let mut wrong = errors.errors.iter().map(|error| error.line).peekable();
    let (mut places, mut start) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if wrong.next_if_eq(&number).is_some() {
            let from = start + line.len() - line.trim_start().len();
            places.push((number, from..start + line.trim_end().len()));
        }
        if wrong.peek().is_none() {
            break;
        }
        start += line.len();
    }
    places
}

/// Reports all mistakes of a list.
fn report_entries(report: &mut Report, errors: &ListErrors, kind: Kind, place: impl Fn(usize) -> Location) {
    let mut use_at = kind.use_at.filter(|_| kind.written.is_none());
    let mut hint = use_at.map(|_| ADDRESSES_ALONE);
    for error in &errors.errors {
        let mut notes = report.error(place(error.line), wrong_entry(error));
        // A mistyped address is reported, not taken as a text: as a text it would match nothing.
        if let Some(hint) = hint.take_if(|_| !is_like_an_address(&error.found)) {
            notes = notes.hint(hint);
        }
        if let Some(at) = use_at.take() {
            notes = notes.place("a condition on addresses uses it at", at);
        }
        notes.done();
    }
    report.add_dropped(errors.more);
}

fn is_like_an_address(entry: &str) -> bool {
    entry.contains(|char: char| char.is_ascii_digit()) && entry.contains(['.', ':'])
}

const ADDRESSES_ALONE: &str = "the list holds addresses; kind = \"mixed\" lets it hold texts, too";

/// What is wrong with an entry of a list.
pub fn wrong_entry(error: &ListError) -> String {
    format!("expected {}, found {}", error.expected, quoted(&error.found))
}

pub(crate) fn write(defs: &[ListDef], out: &mut Writer) {
    if defs.is_empty() {
        return;
    }
    out.section("lists");
    for def in defs {
        let source = match &def.source {
            ListSource::Values(values) => format!("values = {}", writer::list(values)),
            ListSource::File(path) => format!("file = {}", writer::string(&files::shown(Some(path)))),
        };
        let kind = def.kind.map(|kind| format!(", kind = {}", writer::string(kind.as_str()))).unwrap_or_default();
        out.raw(&def.name, format!("{{ {source}{kind} }}"));
    }
}
