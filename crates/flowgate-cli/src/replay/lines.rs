//! Lines out of a stream, where they lie in the buffer: a block of them at a time, so that whoever decides one can look
//! ahead at the next.
//!
//! Invariant  The buffer grows to one line of [`MAX_LINE`] and no further; what is longer is passed over, not kept.

use std::io::{self, Read};

/// Longer than any line that a server writes: the requests in it are bounded by kilobytes.
pub const MAX_LINE: usize = 1 << 20;

/// Large enough that reading costs nothing, small enough to stay in the processor's cache.
const CHUNK: usize = 256 << 10;

/// The lines of a stream.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// What has been read and not handed out yet.
    start: usize,
    end: usize,
    /// Within a line that is too long.
    passing_over: bool,
    number: u64,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Its bytes.
    Whole(&'a [u8]),
    /// There was one, too long to be looked at.
    TooLong,
}

/// Lines that follow each other.
#[derive(Debug)]
pub struct Block<'a> {
    rest: &'a [u8],
    /// Whether the first one lacks its beginning: it was too long.
    cut: bool,
    number: &'a mut u64,
}

impl<'a> Iterator for Block<'a> {
    /// Each with its number, from 1.
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
        let too_long = std::mem::take(&mut self.cut) || line.len() > MAX_LINE;
        Some((*self.number, if too_long { Line::TooLong } else { Line::Whole(without_return(line)) }))
    }
}

impl<R: Read> Lines<R> {
    /// The lines that `reader` gives.
    pub fn new(reader: R) -> Lines<R> {
        Lines { reader, buffer: vec![0; CHUNK], start: 0, end: 0, passing_over: false, number: 0 }
    }

    /// The number of the line that was handed out last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next lines, as many as lie in the buffer; `None` at the end.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn block(&mut self) -> io::Result<Option<Block<'_>>> {
        // How much of the unfinished line was searched already.
        let mut searched = 0;
        let length = loop {
            let unread = &self.buffer[self.start..self.end];
            // Of a line that is passed over only the end matters; else as many lines as there are.
            let found = match self.passing_over {
                true => memchr::memchr(b'\n', unread),
                false => memchr::memrchr(b'\n', &unread[searched..]).map(|at| searched + at),
            };
            if let Some(at) = found {
                break at + 1;
            }
            searched = unread.len();
            if searched > MAX_LINE || self.passing_over {
                (self.start, self.end, self.passing_over) = (0, 0, true);
                searched = 0;
            }
            if self.fill()? == 0 {
                // What stands behind the last end of a line.
                break self.end - self.start;
            }
        };
        let rest = &self.buffer[self.start..self.start + length];
        self.start += length;
        let cut = std::mem::take(&mut self.passing_over);
        Ok((cut || !rest.is_empty()).then_some(Block { rest, cut, number: &mut self.number }))
    }

    /// The first bytes of the stream, as many as a buffer holds, without taking them.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn peek(&mut self) -> io::Result<&[u8]> {
        while self.end < CHUNK && self.fill()? > 0 {}
        Ok(&self.buffer[self.start..self.end])
    }

    #[cold]
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            // A line that does not fit; it is given up before this passes twice the longest.
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

    /// Hands out its bytes a few at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn all(text: &[u8], drop: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Drops(text, drop));
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
        assert_eq!(lines.number(), found.len() as u64);
        assert!(lines.buffer.len() <= 4 * MAX_LINE, "{}", lines.buffer.len());
        assert!(lines.block().unwrap().is_none(), "the end stays the end");
        found
    }

    #[test]
    fn lines_end_in_any_way() {
        for drop in [1, 2, 3, 1 << 20] {
            let found = all(b"one\ntwo\r\n\nfour", drop);
            assert_eq!(found, [&b"one"[..], b"two", b"", b"four"].map(|line| Some(line.to_vec())));
            assert_eq!(all(b"one\n", drop).len(), 1);
            assert_eq!(all(b"", drop).len(), 0);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        for (length, expected) in [(MAX_LINE, true), (MAX_LINE + 1, false), (5 * MAX_LINE, false)] {
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
    fn the_beginning_can_be_looked_at() {
        let mut lines = Lines::new(Drops(b"one\ntwo\n", 3));
        assert_eq!(lines.peek().unwrap(), b"one\ntwo\n");
        let block: Vec<_> = lines.block().unwrap().unwrap().collect();
        assert_eq!(block, [(1, Line::Whole(&b"one"[..])), (2, Line::Whole(b"two"))]);
    }
}
