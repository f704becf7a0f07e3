//! Bytes to commands: the request side of the Redis protocol.
//!
//! A client sends a command as an array of bulk strings (`*1\r\n$4\r\nPING\r\n`) or, by hand, as an inline
//! line (`PING\r\n`). Bytes arrive in pieces of any size; [`Decoder`] keeps an incomplete command and remembers how far
//! it has parsed, so a command costs the same when it arrives slowly. Commands borrow from the buffer: no copy, no
//! allocation.
//!
//! Bound      A command, framing included, is at most `max_command` bytes and [`MAX_ARGS`] arguments; one that
//!            announces or reaches more is an error before the bytes are kept. A length in the input is a bound to
//!            check, never an allocation.
//! After an error the stream has lost its frame: the connection must be closed.
//!
//! No I/O, no clock.

mod inline;

use std::ops::Range;

/// The longest rest of a header (`*count`, `$length`) that can be valid: a sign, the 19 digits of an `i64`, CRLF.
pub(crate) const MAX_HEADER_BYTES: usize = 1 + 19 + 2;

/// The fewest bytes an array element takes: `$0\r\n\r\n`.
const MIN_ELEMENT_BYTES: usize = 6;

/// The most arguments of a command, its name included.
pub(crate) const MAX_ARGS: usize = 1 << 16;

/// The arguments for which a connection keeps memory from command to command.
const KEPT_ARGS: usize = 32;

/// Collects bytes and hands out the commands in them.
#[derive(Debug)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
    /// Where the current command begins in `buffer`; everything before it has been handed out.
    begin: usize,
    partial: Partial,
    max_command: usize,
}

/// A command: its name and arguments, as many as the client sent but at least the name.
#[derive(Debug)]
pub(crate) struct Command<'a> {
    bytes: &'a [u8],
    args: &'a [Range<usize>],
    /// The bytes behind it.
    behind: &'a [u8],
}

/// The client broke the protocol. The text is that of Redis where Redis has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("command exceeds {max} bytes")]
    TooLarge { max: usize },
    #[error("invalid multibulk length")]
    ArrayLength,
    #[error("invalid bulk length")]
    BulkLength,
    #[error("expected '$', got '{}'", .got.escape_ascii())]
    NotBulk { got: u8 },
    #[error("expected CRLF after a bulk string")]
    BulkEnd,
    #[error("unbalanced quotes in request")]
    Quotes,
}

/// The parsed part of the current command. Positions count from its beginning.
#[derive(Debug, Default)]
struct Partial {
    /// Everything before this position is parsed.
    next: usize,
    /// The number of array elements to come; `None` before the array's header is complete.
    missing: Option<usize>,
    args: Vec<Range<usize>>,
}

impl Decoder {
    pub(crate) fn new(max_command: usize) -> Self {
        Self { buffer: Vec::new(), begin: 0, partial: Partial::default(), max_command }
    }

    /// Sets the bound of the next commands.
    pub(crate) fn set_max_command(&mut self, max_command: usize) {
        self.max_command = max_command;
    }

