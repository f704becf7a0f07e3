//! What a condition asks of a field's value, and how that is written.
//!
//! A text is read by its first characters, then by its form; the first line that fits decides:
//!
//! ```text
//! *                      present and not empty
//! !*                     absent or empty
//! !REST                  not REST (any form below; a field that is absent matches nothing but !*)
//! @NAME                  in the list NAME
//! ~REGEX                 the regular expression is found in the value (anchor it with ^ and $)
//! > N  >= N  < N  <= N   a number above, from, below, up to N
//! N..M                   a number from N to M
//! A..B                   an address from A to B
//! A/BITS                 an address of the network, when A is an address
//! 10.0.24.*              an address, when there are four parts, numbers first and only stars after them
//! A                      that address, however it is written, when the text is one
//! ..*..                  a glob, when there is a `*` anywhere
//! anything else          equal
//! ```
//!
//! What begins like one of these but is wrong (`10.0.0.0/33`, `> x`, `1..x`) is an error rather than a text that
//! would never match; [`Matcher::equal`] takes anything literally.

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::glob::Glob;
use super::number::{Decimal, NumberRange};
use crate::address::AddressRange;

/// The most a compiled regular expression may take, and the cache of its automaton.
pub(super) const MAX_REGEX_BYTES: usize = 1 << 20;

/// What the value of a field must be.
///
/// ```
/// use flowgate_engine::rules::Matcher;
///
/// assert!(matches!(Matcher::parse("reply")?, Matcher::Equal(_)));
/// assert!(matches!(Matcher::parse("10.0.0.0/8")?, Matcher::Address(_)));
/// let error = Matcher::parse("10.0.0.0/33").unwrap_err();
/// assert_eq!(error.to_string(), "address `10.0.0.0/33`: expected a prefix length from 0 to 32 after the slash");
/// # Ok::<(), flowgate_engine::rules::MatcherError>(())
/// ```
#[derive(Clone, Debug)]
pub enum Matcher {
    /// This text.
    Equal(Box<str>),
    /// Present and not empty.
    Present,
    /// Absent or empty.
    Absent,
    /// Present, but not that.
    Not(Box<Matcher>),
    /// One of them.
    OneOf(Vec<Matcher>),
    /// A number in a range.
    Number(NumberRange),
    /// An address in a range.
    Address(AddressMatcher),
    /// A text that matches this glob.
    Glob(Glob),
    /// A text in which this regular expression finds a match.
    Regex(Arc<Regex>),
    /// In the list of this name.
    List(Box<str>),
}

/// The addresses of a network, a range, or a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMatcher(pub(crate) AddressRange);

impl AddressMatcher {
    /// The addresses that a text names: one, a network, a range (`10.0.0.1..10.0.0.9`) or a wildcard (`10.0.24.*`);
    /// `Ok(None)` if the text looks like none of these.
    ///
    /// # Errors
    /// What is expected, if the text looks like one of them and is wrong.
    pub fn parse(text: &str) -> Result<Option<AddressMatcher>, &'static str> {
        AddressRange::parse(text).map(|range| range.map(AddressMatcher)).map_err(|error| error.expected)
    }

    /// From the first address of one range to the last of another; `None` if the families differ or the order is wrong.
    pub fn up_to(&self, other: &AddressMatcher) -> Option<AddressMatcher> {
        self.0.up_to(&other.0).map(AddressMatcher)
    }
}

impl Matcher {
    /// Reads a matcher as it is written in `when`.
    ///
    /// # Errors
    /// When the text begins like one of the forms but is wrong; the error names the part.
    pub fn parse(text: &str) -> Result<Matcher, MatcherError> {
        match text {
            "*" => return Ok(Matcher::Present),
            "!*" => return Ok(Matcher::Absent),
            _ => {}
        }
        match text.strip_prefix('!') {
            Some(rest) if rest.starts_with('!') => {
                let expected = "one `!` only; { eq = \"..\" } takes a text literally";
                Err(MatcherError::new("negation", text, expected))
            }
            Some(rest) => Ok(Matcher::Not(Box::new(positive(rest)?))),
            None => positive(text),
        }
    }

    /// This text, whatever it looks like.
    pub fn equal(text: impl Into<Box<str>>) -> Matcher {
        Matcher::Equal(text.into())
    }

    /// Whether the matcher holds only of requests that have the field.
    pub fn requires_presence(&self) -> bool {
        match self {
            Matcher::Absent => false,
            Matcher::OneOf(matchers) => matchers.iter().all(Matcher::requires_presence),
            _ => true,
        }
    }

    /// The names of the lists it refers to.
    pub fn lists(&self) -> impl Iterator<Item = &str> {
        self.leaves().into_iter().filter_map(|leaf| if let Matcher::List(name) = leaf { Some(&**name) } else { None })
    }

