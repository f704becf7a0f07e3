//! A trace of JSON objects, one a line: `{"ts": 1700000000.25, "fields": {"user": "42"}, "cost": 1, "op": "take"}`.
//!
//! Rule       `ts` is a number of seconds, read as exact decimal text, or a text as in RFC 3339. `cost` and `op` may
//!            be absent. A field's value is a text, or a number, true or false, taken as they are written. Any other
//!            key is a mistake: a trace with a misspelt one would be replayed as something else.
//! Bound      Nothing nests deeper than the fields, so nothing recurses; no request has more fields than HTTP takes.

use std::ops::Range;

use flowgate::{MAX_COUNT, Time};
use flowgate_server::Operation;

use super::event::{Event, Name, Piece, Unreadable};
use super::timestamp;

const MAX_FIELDS: usize = 256;

pub(crate) fn read(line: &str, event: &mut Event) -> Result<(), Unreadable> {
    let mut json = Json { line, text: line.as_bytes(), at: 0 };
    let (mut time, mut has_fields) = (None, false);
    json.members("an object: {\"ts\": .., \"fields\": {..}}", |json, key| {
        let start = key.start;
        let twice = |is_second: bool| match is_second {
            true => Err(Unreadable::expected("each key once", start)),
            false => Ok(()),
        };
        match &line[key] {
            "ts" => {
                twice(time.is_some())?;
                time = Some(json.time()?);
            }
            "fields" => {
                twice(has_fields)?;
                has_fields = true;
                json.fields(event)?;
            }
            "cost" => event.cost = json.cost()?,
            "op" => event.operation = json.operation()?,
            _ => return Err(Unreadable::expected("the key ts, fields, cost or op", start)),
        }
        Ok(())
    })?;
    json.end()?;
    let Some((time, given)) = time else { return Err(Unreadable::expected("a key \"ts\"", line.len())) };
    if !has_fields {
        return Err(Unreadable::expected("a key \"fields\"", line.len()));
    }
    event.time = time;
    event.given = given;
    Ok(())
}

/// A place in a line.
struct Json<'a> {
    line: &'a str,
    text: &'a [u8],
    at: usize,
}

impl Json<'_> {
    /// An object whose keys have no escapes worth reading: each is handed over as it is written.
    fn members(
        &mut self,
        what: &'static str,
        mut member: impl FnMut(&mut Self, Range<usize>) -> Result<(), Unreadable>,
    ) -> Result<(), Unreadable> {
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

    fn fields(&mut self, event: &mut Event) -> Result<(), Unreadable> {
        self.expect(b'{', "an object of fields")?;
        if self.found(b'}') {
            return Ok(());
        }
        for _ in 0..MAX_FIELDS {
            let start = self.at;
            let name = self.string("a field's name in quotes")?;
            let name = self.piece(name, event)?;
            self.expect(b':', "a colon")?;
            self.skip_space();
            let value = match self.text.get(self.at) {
                Some(b'"') => {
                    let value = self.string("a text")?;
                    self.piece(value, event)?
                }
                _ => Event::part(self.literal()?),
            };
            if event.has(name, self.line) {
                return Err(Unreadable::expected("each field once", start));
            }
            event.push(Name::Read(name), value);
            if self.found(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or }")?;
        }
        Err(Unreadable::expected("at most 256 fields", self.at))
    }

    fn time(&mut self) -> Result<(Time, Range<usize>), Unreadable> {
        self.skip_space();
        let start = self.at;
        if self.text.get(start) == Some(&b'"') {
            let inner = self.string("a time")?.inner;
            let time = timestamp::from_rfc3339(&self.text[inner]);
            let time = time.ok_or(Unreadable::expected("a time from 1970 to 2262 such as 2023-11-14T22:13:20Z", start));
            return Ok((time?, start..self.at));
        }
        let number = self.number("a time: a number of seconds, or a text")?;
        let time = timestamp::from_decimal(&self.text[number.clone()]);
        Ok((time.ok_or(Unreadable::expected("seconds since 1970, up to the year 2262", start))?, number))
    }

    fn cost(&mut self) -> Result<u64, Unreadable> {
        let number = self.number("a whole number")?;
        let (start, digits) = (number.start, &self.text[number]);
        let is_whole = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits[0] != b'0');
        let value = digits
            .iter()
            .fold(0_u64, |value, digit| value.saturating_mul(10).saturating_add(u64::from(digit.wrapping_sub(b'0'))));
        match is_whole && value <= MAX_COUNT {
            true => Ok(value),
            false => Err(Unreadable::expected("a whole number up to 10^12", start)),
        }
    }

    fn operation(&mut self) -> Result<Operation, Unreadable> {
        let what = "\"take\", \"peek\", \"record\", \"refund\" or \"reset\"";
        let inner = self.string(what)?.inner;
        match &self.line[inner.clone()] {
            "take" => Ok(Operation::Take),
            "peek" => Ok(Operation::Peek),
            "record" => Ok(Operation::Record),
            "refund" => Ok(Operation::Refund),
            "reset" => Ok(Operation::Reset),
            _ => Err(Unreadable::expected(what, inner.start)),
        }
    }

    /// A text in quotes: where it stands, and whether it has escapes.
    #[inline]
    fn string(&mut self, what: &'static str) -> Result<Quoted, Unreadable> {
        self.expect(b'"', what)?;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Quoted { inner: start..self.at - 1, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(0..0x20) | None => {
                    return Err(Unreadable::expected("a closing quote", self.at.min(self.text.len())));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    #[inline]
    fn piece(&self, quoted: Quoted, event: &mut Event) -> Result<Piece, Unreadable> {
        if !quoted.escaped {
            return Ok(Event::part(quoted.inner));
        }
        event.aside(|out| self.unescape(quoted.inner, out))
    }

    /// Resolves the escapes of a text between quotes.
    #[cold]
    fn unescape(&self, inner: Range<usize>, out: &mut String) -> Result<(), Unreadable> {
        let mut at = inner.start;
        while at < inner.end {
            let plain = self.text[at..inner.end].iter().position(|&byte| byte == b'\\').unwrap_or(inner.end - at);
            // A backslash is no part of another character, so what lies between two is whole.
            out.push_str(std::str::from_utf8(&self.text[at..at + plain]).map_err(|_| Unreadable::NotText)?);
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
                Some(b'u') => self.unicode(at).ok_or(Unreadable::expected("four hexadecimal digits", at))?,
                _ => return Err(Unreadable::expected("an escape that JSON knows", at)),
            };
            out.push(character);
            at += length;
        }
        Ok(())
    }

    /// `\u00e9`, or two of them for a character that needs both.
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

    /// A number, true or false.
    fn literal(&mut self) -> Result<Range<usize>, Unreadable> {
        for word in [&b"true"[..], b"false"] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(self.at - word.len()..self.at);
            }
        }
        self.number("a text, a number, true or false")
    }

    /// Where a number stands.
    fn number(&mut self, what: &'static str) -> Result<Range<usize>, Unreadable> {
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
            return Err(Unreadable::expected(what, start));
        }
        self.at = at;
        Ok(start..at)
    }

    fn end(&mut self) -> Result<(), Unreadable> {
        self.skip_space();
        match self.at == self.text.len() {
            true => Ok(()),
            false => Err(Unreadable::expected("the end of the line", self.at)),
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Unreadable> {
        match self.found(byte) {
            true => Ok(()),
            false => Err(Unreadable::expected(what, self.at)),
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

struct Quoted {
    inner: Range<usize>,
    escaped: bool,
}
