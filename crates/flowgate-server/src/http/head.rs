//! The head of a request as endpoints see it: hyper or [`super::direct`] has read it.

pub(crate) use httparse::Header;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    /// The headers in their order. Names are spelled as the client sent them.
    pub(crate) headers: &'a [Header<'a>],
}

/// The headers that hyper has read.
pub(crate) fn listed(map: &HeaderMap) -> SmallVec<[Header<'_>; 16]> {
    fn header<'h>((name, value): (&'h HeaderName, &'h HeaderValue)) -> Header<'h> {
        Header { name: name.as_str(), value: value.as_bytes() }
    }
    map.iter().map(header).collect()
}

/// The values of a header, in order.
pub(crate) fn values<'h>(headers: &'h [Header<'_>], name: &'h str) -> impl Iterator<Item = &'h [u8]> {
    headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// The first value of a header.
pub(crate) fn value<'h>(headers: &'h [Header<'_>], name: &str) -> Option<&'h [u8]> {
    headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}

/// The first value of a header, if that is printable ASCII.
pub(crate) fn text<'h>(headers: &'h [Header<'_>], name: &str) -> Option<&'h str> {
    value(headers, name).and_then(printable)
}

/// A value as text; `None`: it is not printable ASCII.
pub(crate) fn printable(value: &[u8]) -> Option<&str> {
    let is_printable = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    if is_printable { str::from_utf8(value).ok() } else { None }
}
