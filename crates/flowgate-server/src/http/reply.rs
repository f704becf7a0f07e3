//! Answers: a status, headers, a body that is there whole.

use bytes::Bytes;
use flowgate_api::Decision;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

pub(crate) type Reply = Response<Full<Bytes>>;

/// Most documents are shorter.
const DOCUMENT_BYTES: usize = 256;

/// 200 with a document as JSON.
pub(crate) fn json(document: &impl Serialize) -> Reply {
    json_text(written(document))
}

/// 200 with a decision as JSON: the answer that is asked for most.
pub(crate) fn decision(decision: &Decision<'_>) -> Reply {
    let mut out = Vec::with_capacity(DOCUMENT_BYTES);
    // A buffer that grows takes any document.
    let _ = decision.write_json(&mut out);
    json_text(out)
}

/// 200 with a text that is JSON.
pub(crate) fn json_text(text: impl Into<Bytes>) -> Reply {
    with_type(text, "application/json")
}

/// A document as JSON.
pub(crate) fn written(document: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(DOCUMENT_BYTES);
    // Neither a buffer that grows nor a document whose keys are texts can fail.
    let _ = serde_json::to_writer(&mut out, document);
    out
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
