//! Replies to bytes: the server's side of the Redis protocol.
//!
//! Replies are appended to the connection's output as they are made, so the replies of a pipeline leave in one write.
//! RESP2 knows neither maps nor null; a [`Reply`] writes what its client understands.

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// The version of a new connection.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// Where a command writes its one reply. The elements of an array follow its header.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) version: Version,
}

impl Reply<'_> {
    pub(crate) fn simple(&mut self, text: &'static str) {
        self.line(b'+', text.as_bytes());
    }

    pub(crate) fn ok(&mut self) {
        self.simple("OK");
    }

    /// An error, always on one line: blanks replace the control characters in it.
    pub(crate) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(crate) fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// An array of integers, written at once.
    #[inline]
    pub(crate) fn integers<const N: usize>(&mut self, numbers: [i64; N]) {
        let mut text = Text::new();
        text.array(N, numbers);
        self.out.extend_from_slice(text.written());
    }

    /// A decision: its numbers, what the caller is to do, and the rule, written in one pass.
    #[inline]
    pub(crate) fn decision(&mut self, numbers: [i64; 6], action: &str, rule: &str) {
        let mut text = Text::new();
        text.array(numbers.len() + 2, numbers);
        for word in [action, rule] {
            text.number(b'$', word.len() as i64);
            // Names of rules are short, but may have any length.
            if !text.word(word.as_bytes()) {
                self.out.extend_from_slice(text.written());
                self.out.extend_from_slice(word.as_bytes());
                text = Text::new();
            }
            text.line_end();
        }
        self.out.extend_from_slice(text.written());
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.number(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    pub(crate) fn null(&mut self) {
        self.out.extend_from_slice(match self.version {
            Version::Resp2 => b"$-1\r\n",
            Version::Resp3 => b"_\r\n",
        });
    }

    /// The header of an array.
    #[inline]
    pub(crate) fn array(&mut self, elements: usize) {
        self.number(b'*', elements as i64);
    }

    /// The header of a map: in RESP2 an array of twice as many elements as there are pairs.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Resp2 => self.array(2 * pairs),
            Version::Resp3 => self.number(b'%', pairs as i64),
        }
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn number(&mut self, kind: u8, number: i64) {
        let mut text = [0; MAX_INTEGER_REPLY_BYTES];
        let length = write_number(&mut text, kind, number);
        self.out.extend_from_slice(&text[..length]);
    }
}

/// The text of a short reply, put together before it is appended to the output in one copy.
struct Text {
    bytes: [u8; MAX_TEXT_BYTES],
    end: usize,
}

const MAX_TEXT_BYTES: usize = 256;

/// The room that is kept behind a word: for its end, and for the header of the next.
const MIN_ROOM_BYTES: usize = LINE_END.len() + MAX_INTEGER_REPLY_BYTES;

impl Text {
    fn new() -> Text {
        Text { bytes: [0; MAX_TEXT_BYTES], end: 0 }
    }

    /// The header of an array that begins with these integers, and the integers.
    #[inline]
    fn array<const N: usize>(&mut self, elements: usize, numbers: [i64; N]) {
        const { assert!((N + 1) * MAX_INTEGER_REPLY_BYTES + MIN_ROOM_BYTES <= MAX_TEXT_BYTES) }
        self.number(b'*', elements as i64);
        for number in numbers {
            self.number(b':', number);
        }
    }

    #[inline]
    fn number(&mut self, kind: u8, number: i64) {
        self.end += write_number(&mut self.bytes[self.end..], kind, number);
    }

    /// Appends a word; false if there is no room for it.
    #[inline]
    fn word(&mut self, word: &[u8]) -> bool {
        let end = self.end + word.len();
        if end + MIN_ROOM_BYTES > MAX_TEXT_BYTES {
            return false;
        }
        self.bytes[self.end..end].copy_from_slice(word);
        self.end = end;
        true
    }

    #[inline]
    fn line_end(&mut self) {
        self.bytes[self.end..][..LINE_END.len()].copy_from_slice(LINE_END);
        self.end += LINE_END.len();
    }

    #[inline]
    fn written(&self) -> &[u8] {
        &self.bytes[..self.end]
    }
}

const LINE_END: &[u8] = b"\r\n";

/// Kind, sign, the 19 digits of the largest number, CRLF.
const MAX_INTEGER_REPLY_BYTES: usize = 23;

