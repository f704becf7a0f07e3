//! Lists: sets of texts, addresses and networks.
//!
//! An entry that is an address, a network (`10.0.0.0/8`), a range (`10.0.0.1..10.0.0.9` or `10.0.0.1-10.0.0.9`) or a
//! wildcard (`10.0.24.*`) matches addresses in any spelling; every other entry matches its exact text. A list of
//! [addresses](ListKind::Addresses) has no such entry.

mod addresses;
mod texts;

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
    /// Where its entries are: in the configuration or in a file.
    pub source: ListSource,
    /// What its entries are, if the configuration says so.
    pub kind: Option<ListKind>,
}

/// What the entries of a list are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Texts, addresses and networks: what does not look like an address is a text.
    #[default]
    Mixed,
    /// Addresses, networks and ranges alone: anything else is a mistake.
    Addresses,
}

impl ListKind {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            ListKind::Mixed => "mixed",
            ListKind::Addresses => "addresses",
        }
    }
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
        List::parse_all(text, ListKind::Mixed).map_err(ListErrors::into_first)
    }

    /// Like [`List::parse`], for a list of one kind.
    ///
    /// # Errors
    /// All mistakes: those of [`List::parse`], and in a list of addresses every entry that is not an address.
    pub fn parse_all(text: &str, kind: ListKind) -> Result<List, ListErrors> {
        List::collect(text.lines().map(without_comment), kind)
    }

    /// The list of these values, taken as they are.
    ///
    /// # Errors
    /// The same as for [`List::parse`]; the line of an error is the position of the value, from 1.
    pub fn from_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<List, ListError> {
        List::all_from_values(values, ListKind::Mixed).map_err(ListErrors::into_first)
    }

    /// Like [`List::from_values`], for a list of one kind.
    ///
    /// # Errors
    /// The same as for [`List::parse_all`].
    pub fn all_from_values<'a>(values: impl IntoIterator<Item = &'a str>, kind: ListKind) -> Result<List, ListErrors> {
        List::collect(values, kind)
    }

    /// True if a value is on the list.
    pub fn contains(&self, value: &str) -> bool {
        self.holds(value, || Address::parse(value))
    }

    /// Like [`List::contains`], for a caller that may know the address of the value.
    pub(crate) fn holds(&self, text: &str, address: impl FnOnce() -> Option<Address>) -> bool {
        self.texts.contains(text)
            || !self.addresses.is_empty() && address().is_some_and(|address| self.addresses.contains(address))
    }

    /// The entries that are texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter()
    }

    /// Adds a text, if there is room.
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

    fn collect<'a>(entries: impl IntoIterator<Item = &'a str>, kind: ListKind) -> Result<List, ListErrors> {
        let (mut list, mut ranges, mut wrong) = (List::default(), Vec::new(), ListErrors::default());
        for (index, entry) in entries.into_iter().enumerate().filter(|(_, entry)| !entry.is_empty()) {
            let parsed = match list.entries {
                MAX_ENTRIES => Err("at most 16000000 entries"),
                _ => parse_entry(entry, kind),
            };
            let added = match parsed {
                Ok(Some(range)) => {
                    ranges.push(range);
                    Ok(())
                }
                Ok(None) => list.texts.insert(entry).map_err(|full| full.expected),
                Err(expected) => Err(expected),
            };
            list.entries += 1;
            if let Err(expected) = added {
                list.entries -= 1;
                wrong.add(|| ListError { line: index + 1, found: shown(entry), expected: expected.into() });
            }
        }
        if !wrong.errors.is_empty() {
            return Err(wrong);
        }
        list.addresses = AddressSet::new(ranges);
        Ok(list)
    }
}

