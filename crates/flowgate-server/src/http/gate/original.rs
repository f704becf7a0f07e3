//! The request that the gateway asks about, by what the gateway says of it.
//!
//! Rule       Headers count only from trusted proxies. Who is none is taken for the client itself.
//! Rule       Gateways pass on what the client sent and add their own. Where two headers would say the same and differ,
//!            one of them is the client's invention, and no one can tell which: that is a contradiction, and denied.

use std::borrow::Cow;

use flowgate_engine::Client;
use hyper::header::{HOST, HeaderMap, HeaderName};

use super::Gate;
use crate::http::Call;

static METHOD: [HeaderName; 2] =
    [HeaderName::from_static("x-forwarded-method"), HeaderName::from_static("x-original-method")];
static URI: [HeaderName; 2] = [HeaderName::from_static("x-forwarded-uri"), HeaderName::from_static("x-original-uri")];
static FORWARDED_HOST: [HeaderName; 1] = [HeaderName::from_static("x-forwarded-host")];
static FORWARDED_FOR: [HeaderName; 1] = [HeaderName::from_static("x-forwarded-for")];

/// What is known of the original request.
#[derive(Debug)]
pub(super) struct Original<'a> {
    pub(super) client: Client,
    /// Whether a trusted proxy speaks for the client.
    pub(super) trusted: bool,
    pub(super) method: Cow<'a, str>,
    pub(super) host: Option<Cow<'a, str>>,
    /// Path and query.
    pub(super) uri: Option<Cow<'a, str>>,
}

/// Two headers, two lines of one, or two parameters of one name disagree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Contradiction<'n>(pub(super) &'n str);

impl<'a> Original<'a> {
    pub(super) fn of(call: &'a Call<'_>, gate: &Gate) -> Result<Original<'a>, Contradiction<'static>> {
        let headers = call.headers();
        // Gateways append to what the client wrote: bytes that are no text spoil their entry, not those right of it.
        let lines = headers.get_all(&FORWARDED_FOR[0]).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        // Headers come in one direction only; the walk starts at the last. Nearly always there is one.
        let lines: smallvec::SmallVec<[Cow<'_, str>; 2]> = lines.collect();
        let client = gate.addresses.find(call.peer, lines.iter().map(|line| &**line));
        let own_method = || Cow::Borrowed(call.head.method.as_str());
        let own_host = || headers.get(HOST).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if !gate.addresses.trusts(call.peer) {
            let mut all = METHOD.iter().chain(&URI).chain(&FORWARDED_HOST).chain(&FORWARDED_FOR);
            if all.any(|name| headers.contains_key(name)) {
                gate.warn_of_stranger(call.peer);
            }
            return Ok(Original { client, trusted: false, method: own_method(), host: own_host(), uri: None });
        }
        let uri = said(headers, &URI)?;
        if uri.is_none() {
            gate.warn_of_missing_uri();
        }
        let method = said(headers, &METHOD)?.unwrap_or_else(own_method);
        let host = said(headers, &FORWARDED_HOST)?.or_else(own_host);
        Ok(Original { client, trusted: true, method, host, uri })
    }
}

/// What the headers of these names, which mean the same, say together.
fn said<'a>(
    headers: &'a HeaderMap,
    names: &'static [HeaderName],
) -> Result<Option<Cow<'a, str>>, Contradiction<'static>> {
    let mut found = None;
    for name in names {
        for value in headers.get_all(name) {
            match found {
                Some(other) if other != value => return Err(Contradiction(name.as_str())),
                _ => found = Some(value),
            }
        }
    }
    Ok(found.map(|value| String::from_utf8_lossy(value.as_bytes())))
}
