//! A connection at work: writes commands, reads replies, and ends the waits whose deadline is over.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use flowgate::Span;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use super::{CommandResult, Kind, Shared, Waiter};
use crate::listener::Stream;
use crate::redis::wire::{self, Reply};

/// How long an answer may be overdue before the connection is given up.
const MAX_OVERDUE: Span = Span::from_millis(800);

/// The time between two checks of a connection with overdue answers, or of an open breaker.
const CHECK_PERIOD: Duration = Duration::from_millis(20);

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkEnd {
    /// Another link of the same node has found another address behind the server's name.
    #[error("its name is another server's by now")]
    Moved,
    /// The server takes no writes any more. The server that took over may already have its name.
    #[error("it has become a replica")]
    Replaced,
    #[error(transparent)]
    Lost(#[from] io::Error),
}

/// A connection at work; it ends with the connection.
pub(super) struct Serving<'a> {
    shared: &'a Shared,
    stream: Box<dyn Stream>,
    /// The number of the node's address that the connection leads to; see [`Node::place`](super::Node::place).
    place: u64,
    out: Vec<u8>,
    /// The number of bytes of `out` that have been sent.
    sent: usize,
    input: Vec<u8>,
    /// The waiting ends of replies to come, oldest first. Deadlines are in order, too.
    waiters: VecDeque<Waiter>,
    /// True if the server has become a replica. The server that took over may already have its name, so the name is
    /// looked up again.
    replaced: bool,
    /// The number of the oldest waiters whose callers were told that the deadline is over.
    expired: usize,
    /// Fires when a deadline or a probe may be due. Replies do not reset it, which keeps them cheap.
    timer: Pin<Box<Sleep>>,
    armed: bool,
}

