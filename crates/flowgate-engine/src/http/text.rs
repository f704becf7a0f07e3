//! Bytes that clients send, as text: different bytes are different texts.
//!
//! Rule       UTF-8 is itself. A byte that is not part of any character becomes U+FFFD and its two hexadecimal digits.
//!            A U+FFFD that the client sent is written the same way, byte by byte, so that no text stands for two
//!            values: two keys that differ in such bytes only have two counters.

use std::borrow::Cow;
use std::fmt::Write;

const REPLACEMENT: char = '\u{fffd}';

/// The text of some bytes.
///
/// ```
/// use flowgate_engine::http::escaped_text;
///
/// assert_eq!(escaped_text("caf\u{e9}".as_bytes()), "caf\u{e9}");
/// assert_eq!(escaped_text(b"caf\xe9"), "caf\u{fffd}e9");
/// ```
pub fn escaped_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        // Nearly every text is ASCII, and that is quicker to see than that a character is missing.
        Ok(text) if text.is_ascii() || !text.contains(REPLACEMENT) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes)),
    }
}

#[cold]
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                REPLACEMENT => REPLACEMENT.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_byte(&mut out, byte)),
                other => out.push(other),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_byte(&mut out, byte));
    }
    out
}

fn push_byte(out: &mut String, byte: u8) {
    // Writing into a text does not fail.
    let _ = write!(out, "{REPLACEMENT}{byte:02x}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads an escaped text back.
    fn bytes_of(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            if character == REPLACEMENT {
                bytes.push(u8::from_str_radix(&rest[..2], 16).unwrap());
                rest = &rest[2..];
            } else {
                bytes.extend(character.encode_utf8(&mut [0; 4]).bytes());
            }
        }
        bytes
    }

    #[test]
    fn different_bytes_are_different_texts() {
        assert_eq!(escaped_text(b"key-\xff"), "key-\u{fffd}ff");
        assert_eq!(escaped_text(b"key-\xfe"), "key-\u{fffd}fe");
        assert_eq!(escaped_text("\u{fffd}ff".as_bytes()), "\u{fffd}ef\u{fffd}bf\u{fffd}bdff");
    }

    proptest! {
        #[test]
        fn bytes_become_text_without_loss(bytes in proptest::collection::vec(
            prop_oneof![any::<u8>(), Just(b'f'), Just(0xef), Just(0xbf), Just(0xbd)], 0..12)
        ) {
            prop_assert_eq!(bytes_of(&escaped_text(&bytes)), bytes);
        }
    }
}
