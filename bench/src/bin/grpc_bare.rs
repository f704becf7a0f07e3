//! The ceiling of a rate limit service on hyper: reads a call over HTTP/2 and gives every one the same answer.
//!
//!     grpc_bare ADDRESS
//!
//! The answer is one of Flowgate's.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// OK, the status of a limit of 1,000,000,000 a minute by `per-address`, and the metadata `granted`, `action` and `rule`.
static ANSWER: &[u8] = b"\0\0\0\0i\x08\x01\x12#\x08\x01\x12\x15\x08\x80\x94\xeb\xdc\x03\x10\x02\x1a\x0bper-address\
    \x18\xff\x93\xeb\xdc\x03\x22\x02\x08<2@\n\x14\n\x07granted\x12\t\x11\0\0\0\0\0\0\xf0?\n\x11\n\x06action\x12\x07\x1a\x05allow\
    \n\x15\n\x04rule\x12\r\x1a\x0bper-address";

#[derive(Clone, Copy)]
struct OnThisThread;

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for OnThisThread {
    fn execute(&self, call: F) {
        tokio::spawn(call);
    }
}

/// The message, then the trailers.
enum Answer {
    Message,
    Trailers,
    Done,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        Poll::Ready(match this {
            Answer::Message => {
                *this = Answer::Trailers;
                Some(Ok(Frame::data(Bytes::from_static(ANSWER))))
            }
            Answer::Trailers => {
                *this = Answer::Done;
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert("grpc-status", HeaderValue::from_static("0"));
                Some(Ok(Frame::trailers(trailers)))
            }
            Answer::Done => None,
        })
    }
}

async fn answer(mut request: Request<Incoming>) -> Result<Response<Answer>, hyper::Error> {
    while let Some(frame) = request.body_mut().frame().await {
        frame?;
    }
    let mut response = Response::new(Answer::Message);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    Ok(response)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: grpc_bare ADDRESS")?;
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let connection =
                http2::Builder::new(OnThisThread).serve_connection(TokioIo::new(stream), service_fn(answer));
            // A client that leaves ends its connection.
            let _ = connection.await;
        });
    }
}
