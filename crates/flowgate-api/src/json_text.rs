//! A text as JSON, fast.

use std::io;

/// Appends a text as JSON. Most texts need no escape, so a check of all bytes comes first.
///
/// # Errors
///
/// None: a buffer that grows takes any text.
pub fn write_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    if needs_escape(text.as_bytes()) {
        return Ok(serde_json::to_writer(out, text)?);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

/// Whether JSON escapes one of the bytes. Most texts are short, so eight bytes are checked at a time, as one number.
fn needs_escape(text: &[u8]) -> bool {
    let (words, _) = text.as_chunks::<8>();
    let last = match text.last_chunk() {
        // The last word overlaps the word before it, so some bytes are checked twice.
        Some(last) => u64::from_ne_bytes(*last),
        None => text.iter().fold(ONES * u64::from(b' '), |word, byte| word << 8 | u64::from(*byte)),
    };
    words.iter().fold(escaped(last), |found, word| found | escaped(u64::from_ne_bytes(*word))) != 0
}

/// Eight bytes, each with the value 1.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

/// Nonzero if one of the eight bytes of a word is a control character, a quote or a backslash.
fn escaped(word: u64) -> u64 {
    const HIGH_BITS: u64 = ONES << 7;
    // A byte below `bound` borrows from its high bit, which was not set before. A borrow from a lower byte changes nothing:
    // that byte is below the bound, too.
    let is_below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGH_BITS;
    let is = |byte: u8| is_below(word ^ (ONES * u64::from(byte)), 1);
    is_below(word, u64::from(b' ')) | is(b'"') | is(b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_json_escapes_is_found_at_every_place() {
        for length in 0..=25 {
            assert!(!needs_escape(&vec![b'a'; length]));
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'a'; length];
                    text[place] = byte;
                    let expected = byte < b' ' || byte == b'"' || byte == b'\\';
                    assert_eq!(needs_escape(&text), expected, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn texts_are_written_as_serde_json_writes_them() {
        for text in [
            "",
            "/a",
            "with \"quotes\"",
            "back\\slash",
            "line\nend",
            "\u{7f}\u{80}\u{4e2d}\u{1f600}",
            "\u{1}",
            "12345678\"",
        ] {
            let mut out = Vec::new();
            write_text(&mut out, text).unwrap();
            assert_eq!(out, serde_json::to_vec(text).unwrap(), "{text}");
        }
    }
}
