//! Mistakes and warnings of a configuration: all at once, each with its place.

use std::fmt;
use std::path::Path;

use super::message::{Message, coded};
use super::origin::Origin;
use super::render::{self, Color};
use super::source::{Location, Position, SourceId, Sources};

/// Mistakes and warnings, in the order of the files.
///
/// Its `Display` is what `flowgate validate` prints:
///
/// ```
/// use flowgate_engine::config::Config;
///
/// let report = Config::from_toml("[server]\nidle_timout = \"5m\"\n").unwrap_err();
/// assert_eq!(
///     report.to_string(),
///     r#"error: unknown key "idle_timout" in [server]
///   --> flowgate.toml:2:1
///    |
///  2 | idle_timout = "5m"
///    | ^^^^^^^^^^^
///    = did you mean "idle_timeout"?
/// "#
/// );
/// ```
#[derive(Clone, Default)]
pub struct Report {
    pub(crate) sources: Sources,
    findings: Vec<Finding>,
    /// The number of mistakes beyond those that are kept.
    dropped: usize,
    /// The files and directories that were read. Unless one of them changes, neither do the findings.
    pub origins: Vec<Origin>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// The configuration works, but probably not as intended.
    Warning,
}

/// One mistake or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) message: Message,
    pub(crate) at: Option<Location>,
    pub(crate) notes: Vec<Note>,
    /// True if the line is shown.
    pub(crate) excerpt: bool,
}

/// A note below the marked line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// What to write instead, or why.
    Text(Message),
    /// Another place, after a text such as "the first one is at".
    Place(String, Location),
}

/// A finding, for other presentations than [`Report::render`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportEntry<'r> {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong.
    pub message: &'r Message,
    /// The file, environment variable or option; `None`: the finding is about the whole.
    pub source: Option<&'r str>,
    /// The position in the file.
    pub position: Option<Position>,
    /// What to write instead, or why.
    pub hints: Vec<Message>,
}

/// A file of garbage has a mistake on each line. This bounds the memory, and is more than people read.
const MAX_FINDINGS: usize = 100;

impl Report {
    /// True if there is a mistake: the configuration cannot be used.
    pub fn has_errors(&self) -> bool {
        self.errors() > 0
    }

    /// The number of mistakes.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error).count() + self.dropped
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Warning).count()
    }

    /// True if there are neither mistakes nor warnings.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds a mistake that a caller has found, such as a key that does not fit its certificate.
    pub fn add_error(&mut self, message: impl Into<Message>) {
        self.error_anywhere(message).done();
    }

    /// Adds a warning that a caller has found, such as memory that this machine does not have.
    pub fn add_warning(&mut self, message: impl Into<Message>) {
        self.finding(Severity::Warning, None, message.into()).done();
    }

    /// The findings one by one.
    pub fn entries(&self) -> impl Iterator<Item = ReportEntry<'_>> {
        self.findings.iter().map(|finding| {
            let source = finding.at.map(|at| (self.sources.get(at.source), at));
            ReportEntry {
                severity: finding.severity,
                message: &finding.message,
                source: source.map(|(source, _)| source.name.as_str()),
                position: source.map(|(source, at)| source.position(at.start)),
                hints: finding.notes.iter().map(|note| self.hint(note)).collect(),
            }
        })
    }

    fn hint(&self, note: &Note) -> Message {
        match note {
            Note::Text(message) => message.clone(),
            Note::Place(text, at) => {
                coded!("place", "{text} {place}", text = text, place = render::place(&self.sources, *at))
            }
        }
    }

    /// The text for people, with colours for a terminal.
    pub fn render(&self, color: Color) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            if !text.is_empty() {
                text.push('\n');
            }
            render::finding(&mut text, &self.sources, finding, color);
        }
        if self.dropped > 0 {
            text.push_str(&format!("\nand {} more\n", self.dropped));
        }
        text
    }

    /// Removes quotes from other files and from the environment: the sender of a text learns that a file which it names
    /// is wrong, and where, but cannot read the file by naming it.
    #[must_use]
    pub fn confined_to_text(mut self) -> Report {
        for finding in &mut self.findings {
            if finding.at.is_some_and(|at| !self.sources.is_first(at.source)) {
                finding.message = Message::uncoded(render::without_quotes(&finding.message.text));
                finding.notes.retain(|note| matches!(note, Note::Place(..)));
                finding.excerpt = false;
            }
        }
        self
    }

    pub(crate) fn add_origin(&mut self, origin: Origin) {
        self.origins.push(origin);
    }

    /// Adds the text of a file, for the places of mistakes in it. Relative paths in it start from `base`.
    pub fn add_file(&mut self, name: impl Into<String>, base: &Path, text: String) -> SourceId {
        self.sources.add_file(name, base, text)
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        if !self.is_full() {
            self.findings.push(finding);
        } else if finding.severity == Severity::Error {
            self.dropped += 1;
        }
    }

    /// True if further findings are only counted, so that their hints need not be made.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS
    }

    /// Counts mistakes that are not kept.
    pub(crate) fn add_dropped(&mut self, mistakes: usize) {
        self.dropped += mistakes;
    }

    /// Reports a mistake, which may have no place. The caller may add hints to the result.
    pub fn error(&mut self, at: impl Into<Option<Location>>, message: impl Into<Message>) -> Notes<'_> {
        self.finding(Severity::Error, at.into(), message.into())
    }

    /// Reports a mistake without a place.
    pub fn error_anywhere(&mut self, message: impl Into<Message>) -> Notes<'_> {
        self.finding(Severity::Error, None, message.into())
    }

    /// Reports a warning.
    pub fn warning(&mut self, at: Location, message: impl Into<Message>) -> Notes<'_> {
        self.finding(Severity::Warning, Some(at), message.into())
    }

    fn finding(&mut self, severity: Severity, at: Option<Location>, message: Message) -> Notes<'_> {
        let kept = self.findings.len();
        self.add(Finding { severity, message, at, notes: Vec::new(), excerpt: true });
        Notes { finding: self.findings.get_mut(kept) }
    }

    /// Sorts by place, mistakes and warnings mixed, as people correct them.
    pub fn sort(&mut self) {
        self.findings.sort_by_key(|finding| finding.at);
        // The parser reports some mistakes twice.
        self.findings.dedup();
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Color::Never))
    }
}

impl fmt::Debug for Report {
    /// The same text, since the sources hold secrets and the text hides them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Report {}

/// Adds notes to the finding just reported.
#[must_use = "a mistake without a hint ends with `.done()`"]
pub struct Notes<'r> {
    /// `None`: the report is full.
    finding: Option<&'r mut Finding>,
}

impl Notes<'_> {
    /// Adds a hint.
    pub fn hint(self, text: impl Into<Message>) -> Self {
        self.note(Note::Text(text.into()))
    }

    /// A hint if there is one.
    pub fn maybe_hint(self, text: Option<impl Into<Message>>) -> Self {
        match text {
            Some(text) => self.hint(text),
            None => self,
        }
    }

    /// Adds another place that matters, after a text such as "the first one is at".
    pub fn place(self, text: impl Into<String>, at: Location) -> Self {
        self.note(Note::Place(text.into(), at))
    }

    fn note(mut self, note: Note) -> Self {
        if let Some(finding) = &mut self.finding {
            finding.notes.push(note);
        }
        self
    }

    /// Ends the finding.
    pub fn done(self) {}

    /// Ends the finding about a value that is refused.
    pub fn refuse<T>(self) -> Option<T> {
        None
    }
}
