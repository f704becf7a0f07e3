//! A trace of JSON objects, one a line: `{"ts": 1700000000.25, "fields": {"user": "42"}, "cost": 1, "op": "take"}`.
//!
//! Rule       `ts` is a number of seconds, read as exact decimal text, or a text as in RFC 3339. `cost` and `op` are
//!            optional. The value of a field is a text, a number, `true` or `false`, as written. Any other key is an
//!            error, so that a misspelt key does not change what is replayed.
//! Reason     serde_json, with a visitor and `RawValue`, reads lines 7 % slower and reports syntax errors in its own
//!            words. This reader names the column and the expected text for every mistake.
//! Bound      The fields are the deepest level, so the reader does not recurse. A line has at most [`MAX_FIELDS`]
//!            fields, as a request over HTTP.

use std::ops::Range;

use flowgate::{MAX_COUNT, Time};
use flowgate_api::{MAX_FIELDS, Operation};

use super::event::{Event, FieldName, LineError, TextRange};
use super::timestamp;

pub(crate) fn read(line: &str, event: &mut Event) -> Result<(), LineError> {
    let mut cursor = Cursor { line, text: line.as_bytes(), at: 0 };
    let (mut time, mut has_fields) = (None, false);
    cursor.members("an object: {\"ts\": .., \"fields\": {..}}", |cursor, key| {
        let start = key.start;
        let twice = |is_second: bool| match is_second {
            true => Err(LineError::expected("each key once", start)),
            false => Ok(()),
        };
        match &line[key] {
            "ts" => {
                twice(time.is_some())?;
                time = Some(cursor.time()?);
            }
            "fields" => {
                twice(has_fields)?;
                has_fields = true;
                cursor.fields(event)?;
            }
            "cost" => event.cost = cursor.cost()?,
            "op" => event.operation = cursor.operation()?,
            _ => return Err(LineError::expected("the key ts, fields, cost or op", start)),
        }
        Ok(())
    })?;
    cursor.end()?;
    let Some((time, given)) = time else { return Err(LineError::expected("a key \"ts\"", line.len())) };
    if !has_fields {
        return Err(LineError::expected("a key \"fields\"", line.len()));
    }
    event.time = time;
    event.time_range = given;
    Ok(())
}

