//! One connection: reads a batch of commands, answers it, writes all replies at once.
//!
//! Order      Connections of a loop that become ready together are all heard before the first is answered ([`turns`]).
//!            Meanwhile the processor fetches the counter that each asks for first, and the replies leave close together,
//!            so that a client with many connections wakes up once for many.
//! Bound      What all clients together leave unread or half-sent is bounded ([`Session::occupy`]).
//! Bound      A connection on which nothing is read or written for `idle_timeout` is closed, within a quarter more.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Sleep, sleep, timeout};

use super::bell::Bell;
use super::buffers;
use super::command::{self, Ahead};
use super::decode::Decoder;
use super::dialogue::Dialogue;
use super::session::{End, Session};
use super::turns;
use crate::shutdown::Shutdown;

/// How long a client may take to notice that we have ended the conversation.
const LINGER: Duration = Duration::from_secs(1);

/// How often is read after the server was asked to stop: what had arrived by then is answered, a client that never pauses
/// is not heard for ever.
const LAST_READS: u32 = 64;

/// Idleness is looked at so many times in `idle_timeout`. That is cheaper than a timer for every command.
const LOOKS: u32 = 4;

/// A client's stream and what is known about it.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    idle_timeout: Duration,
    decoder: Decoder,
    dialogue: Dialogue,
    /// What is known of the first command in the decoder.
    ahead: Option<Ahead>,
    /// Rung when it is time to look or to stop.
    bell: Bell,
    /// How often may still be read, once the server was asked to stop.
    last_reads: Option<u32>,
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
            idle_timeout,
            decoder,
            dialogue: Dialogue::new(session),
            ahead: None,
            bell: Bell::default(),
            last_reads: None,
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
                Event::Read(0) if self.dialogue.is_over() => return Ok(()),
                // It will say no more, but may well be listening.
                Event::Read(0) => self.dialogue.session.end = End::AfterReplies,
                Event::Read(_) => {
                    self.ahead = command::look_ahead(&self.decoder, &self.dialogue.session);
                    turns::hear_others().await;
                    self.answer();
                }
                Event::Resume => self.answer(),
                Event::Look => {
                    look.set(sleep(self.idle_timeout / LOOKS));
                    // Until it is polled it rings nobody.
                    self.bell = Bell::default();
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
        if self.dialogue.poll_pending(cx) {
            // Whoever waits for an answer is not idle.
            self.active = true;
        }
        if let Poll::Ready(Err(error)) = self.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        // Before anything is read: who never pauses has to look and to stop, too.
        if self.last_reads.is_none()
            && let Some(mut cx) = self.bell.rung(cx.waker())
        {
            if stop.poll(&mut cx).is_ready() {
                self.last_reads = Some(LAST_READS);
            } else if look.poll(&mut cx).is_ready() {
                return Poll::Ready(Ok(Event::Look));
            }
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
        if !self.dialogue.session.occupy(self.decoder.occupied() + self.dialogue.bytes()) {
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

    /// Sends the replies that are there, as far as the client takes them.
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
        // TLS keeps what it could not send yet.
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Answers every whole command received so far.
    fn answer(&mut self) {
        let now = self.dialogue.begin_batch();
        let mut ahead = self.ahead.take();
        while self.dialogue.goes_on() {
            let authenticated = self.dialogue.session.authenticated;
            match self.decoder.next() {
                Ok(Some(command)) => ahead = self.dialogue.answer(command, now, ahead),
                Ok(None) => break,
                Err(error) => self.dialogue.break_off(error),
            }
            if self.dialogue.session.authenticated != authenticated {
                self.decoder.set_max_command(self.dialogue.session.max_command());
            }
        }
        self.dialogue.end_batch(now);
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
            let on_their_way = self.dialogue.poll_pending(cx);
            let sent = self.poll_send(cx)?;
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
    use tokio::io::{DuplexStream, ReadBuf};

    use super::super::session::{Room, Shared};
    use super::*;
    use crate::service::Service;

    /// Room for three clients of 64 KiB, or for ten with a fair share.
    fn shared() -> Arc<Shared> {
        let service = Service::start(&Config::default()).unwrap();
        let room = Room::new(192 << 10, 10);
        Arc::new(Shared {
            service,
            password: None,
            admin_token: None,
            max_command: 1 << 20,
            room,
            counters: Arc::default(),
        })
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

    /// A client that never stops asking and hears no answer.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            buffer.put_slice(b"PING\r\n");
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn who_never_pauses_is_not_idle_and_hears_of_the_end() {
        let (trigger, shutdown) = Shutdown::new();
        let shared = shared();
        let session = Session::new(Arc::clone(&shared));
        let client = tokio::spawn(Connection::new(Endless, session, Duration::from_millis(40)).run(shutdown));
        sleep(Duration::from_millis(200)).await;
        assert!(!client.is_finished());
        assert!(shared.counters.commands.get() > 1000);
        trigger.stop();
        timeout(Duration::from_secs(10), client).await.unwrap().unwrap().unwrap();
        assert_eq!(shared.counters.idle.get(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_falls_silent_is_let_go_in_time() {
        let (_trigger, shutdown) = Shutdown::new();
        let shared = shared();
        let mut client = connect(&shared, &shutdown);
        for _ in 0..10 {
            sleep(Duration::from_secs(50)).await;
            assert!(says_pong(&mut client).await, "fifty seconds are less than sixty");
        }
        let closed = timeout(Duration::from_secs(59), client.read(&mut [0])).await;
        assert!(closed.is_err(), "not yet");
        let closed = timeout(Duration::from_secs(17), client.read(&mut [0])).await;
        assert_eq!(closed.unwrap().unwrap(), 0, "within a quarter more");
        assert_eq!(shared.counters.idle.get(), 1);
    }

    #[tokio::test]
    async fn what_had_arrived_before_the_end_is_answered() {
        let (trigger, shutdown) = Shutdown::new();
        let mut client = connect(&shared(), &shutdown);
        client.write_all(b"PING\r\nPING\r\n").await.unwrap();
        trigger.stop();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "+PONG\r\n+PONG\r\n");
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
