//! The gRPC status of a call, and the HTTP/2 response that carries it.

use std::borrow::Cow;

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::body::ReplyBody;

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The bytes that are escaped in the message of a status.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// The codes that a call can end with, by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Ok = 0,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Code {
    /// All codes with their names in the metrics.
    pub(crate) const ALL: [(Code, &'static str); 7] = [
        (Code::Ok, "OK"),
        (Code::InvalidArgument, "INVALID_ARGUMENT"),
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
        (Code::Unimplemented, "UNIMPLEMENTED"),
        (Code::Unavailable, "UNAVAILABLE"),
        (Code::Unauthenticated, "UNAUTHENTICATED"),
    ];

    /// The place of the code in [`Code::ALL`].
    pub(crate) fn index(self) -> usize {
        Code::ALL.iter().position(|(code, _)| *code == self).unwrap_or_default()
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: Cow<'static, str>,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// A response that is nothing but the status.
    pub(super) fn response(&self) -> Response<ReplyBody> {
        let mut response = response(ReplyBody::Empty);
        let headers = response.headers_mut();
        headers.insert(GRPC_STATUS, HeaderValue::from(self.code as u16));
        let message = utf8_percent_encode(&self.message, ESCAPED).to_string();
        if let Ok(message) = HeaderValue::try_from(message) {
            headers.insert(GRPC_MESSAGE, message);
        }
        if self.code == Code::Unimplemented {
            headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        response
    }
}

/// A response with a body that ends with the status.
pub(super) fn response(body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// The response to a request that is not gRPC.
pub(super) fn not_grpc(status: StatusCode) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    *response.status_mut() = status;
    response
}

/// The trailers of a successful call.
pub(super) fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    trailers
}
