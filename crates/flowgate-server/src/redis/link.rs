//! A link: one connection to a Redis server, shared by all requests of an event loop.
//!
//! State      Commands that wait to be sent, replies that are waited for, and whether there is a connection.
//! Rule       Commands are sent in the order in which they were given, all that are there in one write, without waiting
//!            for replies: requests that arrive together share a round trip.
//! Rule       Nothing is ever sent twice. Whoever waits is told when there is no answer in time, and when the connection
//!            is lost; whether the command was carried out, nobody knows. A late reply is read and dropped.
//! Bound      At most [`MAX_IN_FLIGHT`] commands are under way; one more is refused at once. Without a connection every
//!            command is, but before the very first attempt to connect has ended, so that nobody is turned away
//!            because the server has just been started.
//!
//! This is no use of a client library: those that share a connection send when a future is first polled, not when it
//! is made, keep a timer for every request, or send again by themselves what may have been carried out.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use flowgate::{Span, Time};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep, timeout};

use super::node::Node;
use super::target::{ConnectError, Stream};
use super::wire::{self, Reply};

/// Ten times what a busy Redis answers within the usual deadline.
const MAX_IN_FLIGHT: usize = 32 * 1024;

/// A connection that owes answers for this long beyond their deadline is given up.
const STALLED: Span = Span::from_millis(800);

/// How often to look after a connection that owes answers, or a breaker that is open.
const LOOK: Duration = Duration::from_millis(20);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// With the time that an attempt may take, recovery stays well within two seconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// There is no connection; nothing was sent.
    #[error("there is no connection")]
    Down,
    /// Too much is under way; nothing was sent.
    #[error("too many requests are under way")]
    Full,
    /// It answered that it cannot do it.
    #[error("Redis cannot do it")]
    Refused,
    /// No answer in time.
    #[error("no answer in time")]
    Timeout,
    /// The connection ended before the answer.
    #[error("the connection was lost")]
    Lost,
}

/// A reply to come.
pub(crate) type Arrival = oneshot::Receiver<Result<Reply, Failure>>;

/// The end of a link that requests see. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    driver: JoinHandle<()>,
    /// How often a script was loaded over it.
    loads: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    node: Arc<Node>,
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    state: State,
    /// Commands to be sent, and who waits for their replies.
    bytes: Vec<u8>,
    waiters: VecDeque<Waiter>,
    /// Those included that have been sent.
    in_flight: usize,
    /// Wakes the driver, which waits for something to do.
    driver: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first attempt to connect is under way.
    Starting,
    Up,
    Down,
}

#[derive(Debug)]
struct Waiter {
    /// `None`: nobody waits any more.
    reply: Option<oneshot::Sender<Result<Reply, Failure>>>,
    kind: Kind,
    deadline: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Probe,
}

impl Link {
    /// A link whose connection is made and kept on `runtime`.
    pub(crate) fn start(node: Arc<Node>, runtime: &Handle) -> Link {
        let (bytes, waiters) = (Vec::new(), VecDeque::new());
        let queue = Queue { state: State::Starting, bytes, waiters, in_flight: 0, driver: None };
        let shared = Arc::new(Shared { node, queue: Mutex::new(queue) });
        let driver = runtime.spawn(drive(Arc::clone(&shared)));
        Link { shared, driver, loads: AtomicU64::new(0) }
    }

    /// The server at its other end.
    pub(crate) fn node(&self) -> &Node {
        &self.shared.node
    }

    /// Whether nothing will ever go over it again.
    pub(crate) fn has_ended(&self) -> bool {
        self.driver.is_finished()
    }

