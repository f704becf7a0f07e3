//! A finding as text: message, place, the line with the part marked, hints.
//!
//! Invariant  Hidden parts of a source are never printed.
//! Invariant  Control characters of a file never reach the terminal.

use std::fmt::Write as _;
use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use super::report::{Finding, Note, Severity};
use super::source::{Location, Source, SourceKind, Sources};

/// Whether to print colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// With ANSI escapes.
    Always,
    /// Plain text.
    Never,
}

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const BLUE: &str = "\x1b[1;34m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";

/// Lines are cut to this many columns around the mark, so that one megabyte on a line stays readable.
const MAX_LINE_CHARS: usize = 120;

/// Shown instead of a secret.
pub(crate) const HIDDEN: &str = "***";

impl Color {
    fn paint(self, style: &'static str, text: &str) -> String {
        match self {
            Color::Always => format!("{style}{text}{RESET}"),
            Color::Never => text.to_owned(),
        }
    }
}

pub(crate) fn finding(out: &mut String, sources: &Sources, finding: &Finding, color: Color) {
    let (word, style) = match finding.severity {
        Severity::Error => ("error", RED),
        Severity::Warning => ("warning", YELLOW),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}: {}", color.paint(style, word), color.paint(BOLD, &harmless(&finding.message.text)));
    let mut margin = String::new();
    if let Some(at) = finding.at {
        let source = sources.get(at.source);
        let number = line_number(source, at);
        margin = " ".repeat(number.len().max(2));
        let arrow = color.paint(BLUE, "-->");
        let _ = writeln!(out, "{margin}{arrow} {}", harmless(&place(sources, at)));
        if finding.excerpt {
            let bar = color.paint(BLUE, "|");
            let marked = mark(source, at);
            let _ = writeln!(out, "{margin} {bar}");
            let _ = writeln!(out, "{} {bar} {}", color.paint(BLUE, &format!("{number:>2}")), marked.line);
            let carets = color.paint(style, &"^".repeat(marked.width));
            let _ = writeln!(out, "{margin} {bar} {}{carets}", " ".repeat(marked.indent));
        }
    }
    for text in &finding.notes {
        let sign = color.paint(BLUE, "=");
        let gap = if margin.is_empty() { "  " } else { &margin };
        let _ = writeln!(out, "{gap} {sign} {}", harmless(&note(sources, text)));
    }
}

fn note(sources: &Sources, note: &Note) -> String {
    match note {
        Note::Text(message) => message.text.clone(),
        Note::Place(text, at) => format!("{text} {}", place(sources, *at)),
    }
}

pub(crate) fn place(sources: &Sources, at: Location) -> String {
    let source = sources.get(at.source);
    match source.kind {
        SourceKind::File => {
            let position = source.position(at.start);
            format!("{}:{}:{}", source.name, position.line, position.column)
        }
        SourceKind::Variable => format!("environment variable {}", source.name),
        SourceKind::Flag => format!("option {}", source.name),
    }
}

fn line_number(source: &Source, at: Location) -> String {
    match source.kind {
        SourceKind::File => source.position(at.start).line.to_string(),
        SourceKind::Variable | SourceKind::Flag => String::new(),
    }
}

/// A line ready to print, and where the carets go below it.
#[derive(Debug, PartialEq, Eq)]
struct MarkedLine {
    line: String,
    indent: usize,
    width: usize,
}

