//! Words of the protocol: short, in upper or lower case.
//!
//! A word is folded to lower case once and then compared as one integer, which makes a search of the table cheap.

/// A word of at most 16 bytes in lower case, none of them zero; zeroes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u128);

const MAX_WORD_BYTES: usize = size_of::<Word>();

impl Word {
    /// A word of the source code: an empty or too long one does not compile.
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
        let mut bytes = [0; MAX_WORD_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        // A zero at the end would look like padding.
        (text.last() != Some(&0)).then(|| Word(u128::from_le_bytes(bytes.map(|byte| byte.to_ascii_lowercase()))))
    }
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
    fn what_is_too_long_is_none() {
        assert_eq!(Word::read(b"0123456789abcdef"), Some(Word::new("0123456789ABCDEF")));
        assert_eq!(Word::read(b"0123456789abcdef0"), None);
        assert_eq!(Word::read(&[b'x'; 1000]), None);
    }
}
