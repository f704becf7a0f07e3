//! The lines of the file by section, without comments and blank lines.

use flowgate_engine::front::{Report, did_you_mean, quoted};

use super::piece::Piece;

/// The lines of the three sections, in the order of the file, and the comment above each rule.
#[derive(Default)]
pub(super) struct Sections<'t> {
    pub(super) dicts: Vec<Piece<'t>>,
    pub(super) rules: Vec<RuleLine<'t>>,
    pub(super) results: Vec<Piece<'t>>,
}

/// A line of `[rules]`.
pub(super) struct RuleLine<'t> {
    pub(super) line: Piece<'t>,
    /// The number of the line in the file, from 1.
    pub(super) number: u64,
    /// The comment directly above the line, without the `#`.
    pub(super) comment: Vec<&'t str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Dicts,
    Rules,
    Result,
    /// No section yet, or an unknown one: it is reported once, and its lines are skipped.
    None,
}

const SECTIONS: [(&str, Section); 3] =
    [("dicts", Section::Dicts), ("rules", Section::Rules), ("result", Section::Result)];

impl<'t> Sections<'t> {
    pub(super) fn read(report: &mut Report, file: Piece<'t>) -> Sections<'t> {
        let mut sections = Sections::default();
        let (mut section, mut comment) = (Section::None, Vec::new());
        let mut is_first = true;
        for (number, line) in (1..).zip(lines(file)) {
            if let Some(text) = line.text.strip_prefix('#') {
                comment.push(text.trim());
                continue;
            }
            let above = std::mem::take(&mut comment);
            if line.text.is_empty() {
                continue;
            }
            if line.text.starts_with('[') {
                section = header(report, line.without_comment());
            } else {
                match section {
                    Section::Dicts => sections.dicts.push(line),
                    Section::Rules => sections.rules.push(RuleLine { line, number, comment: above }),
                    Section::Result => sections.results.push(line),
                    Section::None if is_first => {
                        let hint = "[dicts], [rules] and [result] each start with a line of their own";
                        report.error(line.at(), "this line stands before any section").hint(hint).done();
                    }
                    Section::None => {}
                }
            }
            is_first = false;
        }
        sections
    }
}

/// The lines, without the blanks around them and without a byte order mark at the start of the file.
pub(super) fn lines(file: Piece<'_>) -> impl Iterator<Item = Piece<'_>> {
    let start = if file.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut next = Some(start);
    std::iter::from_fn(move || {
        let start = next?;
        let end = file.text[start..].find('\n').map(|length| start + length);
        next = end.map(|end| end + 1);
        Some(file.part(start, end.unwrap_or(file.text.len())).trim())
    })
}

fn header(report: &mut Report, line: Piece<'_>) -> Section {
    let name = line.text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().trim();
    if let Some((_, section)) = SECTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return *section;
    }
    let hint = did_you_mean(name, SECTIONS.map(|(known, _)| known));
    let message = format!("expected [dicts], [rules] or [result], found {}", quoted(line.text));
    report.error(line.at(), message).maybe_hint(hint).done();
    Section::None
}