    /// The buffer to append input to. Call [`next`](Self::next) until it returns `None` before appending again: that
    /// keeps the buffer within `max_command` and one read.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.begin > 0 {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        &mut self.buffer
    }

    /// The bytes of memory that this decoder uses.
    pub(crate) fn occupied(&self) -> usize {
        self.buffer.capacity() + self.partial.args.capacity() * size_of::<Range<usize>>()
    }

    /// Frees the memory of a command with many arguments, unless one is incomplete.
    pub(crate) fn relax(&mut self) {
        if self.partial.missing.is_none() && self.partial.args.capacity() > KEPT_ARGS {
            self.partial.args = Vec::new();
        }
    }

    /// The next complete command; `None` until more bytes arrive.
    pub(crate) fn next(&mut self) -> Result<Option<Command<'_>>, ProtocolError> {
        if !self.read_plain() && !self.complete()? {
            return Ok(None);
        }
        let begin = self.begin;
        self.skip();
        let (bytes, behind) = self.buffer[begin..].split_at(self.begin - begin);
        Ok(Some(Command { bytes, args: &self.partial.args, behind }))
    }

    /// The name and the first argument of the first command, if they have arrived, to prefetch its counter.
    #[inline]
    pub(crate) fn first_words(&self) -> Option<(&[u8], &[u8])> {
        first_words(&self.buffer[self.begin..])
    }

    /// The fast path, for a complete command within the bound and with short headers, as nearly all are. False for any
    /// other command, and for one that is partly parsed; then nothing has changed.
    fn read_plain(&mut self) -> bool {
        let Partial { next: 0, missing: None, args } = &mut self.partial else { return false };
        args.clear();
        let bytes = &self.buffer[self.begin..];
        let Some((count @ 1.., mut rest)) = short_header(bytes, b'*') else { return false };
        for _ in 0..count {
            let Some((length, element)) = short_header(rest, b'$') else { return false };
            let Some((_, [b'\r', b'\n', behind @ ..])) = element.split_at_checked(length) else { return false };
            let start = bytes.len() - element.len();
            args.push(start..start + length);
            rest = behind;
        }
        let size = bytes.len() - rest.len();
        if size <= self.max_command {
            self.partial.next = size;
        }
        size <= self.max_command
    }

    /// Parses on in the current command. True once `partial.args` holds all of it.
    fn complete(&mut self) -> Result<bool, ProtocolError> {
        loop {
            match self.partial.missing {
                None => {
                    self.partial.args.clear();
                    match self.buffer.get(self.begin) {
                        None => return Ok(false),
                        Some(b'*') => {
                            let Some(count) = self.header(ProtocolError::ArrayLength)? else {
                                return Ok(false);
                            };
                            match usize::try_from(count) {
                                // Redis, too, ignores an empty or null array.
                                Err(_) | Ok(0) => self.skip(),
                                Ok(count) if count > MAX_ARGS => return Err(ProtocolError::ArrayLength),
                                Ok(count) => {
                                    self.check_size(count.saturating_mul(MIN_ELEMENT_BYTES))?;
                                    self.partial.missing = Some(count);
                                }
                            }
                        }
                        Some(_) => {
                            if !self.line()? {
                                return Ok(false);
                            }
                            if !self.partial.args.is_empty() {
                                return Ok(true);
                            }
                            self.skip();
                        }
                    }
                }
                Some(0) => return Ok(true),
                Some(missing) => {
                    if !self.element()? {
                        return Ok(false);
                    }
                    self.partial.missing = Some(missing - 1);
                }
            }
        }
    }

    /// Moves past the parsed bytes. The arguments stay until the next command begins.
    fn skip(&mut self) {
        self.begin += self.partial.next;
        self.partial.next = 0;
        self.partial.missing = None;
    }

    /// The bytes that are not parsed yet.
    fn rest(&self) -> &[u8] {
        &self.buffer[self.begin + self.partial.next..]
    }

    /// Reads one bulk string, header and all.
    fn element(&mut self) -> Result<bool, ProtocolError> {
        match self.rest().first() {
            None => return Ok(false),
            Some(b'$') => {}
            Some(&got) => return Err(ProtocolError::NotBulk { got }),
        }
        let header_at = self.partial.next;
        let Some(length) = self.header(ProtocolError::BulkLength)? else {
            return Ok(false);
        };
        let length = usize::try_from(length).map_err(|_| ProtocolError::BulkLength)?;
        self.check_size(length.saturating_add(2))?;

        match self.rest().get(length..length + 2) {
            Some(b"\r\n") => {
                let start = self.partial.next;
                self.partial.args.push(start..start + length);
                self.partial.next = start + length + 2;
                Ok(true)
            }
            Some(_) => Err(ProtocolError::BulkEnd),
            None => {
                // The header is short: reading it again is cheaper than another state.
                self.partial.next = header_at;
                Ok(false)
            }
        }
    }

    /// Reads `*123\r\n` or `$123\r\n` and moves past it; `None` while it is incomplete.
    #[inline(always)]
    fn header(&mut self, invalid: ProtocolError) -> Result<Option<i64>, ProtocolError> {
        let rest = self.rest();
        let Some((value, behind)) = short_header(rest, rest[0]) else { return self.any_header(invalid) };
        self.partial.next += rest.len() - behind.len();
        self.check_size(0)?;
        Ok(Some(value as i64))
    }

    #[cold]
    fn any_header(&mut self, invalid: ProtocolError) -> Result<Option<i64>, ProtocolError> {
        let rest = &self.rest()[1..];
        let window = &rest[..rest.len().min(MAX_HEADER_BYTES)];
        let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
            return if window.len() == MAX_HEADER_BYTES { Err(invalid) } else { Ok(None) };
        };
        let value = window[..end]
            .strip_suffix(b"\r")
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| digits.parse().ok())
            .ok_or(invalid)?;
        self.partial.next += 1 + end + 1;
        self.check_size(0)?;
        Ok(Some(value))
    }

    /// Reads an inline line. While its end is missing, `next` is the position up to which it was searched.
    fn line(&mut self) -> Result<bool, ProtocolError> {
        let end = self.rest().iter().position(|&byte| byte == b'\n');
        self.partial.next += end.map_or(self.rest().len(), |end| end + 1);
        self.check_size(0)?;
        if end.is_none() {
            return Ok(false);
        }
        let line = &mut self.buffer[self.begin..self.begin + self.partial.next];
        inline::split(line, &mut self.partial.args)?;
        Ok(true)
    }

    /// True if the command, with `more` bytes after the parsed ones, stays within the bound.
    fn check_size(&self, more: usize) -> Result<(), ProtocolError> {
        if self.partial.next.saturating_add(more) > self.max_command {
            return Err(ProtocolError::TooLarge { max: self.max_command });
        }
        Ok(())
    }
}

