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
mod plain;

use std::ops::Range;

pub(crate) use plain::PlainCommand;

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

    /// Sets the most bytes of a command, from the next one on.
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
        Ok(Some(Command { bytes: &self.buffer[begin..self.begin], args: &self.partial.args }))
    }

    /// The fast path, for a complete command within the bound and with short headers, as nearly all are. False for any
    /// other command, and for one that is partly parsed; then nothing has changed.
    fn read_plain(&mut self) -> bool {
        let Partial { next: 0, missing: None, args } = &mut self.partial else { return false };
        let size = read_words(&self.buffer[self.begin..], args).filter(|size| *size <= self.max_command);
        self.partial.next = size.unwrap_or(0);
        size.is_some()
    }

    /// The bytes behind the last command that was handed out; none while a command is partly parsed.
    #[inline]
    pub(crate) fn ahead(&self) -> &[u8] {
        let is_parsed = self.partial.next != 0 || self.partial.missing.is_some();
        if is_parsed { &[] } else { &self.buffer[self.begin..] }
    }

    /// The most bytes of a command.
    pub(crate) fn max_command(&self) -> usize {
        self.max_command
    }

    /// True if every byte was handed out with a command.
    pub(crate) fn is_drained(&self) -> bool {
        self.begin == self.buffer.len()
    }

    /// Moves past `size` bytes of whole commands that were answered from [`ahead`](Self::ahead).
    pub(crate) fn skip_plain(&mut self, size: usize) {
        self.begin += size;
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
        let Some((value, size)) = short_header(rest, 0, rest[0]) else { return self.any_header(invalid) };
        self.partial.next += size;
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

/// Reads the header of one or two digits that begins at `at`, as nearly all are: its number, and the position behind it.
/// `None` for any other, and if less follows than the shortest element.
#[inline(always)]
fn short_header(bytes: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    let [start @ .., fifth, _] = bytes.get(at..)?.first_chunk::<MIN_ELEMENT_BYTES>()?;
    // Four bytes are compared at once, without the digits.
    let masked = |mask: [u8; 4]| u32::from_le_bytes(*start) & u32::from_le_bytes(mask);
    let digit = |place: usize| usize::from(start[place].wrapping_sub(b'0'));
    if masked([255, 0, 255, 255]) == u32::from_le_bytes([kind, 0, b'\r', b'\n']) {
        return (digit(1) <= 9).then(|| (digit(1), at + 4));
    }
    let is_header = masked([255, 0, 0, 255]) == u32::from_le_bytes([kind, 0, 0, b'\r'])
        && *fifth == b'\n'
        && matches!(digit(1), 1..=9)
        && digit(2) <= 9;
    is_header.then(|| (10 * digit(1) + digit(2), at + 5))
}

/// Reads a complete command with short headers, as nearly all are: puts the place of each word into `words`, and returns the size
/// of the command. `None` for any other.
fn read_words(bytes: &[u8], words: &mut Vec<Range<usize>>) -> Option<usize> {
    words.clear();
    let (count @ 1.., mut at) = short_header(bytes, 0, b'*')? else { return None };
    for _ in 0..count {
        let word = read_word(bytes, at)?;
        at = word.end + LINE_END_BYTES;
        words.push(word);
    }
    Some(at)
}

/// The place of the word with a short header that begins at `at`, if all of it is there. The header of the next one begins
/// [`LINE_END_BYTES`] behind it.
#[inline(always)]
fn read_word(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let (length, start) = short_header(bytes, at, b'$')?;
    let end = start + length;
    (*bytes.get(end..)?.first_chunk()? == *b"\r\n").then_some(start..end)
}

const LINE_END_BYTES: usize = 2;

impl<'a> Command<'a> {
    /// The command's name as the client wrote it; Redis ignores its case.
    pub(crate) fn name(&self) -> &'a [u8] {
        &self.bytes[self.args[0].clone()]
    }

    pub(crate) fn args(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.args[1..].iter().map(move |range| &bytes[range.clone()])
    }

    /// The number of arguments, without the name.
    pub(crate) fn count(&self) -> usize {
        self.args.len() - 1
    }

    /// The argument at `index`. The first one after the name has index 0.
    #[inline]
    pub(crate) fn arg(&self, index: usize) -> Option<&'a [u8]> {
        self.args.get(index + 1).map(|range| &self.bytes[range.clone()])
    }
}

#[cfg(test)]
mod tests;
