//! Tests of the decoder: every form of a command, whole and cut at any byte, and every mistake.

use super::*;

const MAX: usize = 64;

/// The commands in a stream of bytes, one a line, with words separated by `|`, then the error that ends the stream, if
/// any.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = Decoder::new(MAX);
    let mut said = String::new();
    for piece in pieces {
        decoder.buffer().extend_from_slice(piece);
        loop {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(command)) => {
                    said += &command.name().escape_ascii().to_string();
                    for arg in command.args() {
                        said += &format!("|{}", arg.escape_ascii());
                    }
                    said += "\n";
                }
                Err(error) => return said + &error.to_string() + "\n",
            }
        }
        assert!(decoder.buffer.len() <= MAX + piece.len());
    }
    said
}

/// A stream gives the same commands whole, cut in two at any byte, and byte by byte.
#[track_caller]
fn check(input: &[u8], expected: &str) {
    assert_eq!(decode([input]), expected, "in one piece");
    for cut in 0..=input.len() {
        let (head, tail) = input.split_at(cut);
        assert_eq!(decode([head, tail]), expected, "cut at {cut}");
    }
    assert_eq!(decode(input.chunks(1)), expected, "byte by byte");
}

#[test]
fn an_array_of_bulk_strings_is_a_command() {
    check(b"*1\r\n$4\r\nPING\r\n", "PING\n");
    check(b"*2\r\n$4\r\nPING\r\n$5\r\nhello\r\n", "PING|hello\n");
    check(b"*2\r\n$1\r\na\r\n$0\r\n\r\n", "a|\n");
    check(b"*2\r\n$1\r\na\r\n$4\r\n\r\n\x00\xff\r\n", "a|\\r\\n\\x00\\xff\n");
}

#[test]
fn an_inline_line_is_a_command() {
    check(b"PING\r\n", "PING\n");
    check(b"PING\n", "PING\n");
    check(b"  PING \t hello  \r\n", "PING|hello\n");
}

#[test]
fn quotes_of_an_inline_line() {
    check(b"say \"a b\" 'c d'\r\n", "say|a b|c d\n");
    check(b"say \"\" ''\n", "say||\n");
    check(b"a\"b c\"\n", "ab c\n");
    check(b"'it\\'s' '\\n'\n", "it\\\'s|\\\\n\n");
    check(b"\"\\n\\r\\t\\b\\a\\\"\\\\\"\n", "\\n\\r\\t\\x08\\x07\\\"\\\\\n");
    check(b"\"\\x00\\xfF\\xg0\\x\"\n", "\\x00\\xffxg0x\n");
    for unbalanced in ["\"a", "'a", "\"a\"b", "'a'b", "\"a\\", "'a\\'", "a\""] {
        check(format!("{unbalanced}\r\nPING\r\n").as_bytes(), "unbalanced quotes in request\n");
    }
}

#[test]
fn pipelines_mix_both_forms() {
    check(b"PING\r\n*1\r\n$1\r\na\r\nb c\n*2\r\n$1\r\nd\r\n$1\r\ne\r\n", "PING\na\nb|c\nd|e\n");
}

#[test]
fn a_long_pipeline_of_short_commands_is_within_the_bound() {
    let input = b"*1\r\n$4\r\nPING\r\n".repeat(20);
    check(&input, &"PING\n".repeat(20));
}

#[test]
fn what_says_nothing_is_skipped() {
    check(b"", "");
    check(b"\r\n\n   \r\n*0\r\n*-1\r\nPING\r\n", "PING\n");
}

#[test]
fn incomplete_input_is_no_command() {
    check(b"*2\r\n$4\r\nPING\r\n$5\r\nhello\r", "");
    check(b"*1", "");
    check(b"PING", "");
}

#[test]
fn malformed_input_is_a_protocol_error() {
    check(b"*x\r\n", "invalid multibulk length\n");
    check(b"*1\n", "invalid multibulk length\n");
    check(b"*\r\n", "invalid multibulk length\n");
    check(b"*99999999999999999999999999", "invalid multibulk length\n");
    check(b"*1\r\n:4\r\n", "expected '$', got ':'\n");
    check(b"*1\r\n\x00", "expected '$', got '\\x00'\n");
    check(b"*1\r\n$-1\r\n", "invalid bulk length\n");
    check(b"*1\r\n$four\r\n", "invalid bulk length\n");
    check(b"*1\r\n$4\r\nPINGPONG", "expected CRLF after a bulk string\n");
    check(b"PING\r\n*1\r\n!", "PING\nexpected '$', got '!'\n");
}

#[test]
fn a_command_beyond_the_size_cap_is_an_error() {
    let too_large = "command exceeds 64 bytes\n";
    check(b"*9223372036854775807\r\n", "invalid multibulk length\n");
    check(b"*1\r\n$9223372036854775807\r\n", too_large);
    check(b"*11\r\n", too_large);
    check(&[b'a'; MAX + 1], too_large);
    check(b"*8\r\n$20\r\naaaaaaaaaaaaaaaaaaaa\r\n$20\r\naaaaaaaaaaaaaaaaaaaa\r\n$20\r\n", too_large);
}

#[test]
fn a_command_of_too_many_arguments_is_an_error() {
    let mut decoder = Decoder::new(1 << 20);
    for input in [format!("*{}\r\n", MAX_ARGS + 1), "a ".repeat(MAX_ARGS + 1) + "\n"] {
        decoder.buffer().extend_from_slice(input.as_bytes());
        assert_eq!(decoder.next().unwrap_err(), ProtocolError::ArrayLength);
    }
}

#[test]
fn the_bound_itself_fits() {
    let word = "a".repeat(MAX - "*1\r\n$54\r\n\r\n".len() + 1);
    check(format!("*1\r\n${}\r\n{word}\r\n", word.len()).as_bytes(), "command exceeds 64 bytes\n");
    let word = &word[1..];
    check(format!("*1\r\n${}\r\n{word}\r\n", word.len()).as_bytes(), &format!("{word}\n"));

    let word = "a".repeat(MAX - 1);
    check(format!("{word}\n").as_bytes(), &format!("{word}\n"));
}
