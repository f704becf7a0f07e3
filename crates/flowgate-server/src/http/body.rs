//! The body of a request: bounded in size and time, then read as JSON.
//!
//! Rule       Texts without escapes are borrowed from the body. A body that cannot be read is read a second time,
//!            slowly, to find the field that is wrong.

use std::ops::Deref;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use serde::Deserialize;
use tokio::time::timeout;

use super::Shared;
use super::error::Error;
use super::head::{self, Header};

const CONTENT_TYPE: &str = "content-type";

/// The body of a request.
#[derive(Debug)]
pub(crate) enum Body<'b> {
    /// The whole body has arrived.
    Whole(&'b [u8]),
    /// Parts of the body may still be arriving.
    Arriving(Incoming),
}

/// The bytes of a body.
#[derive(Debug)]
pub(crate) enum Content<'b> {
    /// The bytes lie in the buffer of the connection.
    Borrowed(&'b [u8]),
    /// The bytes that hyper has read.
    Owned(Bytes),
}

impl Deref for Content<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Content::Borrowed(bytes) => bytes,
            Content::Owned(bytes) => bytes,
        }
    }
}

/// Reads the whole body of a write. Its content type must be JSON, which a web page of another site cannot send
/// without this server's consent.
pub(crate) async fn read_json<'b>(
    shared: &Shared,
    headers: &[Header<'_>],
    body: Body<'b>,
) -> Result<Content<'b>, Error> {
    if !is_type(headers, "application/json") {
        return Err(Error::ContentType("application/json"));
    }
    read(shared, body).await
}

/// Reads the whole body of a form; empty if the request has none.
pub(crate) async fn read_form<'b>(
    shared: &Shared,
    headers: &[Header<'_>],
    body: Body<'b>,
) -> Result<Content<'b>, Error> {
    const FORM: &str = "application/x-www-form-urlencoded";
    if matches!(&body, Body::Arriving(body) if body.is_end_stream()) {
        return Ok(Content::Borrowed(b""));
    }
    if head::value(headers, CONTENT_TYPE).is_some() && !is_type(headers, FORM) {
        return Err(Error::ContentType(FORM));
    }
    read(shared, body).await
}

/// True if the content type is this one, with any parameters.
pub(crate) fn is_type(headers: &[Header<'_>], expected: &str) -> bool {
    let Some(given) = head::value(headers, CONTENT_TYPE) else { return false };
    let (given, rest) = given.split_at_checked(expected.len()).unwrap_or((given, b""));
    given.eq_ignore_ascii_case(expected.as_bytes()) && matches!(rest.trim_ascii_start(), [] | [b';', ..])
}

/// Reads the whole body.
pub(crate) async fn read<'b>(shared: &Shared, body: Body<'b>) -> Result<Content<'b>, Error> {
    match body {
        Body::Whole(body) => Ok(Content::Borrowed(body)),
        Body::Arriving(body) => {
            let collected = timeout(shared.request_timeout, collect(body, shared.max_body)).await;
            collected.map_err(|_| Error::BodyTimeout)?.map(Content::Owned)
        }
    }
}

async fn collect(mut body: Incoming, most: usize) -> Result<Bytes, Error> {
    // The announced length is a bound, never an allocation.
    if body.size_hint().lower() > most as u64 {
        return Err(Error::TooLarge(most));
    }
    let mut whole = Bytes::new();
    let mut parts = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers are ignored.
        let Ok(part) = frame.map_err(|_| Error::BodyBroken)?.into_data() else { continue };
        if whole.len() + parts.len() + part.len() > most {
            return Err(Error::TooLarge(most));
        }
        // A body that arrives in one part, as nearly all do, is used without a copy.
        if whole.is_empty() && parts.is_empty() {
            whole = part;
        } else {
            parts.extend_from_slice(&std::mem::take(&mut whole));
            parts.extend_from_slice(&part);
        }
    }
    Ok(if parts.is_empty() { whole } else { parts.freeze() })
}

/// Reads a body as JSON.
pub(crate) fn parse<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Error> {
    // The whole text is checked for UTF-8 once. `from_slice` would check every string in it.
    let parsed = match str::from_utf8(body) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(body),
    };
    parsed.map_err(|error| explain::<T>(body, &error))
}

fn explain<'b, T: Deserialize<'b>>(body: &'b [u8], error: &serde_json::Error) -> Error {
    if !error.is_data() {
        return Error::Body(format!("expected JSON: {error}"));
    }
    let mut again = serde_json::Deserializer::from_slice(body);
    let field = match serde_path_to_error::deserialize::<_, T>(&mut again) {
        Err(error) => error.path().to_string(),
        Ok(_) => String::new(),
    };
    // The path of the whole document is a dot.
    match field.as_str() {
        "" | "." => Error::Body(error.to_string()),
        _ => Error::invalid(field, error),
    }
}
