//! Sizes in bytes as text: `"1MB"` is a million, `"1MiB"` is 2^20.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::render::quoted;
use super::report::Report;
use super::tree::{Node, Value};
use super::value;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

impl ByteSize {
    /// A size of `bytes`.
    pub const fn new(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ();

    /// A whole number and a unit; the case of the unit does not matter.
    fn from_str(text: &str) -> Result<ByteSize, ()> {
        parse(text).flatten().ok_or(())
    }
}

/// Reads a size; `None`: the text is not a size; `Some(None)`: the size does not fit into 64 bits.
fn parse(text: &str) -> Option<Option<ByteSize>> {
    let (number, name) = text.split_at(text.find(|char: char| !char.is_ascii_digit())?);
    let (_, unit) = UNITS.into_iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name))?;
    if number.is_empty() {
        return None;
    }
    let number: Option<u64> = number.parse().ok();
    Some(number.and_then(|number| number.checked_mul(unit)).map(ByteSize))
}

impl fmt::Display for ByteSize {
    /// In the unit that divides it and leaves the smallest number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, unit): &(&str, u64)| self.0 > 0 && self.0.is_multiple_of(*unit);
        let (name, unit) = UNITS.into_iter().find(fits).unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// Reads a size within a range.
pub(crate) fn read(report: &mut Report, node: &Node, range: RangeInclusive<ByteSize>) -> Option<ByteSize> {
    const EXPECTED: &str = "expected a size such as \"64KB\", \"1MB\" or \"2GiB\"";
    const UNITS: &str = "a whole number and one of the units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB";
    if let Value::Integer(..) = node.value {
        let bytes = report.sources.shown(node.at);
        let message = format!("{EXPECTED}, found a number without a unit");
        return report.error(node.at, message).hint(format!("for bytes write \"{bytes}B\"")).refuse();
    }
    let text = value::text(report, node)?;
    let Some(size) = parse(text) else {
        return report.error(node.at, format!("{EXPECTED}, found {}", quoted(text))).hint(UNITS).refuse();
    };
    let size = size.unwrap_or(ByteSize(u64::MAX));
    if !range.contains(&size) {
        let message = format!("expected a size from {} to {}, found {}", range.start(), range.end(), quoted(text));
        return report.error(node.at, message).refuse();
    }
    Some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_it_is_written() {
        for text in ["1MB", "1MiB", "64KB", "2GiB", "10TB", "1B", "1023B", "0B"] {
            assert_eq!(text.parse::<ByteSize>().map(|size| size.to_string()).as_deref(), Ok(text));
        }
        assert_eq!("1mb".parse(), Ok(ByteSize::new(1_000_000)));
        for text in ["", "1", "MB", "1M", "1 MB", "1.5GB", "-1B", "99999999999TB"] {
            assert_eq!(text.parse::<ByteSize>(), Err(()), "{text}");
        }
    }
}
