//! Lists: sets of texts, addresses and networks.
//!
//! An entry that is an address, a network (`10.0.0.0/8`), a range (`10.0.0.1..10.0.0.9`) or a wildcard (`10.0.24.*`)
//! matches addresses in any spelling; every other entry matches its exact text.

mod addresses;
mod texts;

use std::fmt;
use std::path::PathBuf;

use crate::address::{Address, AddressRange};
use crate::rules::shown;
use addresses::AddressSet;
use texts::TextSet;

/// The longest entry. A longer one means that the file is not a list.
const MAX_ENTRY_BYTES: usize = 1024;

/// The most entries of a list.
const MAX_ENTRIES: usize = 16_000_000;

/// A list as it is written in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListDef {
    /// Letters, digits, `_`, `.` and `-`.
    pub name: String,
    /// The place of its entries.
    pub source: ListSource,
}

/// The place of a list's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListSource {
    /// In the configuration itself.
    Values(Vec<String>),
    /// In a file, one entry a line.
    File(PathBuf),
}

/// A loaded list.
///
/// ```
/// use flowgate_engine::lists::List;
///
/// let list = List::parse("# offices\n10.0.0.0/8\n2001:db8::/32\nguest\n")?;
/// assert!(list.contains("10.1.2.3") && list.contains("::ffff:10.1.2.3") && list.contains("guest"));
/// assert!(!list.contains("11.0.0.1"));
/// # Ok::<(), flowgate_engine::lists::ListError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct List {
    texts: TextSet,
    addresses: AddressSet,
    entries: usize,
}

impl List {
    /// Reads a list file: one entry a line; blank lines and what follows a `#` at the start of a line or after a
    /// blank are ignored.
    ///
    /// # Errors
    /// When an entry begins like an address and is not one, or is too long; the error names the line.
    pub fn parse(text: &str) -> Result<List, ListError> {
        List::collect(text.lines().map(without_comment))
    }

    /// The list of these values, taken as they are.
    ///
    /// # Errors
    /// As [`List::parse`]; the line of an error is the position of the value, from 1.
    pub fn from_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<List, ListError> {
        List::collect(values)
    }

    /// True if a value is on the list.
    pub fn contains(&self, value: &str) -> bool {
        self.holds(value, || Address::parse(value))
    }

    /// As [`List::contains`], for a caller that may know the address of the value.
    pub(crate) fn holds(&self, text: &str, address: impl FnOnce() -> Option<Address>) -> bool {
        self.texts.contains(text)
            || !self.addresses.is_empty() && address().is_some_and(|address| self.addresses.contains(address))
    }

    /// The entries that are texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter()
    }

    /// Adds a text, as far as there is room.
    pub(crate) fn add_text(&mut self, text: &str) {
        if self.texts.insert(text).is_ok() {
            self.entries += 1;
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    fn collect<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<List, ListError> {
        let (mut list, mut ranges) = (List::default(), Vec::new());
        for (index, entry) in entries.into_iter().enumerate().filter(|(_, entry)| !entry.is_empty()) {
            let error = |expected: &str| ListError { line: index + 1, found: shown(entry), expected: expected.into() };
            if entry.len() > MAX_ENTRY_BYTES {
                return Err(error("an entry of at most 1024 bytes"));
            }
            if list.entries == MAX_ENTRIES {
                return Err(error("at most 16000000 entries"));
            }
            match AddressRange::parse(entry).map_err(|wrong| error(wrong.expected))? {
                Some(range) => ranges.push(range),
                None => list.texts.insert(entry).map_err(|full| error(full.expected))?,
            }
            list.entries += 1;
        }
        list.addresses = AddressSet::new(ranges);
        Ok(list)
    }
}

/// A line without its comment and the blanks around it.
fn without_comment(line: &str) -> &str {
    let comment =
        line.match_indices('#').find(|&(at, _)| line[..at].chars().next_back().is_none_or(char::is_whitespace));
    comment.map_or(line, |(at, _)| &line[..at]).trim()
}

/// A mistake in a list: the line, its text, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    line: usize,
    found: String,
    expected: String,
}

impl ListError {
    /// The line of the file, or the position of the value, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The text, shortened if it is long.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What was expected.
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}`: expected {}", self.line, self.found, self.expected)
    }
}

impl std::error::Error for ListError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_comments_blanks_and_any_line_end() {
        let list = List::parse("# a\r\n\r\n  7  # vip\r\na#b\n\u{feff}").unwrap();
        assert!(list.contains("7") && list.contains("a#b") && !list.contains("vip") && !list.contains(""));
        assert!(List::parse("").unwrap().is_empty());
    }

    #[test]
    fn an_error_names_the_line() {
        let error = List::parse("ok\n\n10.0.0.0/40").unwrap_err();
        assert_eq!(error.line(), 3);
        assert_eq!(error.to_string(), "line 3: `10.0.0.0/40`: expected a prefix length from 0 to 32 after the slash");
        assert_eq!(List::parse(&format!("a\n{}", "x".repeat(2000))).unwrap_err().line(), 2);
    }
}
