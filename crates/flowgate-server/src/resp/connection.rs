//! One connection: reads a batch of commands, answers it, writes all replies at once.
//!
//! Order      Connections of a loop that become ready together are all read before the first is answered
//!            ([`yield_once`]). Meanwhile the processor prefetches the first counter of each. Connections with a long
//!            batch are all answered before the first reply is sent: the replies leave close together, so a client with
//!            many connections wakes up once for many replies. Each wake-up costs the server a signal to another core.
//! Turns      A turn is bounded ([`Dialogue::goes_on`]). A connection with more commands yields to all other ready
//!            connections first.
//! Bound      What all clients together leave unread or half-sent is bounded ([`super::memory_bound`]), also while
//!            they send without a pause.
//! Bound      A connection without a read or a write for `idle_timeout` is closed, at most a quarter of it later.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Sleep, sleep, timeout};

use super::buffers;
use super::decode::Decoder;
use super::dialogue::Dialogue;
use super::rare_waker::RareWaker;
use super::session::{End, Session};
use super::yield_once;
use crate::shutdown::Shutdown;
use crate::wrong_secrets;

/// How long the server reads on after it has closed its side of a connection.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// The number of reads after the server was told to stop: commands that had arrived are answered, and a client that
/// never pauses cannot keep the connection open.
const MAX_LAST_READS: u32 = 64;

/// The number of checks for idleness in `idle_timeout`. That is cheaper than a timer for every command.
const IDLE_CHECKS: u32 = 4;

/// A connection that holds more than this is checked against the memory bound in each of its turns, and one that
/// holds less only when it waits. Ordinary pipelines hold less.
const MAX_UNCHECKED_BYTES: usize = 64 * 1024;

/// A client's stream and the state of its dialogue.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    idle_timeout: Duration,
    decoder: Decoder,
    dialogue: Dialogue,
    /// Woken by the timer for idleness and by the shutdown.
    rare_waker: RareWaker,
    /// The reads that are left; `None` until the server is told to stop.
    last_reads: Option<u32>,
    /// True if a byte was read or written since the last check.
    active: bool,
    /// The number of checks in a row without a byte read or written.
    idle_checks: u32,
}

/// Why a connection wakes up.
enum Event {
    /// The number of bytes that were read; 0: the client has closed its side.
    Read(usize),
    /// Commands that were held can be answered: replies have arrived, or other connections had their turn.
    Resume,
    /// More commands wait, and other connections come first.
    Yield,
    /// Time to check for idleness.
    Look,
    /// All clients together hold too much memory, and this client more than its share.
    Crowded,
    /// The server stops.
    Stop,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn new(stream: S, session: Session, idle_timeout: Duration) -> Self {
        let decoder = Decoder::new(session.max_command());
        Self {
            stream,
            idle_timeout,
            decoder,
            dialogue: Dialogue::new(session),
            rare_waker: RareWaker::default(),
            last_reads: None,
            active: true,
            idle_checks: 0,
        }
    }

    /// Serves until the client leaves, is idle or breaks the protocol, or the server stops. Commands that were read
    /// before a stop are answered.
    pub(super) async fn run(mut self, mut shutdown: Shutdown) -> io::Result<()> {
        let mut stop = pin!(shutdown.requested());
        let mut look = pin!(sleep(self.idle_timeout / IDLE_CHECKS));
        loop {
            match poll_fn(|cx| self.poll(cx, look.as_mut(), stop.as_mut())).await? {
                Event::Read(0) if self.dialogue.is_over() => return Ok(()),
                // The client sends no more, but may still read.
                Event::Read(0) => self.dialogue.session.end = End::AfterReplies,
                Event::Read(_) => {
                    self.dialogue.look_ahead(&self.decoder);
                    yield_once::yield_to_ready().await;
                    self.answer();
                    if self.dialogue.is_long_batch() {
                        buffers::give_back(self.decoder.buffer());
                        yield_once::yield_to_ready().await;
                    }
                }
                Event::Resume => self.answer(),
                Event::Yield => {
                    // Unlike `yield_to_ready`, this polls for new events.
                    tokio::task::yield_now().await;
                    self.answer();
                }
                Event::Look => {
                    look.set(sleep(self.idle_timeout / IDLE_CHECKS));
                    // The new timer wakes the task only after a first poll, and a new waker asks for that poll.
                    self.rare_waker = RareWaker::default();
                    if self.is_idle() {
                        self.dialogue.session.shared.counters.idle.add(1);
                        return Ok(());
                    }
                }
                Event::Crowded => {
                    self.dialogue.session.shared.counters.crowded.add(1);
                    return Ok(());
                }
                Event::Stop => self.dialogue.session.end = End::AfterReplies,
            }
            match self.dialogue.session.end {
                End::NotYet => {}
                End::AfterReplies => return self.finish().await,
                End::AfterPause => {
                    if !self.lay_down() {
                        self.dialogue.session.shared.counters.crowded.add(1);
                        return Ok(());
                    }
                    if self.last_reads.is_none() {
                        // A server that stops skips the pause.
                        let _ = timeout(wrong_secrets::REPLY_PAUSE, stop.as_mut()).await;
                    }
                    return self.finish().await;
                }
                End::AtOnce => return Ok(()),
            }
        }
    }

