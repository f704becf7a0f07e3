//! The requests that are asked for most, answered without hyper, which takes nearly half of their instructions.
//!
//! Rule       A [plain] request is answered here. With the first that is not, the connection goes to hyper for good, together
//!            with all bytes that were not answered. So what is slow, rare or dubious is hyper's: heads and bodies
//!            in pieces, other paths, chunks, upgrades, errors, and the end of the server.
//! Order      Connections of a loop that become ready together are all read before the first is answered, as in
//!            [`crate::resp`]: the system's code for reading, then ours, then the system's for sending stays in the cache.
//! Order      Answers leave in the order of the requests, those of one read by one write, unless they are many or the next
//!            one takes its time.
//! Bound      One read is held, and as many bytes of answers; a larger request is hyper's. The runtime bounds the requests
//!            that are answered before other connections have their turn. A client that does not read its answers, or
//!            sends nothing for `idle_timeout`, is closed; the latter at most a quarter of it later.

mod plain;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::coop::consume_budget;
use tokio::time::{Sleep, sleep};

use super::Conversation;
use super::body::Body;
use super::write_timeout::WriteTimeout;
use crate::listener::Stream;
use crate::resp::buffers;
use crate::resp::rare_waker::RareWaker;
use crate::resp::yield_once::yield_to_ready;
use crate::shutdown::Shutdown;
use plain::Plain;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The number of checks for idleness in `idle_timeout`. That is cheaper than a timer for every request.
const IDLE_CHECKS: u32 = 4;

/// A connection whose requests have all been plain.
pub(super) struct Direct<'c, S> {
    stream: &'c mut WriteTimeout<S>,
    conversation: &'c Conversation,
    idle_timeout: Duration,
    /// The bytes that have arrived and are not answered yet.
    input: Vec<u8>,
    /// Answers to be sent.
    output: Vec<u8>,
    /// True if the connection waited before its last read.
    has_waited: bool,
    /// Woken by the timer for idleness and by the shutdown.
    rare_waker: RareWaker,
    /// True if a byte was read since the last check.
    active: bool,
    /// The number of checks in a row without a byte read.
    idle_checks: u32,
}

/// Why a connection wakes up.
enum Event {
    /// The number of bytes that were read; 0: the client has closed its side.
    Read(usize),
    /// It is time to check for idleness.
    Look,
    /// The server stops.
    Stop,
}

impl<'c, S: Stream> Direct<'c, S> {
    pub(super) fn new(stream: &'c mut WriteTimeout<S>, conversation: &'c Conversation, idle_timeout: Duration) -> Self {
        Direct {
            stream,
            conversation,
            idle_timeout,
            input: Vec::new(),
            output: Vec::new(),
            has_waited: false,
            rare_waker: RareWaker::default(),
            active: true,
            idle_checks: 0,
        }
    }

    /// Answers plain requests. Returns the bytes with which hyper goes on; `None`: the connection has ended.
    pub(super) async fn run(mut self, mut shutdown: Shutdown) -> io::Result<Option<Vec<u8>>> {
        let mut stop = pin!(shutdown.requested());
        let mut look = pin!(sleep(self.idle_timeout / IDLE_CHECKS));
        loop {
            let event = match self.input.is_empty() {
                true => poll_fn(|cx| self.poll(cx, look.as_mut(), stop.as_mut())).await?,
                // The bytes arrived while an answer was pending.
                false => Event::Read(self.input.len()),
            };
            match event {
                Event::Read(0) => return self.end().await,
                Event::Read(_) => self.active = true,
                Event::Look => {
                    self.idle_checks = if self.active { 0 } else { self.idle_checks + 1 };
                    self.active = false;
                    if self.idle_checks >= IDLE_CHECKS {
                        return self.end().await;
                    }
                    look.set(sleep(self.idle_timeout / IDLE_CHECKS));
                    // The new timer wakes the task only after a first poll, and a new waker asks for that poll.
                    self.rare_waker = RareWaker::default();
                    continue;
                }
                Event::Stop => return Ok(Some(self.input)),
            }
            // A client that sends without a pause yields by the runtime's budget, which also polls for new events.
            if std::mem::take(&mut self.has_waited) {
                yield_to_ready().await;
            }
            buffers::lend(&mut self.output);
            let answered = self.answer(stop.as_mut()).await?;
            send(self.stream, &mut self.output).await?;
            buffers::give_back(&mut self.output);
            match answered {
                Answered::All => {}
                Answered::UpToOther => return Ok(Some(self.input)),
                Answered::Last => return self.end().await,
            }
        }
    }

