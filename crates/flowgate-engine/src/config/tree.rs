//! A configuration text as a tree in which every key and value knows its place.
//!
//! Files and environment variables become one tree, so that reading, checking and reporting are written once.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::brackets::{self, UnclosedBracket};
use super::message::coded;
use super::render::{HIDDEN, quoted};
use super::report::Report;
use super::secret;
use super::source::{Location, SourceId};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Location,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    /// The digits, without underscores, in their radix.
    Integer(String, u32),
    Float(String),
    Boolean(bool),
    Datetime,
    Array(Vec<Node>),
    Table(Table),
    /// A text from the environment. Its type depends on the key.
    Untyped(String),
}

/// Keys with their values, in the order of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<TableEntry>,
}

#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    pub(crate) key: String,
    pub(crate) key_at: Location,
    pub(crate) node: Node,
}

impl Value {
    /// The kind of value, as a message names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::String(_) | Value::Untyped(_) => "text",
            Value::Integer(..) => "a whole number",
            Value::Float(_) => "a decimal number",
            Value::Boolean(_) => "true or false",
            Value::Datetime => "a date",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&TableEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The entry at a path of keys, such as `["listen", "http"]`.
    pub(crate) fn find(&self, path: &[&str]) -> Option<&TableEntry> {
        let (last, tables) = path.split_last()?;
        let mut table = self;
        for key in tables {
            table = match &table.get(key)?.node.value {
                Value::Table(inner) => inner,
                _ => return None,
            };
        }
        table.get(last)
    }

    /// Replaces the entry of that key, or adds it.
    pub(crate) fn set(&mut self, entry: TableEntry) {
        match self.entries.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// Takes the entry of that key out.
    pub(crate) fn take(&mut self, key: &str) -> Option<TableEntry> {
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(index))
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut TableEntry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }
}

/// Reads a file. Reports mistakes in the syntax, and returns the part that could be read.
pub(crate) fn read_file(report: &mut Report, name: String, base: &Path, text: &str) -> Table {
    let source = report.sources.add_file(name, base, text.to_owned());
    let (table, mut errors) = DeTable::parse_recoverable(text);
    let table = convert_table(source, table.into_inner());
    // Before the first report, so that no message repeats a secret.
    secret::hide(report, &table);
    secret::hide_comments(report, source, &table);
    if !errors.is_empty() {
        secret::hide_lines(report, source);
    }
    // Errors behind an open bracket follow from it, so the report leaves them out.
    let unclosed = if errors.is_empty() { None } else { brackets::unclosed(text) };
    if let Some(UnclosedBracket { at, .. }) = unclosed {
        let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        errors.retain(|error| error.span().is_some_and(|span| span.start < line));
    }
    let mut errors = errors.into_iter();
    while let Some(error) = errors.next() {
        if report.is_full() {
            report.add_dropped(1 + errors.len());
            break;
        }
        report_syntax(report, source, &error);
    }
    if let Some(unclosed) = unclosed {
        report_unclosed(report, source, unclosed);
    }
    table
}

fn report_unclosed(report: &mut Report, source: SourceId, UnclosedBracket { at, missing, before }: UnclosedBracket) {
    let file = report.sources.get(source);
    let (from, to) = (file.position(at).line, file.position(before).line);
    let opened = if missing == ']' { '[' } else { '{' };
    let hint = match before < file.text.trim_end().len() {
        true if from == to => {
            coded!("missing-here", "a \"{missing}\" is missing on this line", missing = missing)
        }
        true => coded!("missing-before", "a \"{missing}\" is missing before line {to}", missing = missing, to = to),
        false => coded!("missing-end", "a \"{missing}\" is missing up to the end of the file", missing = missing),
    };
    let message = coded!("unclosed", "this \"{opened}\" is not closed", opened = opened);
    report.error(Location::new(source, at..at + 1), message).hint(hint).done();
}

/// Reads a single TOML value, at `offset` in a source.
pub(crate) fn parse_value(text: &str, source: SourceId, offset: usize) -> Result<Node, String> {
    let value = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
    let mut node = convert(source, value);
    shift(&mut node, offset);
    Ok(node)
}

fn report_syntax(report: &mut Report, source: SourceId, error: &toml::de::Error) {
    let end = report.sources.get(source).text.len();
    let at = Location::new(source, error.span().unwrap_or(end..end));
    let written = report.sources.shown(at);
    let message = error.message();
    let plain = written.trim_matches(['"', '\'']);
    // Plain words for the usual mistakes: the parser's own messages need knowledge of its grammar.
    if message == "duplicate key" {
        let hint = coded!(
            "once",
            "a key, or a [section], may be given once; [[rule]] with double brackets starts another rule"
        );
        report.error(at, coded!("twice", "{name} is given twice", name = quoted(plain))).hint(hint).done();
    } else if message.starts_with("string values must be quoted") && written.trim().is_empty() {
        report.error(at, coded!("no-value", "a value is missing here")).done();
    } else if message.starts_with("string values must be quoted") {
        let hint = match plain {
            HIDDEN => "put it in quotes".into(),
            _ => coded!("write", "write {text}", text = quoted(plain)),
        };
        report.error(at, coded!("unquoted", "text stands in quotes")).hint(hint).done();
    } else if message.starts_with("invalid unquoted key") {
        let message = coded!("unquoted-name", "a name with other signs than letters, digits, _ and - stands in quotes");
        report.error(at, message).hint(coded!("write", "write {text}", text = quoted(plain))).done();
    } else if message.starts_with("invalid basic string, expected `\"`") {
        report.error(at, coded!("no-closing-quote", "the closing quote is missing")).done();
    } else {
        report.error(at, coded!("not-toml", "this is not TOML: {message}", message = message)).done();
    }
}

fn convert_table(source: SourceId, table: DeTable<'_>) -> Table {
    let mut entries: Vec<TableEntry> = table
        .into_iter()
        .map(|(key, value)| TableEntry {
            key_at: Location::new(source, key.span()),
            key: key.into_inner().into_owned(),
            node: convert(source, value),
        })
        .collect();
    // The parser sorts by name; reports follow the order of the text.
    entries.sort_by_key(|entry| entry.key_at.start);
    Table { entries }
}

/// The depth of the tree is bounded by the parser, which refuses to nest further.
fn convert(source: SourceId, value: Spanned<DeValue<'_>>) -> Node {
    let span: Range<usize> = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(number.as_str().to_owned(), number.radix()),
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(answer) => Value::Boolean(answer),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(items) => Value::Array(items.into_iter().map(|item| convert(source, item)).collect()),
        DeValue::Table(table) => Value::Table(convert_table(source, table)),
    };
    Node { at: Location::new(source, span), value }
}

fn shift(node: &mut Node, offset: usize) {
    let move_by = |at: &mut Location| {
        at.start += offset;
        at.end += offset;
    };
    move_by(&mut node.at);
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|item| shift(item, offset)),
        Value::Table(table) => {
            for entry in &mut table.entries {
                move_by(&mut entry.key_at);
                shift(&mut entry.node, offset);
            }
        }
        _ => {}
    }
}