    /// Sends the replies that are ready, then waits for an event.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        look: Pin<&mut Sleep>,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<io::Result<Event>> {
        if self.dialogue.poll_pending(cx) {
            // A client that waits for a reply is not idle.
            self.active = true;
        }
        if let Poll::Ready(Err(error)) = self.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        if self.bytes() > MAX_UNCHECKED_BYTES && !self.hold() {
            return Poll::Ready(Ok(Event::Crowded));
        }
        // Before the read, so that the checks also reach a client that never pauses.
        if self.last_reads.is_none()
            && let Some(mut cx) = self.rare_waker.woken(cx.waker())
        {
            if stop.poll(&mut cx).is_ready() {
                self.last_reads = Some(MAX_LAST_READS);
            } else if look.poll(&mut cx).is_ready() {
                return Poll::Ready(Ok(Event::Look));
            }
        }
        if self.dialogue.is_cut_short() {
            return Poll::Ready(Ok(Event::Yield));
        }
        if self.dialogue.is_held() {
            if self.dialogue.may_resume() {
                return Poll::Ready(Ok(Event::Resume));
            }
        } else if self.last_reads != Some(0)
            && let Poll::Ready(read) = self.poll_read(cx)
        {
            self.active = true;
            self.last_reads = self.last_reads.map(|left| left - 1);
            return Poll::Ready(read.map(Event::Read));
        }
        if self.last_reads.is_some() {
            return Poll::Ready(Ok(Event::Stop));
        }
        self.decoder.relax();
        if !self.hold() {
            return Poll::Ready(Ok(Event::Crowded));
        }
        Poll::Pending
    }

    /// The bytes of commands and replies that this connection holds.
    #[inline]
    fn bytes(&self) -> usize {
        self.decoder.occupied() + self.dialogue.bytes()
    }

    /// Notes what this connection holds. False if it must be closed.
    fn hold(&mut self) -> bool {
        let bytes = self.bytes();
        self.dialogue.session.hold(bytes)
    }

    /// Drops the commands that will not be answered, before the replies are delayed. False if the connection must be
    /// closed.
    fn lay_down(&mut self) -> bool {
        let buffer = self.decoder.buffer();
        buffer.clear();
        buffers::give_back(buffer);
        self.decoder = Decoder::new(self.dialogue.session.max_command());
        self.dialogue.put_down();
        self.hold()
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let buffer = self.decoder.buffer();
        buffers::lend(buffer);
        let read = pin!(self.stream.read_buf(buffer)).poll(cx);
        if read.is_pending() {
            buffers::put_down(self.decoder.buffer());
        }
        read
    }

    /// Sends the replies that are ready, as far as the client takes them.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let unsent @ [_, ..] = self.dialogue.unsent() {
            match Pin::new(&mut self.stream).poll_write(cx, unsent) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    self.dialogue.sent(written);
                    self.active = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        self.dialogue.put_away();
        // TLS buffers bytes that it could not send yet.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Answers the complete commands in the decoder, as many as fit into a turn.
    fn answer(&mut self) {
        let now = self.dialogue.begin_batch();
        self.dialogue.execute();
        while self.dialogue.goes_on() && !self.decoder.is_drained() {
            if self.dialogue.answer_planned(&mut self.decoder, now) {
                continue;
            }
            let authenticated = self.dialogue.session.authenticated;
            match self.decoder.next() {
                Ok(Some(command)) => self.dialogue.answer(command, now),
                Ok(None) => break,
                Err(error) => self.dialogue.break_off(error),
            }
            if self.dialogue.session.authenticated != authenticated {
                self.decoder.set_max_command(self.dialogue.session.max_command());
            }
        }
        self.dialogue.end_batch(now);
    }

    /// Checks for activity since the last check. True if the connection has been idle for too long.
    fn is_idle(&mut self) -> bool {
        self.idle_checks = if self.active { 0 } else { self.idle_checks + 1 };
        self.active = false;
        self.idle_checks >= IDLE_CHECKS
    }

    /// Waits for the pending replies and sends all replies, also those to commands that were held.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let on_their_way = self.dialogue.poll_pending(cx);
            let sent = self.poll_send(cx)?;
            if self.dialogue.is_cut_short() {
                self.answer();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if on_their_way {
                return Poll::Pending;
            }
            if !self.dialogue.is_held() {
                return sent.map(Ok);
            }
            self.dialogue.session.end = End::NotYet;
            self.answer();
        }
    }

    /// Sends the last replies, then reads for a moment and drops the input: the system discards replies on their way
    /// when a socket with unread input is closed.
    async fn finish(mut self) -> io::Result<()> {
        timeout(self.idle_timeout, poll_fn(|cx| self.poll_finish(cx))).await??;
        self.stream.shutdown().await?;
        let mut ignored = tokio::io::sink();
        match timeout(LINGER_TIME, tokio::io::copy(&mut self.stream, &mut ignored)).await {
            Ok(copied) => copied.map(drop),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
