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

    /// A decision: its numbers, what the caller is to do, and the rule, written in one pass.
    #[inline]
    pub(crate) fn decision(&mut self, numbers: [i64; 6], action: &str, rule: &str) {
        let (begin, elements) = (self.out.len(), numbers.len() + 2);
        let most = (elements + 1) * MAX_INTEGER_REPLY_BYTES + action.len() + rule.len() + 2 * LINE_END.len();
        self.out.resize(begin + most, 0);
        let text = &mut self.out[begin..];
        let mut end = write_number(text, b'*', elements as i64);
        for number in numbers {
            end += write_number(&mut text[end..], b':', number);
        }
        for word in [action, rule] {
            end += write_number(&mut text[end..], b'$', word.len() as i64);
            for part in [word.as_bytes(), LINE_END] {
                text[end..][..part.len()].copy_from_slice(part);
                end += part.len();
            }
        }
        self.out.truncate(begin + end);
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

const LINE_END: &[u8] = b"\r\n";

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
        let (longest, rule) = ([i64::MIN; 6], "r".repeat(128));
        let numbers = format!(":{}\r\n", i64::MIN).repeat(6);
        let expected = format!("*8\r\n{numbers}$0\r\n\r\n$128\r\n{rule}\r\n");
        assert_eq!(written(Version::Resp2, |reply| reply.decision(longest, "", &rule)), expected);
    }

    #[test]
    fn an_error_is_one_line() {
        assert_eq!(written(Version::Resp2, |reply| reply.error("ERR a\r\n+OK\0é")), "-ERR a  +OK é\r\n");
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in
            [0, 9, 10, 99, 100, 999, 1000, 60_000, 86_400_000, -1, -2, -10, -123, 1234567890, i64::MAX, i64::MIN]
        {
            assert_eq!(written(Version::Resp2, |reply| reply.integer(number)), format!(":{number}\r\n"));
        }
        let longest = [i64::MIN; 3];
        let expected = format!("*3\r\n{}", format!(":{}\r\n", i64::MIN).repeat(3));
        assert_eq!(written(Version::Resp2, |reply| reply.integers(longest)), expected);
    }
}
