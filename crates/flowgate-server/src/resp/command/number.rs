//! Numbers in arguments: decimal text, as `str::parse` reads it, without a check for UTF-8.

/// Reads an optional sign and digits; `None` for any other text, and for a number that does not fit.
#[inline]
pub(super) fn parse(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    if digits.len() <= SAFE_DIGITS {
        let value = digits.iter().try_fold(0, |value, byte| Some(10 * value + i64::from(digit(*byte)?)))?;
        return Some(if negative { -value } else { value });
    }
    // The value is built below zero, where the range has one number more.
    let value =
        digits.iter().try_fold(0_i64, |value, &byte| value.checked_mul(10)?.checked_sub(i64::from(digit(byte)?)))?;
    if negative { Some(value) } else { value.checked_neg() }
}

/// The number of digits that always fit.
const SAFE_DIGITS: usize = i64::MAX.ilog10() as usize;

#[inline]
fn digit(byte: u8) -> Option<u8> {
    Some(byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    proptest! {
        #[test]
        fn reads_what_the_standard_library_reads(text in "[-+]?[0-9a]{0,21}") {
            prop_assert_eq!(parse(text.as_bytes()), text.parse().ok());
        }

        #[test]
        fn every_number_is_read(number: i64) {
            prop_assert_eq!(parse(number.to_string().as_bytes()), Some(number));
        }
    }

    #[test]
    fn text_that_is_not_a_number_is_refused() {
        for text in ["", "-", "+", " 1", "1 ", "1.0", "--1", "9223372036854775808", "-9223372036854775809", "\u{661}"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"-9223372036854775808"), Some(i64::MIN));
    }
}