/// Writes a number with its kind and its end to the beginning of `text`, which has room for
/// [`MAX_INTEGER_REPLY_BYTES`] bytes. Returns the length.
#[inline]
fn write_number(text: &mut [u8], kind: u8, number: i64) -> usize {
    // Most numbers of a reply are small: allowed or not, a limit, a minute in milliseconds. With kind and end they are a word,
    // whose first byte is the lowest.
    let (digits, count) = match number {
        0..=9 => (digit(number), 1),
        10..=99 => (two_digits(number), 2),
        100..=999 => (digit(number / 100) | two_digits(number % 100) << 8, 3),
        1000..=9999 => (two_digits(number / 100) | two_digits(number % 100) << 16, 4),
        10_000..=99_999 => {
            (digit(number / 10_000) | two_digits(number / 100 % 100) << 8 | two_digits(number % 100) << 24, 5)
        }
        -1 => (u64::from_le_bytes(*b"-1\0\0\0\0\0\0"), 2),
        _ => return write_long_number(text, kind, number),
    };
    let word = u64::from(kind) | digits << 8 | u64::from_le_bytes(*b"\r\n\0\0\0\0\0\0") << (8 + 8 * count);
    text[..8].copy_from_slice(&word.to_le_bytes());
    count + 3
}

#[inline]
fn digit(number: i64) -> u64 {
    u64::from(b'0') + number as u64
}

#[inline]
fn two_digits(number: i64) -> u64 {
    digit(number / 10) | digit(number % 10) << 8
}

fn write_long_number(text: &mut [u8], kind: u8, number: i64) -> usize {
    let mut rest = number.unsigned_abs();
    let sign = usize::from(number < 0);
    let end = 1 + sign + rest.checked_ilog10().unwrap_or(0) as usize + 1;
    let text = &mut text[..end + LINE_END.len()];
    let mut at = end;
    while rest >= 10 {
        let pair = (rest % 100) as u8;
        rest /= 100;
        at -= 2;
        text[at..][..2].copy_from_slice(&[b'0' + pair / 10, b'0' + pair % 10]);
    }
    if at > 1 + sign {
        text[at - 1] = b'0' + rest as u8;
    }
    if number < 0 {
        text[1] = b'-';
    }
    text[0] = kind;
    text[end..].copy_from_slice(LINE_END);
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply { out: &mut out, version });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_in_both_versions() {
        use Version::{Resp2, Resp3};
        assert_eq!(written(Resp2, |reply| reply.ok()), "+OK\r\n");
        assert_eq!(written(Resp2, |reply| reply.bulk(b"a\r\nb")), "$4\r\na\r\nb\r\n");
        assert_eq!(written(Resp2, |reply| reply.array(12)), "*12\r\n");
        assert_eq!(written(Resp2, |reply| reply.map(3)), "*6\r\n");
        assert_eq!(written(Resp3, |reply| reply.map(3)), "%3\r\n");
        assert_eq!(written(Resp2, |reply| reply.null()), "$-1\r\n");
        assert_eq!(written(Resp3, |reply| reply.null()), "_\r\n");
    }

    #[test]
    fn a_decision_is_an_array_of_numbers_and_words() {
        let reply = written(Version::Resp2, |reply| reply.decision([1, 300, 299, -1, 60_000, 0], "allow", "post"));
        assert_eq!(reply, "*8\r\n:1\r\n:300\r\n:299\r\n:-1\r\n:60000\r\n:0\r\n$5\r\nallow\r\n$4\r\npost\r\n");
        let longest = [i64::MIN; 6];
        let numbers = format!(":{}\r\n", i64::MIN).repeat(6);
        for length in 0..300 {
            let (action, rule) = ("a".repeat(length / 3), "r".repeat(length));
            let expected = format!("*8\r\n{numbers}${}\r\n{action}\r\n${length}\r\n{rule}\r\n", action.len());
            assert_eq!(written(Version::Resp2, |reply| reply.decision(longest, &action, &rule)), expected);
        }
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(written(Version::Resp2, |reply| reply.error("ERR a\r\n+OK\0é")), "-ERR a  +OK é\r\n");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [
            0,
            9,
            10,
            99,
            100,
            305,
            999,
            1000,
            9999,
            10_000,
            60_000,
            99_999,
            100_000,
            86_400_000,
            -1,
            -2,
            -10,
            -123,
            1234567890,
            i64::MAX,
            i64::MIN,
        ] {
            assert_eq!(written(Version::Resp2, |reply| reply.integer(number)), format!(":{number}\r\n"));
        }
        let longest = [i64::MIN; 3];
        let expected = format!("*3\r\n{}", format!(":{}\r\n", i64::MIN).repeat(3));
        assert_eq!(written(Version::Resp2, |reply| reply.integers(longest)), expected);
    }
}