    /// The matchers inside this one: the items of a list, or the matcher after a `!`.
    pub(crate) fn leaves(&self) -> Vec<&Matcher> {
        match self {
            Matcher::Not(inner) => inner.leaves(),
            Matcher::OneOf(matchers) => matchers.iter().flat_map(Matcher::leaves).collect(),
            leaf => vec![leaf],
        }
    }
}

fn positive(text: &str) -> Result<Matcher, MatcherError> {
    if let Some(name) = text.strip_prefix('@') {
        return list(name);
    }
    if let Some(pattern) = text.strip_prefix('~') {
        return regex(pattern);
    }
    if text.starts_with(['>', '<']) {
        let error = || MatcherError::new("number", text, "a number after the sign, such as > 100");
        return NumberRange::comparison(text).map(Matcher::Number).ok_or_else(error);
    }
    if let Some(range) = number_range(text)? {
        return Ok(Matcher::Number(range));
    }
    match AddressRange::parse(text) {
        Ok(Some(range)) => Ok(Matcher::Address(AddressMatcher(range))),
        Ok(None) if text.contains('*') => Ok(Matcher::Glob(Glob::new(text))),
        Ok(None) => Ok(Matcher::equal(text)),
        Err(error) => Err(MatcherError::new("address", text, error.expected)),
    }
}

/// `N..M`; a text with two dots and no number on either side is something else.
fn number_range(text: &str) -> Result<Option<NumberRange>, MatcherError> {
    let Some((low, high)) = text.split_once("..") else { return Ok(None) };
    if Decimal::parse(low).is_none() && Decimal::parse(high).is_none() {
        return Ok(None);
    }
    let error = || MatcherError::new("number", text, "two numbers, the lower one first, such as 1..100");
    NumberRange::between(low, high).map(Some).ok_or_else(error)
}

fn list(name: &str) -> Result<Matcher, MatcherError> {
    if !is_name(name) {
        let expected = "the name of a list after the `@`: letters, digits, _ . -";
        return Err(MatcherError::new("list", name, expected));
    }
    Ok(Matcher::List(name.into()))
}

fn regex(pattern: &str) -> Result<Matcher, MatcherError> {
    let built = RegexBuilder::new(pattern).size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_REGEX_BYTES).build();
    match built {
        Ok(regex) => Ok(Matcher::Regex(Arc::new(regex))),
        Err(regex::Error::CompiledTooBig(_)) => {
            Err(MatcherError::new("regex", pattern, "a smaller regular expression: at most 1 MB compiled"))
        }
        Err(error) => {
            // The last line of the parser's report says what is wrong; the lines above draw where.
            let report = error.to_string();
            let cause = report.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err(MatcherError::new("regex", pattern, format!("a regular expression ({cause})")))
        }
    }
}

/// Names of rules and lists: letters, digits, `_`, `.` and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

impl Matcher {
    /// The items of a list, each as it is written; one match is enough. A matcher that is not a list is its only item.
    pub(crate) fn alternatives(&self) -> Vec<Box<str>> {
        match self {
            Matcher::OneOf(matchers) => matchers.iter().flat_map(Matcher::alternatives).collect(),
            matcher => vec![matcher.to_string().into()],
        }
    }
}

impl fmt::Display for Matcher {
    /// As it is written in a rule file; a text that would be read as something else is shown as `{ eq = ".." }`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Matcher::Equal(text) => match Matcher::parse(text) {
                Ok(Matcher::Equal(_)) if !text.starts_with('{') => f.write_str(text),
                _ => write!(f, "{{ eq = {text:?} }}"),
            },
            Matcher::Present => f.write_str("*"),
            Matcher::Absent => f.write_str("!*"),
            Matcher::Not(inner) => write!(f, "!{inner}"),
            Matcher::OneOf(matchers) => {
                let shown: Vec<String> = matchers.iter().map(Matcher::to_string).collect();
                write!(f, "[{}]", shown.join(", "))
            }
            Matcher::Number(range) => range.fmt(f),
            Matcher::Address(AddressMatcher(range)) => range.fmt(f),
            Matcher::Glob(glob) => glob.fmt(f),
            Matcher::Regex(regex) => write!(f, "~{regex}"),
            Matcher::List(name) => write!(f, "@{name}"),
        }
    }
}

/// An invalid matcher: which part is wrong, its text, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part} `{found}`: expected {expected}")]
pub struct MatcherError {
    /// The part that is wrong: `negation`, `number`, `address`, `regex` or `list`.
    pub part: &'static str,
    /// What was written there, shortened if it is long.
    pub found: String,
    /// What fits there.
    pub expected: String,
}

impl MatcherError {
    fn new(part: &'static str, found: &str, expected: impl Into<String>) -> MatcherError {
        MatcherError { part, found: shown(found), expected: expected.into() }
    }
}

/// The part of the input that an error repeats: enough to find the place, and never a megabyte.
pub(crate) fn shown(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 40;
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
