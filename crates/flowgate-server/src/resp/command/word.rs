//! Words of the protocol: short, and in any case.
//!
//! A word is folded once and then compared in one step, so that a long table of commands is searched in no time.

/// A word of at most 16 bytes in lower case, none of them zero; zeroes behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(u128);

const MAX_WORD_BYTES: usize = size_of::<Word>();

impl Word {
    /// The word of a text in the code: one that is too long or empty does not compile.
    pub(super) const fn new(text: &'static str) -> Word {
        assert!(!text.is_empty() && text.len() <= MAX_WORD_BYTES);
        let (mut bytes, mut at) = ([0; MAX_WORD_BYTES], 0);
        while at < text.len() {
            bytes[at] = text.as_bytes()[at].to_ascii_lowercase();
            at += 1;
        }
        Word(u128::from_le_bytes(bytes))
    }

    /// The word that a client has written; `None` when it is none of ours for certain.
    #[inline]
    pub(super) fn read(text: &[u8]) -> Option<Word> {
        let mut bytes = [0; MAX_WORD_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        // A zero at the end would not be told from none.
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