/// Reads a header of one or two digits, as nearly all are: its number, and the bytes behind it.
#[inline]
fn short_header(bytes: &[u8], kind: u8) -> Option<(usize, &[u8])> {
    // Four bytes at a time are compared at once.
    let (start, rest) = bytes.split_first_chunk()?;
    let [_, tens, ones, _] = *start;
    if *start == [kind, tens, b'\r', b'\n'] && tens.is_ascii_digit() {
        return Some((usize::from(tens - b'0'), rest));
    }
    let (b'\n', rest) = rest.split_first()? else { return None };
    let is_header = *start == [kind, tens, ones, b'\r'] && matches!(tens, b'1'..=b'9') && ones.is_ascii_digit();
    is_header.then(|| (10 * usize::from(tens - b'0') + usize::from(ones - b'0'), rest))
}

/// The name and the first argument of a command, if they have arrived as an array of bulk strings.
#[inline]
fn first_words(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (2.., rest) = short_header(bytes, b'*')? else { return None };
    let (length, rest) = short_header(rest, b'$')?;
    let (name, rest) = rest.split_at_checked(length)?;
    let (length, rest) = short_header(rest.get(2..)?, b'$')?;
    Some((name, rest.get(..length)?))
}

impl<'a> Command<'a> {
    /// The command's name as the client wrote it; Redis ignores its case.
    pub(crate) fn name(&self) -> &'a [u8] {
        &self.bytes[self.args[0].clone()]
    }

    pub(crate) fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.args[1..].iter().map(move |range| &bytes[range.clone()])
    }

    /// The first argument of the next command, if it has arrived and is the same command in the same spelling, to
    /// prefetch its counter.
    #[inline]
    pub(crate) fn next_key(&self) -> Option<&'a [u8]> {
        first_words(self.behind).filter(|&(name, _)| name == self.name()).map(|(_, key)| key)
    }

    /// The number of arguments, without the name.
    pub(crate) fn count(&self) -> usize {
        self.args.len() - 1
    }

    /// The argument at `index`, the first behind the name being 0.
    #[inline]
    pub(crate) fn arg(&self, index: usize) -> Option<&'a [u8]> {
        self.args.get(index + 1).map(|range| &self.bytes[range.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 64;

    /// What a stream of bytes says: its commands, one a line, words separated by `|`, then the error if one ends it.
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

    /// The same answer whole, cut in two at any byte, and byte by byte.
    #[track_caller]
    fn check(input: &[u8], expected: &str) {
        assert_eq!(decode([input]), expected, "in one piece");
        for cut in 0..=input.len() {
            let (head, tail) = input.split_at(cut);
            assert_eq!(decode([head, tail]), expected, "cut at {cut}");
        }
        assert_eq!(decode(input.chunks(1)), expected, "byte by byte");
    }

    /// What a pipeline lets see of the command behind its first.
    fn next_key(behind: &str) -> Option<String> {
        let mut decoder = Decoder::new(1000);
        decoder.buffer().extend_from_slice(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
        decoder.buffer().extend_from_slice(behind.as_bytes());
        let command = decoder.next().unwrap().unwrap();
        command.next_key().map(|key| String::from_utf8_lossy(key).into_owned())
    }

    #[test]
    fn the_key_of_the_same_command_behind() {
        assert_eq!(next_key("*2\r\n$3\r\nGET\r\n$12\r\nabcdefghijkl\r\n").as_deref(), Some("abcdefghijkl"));
        assert_eq!(next_key("*3\r\n$3\r\nGET\r\n$1\r\nb\r\n$1").as_deref(), Some("b"), "as far as it is needed");
        let others = [
            "",
            "*",
            "*2\r\n$3\r\nget\r\n$1\r\nb\r\n",
            "*2\r\n$3\r\nGET\r\n$2\r\nb",
            "*1\r\n$3\r\nGET\r\n*2\r\n",
            "GET b\r\n",
        ];
        for behind in others.into_iter().chain(["*2\r\n$3\r\nSET\r\n$1\r\nb\r\n", "*2\r\n$3\r\nGETx$1\r\n"]) {
            assert_eq!(next_key(behind), None, "{behind:?}");
        }
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
}
