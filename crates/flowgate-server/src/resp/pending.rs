//! Pending replies, and the replies that wait behind them.
//!
//! State      The pending replies, oldest first, each with the replies that were written after it.
//! Rule       Replies leave in the order of their commands. A command writes to the connection's output, or behind the
//!            newest pending reply if there is one.
//! Invariant  A question is sent when its command is read, so the commands of a pipeline share a round trip.
//! Bound      At most [`MAX_PENDING`] replies are pending. At the bound the connection reads no further commands until
//!            some have arrived.

use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll};

use super::reply::{Reply, Version};
use crate::resp::error::Error;
use crate::service::AnswerFuture;

/// The most pending replies of a connection: those of the two largest pipelines that clients commonly send.
pub(super) const MAX_PENDING: usize = 1024;

/// The pending replies of a connection.
#[derive(Default)]
pub(crate) struct Pending {
    queue: VecDeque<QueuedReply>,
    /// The bytes of replies that wait behind all pending ones.
    bytes: usize,
}

struct QueuedReply {
    reply: Box<dyn PendingReply>,
    behind: Vec<u8>,
}

/// A pending reply, which writes itself once it arrives.
trait PendingReply: Send {
    fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()>;
}

struct AwaitedReply<T, W> {
    answer: AnswerFuture<T>,
    write: Option<W>,
    version: Version,
}

impl<T, W> PendingReply for AwaitedReply<T, W>
where
    T: Send,
    W: FnOnce(T, &mut Reply<'_>) -> Result<(), Error> + Send,
{
    fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        let Poll::Ready(value) = self.answer.as_mut().poll(cx) else { return Poll::Pending };
        if let Some(write) = self.write.take() {
            write_one(out, self.version, |reply| write(value, reply));
        }
        Poll::Ready(())
    }
}

/// Writes one reply, or the error in its place.
fn write_one(out: &mut Vec<u8>, version: Version, write: impl FnOnce(&mut Reply<'_>) -> Result<(), Error>) {
    let mut reply = Reply { out, version };
    if let Err(error) = write(&mut reply) {
        reply.error(&error.to_string());
    }
}

impl Pending {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// True if no further command may be read for now.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= MAX_PENDING
    }

    /// The bytes of the replies behind pending ones.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Queues a pending reply.
    pub(super) fn push<T: Send + 'static>(
        &mut self,
        answer: AnswerFuture<T>,
        version: Version,
        write: impl FnOnce(T, &mut Reply<'_>) -> Result<(), Error> + Send + 'static,
    ) {
        let promised = AwaitedReply { answer, write: Some(write), version };
        self.queue.push_back(QueuedReply { reply: Box::new(promised), behind: Vec::new() });
    }

    /// Puts written replies behind the newest pending reply. There must be one.
    #[cold]
    pub(super) fn put_behind(&mut self, written: &[u8]) {
        if let Some(newest) = self.queue.back_mut() {
            newest.behind.extend_from_slice(written);
            self.bytes += written.len();
        }
    }

    /// Moves the replies that have arrived to `out`, in order. Ready once none is pending.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        while let Some(oldest) = self.queue.front_mut() {
            if oldest.reply.poll_write(cx, out).is_pending() {
                return Poll::Pending;
            }
            out.extend_from_slice(&oldest.behind);
            self.bytes -= oldest.behind.len();
            self.queue.pop_front();
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("replies", &self.queue.len()).field("bytes", &self.bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn replies_leave_in_the_order_of_their_commands() {
        let (mut pending, mut out) = (Pending::default(), Vec::new());
        let promise = |pending: &mut Pending| {
            let (arrives, arrival) = oneshot::channel::<i64>();
            let answer = Box::pin(async { arrival.await.unwrap() });
            pending.push(answer, Version::Resp2, |number, reply| match number {
                0 => Err(Error::Syntax),
                _ => {
                    reply.integer(number);
                    Ok(())
                }
            });
            arrives
        };
        let mut cx = Context::from_waker(Waker::noop());
        let first = promise(&mut pending);
        pending.put_behind(b"+behind the first\r\n");
        let second = promise(&mut pending);
        pending.put_behind(b"+behind the second\r\n");
        let third = promise(&mut pending);

        second.send(2).unwrap();
        assert!(pending.poll(&mut cx, &mut out).is_pending());
        assert!(out.is_empty(), "the second waits for the first");
        first.send(1).unwrap();
        assert!(pending.poll(&mut cx, &mut out).is_pending());
        assert_eq!(out, b":1\r\n+behind the first\r\n:2\r\n+behind the second\r\n");
        assert_eq!(pending.bytes(), 0);
        third.send(0).unwrap();
        assert!(pending.poll(&mut cx, &mut out).is_ready() && pending.is_empty());
        assert!(out.ends_with(b"-ERR syntax error\r\n"));
    }
}
