//! The bodies of calls: the message that a client sends, bounded, and what it gets.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::connection::CallGuard;
use super::status::{Code, Failure, trailers};

/// The bytes in front of every message: a flag and the length.
pub(super) const PREFIX_BYTES: usize = 5;

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    Empty,
    /// A message, then the trailers.
    Message(Bytes),
    Trailers,
    /// The body that tonic makes. The call counts as under way until the body ends.
    Tonic {
        body: tonic::body::Body,
        _guard: CallGuard,
    },
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let this = self.get_mut();
        match this {
            ReplyBody::Empty => Poll::Ready(None),
            ReplyBody::Message(message) => {
                let message = std::mem::take(message);
                *this = ReplyBody::Trailers;
                Poll::Ready(Some(Ok(Frame::data(message))))
            }
            ReplyBody::Trailers => {
                *this = ReplyBody::Empty;
                Poll::Ready(Some(Ok(Frame::trailers(trailers()))))
            }
            ReplyBody::Tonic { body, .. } => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Empty => true,
            ReplyBody::Message(_) | ReplyBody::Trailers => false,
            ReplyBody::Tonic { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Reads the one message of a call.
pub(super) struct MessageReader {
    body: Incoming,
    most: usize,
    /// The message, if it has arrived in one part. Nearly every message does, and is used without a copy.
    whole: Bytes,
    /// The message, if it has arrived in several parts.
    parts: BytesMut,
}

impl MessageReader {
    pub(super) fn new(body: Incoming, most: usize) -> MessageReader {
        MessageReader { body, most, whole: Bytes::new(), parts: BytesMut::new() }
    }

    /// The message, once all of it has arrived.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Failure>> {
        while !self.body.is_end_stream() {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else { break };
            let broken = |_| Failure::new(Code::Unavailable, "the call was cut off");
            // Trailers are ignored.
            let Ok(part) = frame.map_err(broken)?.into_data() else { continue };
            if self.whole.len() + self.parts.len() + part.len() > self.most + PREFIX_BYTES {
                return Poll::Ready(Err(too_large(self.most)));
            }
            if self.whole.is_empty() && self.parts.is_empty() {
                self.whole = part;
            } else {
                self.parts.extend_from_slice(&std::mem::take(&mut self.whole));
                self.parts.extend_from_slice(&part);
            }
        }
        let whole = std::mem::take(&mut self.whole);
        let body = if self.parts.is_empty() { whole } else { std::mem::take(&mut self.parts).freeze() };
        Poll::Ready(unframed(body, self.most))
    }
}

/// The message after its prefix.
fn unframed(mut body: Bytes, most: usize) -> Result<Bytes, Failure> {
    let Some(&[flag, a, b, c, d]) = body.first_chunk::<PREFIX_BYTES>() else {
        return Err(Failure::new(Code::InvalidArgument, "the call has no message"));
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > most {
        return Err(too_large(most));
    }
    if flag != 0 {
        return Err(Failure::new(
            Code::Unimplemented,
            "compressed messages are not read: send grpc-encoding: identity",
        ));
    }
    body.advance(PREFIX_BYTES);
    if body.len() != length {
        return Err(Failure::new(Code::InvalidArgument, "the call is not exactly one message"));
    }
    Ok(body)
}

fn too_large(most: usize) -> Failure {
    Failure::new(Code::ResourceExhausted, format!("the message is larger than server.max_request, {most} bytes"))
}
