//! An inline line to words, as Redis splits it.
//!
//! Rule       Blanks separate words. Within double quotes `\n` `\r` `\t` `\b` `\a` and `\xHH` stand for a byte, and any
//!            other backslash for the character behind it; within single quotes only `\'` is an escape. A closing
//!            quote must be followed by a blank. Words are decoded in place, since decoding never makes one longer.

use std::ops::Range;

use super::{MAX_ARGS, ProtocolError};

/// Appends the words of `line` to `words`, as positions in it.
pub(super) fn split(line: &mut [u8], words: &mut Vec<Range<usize>>) -> Result<(), ProtocolError> {
    let mut splitting = Splitting { line, read: 0, written: 0 };
    while let Some(word) = splitting.word()? {
        if words.len() == MAX_ARGS {
            return Err(ProtocolError::ArrayLength);
        }
        words.push(word);
    }
    Ok(())
}

struct Splitting<'a> {
    line: &'a mut [u8],
    read: usize,
    /// The end of the decoded words in `line`, never beyond `read`.
    written: usize,
}

impl Splitting<'_> {
    fn word(&mut self) -> Result<Option<Range<usize>>, ProtocolError> {
        while self.peek().is_some_and(is_blank) {
            self.read += 1;
        }
        if self.peek().is_none() {
            return Ok(None);
        }
        let start = self.written;
        while let Some(byte) = self.peek().filter(|&byte| !is_blank(byte)) {
            self.read += 1;
            match byte {
                b'"' | b'\'' => self.quoted(byte)?,
                byte => self.write(byte),
            }
        }
        Ok(Some(start..self.written))
    }

    /// Reads up to the closing quote and moves past it.
    fn quoted(&mut self, quote: u8) -> Result<(), ProtocolError> {
        loop {
            let byte = self.next()?;
            match byte {
                b'\\' if quote == b'"' => {
                    let escaped = self.escaped()?;
                    self.write(escaped);
                }
                b'\\' if self.peek() == Some(b'\'') => {
                    self.read += 1;
                    self.write(b'\'');
                }
                byte if byte == quote => break,
                byte => self.write(byte),
            }
        }
        match self.peek() {
            Some(byte) if !is_blank(byte) => Err(ProtocolError::Quotes),
            _ => Ok(()),
        }
    }

    /// Reads the byte that a backslash stands for.
    fn escaped(&mut self) -> Result<u8, ProtocolError> {
        Ok(match self.next()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            b'x' => match self.line[self.read..] {
                [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    self.read += 2;
                    16 * hex(high) + hex(low)
                }
                _ => b'x',
            },
            other => other,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.read).copied()
    }

    fn next(&mut self) -> Result<u8, ProtocolError> {
        let byte = self.peek().ok_or(ProtocolError::Quotes)?;
        self.read += 1;
        Ok(byte)
    }

    fn write(&mut self, byte: u8) {
        self.line[self.written] = byte;
        self.written += 1;
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\0' | 0x0b | 0x0c)
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
