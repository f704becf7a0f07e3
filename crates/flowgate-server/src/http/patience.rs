//! A stream that gives up on a client that does not take what it is sent, or does not finish what it begins to say.
//!
//! Rule       Once nothing has gone out for the whole patience although something is to go, writing fails.
//! Rule       A head that is not complete `head` after its first byte ends the connection, however steadily it drips.
//! Bound      A timer for each connection that is stuck; none for the others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::progress::{Progress, Stage};

/// Reads and writes as the stream within does, but does not wait to write for longer than its patience.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// While the stream takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
    progress: Arc<Progress>,
    /// The longest that a head may take from its first byte.
    head: Duration,
    /// While a head is incomplete and nothing more of it is there.
    head_incomplete: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Patient<S> {
    pub(super) fn new(stream: S, progress: Arc<Progress>, patience: Duration, head: Duration) -> Patient<S> {
        Patient { stream, patience, stuck: None, progress, head, head_incomplete: None }
    }

    /// Does something to the stream that waits for the client.
    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = poll(Pin::new(&mut self.stream), context) {
            self.stuck = None;
            return Poll::Ready(done);
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answers")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Patient { stream, progress, head, head_incomplete, .. } = self.get_mut();
        let filled = into.filled().len();
        let read = Pin::new(stream).poll_read(context, into);
        match read {
            Poll::Ready(_) => {
                if into.filled().len() > filled && progress.begin_head() {
                    // A timer that is left belongs to an earlier head.
                    *head_incomplete = None;
                }
                read
            }
            Poll::Pending if progress.stage() == Stage::Head => {
                let incomplete = head_incomplete.get_or_insert_with(|| Box::pin(sleep(*head)));
                ready!(incomplete.as_mut().poll(context));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head did not arrive in time")))
            }
            Poll::Pending => {
                *head_incomplete = None;
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll(context, |stream, context| stream.poll_shutdown(context))
    }
}
