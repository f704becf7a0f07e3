//! `{ "Ret_type":2, "Str_reason":"Deny" }`: an object of whole numbers and texts, as a rule file holds it.
//!
//! It is JSON without arrays, objects within, fractions and words, so it needs no nesting and no bound on depth.

use super::piece::Piece;
use super::result::KoalaValue;

/// A field of the object.
pub(super) struct FlatEntry<'t> {
    pub(super) name: String,
    pub(super) value: KoalaValue,
    /// The place of the value.
    pub(super) at: Piece<'t>,
}

/// A mistake in the object, and its place.
pub(super) struct WrongObject<'t> {
    pub(super) at: Piece<'t>,
    pub(super) expected: &'static str,
}

/// Reads the object at the start of a text. Returns its fields and the text behind it.
pub(super) fn read(text: Piece<'_>) -> Result<(Vec<FlatEntry<'_>>, Piece<'_>), WrongObject<'_>> {
    let mut reader = Reader { text, at: 0 };
    let mut entries = Vec::new();
    reader.take('{', "an object in braces")?;
    if reader.next() == Some('}') {
        reader.at += 1;
        return Ok((entries, text.from(reader.at)));
    }
    loop {
        reader.skip_blanks();
        let name = reader.text("the name of a field in double quotes")?;
        reader.take(':', "a `:` between the name and its value")?;
        reader.skip_blanks();
        let start = reader.at;
        let value = match reader.next() {
            Some('"') => KoalaValue::Text(reader.text("a text")?),
            _ => KoalaValue::Number(reader.number()?),
        };
        entries.push(FlatEntry { name, value, at: text.part(start, reader.at) });
        match reader.next() {
            Some(',') => reader.at += 1,
            _ => break,
        }
    }
    reader.take('}', "a `,` or the closing brace")?;
    Ok((entries, text.from(reader.at)))
}

struct Reader<'t> {
    text: Piece<'t>,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Skips blanks, and returns the next character.
    fn next(&mut self) -> Option<char> {
        self.skip_blanks();
        self.rest().chars().next()
    }

    fn take(&mut self, char: char, expected: &'static str) -> Result<(), WrongObject<'t>> {
        if self.next() != Some(char) {
            return Err(self.wrong(expected));
        }
        self.at += char.len_utf8();
        Ok(())
    }

    /// The mistake that the next word is not what is expected.
    fn wrong(&self, expected: &'static str) -> WrongObject<'t> {
        let rest = self.rest();
        let word = rest.find([',', '}', ' ', ':']).unwrap_or(rest.len());
        let first = rest.chars().next().map_or(0, char::len_utf8);
        WrongObject { at: self.text.part(self.at, self.at + word.max(first)), expected }
    }

    fn number(&mut self) -> Result<i64, WrongObject<'t>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let length = sign + rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let follows = rest[length..].chars().next().is_none_or(|char| char.is_whitespace() || ",}".contains(char));
        match rest[..length].parse() {
            Ok(number) if follows => {
                self.at += length;
                Ok(number)
            }
            _ => Err(self.wrong("a whole number or a text in double quotes")),
        }
    }

    /// Reads a text in double quotes, with JSON's escapes.
    fn text(&mut self, expected: &'static str) -> Result<String, WrongObject<'t>> {
        if !self.rest().starts_with('"') {
            return Err(self.wrong(expected));
        }
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(char) = self.rest().chars().next() else {
                let at = self.text.part(start, self.text.text.len());
                return Err(WrongObject { at, expected: "a closing quote" });
            };
            match char {
                '"' => {
                    self.at += 1;
                    return Ok(text);
                }
                '\\' => text.push(self.escaped()?),
                char => {
                    self.at += char.len_utf8();
                    text.push(char);
                }
            }
        }
    }

    fn escaped(&mut self) -> Result<char, WrongObject<'t>> {
        const EXPECTED: &str = "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000";
        let start = self.at;
        let wrong = |reader: &Self| WrongObject { at: reader.text.part(start, reader.at), expected: EXPECTED };
        self.at += 1;
        let Some(char) = self.rest().chars().next() else { return Err(wrong(self)) };
        self.at += char.len_utf8();
        Ok(match char {
            '"' | '\\' | '/' => char,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.unit().ok_or_else(|| wrong(self))?;
                let second = (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u");
                let units = if second {
                    self.at += 2;
                    [first, self.unit().ok_or_else(|| wrong(self))?]
                } else {
                    [first, 0]
                };
                let units = &units[..if second { 2 } else { 1 }];
                let decoded: Result<Vec<char>, _> = char::decode_utf16(units.iter().copied()).collect();
                match decoded.as_deref() {
                    Ok([char]) => *char,
                    _ => return Err(wrong(self)),
                }
            }
            _ => return Err(wrong(self)),
        })
    }

    /// Reads four hexadecimal digits.
    fn unit(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u16::from_str_radix(digits, 16).ok()
    }
}