fn mark(source: &Source, at: Location) -> MarkedLine {
    let line = source.line_at(at.start);
    // A character takes at most four bytes. Reading no further keeps a line of megabytes cheap.
    let near = |offset: usize| source.text.floor_char_boundary(offset.clamp(line.start, line.end));
    let nearby = near(at.start.saturating_sub(4 * MAX_LINE_CHARS))..near(at.start + 4 * MAX_LINE_CHARS);
    let cells = cells(source, nearby.clone());
    let first = cells.iter().position(|cell| cell.bytes.end > at.start).unwrap_or(cells.len());

    // Of a line that is too long, a part before the mark is kept, for orientation.
    let is_short = nearby == line && fitting(cells.iter(), MAX_LINE_CHARS) == cells.len();
    let from = if is_short { 0 } else { first - fitting(cells[..first].iter().rev(), MAX_LINE_CHARS / 2) };
    let to = from + fitting(cells[from..].iter(), MAX_LINE_CHARS);
    let marked = cells[first..to].iter().take_while(|cell| cell.bytes.start < at.end);
    let before = if from > 0 || nearby.start > line.start { "..." } else { "" };
    let after = if to < cells.len() || nearby.end < line.end { "..." } else { "" };
    let shown: String = cells[from..to].iter().map(|cell| cell.shown.as_str()).collect();
    MarkedLine {
        line: format!("{before}{shown}{after}"),
        indent: before.len() + cells[from..first].iter().map(|cell| cell.width).sum::<usize>(),
        width: marked.map(|cell| cell.width).sum::<usize>().max(1),
    }
}

/// The number of cells that fit into `columns`.
fn fitting<'c>(cells: impl Iterator<Item = &'c Cell>, columns: usize) -> usize {
    let ends = cells.scan(0, |width, cell| {
        *width += cell.width;
        Some(*width)
    });
    ends.take_while(|&end| end <= columns).count()
}

/// A character, or a secret, as it is printed.
struct Cell {
    bytes: Range<usize>,
    shown: String,
    width: usize,
}

fn cells(source: &Source, line: Range<usize>) -> Vec<Cell> {
    let near = |secret: &&Range<usize>| secret.start < line.end && line.start < secret.end;
    let secrets: Vec<_> = source.secrets.iter().filter(near).collect();
    let mut cells: Vec<Cell> = Vec::new();
    for (index, char) in source.text[line.clone()].char_indices() {
        let offset = line.start + index;
        let bytes = offset..offset + char.len_utf8();
        if secrets.iter().any(|secret| secret.contains(&offset)) {
            match cells.last_mut() {
                Some(cell) if cell.shown == HIDDEN && cell.bytes.end == offset => cell.bytes.end = bytes.end,
                _ => cells.push(Cell { bytes, shown: HIDDEN.to_owned(), width: HIDDEN.len() }),
            }
        } else {
            let (shown, width) = printable(char);
            cells.push(Cell { bytes, shown, width });
        }
    }
    cells
}

fn printable(char: char) -> (String, usize) {
    match char {
        '\t' => ("    ".to_owned(), 4),
        char if is_unprintable(char) => ('\u{fffd}'.to_string(), 1),
        char => (char.to_string(), char.width().unwrap_or_default()),
    }
}

/// Control characters, and those that turn the direction of what follows.
fn is_unprintable(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Paths and names come from files and the environment, too.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|char| if is_unprintable(char) { '\u{fffd}' } else { char }).collect()
}

/// A part of the input in quotes, for a message: enough to find it, bounded in length, without control characters.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text))
}

