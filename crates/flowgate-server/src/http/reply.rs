//! Answers: a status, headers, a body that is there whole.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

pub(crate) type Reply = Response<Full<Bytes>>;

/// 200 with JSON.
pub(crate) fn json(body: impl Into<Bytes>) -> Reply {
    with_type(body, "application/json")
}

/// 200 with a body of a content type.
pub(crate) fn with_type(body: impl Into<Bytes>, content_type: &'static str) -> Reply {
    let mut reply = Reply::new(Full::new(body.into()));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// 200 with a text.
pub(crate) fn text(body: impl Into<Bytes>) -> Reply {
    with_type(body, "text/plain; charset=utf-8")
}

/// A status alone.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Reply::new(Full::default());
    *reply.status_mut() = status;
    reply
}
