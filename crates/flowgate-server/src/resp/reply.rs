//! Replies to bytes: the server's side of the Redis protocol.
//!
//! Replies are appended to the connection's output as they are made, so a pipeline's replies leave in one write and
//! none is ever held as a value. RESP2 knows neither maps nor null; a [`Reply`] writes what its client understands.

/// The version of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// What every client begins with.
    #[default]
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// Where a command writes its reply: exactly one, whose elements follow its header.
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

    /// An error. It is one line whatever the client sent that is repeated in it.
    pub(crate) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub(crate) fn integer(&mut self, number: i64) {
        self.number(b':', number);
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

    /// The header of so many elements.
    #[inline]
    pub(crate) fn array(&mut self, elements: usize) {
        self.number(b'*', elements as i64);
    }

    /// The header of so many pairs: in RESP2 an array of twice as many elements.
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
        // Most numbers of a reply are a digit: allowed or not, a length.
        if let 0..=9 = number {
            self.out.extend_from_slice(&[kind, b'0' + number as u8, b'\r', b'\n']);
        } else {
            self.long_number(kind, number);
        }
    }

    fn long_number(&mut self, kind: u8, number: i64) {
        // Kind, sign, the 19 digits of the largest number, CRLF.
        let mut text = [0; 23];
        let mut at = text.len() - 2;
        text[at..].copy_from_slice(b"\r\n");
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            text[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            text[at] = b'-';
        }
        at -= 1;
        text[at] = kind;
        self.out.extend_from_slice(&text[at..]);
    }
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
    fn numbers() {
        for number in [0, 9, 10, 99, 100, -1, -2, -10, 1234567890, i64::MAX, i64::MIN] {
            assert_eq!(written(Version::Resp2, |reply| reply.integer(number)), format!(":{number}\r\n"));
        }
    }
}
