//! The bodies of calls: the message that a client sends, bounded, and what it gets.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::connection::CallGuard;
use super::status::{Code, Failure, trailers};

/// The flag and the length in front of every message.
pub(super) const PREFIX_BYTES: usize = 5;

/// What a client gets.
#[derive(Debug)]
pub(crate) enum ReplyBody {
    Empty,
    /// A message, then the trailers.
    Message(Bytes),
    Trailers,
    /// What tonic answers. The call is under way for as long as that takes.
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
pub(super) async fn read(mut body: Incoming, most: usize) -> Result<Bytes, Failure> {
    let (mut whole, mut parts) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let broken = |_| Failure::new(Code::Unavailable, "the call was cut off");
        // Trailers are ignored.
        let Ok(part) = frame.map_err(broken)?.into_data() else { continue };
        if whole.len() + parts.len() + part.len() > most + PREFIX_BYTES {
            return Err(too_large(most));
        }
        // A message that arrives in one part, as nearly all do, is used without a copy.
        if whole.is_empty() && parts.is_empty() {
            whole = part;
        } else {
            parts.extend_from_slice(&std::mem::take(&mut whole));
            parts.extend_from_slice(&part);
        }
    }
    unframed(if parts.is_empty() { whole } else { parts.freeze() }, most)
}

/// The message behind its prefix.
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
