//! One connection: reads a batch of commands, answers it, writes all replies at once.
//!
//! Rule       The clock is read once per batch: what arrived together is decided at one time.
//! Rule       A reply that is not there yet holds back those behind it, and nobody else's: meanwhile the connection
//!            reads on, until too many are on their way ([`Pending`]).
//! Bound      A client that reads no replies may go on sending until [`MAX_BACKLOG`] bytes of them wait; then it is
//!            closed. (Not to read on would be no better: clients send a whole pipeline before they read any reply, and
//!            both sides would wait for each other.)
//! Bound      What all clients together leave unread or half-sent is bounded, too ([`Session::occupy`]).
//! Bound      A connection on which nothing is read or written for `idle_timeout` is closed, within a quarter more.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use flowgate::Time;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Sleep, sleep, timeout};

use super::buffers;
use super::command::Call;
use super::decode::Decoder;
use super::error::Error;
use super::pending::Pending;
use super::reply::Reply;
use super::session::{End, Session};
use crate::shutdown::Shutdown;

/// The most replies that wait for one client, in bytes: those to about 400,000 commands.
const MAX_BACKLOG: usize = 16 << 20;

/// How long a client that broke the protocol may take to notice.
const LINGER: Duration = Duration::from_secs(1);

/// Idleness is looked at so many times in `idle_timeout`. That is cheaper than a timer for every command.
const LOOKS: u32 = 4;

/// A client's stream and what is known about it.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    session: Session,
    idle_timeout: Duration,
    decoder: Decoder,
    out: Vec<u8>,
    /// How much of `out` has been sent.
    sent: usize,
    pending: Pending,
    /// Commands may lie in the decoder that were left there because too many replies were on their way.
    held: bool,
    /// Whether anything was read or written since the last look...
    active: bool,
    /// ...and how many looks saw nothing.
    silent_looks: u32,
}

/// What a connection waited for.
enum Event {
    /// So many bytes were read; none: the client has left.
    Read(usize),
    /// Replies have arrived, so commands that were left unread can be read.
    Resume,
    /// Time to look whether it is idle.
    Look,
    /// All clients together hold too much, and this one more than its share.
    Crowded,
    /// The server stops.
    Stop,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn new(stream: S, session: Session, idle_timeout: Duration) -> Self {
        let decoder = Decoder::new(session.max_command());
        Self {
            stream,
            session,
            idle_timeout,
            decoder,
            out: Vec::new(),
            sent: 0,
            pending: Pending::default(),
            held: false,
            active: true,
            silent_looks: 0,
        }
    }

    /// Serves until the client leaves, falls silent or breaks the protocol, or the server stops. What was read
    /// before a stop is answered.
    pub(super) async fn run(mut self, mut shutdown: Shutdown) -> io::Result<()> {
        let mut stop = pin!(shutdown.requested());
        let mut look = pin!(sleep(self.idle_timeout / LOOKS));
        loop {
            match poll_fn(|cx| self.poll(cx, look.as_mut(), stop.as_mut())).await? {
                Event::Read(0) if self.pending.is_empty() && self.out.is_empty() => return Ok(()),
                // It will say no more, but may well be listening.
                Event::Read(0) => self.session.end = End::AfterReplies,
                Event::Read(_) | Event::Resume => self.answer(),
                Event::Look => {
                    let next = look.deadline() + self.idle_timeout / LOOKS;
                    look.as_mut().reset(next);
                    if self.is_idle() {
                        self.session.shared.counters.idle.add(1);
                        return Ok(());
                    }
                }
                Event::Crowded => {
                    self.session.shared.counters.crowded.add(1);
                    return Ok(());
                }
                Event::Stop => self.session.end = End::AfterReplies,
            }
            match self.session.end {
                End::NotYet => {}
                End::AfterReplies => return self.finish().await,
                End::AtOnce => return Ok(()),
            }
        }
    }

