//! The decoder under random input: for the fuzz target, and for a test that does the same on every run.

use super::decode::{Decoder, MAX_HEADER_BYTES, PlainCommand};

/// The contents of a stream: its commands, and the error that ended it.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedStream {
    /// Each command with its name and arguments.
    pub commands: Vec<Vec<Vec<u8>>>,
    /// The error's text.
    pub error: Option<String>,
}

/// Decodes a stream that arrives in these pieces.
///
/// # Panics
/// When a command, or an incomplete one, exceeds `max_command`, or a command differs from the planned one.
pub fn hear<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, max_command: usize) -> DecodedStream {
    let mut decoder = Decoder::new(max_command);
    let mut commands = Vec::new();
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        loop {
            let plain =
                PlainCommand::read(decoder.ahead()).filter(|plain| plain.bytes.len() <= max_command).map(|plain| {
                    let words = (0..=plain.arguments()).filter_map(|index| plain.word(index));
                    words.map(<[u8]>::to_vec).collect::<Vec<_>>()
                });
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(command)) => {
                    let words: Vec<_> =
                        std::iter::once(command.name()).chain(command.args()).map(<[u8]>::to_vec).collect();
                    assert!(plain.is_none_or(|plain| words == plain), "another command was planned");
                    assert!(words.iter().map(Vec::len).sum::<usize>() <= max_command, "a command is too large");
                    commands.push(words);
                }
                Err(error) => return DecodedStream { commands, error: Some(error.to_string()) },
            }
        }
        // A header is parsed once it is complete, or too long to be valid.
        assert!(decoder.buffer().len() <= max_command + MAX_HEADER_BYTES + piece.len(), "too much is kept");
    }
    DecodedStream { commands, error: None }
}

/// Decodes a stream whole, cut in two, and byte by byte.
///
/// # Panics
/// When the results differ.
pub fn check(input: &[u8], cut: usize, max_command: usize) {
    let whole = hear([input], max_command);
    let (head, tail) = input.split_at(cut % (input.len() + 1));
    assert_eq!(hear([head, tail], max_command), whole, "cut at {}", head.len());
    assert_eq!(hear(input.chunks(1), max_command), whole, "byte by byte");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Random bytes that resemble the protocol, so that they reach deeper than the first byte.
        #[test]
        fn a_stream_says_the_same_however_it_is_cut(
            pieces in prop::collection::vec(
                prop_oneof![
                    "[*$][-+0-9]{0,3}\r\n".prop_map(String::into_bytes),
                    "[*$][-0-9]{1,21}(\r\n|\n|\r)".prop_map(String::into_bytes),
                    "([a-z]|\"[a-z\\\\nx0 ]{0,5}\"?|'[a-z\\\\' ]{0,5}'?| ){0,8}\r?\n".prop_map(String::into_bytes),
                    prop::collection::vec(any::<u8>(), 0..6),
                    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..8), 1..4).prop_map(encode),
                ],
                0..8,
            ),
            cut in any::<prop::sample::Index>(),
            max_command in prop_oneof![Just(8_usize), Just(32), Just(1000)],
        ) {
            let input = pieces.concat();
            check(&input, cut.index(input.len() + 1), max_command);
        }
    }

    fn encode(words: Vec<Vec<u8>>) -> Vec<u8> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(&word);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }
}
