//! What is wrong with a limit: the part, what was written, what was expected.

use std::fmt;

/// The part of a limit that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The whole text.
    Limit,
    /// The algorithm's name.
    Algorithm,
    /// The count before the slash.
    Count,
    /// The period after the slash.
    Period,
    /// The name of an option.
    Option,
    /// `burst=`
    Burst,
    /// `max_wait=`
    MaxWait,
    /// `tz=`
    Tz,
    /// `after=`
    After,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Limit => "limit",
            Part::Algorithm => "algorithm",
            Part::Count => "count",
            Part::Period => "period",
            Part::Option => "option",
            Part::Burst => "burst",
            Part::MaxWait => "max_wait",
            Part::Tz => "tz",
            Part::After => "after",
        })
    }
}

/// An invalid limit: which part is wrong, its text, and what was expected.
///
/// ```
/// let error = "5/0s".parse::<flowgate::Limit>().unwrap_err();
/// assert_eq!(error.to_string(), "period `0s`: expected a period from 1us to 366d");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} {}: expected {expected}", QuotedInput(found))]
#[non_exhaustive]
pub struct LimitError {
    /// The part that is wrong.
    pub part: Part,
    /// What was written there, shortened where it is long.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl LimitError {
    pub(crate) fn new(part: Part, found: impl AsRef<str>, expected: impl Into<String>) -> LimitError {
        LimitError { part, found: shown(found.as_ref()), expected: expected.into() }
    }
}

/// The part of the input that an error repeats: enough to find the place, never a megabyte, and no control characters.
pub(super) fn shown(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 40;
    let mut shown = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == MAX_SHOWN_CHARS {
            shown.push_str("...");
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Quotes what was found; a part that is empty is missing.
struct QuotedInput<'a>(&'a str);

impl fmt::Display for QuotedInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("is missing") } else { write!(f, "`{}`", self.0) }
    }
}