    /// Writes what is to be written, then waits for something to do.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        look: Pin<&mut Sleep>,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Poll<io::Result<Event>> {
        if !self.pending.is_empty() {
            self.poll_pending(cx);
        }
        if let Poll::Ready(Err(error)) = self.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        if self.held {
            if !self.pending.is_full() {
                return Poll::Ready(Ok(Event::Resume));
            }
        } else if let Poll::Ready(read) = self.poll_read(cx) {
            self.active = true;
            return Poll::Ready(read.map(Event::Read));
        }
        if look.poll(cx).is_ready() {
            return Poll::Ready(Ok(Event::Look));
        }
        if stop.poll(cx).is_ready() {
            return Poll::Ready(Ok(Event::Stop));
        }
        self.decoder.relax();
        let held = self.decoder.occupied() + self.session.kept_bytes() + self.out.capacity() + self.pending.bytes();
        if !self.session.occupy(held) {
            return Poll::Ready(Ok(Event::Crowded));
        }
        Poll::Pending
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

    /// Takes in the replies that have arrived.
    #[cold]
    fn poll_pending(&mut self, cx: &mut Context<'_>) {
        // Whoever waits for an answer is not idle.
        self.active = true;
        buffers::lend(&mut self.out);
        // The rest wakes us when it arrives.
        let _ = self.pending.poll(cx, &mut self.out);
    }

    /// Sends what is in `out`, as far as the client takes it.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.out[self.sent..]) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => {
                    self.sent += written;
                    self.active = true;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        buffers::give_back(&mut self.out);
        // TLS keeps what it could not send yet.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Answers every whole command received so far.
    fn answer(&mut self) {
        let now = self.session.shared.service.now();
        let mut commands = 0;
        let mut expected = None;
        self.held = false;
        buffers::lend(&mut self.out);
        while self.session.end == End::NotYet {
            let written = self.out.len();
            let command = match self.decoder.next() {
                Ok(Some(command)) => command,
                Ok(None) => break,
                Err(error) => {
                    let error = Error::from(error).to_string();
                    Reply { out: &mut self.out, version: self.session.version }.error(&error);
                    self.session.shared.counters.protocol_errors.add(1);
                    self.session.end = End::AfterReplies;
                    self.keep_order(written);
                    break;
                }
            };
            commands += 1;
            let authenticated = self.session.authenticated;
            let (session, out, pending) = (&mut self.session, &mut self.out, &mut self.pending);
            let mut call = Call { session, command, now, out, pending, expected: expected.take(), expects: None };
            call.answer();
            expected = call.expects;
            if !self.pending.is_empty() {
                self.keep_order(written);
            }
            if self.session.transaction.is_some() {
                self.execute(now);
            }
            if self.session.authenticated != authenticated {
                self.decoder.set_max_command(self.session.max_command());
            }
            if self.held {
                break;
            }
            if self.out.len() - self.sent > MAX_BACKLOG {
                self.give_up();
            }
        }
        self.session.end_batch(commands);
        if self.pending.is_empty() {
            self.session.note_latency(commands, now);
        }
    }

    /// Answers what a transaction has kept, if it is due.
    #[cold]
    fn execute(&mut self, now: Time) {
        let due = self.session.transaction.take_if(|transaction| transaction.is_due());
        let Some(mut kept) = due.map(|transaction| transaction.into_decoder()) else { return };
        let mut expected = None;
        while self.session.end == End::NotYet
            && let Ok(Some(command)) = kept.next()
        {
            let written = self.out.len();
            let (session, out, pending) = (&mut self.session, &mut self.out, &mut self.pending);
            let mut call = Call { session, command, now, out, pending, expected: expected.take(), expects: None };
            call.answer();
            expected = call.expects;
            if !self.pending.is_empty() {
                self.keep_order(written);
            } else if self.out.len() - self.sent > MAX_BACKLOG {
                self.give_up();
            }
        }
    }

    /// Puts what was written since there were `written` bytes behind the replies that are on their way, and holds back
    /// further commands while these are too many.
    #[cold]
    fn keep_order(&mut self, written: usize) {
        if !self.pending.is_empty() {
            self.pending.put_behind(&self.out[written..]);
            self.out.truncate(written);
        }
        if self.out.len() - self.sent + self.pending.bytes() > MAX_BACKLOG {
            self.give_up();
        }
        self.held = self.pending.is_full() && self.session.end == End::NotYet;
    }

    /// Ends with a client that reads no replies.
    #[cold]
    fn give_up(&mut self) {
        self.session.shared.counters.backlogs.add(1);
        self.session.end = End::AtOnce;
    }