impl<'a> Serving<'a> {
    pub(super) fn new(shared: &'a Shared, stream: Box<dyn Stream>, place: u64) -> Serving<'a> {
        shared.node.connections.add(1);
        Serving {
            shared,
            stream,
            place,
            out: Vec::new(),
            sent: 0,
            input: Vec::new(),
            waiters: VecDeque::new(),
            replaced: false,
            expired: 0,
            // An open breaker is probed at once.
            timer: Box::pin(sleep(Duration::ZERO)),
            armed: true,
        }
    }

    /// Takes the commands that wait to be sent. If the node has moved to another address, it leaves them for the next
    /// connection, and this connection ends once its own requests are answered.
    fn take_queued(&mut self, cx: &Context<'_>) -> Result<(), LinkEnd> {
        if self.shared.node.place() != self.place {
            let is_idle = self.waiters.len() == self.expired;
            return if is_idle { Err(LinkEnd::Moved) } else { Ok(()) };
        }
        let mut queue = self.shared.queue.lock();
        if self.out.is_empty() {
            std::mem::swap(&mut self.out, &mut queue.bytes);
        } else {
            self.out.append(&mut queue.bytes);
        }
        self.waiters.append(&mut queue.waiters);
        queue.driver = Some(cx.waker().clone());
        Ok(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.sent < self.out.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.out[self.sent..]) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => self.sent += written?,
            }
        }
        self.out.clear();
        self.sent = 0;
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(flushed) => flushed,
            Poll::Pending => Ok(()),
        }
    }

    /// Reads all bytes that have arrived and hands the replies to their waiters.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Result<(), LinkEnd> {
        loop {
            self.input.reserve(16 * 1024);
            match pin!(self.stream.read_buf(&mut self.input)).poll(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Poll::Ready(read) => _ = read?,
            }
            self.hand_out()?;
        }
    }

    fn hand_out(&mut self) -> Result<(), LinkEnd> {
        let (mut parsed, mut replies) = (0, 0);
        while let Some((reply, length)) = wire::parse(&self.input[parsed..]).map_err(io::Error::other)? {
            parsed += length;
            replies += 1;
            let waiter = self.waiters.pop_front().ok_or_else(|| io::Error::other("a reply without a question"))?;
            let is_expired = self.expired > 0;
            self.expired = self.expired.saturating_sub(1);
            self.replaced |= is_replica(&reply);
            self.deliver(waiter, reply, is_expired);
        }
        self.input.drain(..parsed);
        if replies > 0 {
            let mut queue = self.shared.queue.lock();
            queue.in_flight = queue.in_flight.saturating_sub(replies);
        }
        // Answers that callers still await come first.
        if self.replaced && self.waiters.is_empty() {
            self.shared.node.trip(&LinkEnd::Replaced.to_string());
            return Err(LinkEnd::Replaced);
        }
        Ok(())
    }

    fn deliver(&self, Waiter { kind, deadline }: Waiter, reply: Reply, is_expired: bool) {
        let node = &self.shared.node;
        match kind {
            // A probe whose answer is late has failed: a Redis that is too slow is not asked again.
            Kind::Probe if is_expired => {}
            Kind::Probe if deadline <= node.now() => node.probe_failed("no answer in time"),
            Kind::Probe => node.probed(&reply),
            Kind::Unread => {}
            Kind::Request(waiting) => {
                match crate::redis::failed(&reply) {
                    None => node.succeeded(),
                    Some(_) => node.failed(node.now()),
                }
                // The send fails if the caller has left.
                let _ = waiting.send(CommandResult::Reply(reply));
            }
            Kind::Late(listening) => _ = listening.send(reply),
        }
    }

    /// Ends the waits that took too long, and probes where the breaker is open.
    fn look_after(&mut self) -> io::Result<()> {
        let node = &self.shared.node;
        let now = node.now();
        while let Some(waiter) = self.waiters.get_mut(self.expired).filter(|waiter| waiter.deadline <= now) {
            self.expired += 1;
            match std::mem::replace(&mut waiter.kind, Kind::Unread) {
                Kind::Probe => {
                    waiter.kind = Kind::Probe;
                    node.probe_failed("no answer in time");
                }
                Kind::Request(waiting) => {
                    node.failed(now);
                    let (listening, late) = oneshot::channel();
                    if waiting.send(CommandResult::Late(late)).is_ok() {
                        waiter.kind = Kind::Late(listening);
                    }
                }
                // The caller of a late reply was told before. An unread command precedes one whose reply counts.
                Kind::Late(_) | Kind::Unread => {}
            }
        }
        if self.expired > 0 && self.waiters.front().is_some_and(|oldest| oldest.deadline + MAX_OVERDUE <= now) {
            return Err(io::Error::other("it owes answers for too long"));
        }
        // On a connection with overdue answers, a probe would only queue behind them. The answers arrive first, or the
        // connection is given up.
        if self.expired == 0 && node.may_probe(now) {
            node.write_probe(&mut self.out);
            let deadline = now + node.timeout;
            self.shared.queue.lock().in_flight += 1;
            self.waiters.push_back(Waiter { kind: Kind::Probe, deadline });
        }
        Ok(())
    }

    /// The time until the next check; `None`: none is due before a command is sent.
    fn next_look(&self) -> Option<Duration> {
        let due = self.waiters.get(self.expired).map(|waiter| {
            let left = waiter.deadline.since(self.shared.node.now());
            Duration::from_nanos(left.as_nanos()).max(Duration::from_millis(1))
        });
        if self.expired > 0 || self.shared.node.is_open() {
            Some(due.unwrap_or(CHECK_PERIOD).min(CHECK_PERIOD))
        } else {
            due
        }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Result<(), LinkEnd> {
        self.poll_read(cx)?;
        self.take_queued(cx)?;
        self.poll_write(cx)?;
        loop {
            if self.armed && self.timer.as_mut().poll(cx).is_ready() {
                self.armed = false;
                self.look_after()?;
                self.poll_write(cx)?;
            }
            if self.armed {
                return Ok(());
            }
            let Some(next) = self.next_look() else { return Ok(()) };
            self.timer.set(sleep(next));
            self.armed = true;
        }
    }
}

/// True if a server says that it takes no writes, because it has become a replica.
fn is_replica(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(error) if error.starts_with("READONLY") || error.starts_with("MASTERDOWN"))
}

impl Future for Serving<'_> {
    type Output = LinkEnd;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LinkEnd> {
        match self.get_mut().poll_once(cx) {
            Ok(()) => Poll::Pending,
            Err(ended) => Poll::Ready(ended),
        }
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // The requests under way have failed, whatever ended the connection.
        let node = &self.shared.node;
        node.connections.subtract(1);
        let now = node.now();
        for waiter in self.waiters.iter().skip(self.expired) {
            match waiter.kind {
                Kind::Probe => node.probe_failed("the connection was lost"),
                Kind::Request(_) => node.failed(now),
                Kind::Late(_) | Kind::Unread => {}
            }
        }
    }
}
