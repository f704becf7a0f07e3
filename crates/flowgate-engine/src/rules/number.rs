//! Decimal numbers in field values, compared digit by digit: of any length, never rounded.
//!
//! A number is `[+-]digits[.digits]`. Anything else, such as `1e9`, `0x10` or ` 5`, is text and matches no number.

use std::cmp::Ordering;
use std::fmt;

/// A number that lies in some text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal<'a> {
    negative: bool,
    /// Without leading zeros.
    whole: &'a str,
    /// Without trailing zeros.
    fraction: &'a str,
}

impl<'a> Decimal<'a> {
    /// The number that a text spells, if it does.
    pub(crate) fn parse(text: &'a str) -> Option<Decimal<'a>> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = match digits.split_once('.') {
            Some((_, "")) => return None,
            Some(parts) => parts,
            None => (digits, ""),
        };
        let is_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let zero = whole.is_empty() && fraction.is_empty();
        Some(Decimal { negative: negative && !zero, whole, fraction })
    }

    fn magnitude(&self, other: &Decimal<'_>) -> Ordering {
        let by_whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(other.whole));
        // Without trailing zeros, fractions sort like texts.
        by_whole.then_with(|| self.fraction.cmp(other.fraction))
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Decimal<'_>) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Decimal<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The numbers between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberRange {
    low: Option<Bound>,
    high: Option<Bound>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    /// A number; kept as it was written.
    number: Box<str>,
    inclusive: bool,
}

impl Bound {
    fn new(text: &str, inclusive: bool) -> Option<Bound> {
        Decimal::parse(text).map(|_| Bound { number: text.into(), inclusive })
    }

    fn cmp(&self, value: Decimal<'_>) -> Option<Ordering> {
        Decimal::parse(&self.number).map(|bound| value.cmp(&bound))
    }
}

impl NumberRange {
    /// The range that a comparison (`> 100`, `<=5`) names; `None` unless a number follows the sign.
    pub fn comparison(text: &str) -> Option<NumberRange> {
        let (above, rest) = match text.strip_prefix('>') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('<')?),
        };
        let (inclusive, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let bound = Some(Bound::new(rest.trim_ascii(), inclusive)?);
        Some(if above { NumberRange { low: bound, high: None } } else { NumberRange { low: None, high: bound } })
    }

    /// Whether a text is a number.
    pub fn is_number(text: &str) -> bool {
        Decimal::parse(text).is_some()
    }

    /// From one number to another, both included; `None` unless both are numbers and in order.
    pub fn between(low: &str, high: &str) -> Option<NumberRange> {
        if Decimal::parse(low)? > Decimal::parse(high)? {
            return None;
        }
        Some(NumberRange { low: Bound::new(low, true), high: Bound::new(high, true) })
    }

    /// Whether a value is a number in the range.
    pub(crate) fn contains(&self, value: &str) -> bool {
        let Some(value) = Decimal::parse(value) else { return false };
        let holds = |bound: &Option<Bound>, wanted: Ordering| {
            bound.as_ref().is_none_or(|bound| match bound.cmp(value) {
                Some(Ordering::Equal) => bound.inclusive,
                found => found == Some(wanted),
            })
        };
        holds(&self.low, Ordering::Greater) && holds(&self.high, Ordering::Less)
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |bound: &Bound, sign: char| if bound.inclusive { format!("{sign}=") } else { sign.into() };
        match (&self.low, &self.high) {
            (Some(low), Some(high)) => write!(f, "{}..{}", low.number, high.number),
            (Some(low), None) => write!(f, "{} {}", sign(low, '>'), low.number),
            (None, Some(high)) => write!(f, "{} {}", sign(high, '<'), high.number),
            (None, None) => f.write_str("any number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_compare_exactly() {
        let sorted = [
            "-100000000000000000000000000000000000000000",
            "-10",
            "-9.5",
            "-9.25",
            "-0.1",
            "0",
            "0.1",
            "0.10000000001",
            "1",
            "9007199254740992",
            "9007199254740993",
            "100000000000000000000000000000000000000000",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(Decimal::parse(a).unwrap().cmp(&Decimal::parse(b).unwrap()), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn one_number_may_be_written_in_several_ways() {
        for (a, b) in [("-0", "0"), ("+5", "5"), ("007", "7"), ("1.50", "1.5"), ("1.0", "1")] {
            assert_eq!(Decimal::parse(a), Decimal::parse(b), "{a} {b}");
        }
        for text in ["", "-", "+", ".5", "5.", "1e9", " 5", "5 ", "0x1", "--1", "1_000", "٣"] {
            assert_eq!(Decimal::parse(text), None, "{text:?}");
        }
    }
}
