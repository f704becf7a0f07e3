//! The lines of a stream, borrowed from the buffer, one block of lines at a time. A block lets the caller read several
//! lines ahead.
//!
//! Invariant  The buffer grows until it holds a line of [`MAX_LINE_BYTES`]. A longer line is skipped without being
//!            kept.

use std::io::{self, Read};

/// The longest line. Web servers bound a request to some kilobytes, so their lines are far shorter.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The first size of the buffer: large enough that system calls cost little, and small enough for the processor's
/// cache.
const BUFFER_BYTES: usize = 256 << 10;

/// The lines of a stream.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The bytes from `start` to `end` are read from the stream and not yet returned.
    start: usize,
    end: usize,
    /// Whether `start` lies within a line that is too long.
    is_skipping: bool,
    /// The number of the latest line, from 1.
    pub number: u64,
}

/// A line without its line end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The bytes of the line.
    Whole(&'a [u8]),
    /// The line is longer than [`MAX_LINE_BYTES`].
    TooLong,
}

/// Consecutive lines.
#[derive(Debug)]
pub struct Block<'a> {
    rest: &'a [u8],
    /// Whether the first line is the end of one that is too long.
    cut: bool,
    number: &'a mut u64,
}

impl<'a> Iterator for Block<'a> {
    /// The number of the line, from 1, and the line.
    type Item = (u64, Line<'a>);

    #[inline]
    fn next(&mut self) -> Option<(u64, Line<'a>)> {
        if self.rest.is_empty() && !self.cut {
            return None;
        }
        let (line, rest) = match memchr::memchr(b'\n', self.rest) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        *self.number += 1;
        let too_long = std::mem::take(&mut self.cut) || line.len() > MAX_LINE_BYTES;
        Some((*self.number, if too_long { Line::TooLong } else { Line::Whole(without_return(line)) }))
    }
}

impl<R: Read> Lines<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, is_skipping: false, number: 0 }
    }

    /// The next lines, all that the buffer holds; `None` at the end of the stream.
    ///
    /// # Errors
    /// The errors of the reader.
    pub fn block(&mut self) -> io::Result<Option<Block<'_>>> {
        // The bytes of the unfinished line that hold no line end.
        let mut searched = 0;
        let length = loop {
            let unread = &self.buffer[self.start..self.end];
            // The first line end is the end of a skipped line. The last line end is the end of a block.
            let found = match self.is_skipping {
                true => memchr::memchr(b'\n', unread),
                false => memchr::memrchr(b'\n', &unread[searched..]).map(|at| searched + at),
            };
            if let Some(at) = found {
                break at + 1;
            }
            searched = unread.len();
            if searched > MAX_LINE_BYTES || self.is_skipping {
                (self.start, self.end, self.is_skipping) = (0, 0, true);
                searched = 0;
            }
            if self.fill()? == 0 {
                // The stream ends without a line end.
                break self.end - self.start;
            }
        };
        let rest = &self.buffer[self.start..self.start + length];
        self.start += length;
        let cut = std::mem::take(&mut self.is_skipping);
        Ok((cut || !rest.is_empty()).then_some(Block { rest, cut, number: &mut self.number }))
    }

    /// The first bytes of the stream, up to the size of the buffer. The bytes stay in the stream.
    ///
    /// # Errors
    /// The errors of the reader.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        while self.end < BUFFER_BYTES && self.fill()? > 0 {}
        Ok(&self.buffer[self.start..self.end])
    }

    #[cold]
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            // `block` gives up a line above the maximum, so the buffer stays below four times that maximum.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(read) => {
                    self.end += read;
                    return Ok(read);
                }
            }
        }
    }
}

#[inline]
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes a few at a time.
    struct SlowReader<'a>(&'a [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(text: &[u8], drop: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(SlowReader(text, drop));
        let mut found = Vec::new();
        while let Some(block) = lines.block().unwrap() {
            for (number, line) in block {
                found.push(match line {
                    Line::Whole(line) => Some(line.to_vec()),
                    Line::TooLong => None,
                });
                assert_eq!(number, found.len() as u64);
            }
        }
        assert_eq!(lines.number, found.len() as u64);
        assert!(lines.buffer.len() <= 4 * MAX_LINE_BYTES, "{}", lines.buffer.len());
        assert!(lines.block().unwrap().is_none(), "the end stays the end");
        found
    }

    #[test]
    fn lines_end_with_lf_crlf_or_the_stream() {
        for drop in [1, 2, 3, 1 << 20] {
            let found = all(b"one\ntwo\r\n\nfour", drop);
            assert_eq!(found, [&b"one"[..], b"two", b"", b"four"].map(|line| Some(line.to_vec())));
            assert_eq!(all(b"one\n", drop).len(), 1);
            assert_eq!(all(b"", drop).len(), 0);
        }
    }

    #[test]
    fn line_that_is_too_long_is_skipped() {
        for (length, expected) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false), (5 * MAX_LINE_BYTES, false)] {
            let long = vec![b'x'; length];
            let text = [b"before\n", &long[..], b"\nafter\n", &long[..]].concat();
            for drop in [100_000, 1 << 30] {
                let found = all(&text, drop);
                let is_whole: Vec<bool> = found.iter().map(Option::is_some).collect();
                assert_eq!(is_whole, [true, expected, true, expected], "{length} by {drop}");
                assert_eq!(found[2].as_deref(), Some(&b"after"[..]));
            }
        }
    }

    #[test]
    fn peek_leaves_the_bytes_in_the_stream() {
        let mut lines = Lines::new(SlowReader(b"one\ntwo\n", 3));
        assert_eq!(lines.peek().unwrap(), b"one\ntwo\n");
        let block: Vec<_> = lines.block().unwrap().unwrap().collect();
        assert_eq!(block, [(1, Line::Whole(&b"one"[..])), (2, Line::Whole(b"two"))]);
    }
}