    /// Notes how the time since the last look went; true when it was too long in silence.
    fn is_idle(&mut self) -> bool {
        self.silent_looks = if self.active { 0 } else { self.silent_looks + 1 };
        self.active = false;
        self.silent_looks >= LOOKS
    }

    /// Waits for the replies that are on their way and sends all there are, also those to commands that were held.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let all_there = self.pending.poll(cx, &mut self.out).is_ready();
            let sent = self.poll_send(cx)?;
            if !all_there {
                return Poll::Pending;
            }
            if !self.held {
                return sent.map(Ok);
            }
            self.session.end = End::NotYet;
            self.answer();
        }
    }

    /// Sends the last replies, then reads on unheard for a moment: closing with unread input would make the system
    /// discard the last reply on its way.
    async fn finish(mut self) -> io::Result<()> {
        timeout(self.idle_timeout, poll_fn(|cx| self.poll_finish(cx))).await??;
        self.stream.shutdown().await?;
        let mut ignored = tokio::io::sink();
        match timeout(LINGER, tokio::io::copy(&mut self.stream, &mut ignored)).await {
            Ok(copied) => copied.map(drop),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flowgate_engine::config::Config;
    use tokio::io::DuplexStream;

    use super::super::session::{Room, Shared};
    use super::*;
    use crate::service::Service;

    /// Room for three clients of 64 KiB, or for ten with a fair share.
    fn shared() -> Arc<Shared> {
        let service = Service::start(&Config::default()).unwrap();
        let room = Room::new(192 << 10, 10);
        Arc::new(Shared { service, password: None, max_command: 1 << 20, room, counters: Arc::default() })
    }

    fn connect(shared: &Arc<Shared>, shutdown: &Shutdown) -> DuplexStream {
        let (client, server) = tokio::io::duplex(1 << 10);
        let connection = Connection::new(server, Session::new(Arc::clone(shared)), Duration::from_secs(60));
        tokio::spawn(connection.run(shutdown.clone()));
        client
    }

    async fn says_pong(client: &mut DuplexStream) -> bool {
        let mut said = [0; 7];
        client.write_all(b"PING\r\n").await.is_ok() && client.read_exact(&mut said).await.is_ok()
    }

    #[tokio::test]
    async fn who_takes_more_than_a_share_goes_when_all_hold_too_much() {
        let (_trigger, shutdown) = Shutdown::new();
        let shared = shared();
        let half_a_command = [b"*2\r\n$4\r\nECHO\r\n$100000\r\n".to_vec(), vec![b'x'; 60_000]].concat();
        let mut small = connect(&shared, &shutdown);
        small.write_all(b"*1\r\n$4\r\nPI").await.unwrap();

        let mut greedy = Vec::new();
        let refused = loop {
            let mut client = connect(&shared, &shutdown);
            if client.write_all(&half_a_command).await.is_err() || greedy.len() > 10 {
                break greedy.len();
            }
            greedy.push(client);
        };
        assert!((1..=3).contains(&refused), "{refused}");
        assert_eq!(shared.counters.crowded.get(), 1);
        assert!(shared.counters.occupied.get() > 60_000 * refused as u64);
        small.write_all(b"NG\r\n").await.unwrap();
        small.read_exact(&mut [0; 7]).await.unwrap();
        assert!(says_pong(&mut connect(&shared, &shutdown)).await);

        // They leave, and there is room again.
        drop((greedy, small));
        while shared.counters.open.get() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(shared.counters.occupied.get(), 0);
        connect(&shared, &shutdown).write_all(&half_a_command).await.unwrap();
    }

    #[tokio::test]
    async fn an_idle_connection_holds_nothing() {
        let (_trigger, shutdown) = Shutdown::new();
        let shared = shared();
        let mut client = connect(&shared, &shutdown);
        let many = [b"*5000\r\n".to_vec(), b"$4\r\nPING\r\n".repeat(5000)].concat();
        client.write_all(&many).await.unwrap();
        let mut said = vec![0; b"-ERR wrong number of arguments for 'ping' command\r\n".len()];
        client.read_exact(&mut said).await.unwrap();
        assert!(says_pong(&mut client).await);
        tokio::task::yield_now().await;
        let occupied = shared.counters.occupied.get();
        assert!(occupied <= 1024, "{occupied}");
    }
}