    /// Ends the connection. Over TLS the client is told, so that it does not take the end for a broken connection.
    async fn end(self) -> io::Result<Option<Vec<u8>>> {
        self.stream.shutdown().await?;
        Ok(None)
    }

    /// Waits for an event.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        look: Pin<&mut Sleep>,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<io::Result<Event>> {
        // Before the read, so that the checks also reach a client that never pauses.
        if let Some(mut cx) = self.rare_waker.woken(cx.waker()) {
            if stop.poll(&mut cx).is_ready() {
                return Poll::Ready(Ok(Event::Stop));
            }
            if look.poll(&mut cx).is_ready() {
                return Poll::Ready(Ok(Event::Look));
            }
        }
        buffers::lend(&mut self.input);
        let read = pin!(self.stream.read_buf(&mut self.input)).poll(cx);
        if read.is_pending() {
            buffers::put_down(&mut self.input);
            self.has_waited = true;
        }
        read.map_ok(Event::Read)
    }

    /// Answers the plain requests that have arrived.
    async fn answer(&mut self, mut stop: Pin<&mut impl Future<Output = ()>>) -> io::Result<Answered> {
        let Direct { stream, conversation, input, output, rare_waker, .. } = self;
        let (shared, progress) = (&conversation.shared, &conversation.progress);
        let (mut at, mut further) = (0, Vec::new());
        while at < input.len() {
            let mut room = [const { MaybeUninit::uninit() }; plain::MAX_HEADERS];
            let Some(Plain { head, body, length }) = plain::read(&input[at..], &mut room, shared.max_body) else {
                input.drain(..at);
                return Ok(Answered::UpToOther);
            };
            let is_last = at + length == input.len();
            let mut ahead = Vec::new();
            consume_budget().await;
            let began = shared.service.read();
            let mut sent_at = began.now;
            let mut answering = pin!(conversation.respond(head, Body::Whole(body), began));
            let mut reply = poll_fn(|cx| Poll::Ready(answering.as_mut().poll(cx).map(Some))).await;
            if reply.is_pending() {
                // The answer is pending. The answers before it are sent first.
                send(stream, output).await?;
                let later = poll_fn(|cx| {
                    if let Poll::Ready(reply) = answering.as_mut().poll(cx) {
                        return Poll::Ready(Some(reply));
                    }
                    // A client that leaves meanwhile wants no answer. A stop wakes the task by itself now, and a new waker
                    // asks to be told of it again.
                    *rare_waker = RareWaker::default();
                    if !progress.is_stopping() && stop.as_mut().poll(cx).is_ready() {
                        progress.stop();
                    }
                    if is_last && ahead.is_empty() {
                        ahead.reserve(buffers::READ_BYTES);
                        if let Poll::Ready(Ok(0) | Err(_)) = pin!(stream.read_buf(&mut ahead)).poll(cx) {
                            return Poll::Ready(None);
                        }
                    }
                    Poll::Pending
                });
                reply = Poll::Ready(later.await);
                sent_at = shared.service.now();
            }
            let Poll::Ready(Some(reply)) = reply else { return Ok(Answered::Last) };
            with_date(sent_at.as_nanos() / NANOS_PER_SECOND, |date| reply.send(output, date));
            at += length;
            further = ahead;
            if output.len() >= buffers::READ_BYTES {
                send(stream, output).await?;
            }
            if progress.is_stopping() {
                return Ok(Answered::Last);
            }
        }
        input.clear();
        input.append(&mut further);
        Ok(Answered::All)
    }
}

/// What has become of the requests that had arrived.
enum Answered {
    All,
    /// All requests up to the next one, which is not plain.
    UpToOther,
    /// The server stops, and the last answer says so; or the client has left before its answer.
    Last,
}

/// Sends answers.
async fn send<S: Stream>(stream: &mut WriteTimeout<S>, output: &mut Vec<u8>) -> io::Result<()> {
    if !output.is_empty() {
        stream.write_all(output).await?;
        // TLS keeps bytes that it has not sent yet.
        stream.flush().await?;
        output.clear();
    }
    Ok(())
}

/// Hands out the text of `Date`, which is made once a second.
fn with_date<T>(seconds: u64, use_it: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static DATE: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    DATE.with_borrow_mut(|(of, text)| {
        if *of != seconds {
            (*of, *text) = (seconds, httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds)));
        }
        use_it(text.as_bytes())
    })
}

#[cfg(test)]
mod tests;
