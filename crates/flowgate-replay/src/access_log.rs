//! Access logs in the common and the combined format.
//!
//! ```text
//! 203.0.113.7 - ann [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 2326 "http://from/" "Mozilla/5.0"
//! ip          identd user time                    request               status size referrer    user agent
//! ```
//!
//! Rule       A line gives the fields `ip user method path status header.referer header.user-agent`, the parameters of
//!            the query that rules name (`query.NAME`, the first value), and `host` if it begins with the virtual host,
//!            as in `vhost_combined`. A `-` is an absent field. Escapes (`\"`, `\\`, `\x16`) are resolved. Bytes
//!            outside UTF-8 are escaped as at the gate. The path has no query and has the spelling that rules see
//!            behind a gateway.
//! Rule       A request line that is not HTTP, such as the bytes of a TLS handshake, gives neither method nor path. The
//!            request is still decided, with its other fields. Text after the last known field is ignored, since many
//!            servers append fields of their own.

mod client;

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use flowgate_engine::http::{escaped_text, normalized_host, normalized_method, query_values};

use super::event::{Event, FieldName, LineError, LogField, QUERY_PREFIX, TextRange};
use client::Client;

/// The last field that a line must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastField {
    /// A line of the common format ends with the size.
    Size,
    /// A line of the combined format ends with the user agent.
    UserAgent,
}

pub(crate) fn read(line: &str, last_field: LastField, event: &mut Event) -> Result<(), LineError> {
    let mut cursor = Cursor { text: line.as_bytes(), at: 0 };
    let Client { host, ip } = client::read(&mut cursor, line)?;
    let user = cursor.user()?;
    let time = cursor.time()?;
    let text = &line.as_bytes()[time.clone()];
    event.time = (event.last_of_log.read(text))
        .ok_or(LineError::expected("a time such as 17/May/2015:10:05:03 +0000", time.start))?;
    event.time_range = time;
    let request = cursor.quoted("a request in quotes")?;
    let status = cursor.status()?;
    cursor.size()?;
    if event.wanted.has(LogField::Ip) {
        push(event, LogField::Ip, ip, line);
    }
    if event.wanted.has(LogField::Host) {
        push_host(event, host, line);
    }
    if event.wanted.has(LogField::User) {
        push(event, LogField::User, user, line);
    }
    let wanted = &event.wanted;
    if wanted.has(LogField::Method) || wanted.has(LogField::Path) || !wanted.queries.is_empty() {
        push_request(event, request, line);
    }
    if event.wanted.has(LogField::Status) {
        push(event, LogField::Status, status, line);
    }
    if last_field == LastField::UserAgent {
        let referer = cursor.quoted("a referrer in quotes")?;
        if event.wanted.has(LogField::Referer) {
            push(event, LogField::Referer, referer, line);
        }
        let agent = cursor.quoted("a user agent in quotes")?;
        if event.wanted.has(LogField::UserAgent) {
            push(event, LogField::UserAgent, agent, line);
        }
    }
    Ok(())
}

#[inline]
fn push_host(event: &mut Event, range: Range<usize>, line: &str) {
    let text = &line[range.clone()];
    if text.is_empty() || text == "-" {
        return;
    }
    push_spelled(event, LogField::Host, range.start, normalized_host(text));
}

/// Reads method, path and parameters of `GET /a?b=c HTTP/1.1`. A path may contain spaces, since some clients send such
/// paths.
fn push_request(event: &mut Event, request: Range<usize>, line: &str) {
    let text = &line[request.clone()];
    let Some(space) = memchr::memchr(b' ', text.as_bytes()) else { return };
    let is_method = |byte: u8| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_';
    if space == 0 || !text.bytes().take(space).all(is_method) {
        return;
    }
    let target = &text[space + 1..];
    let version = memchr::memrchr(b' ', target.as_bytes()).filter(|at| target[at + 1..].starts_with("HTTP/"));
    let target = version.map_or(target, |at| &target[..at]);
    let start = request.start + space + 1;
    if event.wanted.has(LogField::Method) {
        match normalized_method(&text[..space]) {
            Cow::Borrowed(_) => push(event, LogField::Method, request.start..request.start + space, line),
            Cow::Owned(method) => push_scratch(event, FieldName::Log(LogField::Method), &method),
        }
    }
    let path = path(target, start);
    if !event.wanted.queries.is_empty() {
        push_queries(event, &line[path.end..start + target.len()]);
    }
    if event.wanted.has(LogField::Path) {
        push_path(event, path, line);
    }
}

/// Reads the wanted parameters of what follows a path: `?a=b#c`.
fn push_queries(event: &mut Event, rest: &str) {
    let Some(query) = rest.strip_prefix('?') else { return };
    let query = unescaped(query.split('#').next().unwrap_or_default());
    let names = Arc::clone(&event.wanted.queries);
    for (index, name) in names.iter().enumerate() {
        if let Some(value) = query_values(&query, &name[QUERY_PREFIX.len()..]).next() {
            push_scratch(event, FieldName::Query(index as u32), &value);
        }
    }
}

#[inline]
fn push_path(event: &mut Event, range: Range<usize>, line: &str) {
    let text = &line[range.clone()];
    if !text.starts_with('/') || is_escaped(text) {
        let unescaped = unescaped(text);
        let is_path = unescaped.starts_with(b"/");
        let path = if is_path { event.spelling.spell(&unescaped) } else { escaped_text(&unescaped) };
        return push_scratch(event, FieldName::Log(LogField::Path), &path);
    }
    push_spelled(event, LogField::Path, range.start, event.spelling.spell(text));
}