/// A position in a line.
struct Cursor<'a> {
    line: &'a str,
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Reads an object. `member` gets each key as written: the known keys need no escapes.
    fn members(
        &mut self,
        what: &'static str,
        mut member: impl FnMut(&mut Self, Range<usize>) -> Result<(), LineError>,
    ) -> Result<(), LineError> {
        self.expect(b'{', what)?;
        if self.found(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string("a key in quotes")?.inner;
            self.expect(b':', "a colon")?;
            member(self, key)?;
            if self.found(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or }")?;
        }
    }

    fn fields(&mut self, event: &mut Event) -> Result<(), LineError> {
        self.expect(b'{', "an object of fields")?;
        if self.found(b'}') {
            return Ok(());
        }
        for _ in 0..MAX_FIELDS {
            let start = self.at;
            let name = self.string("a field's name in quotes")?;
            let name = self.text_range(name, event)?;
            self.expect(b':', "a colon")?;
            self.skip_space();
            let value = match self.text.get(self.at) {
                Some(b'"') => {
                    let value = self.string("a text")?;
                    self.text_range(value, event)?
                }
                _ => TextRange::new(self.literal()?),
            };
            if event.has(name, self.line) {
                return Err(LineError::expected("each field once", start));
            }
            event.push(FieldName::Read(name), value);
            if self.found(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or }")?;
        }
        Err(LineError::expected("at most 256 fields", self.at))
    }

    fn time(&mut self) -> Result<(Time, Range<usize>), LineError> {
        self.skip_space();
        let start = self.at;
        if self.text.get(start) == Some(&b'"') {
            let inner = self.string("a time")?.inner;
            let time = timestamp::from_rfc3339(&self.text[inner]);
            let time = time.ok_or(LineError::expected("a time from 1970 to 2262 such as 2023-11-14T22:13:20Z", start));
            return Ok((time?, start..self.at));
        }
        let number = self.number("a time: a number of seconds, or a text")?;
        let time = timestamp::from_decimal(&self.text[number.clone()]);
        Ok((time.ok_or(LineError::expected("seconds since 1970, up to the year 2262", start))?, number))
    }

    fn cost(&mut self) -> Result<u64, LineError> {
        let number = self.number("a whole number")?;
        let start = number.start;
        let value = self.line[number].parse().ok().filter(|value| *value <= MAX_COUNT);
        value.ok_or(LineError::expected("a whole number up to 10^12", start))
    }

    fn operation(&mut self) -> Result<Operation, LineError> {
        let what = "\"take\", \"peek\", \"record\", \"refund\" or \"reset\"";
        let inner = self.string(what)?.inner;
        Operation::named(&self.line[inner.clone()]).ok_or(LineError::expected(what, inner.start))
    }

    /// Reads a text in quotes.
    #[inline]
    fn string(&mut self, what: &'static str) -> Result<QuotedText, LineError> {
        self.expect(b'"', what)?;
        let start = self.at;
        let mut has_escapes = false;
        loop {
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(QuotedText { inner: start..self.at - 1, has_escapes });
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 2;
                }
                Some(0..0x20) | None => {
                    return Err(LineError::expected("a closing quote", self.at.min(self.text.len())));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    #[inline]
    fn text_range(&self, quoted: QuotedText, event: &mut Event) -> Result<TextRange, LineError> {
        if !quoted.has_escapes {
            return Ok(TextRange::new(quoted.inner));
        }
        event.in_scratch(|out| self.unescape(quoted.inner, out))
    }

    /// Appends a text to `out` with its escapes resolved.
    #[cold]
    fn unescape(&self, inner: Range<usize>, out: &mut String) -> Result<(), LineError> {
        let mut at = inner.start;
        while at < inner.end {
            let plain = self.text[at..inner.end].iter().position(|&byte| byte == b'\\').unwrap_or(inner.end - at);
            // In UTF-8 the byte of a backslash occurs in no other character, so the text between two is valid.
            out.push_str(std::str::from_utf8(&self.text[at..at + plain]).map_err(|_| LineError::NotText)?);
            at += plain;
            if at == inner.end {
                break;
            }
            let (character, length) = match self.text.get(at + 1) {
                Some(b'n') => ('\n', 2),
                Some(b't') => ('\t', 2),
                Some(b'r') => ('\r', 2),
                Some(b'b') => ('\u{8}', 2),
                Some(b'f') => ('\u{c}', 2),
                Some(&same @ (b'"' | b'\\' | b'/')) => (char::from(same), 2),
                Some(b'u') => self.unicode(at).ok_or(LineError::expected("four hexadecimal digits", at))?,
                _ => return Err(LineError::expected("an escape that JSON knows", at)),
            };
            out.push(character);
            at += length;
        }
        Ok(())
    }

    /// The character of `\u00e9` or of a surrogate pair such as `\ud83d\ude00`, and the length of the escape.
    fn unicode(&self, at: usize) -> Option<(char, usize)> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.text.get(at..at + 6)?.strip_prefix(b"\\u")?;
            digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))
        };
        let high = unit(at)?;
        if let Some(character) = char::from_u32(high) {
            return Some((character, 6));
        }
        let low = unit(at + 6).filter(|low| (0xdc00..0xe000).contains(low) && high < 0xdc00)?;
        Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 12))
    }

    /// Reads a number, `true` or `false`.
    fn literal(&mut self) -> Result<Range<usize>, LineError> {
        for word in [&b"true"[..], b"false"] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(self.at - word.len()..self.at);
            }
        }
        self.number("a text, a number, true or false")
    }

    /// Reads a number.
    fn number(&mut self, what: &'static str) -> Result<Range<usize>, LineError> {
        self.skip_space();
        let start = self.at;
        let digits = |at: usize| self.text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut at = start + usize::from(self.text.get(start) == Some(&b'-'));
        let whole = digits(at);
        let has_extra_zero = whole > 1 && self.text[at] == b'0';
        at += whole;
        let mut is_number = whole > 0 && !has_extra_zero;
        if self.text.get(at) == Some(&b'.') {
            let fraction = digits(at + 1);
            is_number &= fraction > 0;
            at += 1 + fraction;
        }
        if let Some(b'e' | b'E') = self.text.get(at) {
            at += 1 + usize::from(matches!(self.text.get(at + 1), Some(b'+' | b'-')));
            let exponent = digits(at);
            is_number &= exponent > 0;
            at += exponent;
        }
        if !is_number {
            return Err(LineError::expected(what, start));
        }
        self.at = at;
        Ok(start..at)
    }

    fn end(&mut self) -> Result<(), LineError> {
        self.skip_space();
        match self.at == self.text.len() {
            true => Ok(()),
            false => Err(LineError::expected("the end of the line", self.at)),
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), LineError> {
        match self.found(byte) {
            true => Ok(()),
            false => Err(LineError::expected(what, self.at)),
        }
    }

    #[inline]
    fn found(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
    }
}

struct QuotedText {
    inner: Range<usize>,
    has_escapes: bool,
}