/// The beginning of a text, without control characters.
pub(crate) fn shortened(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 40;
    let mut shown = harmless(&text.chars().take(MAX_SHOWN_CHARS).collect::<String>());
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// A path in quotes, with its whole name: of one that is longer than any file system takes, the end is shown.
pub fn quoted_path(path: &str) -> String {
    const MAX_PATH_CHARS: usize = 4096;
    let cut = path.chars().count().saturating_sub(MAX_PATH_CHARS);
    let shown: String = path.chars().skip(cut).collect();
    format!("\"{}{}\"", if cut > 0 { "..." } else { "" }, harmless(&shown))
}

/// A message without the input that it quotes. A quoted text may hold quotes, so everything from the first to the last
/// quote is removed; numbers of the input stand without quotes.
pub(crate) fn without_quotes(message: &str) -> String {
    const QUOTES: [char; 2] = ['"', '`'];
    let mut plain = message.to_owned();
    if let (Some(first), Some(last)) = (message.find(QUOTES), message.rfind(QUOTES)) {
        plain.replace_range(first..=last, &format!("\"{HIDDEN}\""));
    }
    if let Some(found) = plain.find(", found ") {
        plain.truncate(found);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, span: Range<usize>, secrets: &[Range<usize>]) -> MarkedLine {
        let mut sources = Sources::default();
        let id = sources.add_file("a.toml", std::path::Path::new(""), text.to_owned());
        for secret in secrets {
            sources.hide(Location::new(id, secret.clone()));
        }
        mark(sources.get(id), Location::new(id, span))
    }

    fn check(text: &str, span: Range<usize>, line: &str, indent: usize, width: usize) {
        assert_eq!(marked(text, span, &[]), MarkedLine { line: line.to_owned(), indent, width });
    }

    #[test]
    fn the_mark_stands_below_its_part() {
        check("a = 1\nb = 22\n", 10..12, "b = 22", 4, 2);
        check("a = 1", 5..5, "a = 1", 5, 1); // past the end
        check("a = \"\"\"x\ny\"\"\"\n", 4..12, "a = \"\"\"x", 4, 4); // to the end of the line
    }

    #[test]
    fn columns_are_those_of_a_terminal() {
        check("\ta = 1", 1..2, "    a = 1", 4, 1);
        check("m = \"回复\" # x", 13..14, "m = \"回复\" # x", 11, 1);
        check("m = \"限流，每分钟\" 错", 25..28, "m = \"限流，每分钟\" 错", 19, 2);
        check("m = \"🚀e\u{301}\" x", 14..15, "m = \"🚀e\u{301}\" x", 10, 1); // a picture, and an accent of its own
        check("a\x1b[31m = 1", 1..2, "a\u{fffd}[31m = 1", 1, 1);
    }

    #[test]
    fn a_secret_is_hidden_and_the_rest_still_marked() {
        let text = "api_token = \"s3cret\" x";
        let found = marked(text, 21..22, &[Range { start: 13, end: 19 }]);
        assert_eq!(found, MarkedLine { line: "api_token = \"***\" x".to_owned(), indent: 18, width: 1 });
        let inside = marked(text, 15..17, &[Range { start: 13, end: 19 }]);
        assert_eq!((inside.indent, inside.width), (13, 3));
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("{}!{}", "x".repeat(5000), "y".repeat(5000));
        let found = marked(&text, 5000..5001, &[]);
        assert!(found.line.len() < 130, "{}", found.line.len());
        assert_eq!(&found.line[found.indent..=found.indent], "!");
    }

    #[test]
    fn quotes_are_short_and_harmless() {
        assert_eq!(quoted("a\x1bb"), "\"a\u{fffd}b\"");
        assert_eq!(quoted(&"x".repeat(100)).len(), 45);
    }

    #[test]
    fn the_name_of_a_path_is_never_cut() {
        let path = format!("/etc/{}/blocked-addresses.txt", "deep/".repeat(50));
        assert_eq!(quoted_path(&path), format!("\"{path}\""));
        let long = quoted_path(&format!("{}/blocked.txt", "x".repeat(10_000)));
        assert!(long.len() < 4200 && long.starts_with("\"...x") && long.ends_with("/blocked.txt\""));
    }

    #[test]
    fn a_message_without_what_it_quotes() {
        for (message, plain) in [
            (r#""a" is given twice"#, r#""***" is given twice"#),
            (r#"unknown key "a"b, found c" in [server]"#, r#"unknown key "***" in [server]"#),
            (r#"expected a limit, found "a""#, "expected a limit"),
            ("expected a whole number from 1 to 5, found 77", "expected a whole number from 1 to 5"),
            ("the closing quote is missing", "the closing quote is missing"),
        ] {
            assert_eq!(without_quotes(message), plain);
        }
    }
}