/// Pushes a value as rules spell it: either the beginning of the line's text from `start` on, or another text.
#[inline]
fn push_spelled(event: &mut Event, field: LogField, start: usize, spelled: Cow<'_, str>) {
    match spelled {
        Cow::Borrowed(text) => event.push(FieldName::Log(field), TextRange::new(start..start + text.len())),
        Cow::Owned(text) => push_scratch(event, FieldName::Log(field), &text),
    }
}

/// The range of the path in a request's target, without the query and without the host of a request to a proxy.
fn path(target: &str, start: usize) -> Range<usize> {
    let host = if target.starts_with('/') { None } else { target.find("://").map(|scheme| scheme + 3) };
    let begin = host.and_then(|host| Some(host + target[host..].find('/')?)).unwrap_or(0);
    let end = memchr::memchr2(b'?', b'#', &target.as_bytes()[begin..]).map_or(target.len(), |query| begin + query);
    start + begin..start + end
}

#[inline]
fn push(event: &mut Event, field: LogField, value: Range<usize>, line: &str) {
    let text = &line[value.clone()];
    if text.is_empty() || text == "-" {
        return;
    }
    if is_escaped(text) {
        push_scratch(event, FieldName::Log(field), &escaped_text(&unescaped(text)));
    } else {
        event.push(FieldName::Log(field), TextRange::new(value));
    }
}

#[inline]
fn is_escaped(text: &str) -> bool {
    memchr::memchr(b'\\', text.as_bytes()).is_some()
}

fn push_scratch(event: &mut Event, name: FieldName, text: &str) {
    let Ok(piece) = event.in_scratch(|out| {
        out.push_str(text);
        Ok::<(), Infallible>(())
    });
    event.push(name, piece);
}

#[cold]
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, length) = match (byte, after) {
            (b'\\', [same @ (b'"' | b'\\'), ..]) => (*same, 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b'x', high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, 4),
                _ => (b'\\', 1),
            },
            _ => (byte, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// A position in a line.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Reads a word and the space after it.
    #[inline]
    fn word(&mut self, what: &'static str) -> Result<Range<usize>, LineError> {
        let start = self.at;
        let length = match self.text.get(start..) {
            // Most words are `-`.
            Some([first, b' ', ..]) if *first != b' ' => Some(1),
            rest => memchr::memchr(b' ', rest.unwrap_or_default()),
        };
        match length {
            Some(length) if length > 0 => {
                self.at = start + length + 1;
                Ok(start..start + length)
            }
            _ => Err(LineError::expected(what, start)),
        }
    }

    /// Reads the user up to the bracket of the time. A name may contain spaces.
    #[inline]
    fn user(&mut self) -> Result<Range<usize>, LineError> {
        let start = self.at;
        let mut at = start;
        while let Some(length) = memchr::memchr(b'[', &self.text[at..]) {
            at += length + 1;
            if at >= start + 3 && self.text[at - 2] == b' ' && self.text.get(at).is_some_and(u8::is_ascii_digit) {
                self.at = at;
                return Ok(start..at - 2);
            }
        }
        Err(LineError::expected("a user, mostly -, and a time in brackets", start))
    }

    /// Reads the time up to the closing bracket, and the space after it.
    #[inline]
    fn time(&mut self) -> Result<Range<usize>, LineError> {
        let start = self.at;
        let length = memchr::memchr(b']', &self.text[start..]);
        let end = start + length.ok_or(LineError::expected("a time in brackets", start))?;
        self.at = end + 1;
        self.space()?;
        Ok(start..end)
    }

    /// Reads a text between quotes. Quotes within the text are escaped.
    #[inline]
    fn quoted(&mut self, what: &'static str) -> Result<Range<usize>, LineError> {
        if self.text.get(self.at) != Some(&b'"') {
            return Err(LineError::expected(what, self.at));
        }
        let start = self.at + 1;
        let mut at = start;
        while let Some(length) = memchr::memchr2(b'"', b'\\', &self.text[at.min(self.text.len())..]) {
            at += length;
            if self.text[at] == b'"' {
                self.at = at + 1;
                // The last quoted text may end the line.
                if self.at < self.text.len() {
                    self.space()?;
                }
                return Ok(start..at);
            }
            at += 2;
        }
        Err(LineError::expected("a closing quote", self.text.len()))
    }

    #[inline]
    fn status(&mut self) -> Result<Range<usize>, LineError> {
        let start = self.at;
        match self.text.get(start..) {
            Some([a, b, c, b' ', ..]) if a.is_ascii_digit() && b.is_ascii_digit() && c.is_ascii_digit() => {
                self.at += 4;
                Ok(start..start + 3)
            }
            Some([b'-', b' ', ..]) => {
                self.at += 2;
                Ok(start..start + 1)
            }
            _ => Err(LineError::expected("a status of three digits", start)),
        }
    }

    #[inline]
    fn size(&mut self) -> Result<(), LineError> {
        let start = self.at;
        let rest = &self.text[start..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let length = if digits == 0 && rest.first() == Some(&b'-') { 1 } else { digits };
        self.at += length;
        match self.text.get(self.at) {
            _ if length == 0 => Err(LineError::expected("a size or -", start)),
            None => Ok(()),
            Some(b' ') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(LineError::expected("a size or -", start)),
        }
    }

    #[inline]
    fn space(&mut self) -> Result<(), LineError> {
        match self.text.get(self.at) {
            Some(b' ') => {
                self.at += 1;
                Ok(())
            }
            _ => Err(LineError::expected("a space", self.at)),
        }
    }
}
