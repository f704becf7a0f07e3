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
        self.array_of_integers(N, numbers);
    }

    /// The header of an array that begins with these integers, and the integers, written at once.
    #[inline]
    pub(crate) fn array_of_integers<const N: usize>(&mut self, elements: usize, numbers: [i64; N]) {
        self.array(elements);
        // Most numbers have one or two digits; the length of the whole is known at the end.
        let mut text = [[0; MAX_INTEGER_REPLY_BYTES]; N];
        let text = text.as_flattened_mut();
        let mut end = 0;
        for number in numbers {
            end += write_number(&mut text[end..], b':', number);
        }
        self.out.extend_from_slice(&text[..end]);
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

/// Kind, sign, the 19 digits of the largest number, CRLF.
const MAX_INTEGER_REPLY_BYTES: usize = 23;

/// Writes a number with its kind and its end to the beginning of `text`, which has room for
/// [`MAX_INTEGER_REPLY_BYTES`] bytes. Returns the length.
#[inline]
fn write_number(text: &mut [u8], kind: u8, number: i64) -> usize {
    // Most numbers of a reply are small: allowed or not, a limit, a few seconds.
    match number {
        0..=9 => {
            text[..4].copy_from_slice(&[kind, b'0' + number as u8, b'\r', b'\n']);
            4
        }
        10..=99 => {
            let (tens, ones) = (number as u8 / 10, number as u8 % 10);
            text[..5].copy_from_slice(&[kind, b'0' + tens, b'0' + ones, b'\r', b'\n']);
            5
        }
        -1 => {
            text[..5].copy_from_slice(&[kind, b'-', b'1', b'\r', b'\n']);
            5
        }
        _ => write_long_number(text, kind, number),
    }
}

fn write_long_number(text: &mut [u8], kind: u8, number: i64) -> usize {
    let mut digits = [0; MAX_INTEGER_REPLY_BYTES];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    let digits = &digits[at..];
    text[0] = kind;
    text[1..][..digits.len()].copy_from_slice(digits);
    text[1 + digits.len()..][..2].copy_from_slice(b"\r\n");
    digits.len() + 3
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
    fn an_error_is_one_line() {
        assert_eq!(written(Version::Resp2, |reply| reply.error("ERR a\r\n+OK\0é")), "-ERR a  +OK é\r\n");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 9, 10, 99, 100, -1, -2, -10, 1234567890, i64::MAX, i64::MIN] {
            assert_eq!(written(Version::Resp2, |reply| reply.integer(number)), format!(":{number}\r\n"));
        }
        let longest = [i64::MIN; 3];
        let expected = format!("*3\r\n{}", format!(":{}\r\n", i64::MIN).repeat(3));
        assert_eq!(written(Version::Resp2, |reply| reply.integers(longest)), expected);
    }
}