/// The addresses that an entry names; `None` if it is a text. Or what was expected.
fn parse_entry(entry: &str, kind: ListKind) -> Result<Option<AddressRange>, &'static str> {
    if entry.len() > MAX_ENTRY_BYTES {
        return Err("an entry of at most 1024 bytes");
    }
    let mut parsed = AddressRange::parse(entry);
    if parsed == Ok(None)
        && let Some((first, last)) = entry.split_once('-')
    {
        parsed = AddressRange::between(first.trim(), last.trim());
    }
    match (parsed.map_err(|wrong| wrong.expected)?, kind) {
        (None, ListKind::Addresses) if entry.contains([',', ';', ' ', '\t']) => {
            Err("one address, network or range in each entry")
        }
        (None, ListKind::Addresses) => Err("an address, a network or a range of addresses"),
        (parsed, _) => Ok(parsed),
    }
}

/// A line without its comment and the blanks around it.
fn without_comment(line: &str) -> &str {
    let comment =
        line.match_indices('#').find(|&(at, _)| line[..at].chars().next_back().is_none_or(char::is_whitespace));
    comment.map_or(line, |(at, _)| &line[..at]).trim()
}

/// A mistake in a list: the line, its text, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{found}`: expected {expected}")]
pub struct ListError {
    /// The line of the file, or the position of the value, from 1.
    pub line: usize,
    /// The text, shortened if it is long.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// The mistakes of a list: the first twenty, and how many there are beyond them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListErrors {
    /// The first twenty.
    pub errors: Vec<ListError>,
    /// The number of further mistakes.
    pub more: usize,
}

/// The most errors that are listed one by one; further ones are counted. A file that is not a list has one in every
/// line.
const MAX_LIST_ERRORS: usize = 20;

impl ListErrors {
    fn add(&mut self, error: impl FnOnce() -> ListError) {
        match self.errors.len() < MAX_LIST_ERRORS {
            true => self.errors.push(error()),
            false => self.more += 1,
        }
    }

    fn into_first(mut self) -> ListError {
        // A list that fails has at least one mistake.
        self.errors.swap_remove(0)
    }
}

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
    fn a_list_of_addresses_has_no_other_entry_and_tells_all_mistakes() {
        let text = "10.0.0.1\n10.0.0.256\n\n1.2.3.x # x\n10.0.0.1,10.0.0.2\nguest\n10.0.0.9-10.0.0.1\n::1 - ::9\n";
        let wrong = List::parse_all(text, ListKind::Addresses).unwrap_err();
        let told: Vec<_> =
            wrong.errors.iter().map(|error| (error.line, error.found.as_str(), error.expected.as_str())).collect();
        let address = "an address, a network or a range of addresses";
        let range = "two addresses of one family, the lower one first, such as 10.0.0.1..10.0.0.9";
        assert_eq!(
            told,
            [
                (2, "10.0.0.256", address),
                (4, "1.2.3.x", address),
                (5, "10.0.0.1,10.0.0.2", "one address, network or range in each entry"),
                (6, "guest", address),
                (7, "10.0.0.9-10.0.0.1", range),
            ]
        );
        let wrong = List::parse_all(&"x\n".repeat(50), ListKind::Addresses).unwrap_err();
        assert_eq!((wrong.errors.len(), wrong.more), (20, 30));
        let mixed = List::parse("10.0.0.256\n1.2.3.x\nguest").unwrap();
        assert!(mixed.contains("10.0.0.256") && mixed.contains("guest"));
    }

    #[test]
    fn ranges_may_have_a_dash() {
        for kind in [ListKind::Mixed, ListKind::Addresses] {
            let list = List::parse_all("10.0.0.1-10.0.0.9\n2001:db8::1 - 2001:db8::9", kind).unwrap();
            assert!(list.contains("10.0.0.5") && list.contains("::ffff:10.0.0.9") && list.contains("2001:db8::7"));
            assert!(!list.contains("10.0.0.10") && !list.contains("2001:db8::a"));
        }
        assert!(List::parse("well-known").unwrap().contains("well-known"));
    }

    #[test]
    fn an_error_names_the_line() {
        let error = List::parse("ok\n\n10.0.0.0/40").unwrap_err();
        assert_eq!(error.line, 3);
        assert_eq!(error.to_string(), "line 3: `10.0.0.0/40`: expected a prefix length from 0 to 32 after the slash");
        assert_eq!(List::parse(&format!("a\n{}", "x".repeat(2000))).unwrap_err().line, 2);
    }
}
