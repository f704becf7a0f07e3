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
    /// The version after `HELLO 3`.
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

    #[inline]
    pub(crate) fn integers<const N: usize>(&mut self, numbers: [i64; N]) {
        self.array(N);
        numbers.into_iter().for_each(|number| self.integer(number));
    }

    /// A decision: its numbers, what the caller is to do, and the rule.
    // Inlined, so that what the caller knows is written as it stands.
    #[inline(always)]
    pub(crate) fn decision(&mut self, numbers: [i64; 6], action: &str, rule: &str) {
        self.array(numbers.len() + 2);
        numbers.into_iter().for_each(|number| self.integer(number));
        self.bulk(action.as_bytes());
        self.bulk(rule.as_bytes());
    }

    #[inline(always)]
    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.number(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(LINE_END);
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
        write_number(self.out, kind, number);
    }
}

const LINE_END: &[u8] = b"\r\n";

/// Appends a number with its kind and its line end.
#[inline]
fn write_number(out: &mut Vec<u8>, kind: u8, number: i64) {
    // Most numbers of a reply are small: allowed or not, a limit, what is left of it.
    let Some(short) = usize::try_from(number.wrapping_add(1)).ok().and_then(|place| SHORT_NUMBERS.get(place)) else {
        return write_long_number(out, kind, number);
    };
    let end = out.len() + (short >> LENGTH_SHIFT) as usize;
    // A whole word is copied at once, and what is behind the number is dropped.
    out.extend_from_slice(&(short | u64::from(kind)).to_le_bytes());
    out.truncate(end);
}

#[inline(never)]
fn write_long_number(out: &mut Vec<u8>, kind: u8, number: i64) {
    let mut digits = itoa::Buffer::new();
    out.push(kind);
    out.extend_from_slice(digits.format(number).as_bytes());
    out.extend_from_slice(LINE_END);
}

/// The numbers from -1 to 998 with their line ends. The first byte of each word, which is the lowest, is free for the kind; the
/// last one is the length.
static SHORT_NUMBERS: [u64; 1000] = {
    let mut words = [u64::from_le_bytes(*b"\0-1\r\n\0\0\x05"); 1000];
    let mut place = 1;
    while place < words.len() {
        words[place] = short_number(place as u64 - 1);
        place += 1;
    }
    words
};

const LENGTH_SHIFT: u32 = 56;

const fn short_number(number: u64) -> u64 {
    let (mut text, mut length, mut rest) = (u16::from_le_bytes(*b"\r\n") as u64, 3, number);
    loop {
        text = text << 8 | (b'0' as u64 + rest % 10);
        length += 1;
        rest /= 10;
        if rest == 0 {
            return text << 8 | length << LENGTH_SHIFT;
        }
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
            998,
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