    /// How often a script was loaded over it, to be handed to [`Link::must_load`].
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Relaxed)
    }

    /// Whether who was told that there is no such script, and has read `loads` before it sent its call, is to load it:
    /// the first one. What others send again comes after that.
    pub(crate) fn must_load(&self, loads: u64) -> bool {
        self.loads.compare_exchange(loads, loads + 1, Relaxed, Relaxed).is_ok()
    }

    /// Sends what `write` appends: one command for each of the replies.
    pub(crate) fn send<const N: usize>(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<[Arrival; N], Failure> {
        let now = self.shared.node.now();
        let mut queue = self.shared.lock();
        if queue.state == State::Down {
            return Err(Failure::Down);
        }
        if queue.in_flight + N > MAX_IN_FLIGHT {
            drop(queue);
            self.shared.node.failed(now);
            return Err(Failure::Full);
        }
        write(&mut queue.bytes);
        queue.in_flight += N;
        let deadline = now + self.shared.node.timeout();
        let arrivals = std::array::from_fn(|_| {
            let (reply, arrival) = oneshot::channel();
            queue.waiters.push_back(Waiter { reply: Some(reply), kind: Kind::Request, deadline });
            arrival
        });
        let driver = queue.driver.take();
        drop(queue);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(arrivals)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Whole commands are appended, and nothing in between can panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a connection: what has waited for it can be sent.
    fn up(&self) {
        self.lock().state = State::Up;
    }

    /// There is none: whoever waits is told, by dropping the other end.
    fn down(&self) {
        let mut queue = self.lock();
        let waiters = std::mem::take(&mut queue.waiters);
        queue.state = State::Down;
        queue.bytes = Vec::new();
        queue.in_flight = 0;
        drop(queue);
        // Waking others is done without the lock.
        drop(waiters);
    }
}

/// Whatever ends the driver (the runtime, too), nobody is left waiting.
struct DownAtTheEnd(Arc<Shared>);

impl Drop for DownAtTheEnd {
    fn drop(&mut self) {
        self.0.down();
    }
}

/// Connects, serves, and connects again.
async fn drive(shared: Arc<Shared>) {
    let shared = DownAtTheEnd(shared);
    let (shared, node) = (&shared.0, &shared.0.node);
    let mut pause = FIRST_PAUSE;
    loop {
        match connect(shared).await {
            Ok(stream) => {
                pause = FIRST_PAUSE;
                shared.up();
                tracing::debug!(redis = %node.target(), "connected to Redis");
                let ended = Serving::new(shared, stream).await;
                shared.down();
                tracing::debug!(redis = %node.target(), error = %ended, "the connection to Redis has ended");
            }
            Err(error) => {
                shared.down();
                node.trip(&error.to_string());
            }
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn connect(shared: &Shared) -> Result<Box<dyn Stream>, ConnectError> {
    let deadline = Duration::from_nanos(shared.node.timeout().as_nanos());
    let mut connecting = pin!(timeout(CONNECT_TIMEOUT.max(deadline), shared.node.target().connect()));
    match timeout(deadline, connecting.as_mut()).await {
        Ok(connected) => connected.unwrap_or(Err(ConnectError::Silent)),
        Err(_) => {
            // Whoever waits for the first connection has waited long enough.
            shared.down();
            connecting.await.unwrap_or(Err(ConnectError::Silent))
        }
    }
}

/// A connection at work.
struct Serving<'a> {
    shared: &'a Shared,
    stream: Box<dyn Stream>,
    out: Vec<u8>,
    /// How much of `out` has been sent.
    sent: usize,
    input: Vec<u8>,
    /// Who waits for a reply, oldest first. Deadlines are in order, too.
    waiters: VecDeque<Waiter>,
    /// It has become a replica: whoever took over may have its name by now, so it is to be looked up again.
    replaced: bool,
    /// So many of the oldest have been told that there is no answer in time.
    expired: usize,
    /// Goes off when there may be something to look after. Replies do not touch it, which keeps them cheap.
    timer: Pin<Box<Sleep>>,
    armed: bool,
}

impl<'a> Serving<'a> {
    fn new(shared: &'a Shared, stream: Box<dyn Stream>) -> Serving<'a> {
        Serving {
            shared,
            stream,
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

    /// Takes over what waits to be sent.
    fn take_queued(&mut self, cx: &Context<'_>) {
        let mut queue = self.shared.lock();
        if self.out.is_empty() {
            std::mem::swap(&mut self.out, &mut queue.bytes);
        } else {
            self.out.append(&mut queue.bytes);
        }
        self.waiters.append(&mut queue.waiters);
        queue.driver = Some(cx.waker().clone());
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

    /// Reads all there is and hands out the replies.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            self.input.reserve(16 * 1024);
            match pin!(self.stream.read_buf(&mut self.input)).poll(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(read) => _ = read?,
            }
            self.hand_out()?;
        }
    }

    fn hand_out(&mut self) -> io::Result<()> {
        let (mut parsed, mut replies) = (0, 0);
        while let Some((reply, length)) = wire::parse(&self.input[parsed..]).map_err(io::Error::other)? {
            parsed += length;
            replies += 1;
            let waiter = self.waiters.pop_front().ok_or_else(|| io::Error::other("a reply that nobody asked for"))?;
            self.expired = self.expired.saturating_sub(1);
            self.replaced |= is_replica(&reply);
            let node = &self.shared.node;
            match (waiter.kind, waiter.reply) {
                (Kind::Probe, _) => node.probed(super::failed(&reply)),
                (Kind::Request, Some(waiting)) => {
                    match super::failed(&reply) {
                        None => node.succeeded(),
                        Some(_) => node.failed(node.now()),
                    }
                    // Nobody has to wait for it.
                    let _ = waiting.send(Ok(reply));
                }
                (Kind::Request, None) => {}
            }
        }
        self.input.drain(..parsed);
        if replies > 0 {
            let mut queue = self.shared.lock();
            queue.in_flight = queue.in_flight.saturating_sub(replies);
        }
        // Whoever still waits for an answer gets it first.
        if self.replaced && self.waiters.is_empty() {
            const REPLACED: &str = "it has become a replica";
            self.shared.node.trip(REPLACED);
            return Err(io::Error::other(REPLACED));
        }
        Ok(())
    }

    /// Tells those who have waited too long, and probes where the breaker is open.
    fn look_after(&mut self) -> io::Result<()> {
        let node = &self.shared.node;
        let now = node.now();
        while let Some(waiter) = self.waiters.get_mut(self.expired).filter(|waiter| waiter.deadline <= now) {
            self.expired += 1;
            match waiter.kind {
                Kind::Probe => node.probed(Some("no answer in time")),
                Kind::Request => node.failed(now),
            }
            if let Some(waiting) = waiter.reply.take() {
                let _ = waiting.send(Err(Failure::Timeout));
            }
        }
        if self.expired > 0 && self.waiters.front().is_some_and(|oldest| oldest.deadline + STALLED <= now) {
            return Err(io::Error::other("it owes answers for too long"));
        }
        // A connection that owes answers would only queue the probe behind them; it is answered, or given up, first.
        if self.expired == 0 && node.may_probe(now) {
            node.write_probe(&mut self.out);
            let deadline = now + node.timeout();
            self.shared.lock().in_flight += 1;
            self.waiters.push_back(Waiter { reply: None, kind: Kind::Probe, deadline });
        }
        Ok(())
    }

    /// When to look next; `None`: not before a command is sent.
    fn next_look(&self) -> Option<Duration> {
        let due = self.waiters.get(self.expired).map(|waiter| {
            let left = waiter.deadline.since(self.shared.node.now());
            Duration::from_nanos(left.as_nanos()).max(Duration::from_millis(1))
        });
        if self.expired > 0 || self.shared.node.is_open() { Some(due.unwrap_or(LOOK).min(LOOK)) } else { due }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.poll_read(cx)?;
        self.take_queued(cx);
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

/// Whether a server says that it no longer takes writes, since another one does.
fn is_replica(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(error) if error.starts_with("READONLY") || error.starts_with("MASTERDOWN"))
}

impl Future for Serving<'_> {
    type Output = io::Error;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Error> {
        match self.get_mut().poll_once(cx) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // What was under way has failed, whatever ended the connection.
        let node = &self.shared.node;
        let now = node.now();
        for waiter in self.waiters.iter().skip(self.expired) {
            match waiter.kind {
                Kind::Probe => node.probed(Some("the connection was lost")),
                Kind::Request => node.failed(now),
            }
        }
    }
}
