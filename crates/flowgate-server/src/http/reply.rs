//! Answers: a status, headers, and a whole body.

use std::fmt;
use std::io::Write;

use bytes::Bytes;
use flowgate_api::Decision;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// An answer. Its headers are kept as they are sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// The headers, each as a line.
    lines: Vec<u8>,
    pub(crate) body: ReplyBody,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    /// A body that was made for this answer.
    Document(Vec<u8>),
    /// A body that other answers may share.
    Shared(Bytes),
}

impl ReplyBody {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            ReplyBody::Document(document) => document,
            ReplyBody::Shared(shared) => shared,
        }
    }
}

/// The value of a header that is being written.
pub(crate) struct HeaderValueWriter<'r>(&'r mut Vec<u8>);

impl fmt::Write for HeaderValueWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The bytes reserved for a document. Most documents are shorter.
const DOCUMENT_BYTES: usize = 256;

/// The bytes reserved for the headers. Most answers have fewer.
const HEADER_BYTES: usize = 320;

impl Reply {
    pub(crate) fn new(status: StatusCode, body: impl Into<Bytes>) -> Reply {
        Reply::with_body(status, ReplyBody::Shared(body.into()))
    }

    fn with_body(status: StatusCode, body: ReplyBody) -> Reply {
        Reply { status, lines: Vec::with_capacity(HEADER_BYTES), body }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Reply {
        Reply { status, ..self }
    }

    /// Adds a header. A value that is not valid in a header is left out, with its header.
    pub(crate) fn header(&mut self, name: &HeaderName, value: impl AsRef<[u8]>) {
        self.write_header(name, |out| out.extend_from_slice(value.as_ref()));
    }

    /// Adds a header whose value `write` writes, as [`Reply::header`].
    pub(crate) fn header_written(
        &mut self,
        name: &HeaderName,
        write: impl FnOnce(&mut HeaderValueWriter<'_>) -> fmt::Result,
    ) {
        // Writing to a growing buffer cannot fail.
        self.write_header(name, |out| _ = write(&mut HeaderValueWriter(out)));
    }

    /// Adds headers that are the same in many answers: lines that end in CRLF.
    pub(crate) fn header_lines(&mut self, lines: &'static str) {
        self.lines.extend_from_slice(lines.as_bytes());
    }

    /// Adds a header with a number.
    pub(crate) fn header_number(&mut self, name: &HeaderName, value: u64) {
        self.begin_header(name);
        self.lines.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.lines.extend_from_slice(b"\r\n");
    }

    fn begin_header(&mut self, name: &HeaderName) {
        self.lines.extend_from_slice(name.as_str().as_bytes());
        self.lines.extend_from_slice(b": ");
    }

    fn write_header(&mut self, name: &HeaderName, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.lines.len();
        self.begin_header(name);
        let start = self.lines.len();
        write(&mut self.lines);
        // A loop without an early end checks many bytes at a time.
        let is_value = |byte: &u8| (*byte >= b' ') & (*byte != 127) | (*byte == b'\t');
        if self.lines[start..].iter().fold(true, |all, byte| all & is_value(byte)) {
            self.lines.extend_from_slice(b"\r\n");
        } else {
            self.lines.truncate(before);
        }
    }

    /// Appends the answer as it is sent over HTTP/1.1, on a connection that stays open.
    pub(super) fn send(&self, out: &mut Vec<u8>, date: &[u8]) {
        if self.status == StatusCode::OK {
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            // Writing to a growing buffer cannot fail.
            let _ = write!(
                out,
                "HTTP/1.1 {} {}\r\n",
                self.status.as_str(),
                self.status.canonical_reason().unwrap_or("<none>")
            );
        }
        let body = self.body.bytes();
        out.extend_from_slice(&self.lines);
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
        out.extend_from_slice(b"\r\ndate: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }

    /// The answer for hyper.
    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let lines = Bytes::from(self.lines);
        let body = match self.body {
            ReplyBody::Document(document) => Bytes::from(document),
            ReplyBody::Shared(shared) => shared,
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = self.status;
        let mut start = 0;
        // Header values hold no line break, so each line is one header.
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let end = start + line.len() - b"\r\n".len();
            let colon = line.iter().position(|byte| *byte == b':').unwrap_or(0);
            let name = HeaderName::from_bytes(&line[..colon]);
            let value = HeaderValue::from_maybe_shared(lines.slice(start + colon + b": ".len()..end));
            if let (Ok(name), Ok(value)) = (name, value) {
                response.headers_mut().insert(name, value);
            }
            start += line.len();
        }
        response
    }
}

/// 200 with a document as JSON.
pub(crate) fn json(document: &impl Serialize) -> Reply {
    json_body(ReplyBody::Document(written(document)))
}

/// 200 with a decision as JSON, the most frequent answer.
pub(crate) fn decision(decision: &Decision<'_>) -> Reply {
    let mut out = Vec::with_capacity(DOCUMENT_BYTES);
    // A buffer that grows takes any document.
    let _ = decision.write_json(&mut out);
    json_body(ReplyBody::Document(out))
}

/// 200 with a text that is already JSON.
pub(crate) fn json_text(text: impl Into<Bytes>) -> Reply {
    json_body(ReplyBody::Shared(text.into()))
}

fn json_body(body: ReplyBody) -> Reply {
    let mut reply = Reply::with_body(StatusCode::OK, body);
    reply.header_lines("content-type: application/json\r\n");
    reply
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
    let mut reply = Reply::new(StatusCode::OK, body);
    reply.header(&CONTENT_TYPE, content_type);
    reply
}

/// 200 with a text.
pub(crate) fn text(body: impl Into<Bytes>) -> Reply {
    with_type(body, "text/plain; charset=utf-8")
}

/// A status alone.
pub(crate) fn empty(status: StatusCode) -> Reply {
    Reply::new(status, Bytes::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply() -> Reply {
        let mut reply = text("gone\r\n");
        reply.status = StatusCode::FORBIDDEN;
        reply.header_number(&HeaderName::from_static("x-number"), 42);
        reply.header_written(&HeaderName::from_static("x-written"), |out| fmt::Write::write_str(out, "a: 1"));
        for broken in ["a\r\nx-injected: 1", "a\0", "\u{7f}"] {
            reply.header(&HeaderName::from_static("x-broken"), broken);
        }
        reply
    }

    #[test]
    fn both_ways_to_send_say_the_same() {
        let mut sent = Vec::new();
        reply().send(&mut sent, b"Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(
            String::from_utf8(sent).unwrap(),
            "HTTP/1.1 403 Forbidden\r\ncontent-type: text/plain; charset=utf-8\r\nx-number: 42\r\nx-written: a: 1\r\n\
             content-length: 6\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\ngone\r\n"
        );
        let response = reply().into_response();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        let headers: Vec<(&str, &[u8])> =
            response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let expected: [(&str, &[u8]); 3] =
            [("content-type", b"text/plain; charset=utf-8"), ("x-number", b"42"), ("x-written", b"a: 1")];
        assert_eq!(headers, expected);
    }
}
