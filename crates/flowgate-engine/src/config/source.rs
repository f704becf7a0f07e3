//! The texts that a configuration is made of, and places in them.
//!
//! A text is a file, an environment variable or an option of a command line. Variables and options are kept as
//! `NAME=value`, so that a report can mark a mistake in them as in a file.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// All texts that were read. A [`Location`] is an index into them, which a report resolves.
///
/// Not `Debug`: it holds secrets in clear.
#[derive(Clone, Default)]
pub(crate) struct Sources {
    all: Vec<Source>,
}

/// One text.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) kind: SourceKind,
    /// The directory of relative paths in it.
    base: PathBuf,
    /// Where each line but the first begins. Every rule asks for its line, so lines are not counted anew for each.
    line_starts: Vec<usize>,
    /// The places that must not be shown; they may overlap.
    pub(crate) secrets: Vec<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    File,
    Variable,
    Flag,
}

/// The number of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceId(usize);

/// A place: bytes `start..end` of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    pub(crate) source: SourceId,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Location {
    /// The bytes `span` of a text.
    pub fn new(source: SourceId, span: Range<usize>) -> Location {
        Location { source, start: span.start, end: span.end }
    }

    /// The part of this place that starts `offset` bytes in and is `length` bytes long.
    pub(crate) fn part(self, offset: usize, length: usize) -> Location {
        let start = (self.start + offset).min(self.end);
        Location { start, end: (start + length).min(self.end), ..self }
    }
}

/// A position, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

impl Sources {
    /// Adds a file. Relative paths in it start from `base`.
    pub(crate) fn add_file(&mut self, name: impl Into<String>, base: &Path, text: String) -> SourceId {
        self.add(SourceKind::File, name.into(), text, base)
    }

    /// Adds an environment variable. Relative paths in it start from the current directory.
    pub(crate) fn add_variable(&mut self, name: &str, value: &str) -> SourceId {
        self.add_pair(SourceKind::Variable, name, value)
    }

    /// Adds an option of the command line. Relative paths in it start from the current directory, too.
    pub(crate) fn add_flag(&mut self, name: &str, value: &str) -> SourceId {
        self.add_pair(SourceKind::Flag, name, value)
    }

    fn add_pair(&mut self, kind: SourceKind, name: &str, value: &str) -> SourceId {
        self.add(kind, name.to_owned(), format!("{name}={value}"), Path::new(""))
    }

    fn add(&mut self, kind: SourceKind, name: String, text: String, base: &Path) -> SourceId {
        let line_starts = text.match_indices('\n').map(|(newline, _)| newline + 1).collect();
        self.all.push(Source { name, text, kind, base: base.to_path_buf(), line_starts, secrets: Vec::new() });
        SourceId(self.all.len() - 1)
    }

    /// The path that a text in a source names.
    pub(crate) fn resolve(&self, source: SourceId, path: &str) -> PathBuf {
        self.get(source).base.join(path)
    }

    pub(crate) fn get(&self, id: SourceId) -> &Source {
        // `add` makes all ids, and no source is ever removed.
        &self.all[id.0]
    }

    /// The text that was added first.
    pub(crate) fn first(&self) -> Option<&Source> {
        self.all.first()
    }

    /// True if that text was added first.
    pub(crate) fn is_first(&self, id: SourceId) -> bool {
        id.0 == 0
    }

    /// Hides a place in all reports.
    pub(crate) fn hide(&mut self, at: Location) {
        self.all[at.source.0].secrets.push(at.start..at.end);
    }

    /// The text at a place, for a message; hidden parts are `***`.
    pub(crate) fn shown(&self, at: Location) -> String {
        let hidden = self.get(at.source).secrets.iter().any(|secret| secret.start < at.end && at.start < secret.end);
        if hidden { super::render::HIDDEN.to_owned() } else { self.written(at).to_owned() }
    }

    /// The text at a place, as it was written.
    pub(crate) fn written(&self, at: Location) -> &str {
        self.get(at.source).text.get(at.start..at.end).unwrap_or_default()
    }
}

impl Source {
    /// The position of the byte `offset`.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let offset = self.floor(offset);
        let lines_before = self.line_starts.partition_point(|&start| start <= offset);
        let line_start = lines_before.checked_sub(1).map_or(0, |last| self.line_starts[last]);
        Position { line: lines_before + 1, column: self.text[line_start..offset].chars().count() + 1 }
    }

    /// The line that holds the byte `offset`, without its end.
    pub(crate) fn line_at(&self, offset: usize) -> Range<usize> {
        let offset = self.floor(offset);
        let start = self.text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |newline| offset + newline);
        start..end - usize::from(self.text[start..end].ends_with('\r'))
    }

    /// The nearest start of a character at or before `offset`.
    fn floor(&self, offset: usize) -> usize {
        self.text.floor_char_boundary(offset.min(self.text.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let mut sources = Sources::default();
        let id = sources.add_file("a.toml", Path::new(""), text.to_owned());
        sources.get(id).clone()
    }

    #[test]
    fn positions_count_lines_and_characters() {
        let text = source("a = 1\r\nnäme = 2\n");
        let check = |offset, line, column| assert_eq!(text.position(offset), Position { line, column });
        check(0, 1, 1);
        check(4, 1, 5);
        check(7, 2, 1);
        check(13, 2, 6);
        check(9, 2, 2); // inside a character: where that character stands
        check(1000, 3, 1);
        assert_eq!(&text.text[text.line_at(3)], "a = 1");
        assert_eq!(&text.text[text.line_at(9)], "näme = 2");
        assert_eq!(&text.text[text.line_at(99)], "");
    }
}
