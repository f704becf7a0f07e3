//! Reads the keys of one table, and reports unknown keys.

use super::message::coded;
use super::report::Report;
use super::source::SourceKind;
use super::suggest::{did_you_mean, nearest};
use super::tree::{Node, Table, TableEntry, Value};

/// The keys of a table, read one by one. A key becomes known by being read, so there is no second list of known keys
/// that could differ.
pub(crate) struct TableReader<'t> {
    /// The name of the table in messages: `[server]`, `this rule`.
    place: String,
    table: &'t Table,
    /// The known keys so far.
    pub(crate) known: Vec<&'static str>,
}

static EMPTY: Table = Table { entries: Vec::new() };

impl<'t> TableReader<'t> {
    pub(crate) fn new(place: impl Into<String>, table: &'t Table) -> TableReader<'t> {
        TableReader { place: place.into(), table, known: Vec::new() }
    }

    /// The keys of a section of the root; none if the section is absent, or is not a table, which is reported.
    pub(crate) fn section(&mut self, report: &mut Report, name: &'static str) -> TableReader<'t> {
        let place = format!("[{name}]");
        let table =
            self.entry(name).and_then(|entry| table(report, &entry.node, &place, &format!("start it with {place}")));
        TableReader::new(place, table.unwrap_or(&EMPTY))
    }

    /// The entry of that key, which becomes known.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<&'t TableEntry> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'t Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The value of that key; `None` if it is absent, or wrong, which is reported.
    pub(crate) fn read<T>(
        &mut self,
        report: &mut Report,
        key: &'static str,
        reader: impl FnOnce(&mut Report, &'t Node) -> Option<T>,
    ) -> Option<T> {
        self.node(key).and_then(|node| reader(report, node))
    }

    /// Stores the value of that key; keeps the default if it is absent or wrong.
    pub(crate) fn read_into<T>(
        &mut self,
        report: &mut Report,
        key: &'static str,
        slot: &mut T,
        reader: impl FnOnce(&mut Report, &'t Node) -> Option<T>,
    ) {
        if let Some(value) = self.read(report, key, reader) {
            *slot = value;
        }
    }

    /// Reports the unknown keys.
    pub(crate) fn finish(self, report: &mut Report) {
        for entry in self.table.entries.iter().filter(|entry| !self.known.contains(&entry.key.as_str())) {
            match report.is_full() {
                true => report.add_dropped(1),
                false => self.unknown(report, entry),
            }
        }
    }

    fn unknown(&self, report: &mut Report, entry: &TableEntry) {
        let known = self.known.iter().copied();
        let choices = || format!("the keys are: {}", self.known.join(", "));
        let source = report.sources.get(entry.key_at.source);
        if source.kind == SourceKind::Variable {
            // The place is the name of the variable, which is also what to correct.
            let name = source.name.to_owned();
            let prefix = name[..name.len() - entry.key.len()].to_owned();
            let hint = match nearest(&entry.key, known) {
                Some(word) => format!("did you mean {prefix}{}?", word.to_uppercase()),
                None => choices(),
            };
            // The meaning of the key is unknown, so its value may be a secret.
            report.sources.hide(entry.node.at);
            report.error(entry.key_at, format!("{} has no key \"{}\"", self.place, entry.key)).hint(hint).done();
            return;
        }
        let choices = || coded!("keys", "the keys are: {keys}", keys = self.known.join(", "));
        let hint = did_you_mean(&entry.key, known).unwrap_or_else(choices);
        let key = super::render::quoted(&entry.key);
        let message = coded!("unknown-key", "unknown key {key} in {place}", key = key, place = self.place);
        report.error(entry.key_at, message).hint(hint).done();
    }
}

/// The table in a node; reports any other value.
pub(crate) fn table<'t>(report: &mut Report, node: &'t Node, place: &str, hint: &str) -> Option<&'t Table> {
    match &node.value {
        Value::Table(table) => Some(table),
        other => {
            let message = format!("{place} must be a table, this is {}", other.kind());
            report.error(node.at, message).hint(hint).refuse()
        }
    }
}
