//! Words of the protocol: short, in upper or lower case.
//!
//! A word is folded to lower case once and then compared as one integer, which makes a search of the table cheap.

/// A word of at most 16 bytes in lower case, padded with zeros. The word itself contains no zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u128);

const MAX_WORD_BYTES: usize = size_of::<Word>();

impl Word {
    /// A word of the source code. An empty or too long one does not compile.
    pub(super) const fn new(text: &'static str) -> Word {
        assert!(!text.is_empty() && text.len() <= MAX_WORD_BYTES);
        let (mut bytes, mut at) = ([0; MAX_WORD_BYTES], 0);
        while at < text.len() {
            bytes[at] = text.as_bytes()[at].to_ascii_lowercase();
            at += 1;
        }
        Word(u128::from_le_bytes(bytes))
    }

    /// A word of a client; `None` if it cannot be in the table.
    #[inline]
    pub(super) fn read(text: &[u8]) -> Option<Word> {
        // A zero at the end would look like padding.
        if text.len() > MAX_WORD_BYTES || text.last() == Some(&0) {
            return None;
        }
        // Two loads that overlap are quicker than a copy of that many bytes.
        let word = match (text.first_chunk(), text.last_chunk()) {
            (Some(first), Some(last)) => {
                u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << (8 * (text.len() - 8))
            }
            _ => match (text.first_chunk(), text.last_chunk()) {
                (Some(first), Some(last)) => {
                    let half = |bytes: [u8; 4]| u128::from(u32::from_le_bytes(bytes));
                    half(*first) | half(*last) << (8 * (text.len() - 4))
                }
                _ => text.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)),
            },
        };
        Some(Word(to_lower_case(word)))
    }
}

/// Folds all sixteen bytes at once. The sums of seven bits reach the eighth bit of a byte, never the next byte.
#[inline]
fn to_lower_case(word: u128) -> u128 {
    let each = |byte: u8| u128::from_ne_bytes([byte; MAX_WORD_BYTES]);
    let low_bits = word & each(0x7f);
    let (from_a, beyond_z) = (low_bits + each(0x80 - b'A'), low_bits + each(0x7f - b'Z'));
    let is_upper = from_a & !beyond_z & !word & each(0x80);
    word | is_upper >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_in_any_case() {
        let ping = Word::new("ping");
        for text in ["ping", "PING", "Ping"] {
            assert_eq!(Word::read(text.as_bytes()), Some(ping));
        }
        for other in ["", "pin", "pingg", "ping\0", "\u{10}ing", "p\0ng", "Ping "] {
            assert_ne!(Word::read(other.as_bytes()), Some(ping), "{other:?}");
        }
    }

    #[test]
    fn every_byte_is_folded_as_the_standard_library_does() {
        for (first, length) in (0..=255).flat_map(|first| (1..=MAX_WORD_BYTES).map(move |length| (first, length))) {
            let bytes: Vec<u8> = (0..length as u8).map(|place| first ^ (place * 16)).collect();
            let mut folded = [0; MAX_WORD_BYTES];
            folded[..length].copy_from_slice(&bytes.to_ascii_lowercase());
            let expected = (bytes[length - 1] != 0).then_some(Word(u128::from_le_bytes(folded)));
            assert_eq!(Word::read(&bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_none() {
        assert_eq!(Word::read(b"0123456789abcdef"), Some(Word::new("0123456789ABCDEF")));
        assert_eq!(Word::read(b"0123456789abcdef0"), None);
        assert_eq!(Word::read(&[b'x'; 1000]), None);
    }
}
