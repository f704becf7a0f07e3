//! The original request, as the gateway describes it.
//!
//! Rule       Headers count only from trusted proxies. Any other peer is the client itself.
//! Rule       Gateways pass on the client's headers and add their own. If two headers of the same meaning differ, one
//!            of them is invented by the client, and it is unknown which: that is a contradiction, and denied.
//! Rule       A target with a `#` is denied: valid requests have none, and servers differ in whether it ends the path
//!            or the query. A path that servers read differently, such as one with `..;` or a backslash, is denied.

use std::borrow::Cow;
use std::fmt;

use flowgate_engine::http::{Client, PathSpelling, escaped_text};

use super::Gate;
use crate::http::Call;
use crate::http::head::{self, Header};

const METHOD: &[&str] = &["x-forwarded-method", "x-original-method"];
const URI: &[&str] = &["x-forwarded-uri", "x-original-uri"];
const FORWARDED_HOST: &[&str] = &["x-forwarded-host"];
const FORWARDED_FOR: &[&str] = &["x-forwarded-for"];

/// The original request.
#[derive(Debug)]
pub(super) struct Original<'a> {
    pub(super) client: Client,
    /// True if the peer is a trusted proxy.
    pub(super) trusted: bool,
    pub(super) method: Cow<'a, str>,
    pub(super) host: Option<Cow<'a, str>>,
    /// Path and query, without the scheme and the host that a client may write into its request line.
    pub(super) target: Option<&'a [u8]>,
}

/// Why a request can be read in two ways.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unclear<'n> {
    /// Two headers, two lines of one, or two parameters of one name disagree.
    Contradiction(&'n str),
    /// The target has a `#`.
    Fragment,
    /// The path is [ambiguous](PathSpelling::is_ambiguous).
    Path,
}

impl fmt::Display for Unclear<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unclear::Contradiction(name) => write!(f, "the values of {name} contradict each other"),
            Unclear::Fragment => f.write_str("the target of the request has a fragment"),
            Unclear::Path => {
                f.write_str("the path has a backslash, or a segment .. beside something other than a name")
            }
        }
    }
}

impl<'a> Original<'a> {
    pub(super) fn from_headers(
        call: &'a Call<'_>,
        gate: &Gate,
        spelling: PathSpelling,
    ) -> Result<Original<'a>, Unclear<'static>> {
        let headers = call.headers();
        // Gateways append to the client's value. Bytes that are not text invalidate only their own entry.
        let lines = head::values(headers, FORWARDED_FOR[0]).map(escaped_text);
        // The walk starts at the last header, and the map iterates forwards only. Nearly always there is one header.
        let lines: smallvec::SmallVec<[Cow<'_, str>; 2]> = lines.collect();
        let client = gate.addresses.find(call.peer, lines.iter().map(|line| &**line));
        let own_method = || Cow::Borrowed(call.head.method.as_str());
        let own_host = || head::value(headers, "host").map(escaped_text);
        if !gate.addresses.trusts(call.peer) {
            let mut all = METHOD.iter().chain(URI).chain(FORWARDED_HOST).chain(FORWARDED_FOR);
            if all.any(|name| head::value(headers, name).is_some()) {
                gate.warn_of_stranger(call.peer);
            }
            return Ok(Original { client, trusted: false, method: own_method(), host: own_host(), target: None });
        }
        let target = said(headers, URI)?.map(path_and_query);
        match target {
            None => gate.warn_of_missing_uri(),
            Some(target) if target.contains(&b'#') => return Err(Unclear::Fragment),
            Some(target) if spelling.is_ambiguous(path(target)) => return Err(Unclear::Path),
            Some(_) => {}
        }
        let method = said(headers, METHOD)?.map(escaped_text).unwrap_or_else(own_method);
        let host = said(headers, FORWARDED_HOST)?.map(escaped_text).or_else(own_host);
        Ok(Original { client, trusted: true, method, host, target })
    }

    /// The path, as it was sent.
    pub(super) fn path(&self) -> Option<&'a [u8]> {
        self.target.map(path)
    }

    /// The query, as it was sent.
    pub(super) fn query(&self) -> Option<&'a [u8]> {
        let target = self.target?;
        target.get(path(target).len() + 1..)
    }
}

fn path(target: &[u8]) -> &[u8] {
    target.split(|byte| *byte == b'?').next().unwrap_or_default()
}

/// A URI without a scheme and a host.
fn path_and_query(uri: &[u8]) -> &[u8] {
    // A scheme has no slash.
    if uri.starts_with(b"/") {
        return uri;
    }
    let Some(colon) = uri.windows(3).position(|three| three == b"://") else { return uri };
    let (scheme, rest) = (&uri[..colon], &uri[colon + 3..]);
    if !scheme.iter().all(u8::is_ascii_alphanumeric) {
        return uri;
    }
    rest.iter().position(|byte| matches!(byte, b'/' | b'?')).map_or(b"/", |at| &rest[at..])
}

/// The one value of all headers with these names, which mean the same.
fn said<'a>(headers: &'a [Header<'_>], names: &'static [&'static str]) -> Result<Option<&'a [u8]>, Unclear<'static>> {
    let mut found = None;
    for name in names {
        for value in head::values(headers, name) {
            match found {
                Some(other) if other != value => return Err(Unclear::Contradiction(name)),
                _ => found = Some(value),
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_no_scheme_and_no_host() {
        for (uri, expected) in [
            ("/api?x=1", "/api?x=1"),
            ("http://host/api", "/api"),
            ("HTTP://host:1?x", "?x"),
            ("http://host", "/"),
            ("/redirect?to=http://host/", "/redirect?to=http://host/"),
            ("//api", "//api"),
        ] {
            assert_eq!(path_and_query(uri.as_bytes()), expected.as_bytes());
        }
    }
}
