//! A stream with time limits for writing, and for the arrival of a head.
//!
//! Rule       Writing fails once the client has taken no byte for `write_timeout` while bytes wait to be sent.
//! Rule       Reading fails once a head is incomplete `head_timeout` after its first byte, even if bytes keep coming.
//! Bound      One timer for each connection that waits for its client in one of these ways; none for the others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::progress::{Progress, Stage};

/// Reads and writes as the inner stream does, within the time limits.
#[derive(Debug)]
pub(super) struct WriteTimeout<S> {
    stream: S,
    /// Bytes that were read from the stream before and put back.
    unread: Bytes,
    write_timeout: Duration,
    /// Runs while the client takes no bytes.
    write_deadline: Option<Pin<Box<Sleep>>>,
    progress: Arc<Progress>,
    /// The longest time from the first byte of a head to its end.
    head_timeout: Duration,
    /// Runs while a head is incomplete and its next byte is awaited.
    head_deadline: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> WriteTimeout<S> {
    pub(super) fn new(
        stream: S,
        progress: Arc<Progress>,
        write_timeout: Duration,
        head_timeout: Duration,
    ) -> WriteTimeout<S> {
        WriteTimeout {
            stream,
            unread: Bytes::new(),
            write_timeout,
            write_deadline: None,
            progress,
            head_timeout,
            head_deadline: None,
        }
    }

    /// Puts bytes back that were read. The next read returns them.
    pub(super) fn put_back(&mut self, unread: Vec<u8>) {
        self.unread = Bytes::from(unread);
    }

    /// Polls a write, a flush or a shutdown of the stream.
    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(done) = poll(Pin::new(&mut self.stream), context) {
            self.write_deadline = None;
            return Poll::Ready(done);
        }
        let deadline = self.write_deadline.get_or_insert_with(|| Box::pin(sleep(self.write_timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answers")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let WriteTimeout { stream, unread, progress, head_timeout, head_deadline, .. } = self.get_mut();
        if !unread.is_empty() {
            into.put_slice(&unread.split_to(unread.len().min(into.remaining())));
            progress.begin_head();
            return Poll::Ready(Ok(()));
        }
        let filled = into.filled().len();
        let read = Pin::new(stream).poll_read(context, into);
        match read {
            Poll::Ready(_) => {
                if into.filled().len() > filled && progress.begin_head() {
                    // A remaining timer belongs to an earlier head.
                    *head_deadline = None;
                }
                read
            }
            Poll::Pending if progress.stage() == Stage::Head => {
                let deadline = head_deadline.get_or_insert_with(|| Box::pin(sleep(*head_timeout)));
                ready!(deadline.as_mut().poll(context));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the head did not arrive in time")))
            }
            Poll::Pending => {
                *head_deadline = None;
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
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
