//! A link: one connection to a Redis server, shared by all requests of an event loop.
//!
//! State      Commands that wait to be sent, replies that are waited for, and whether there is a connection.
//! Rule       Commands are sent in the order in which they were given, all that are there in one write, without waiting
//!            for replies: requests that arrive together share a round trip.
//! Rule       Nothing is ever sent twice. The caller is told when there is no answer in time, and when the connection
//!            is lost; it cannot tell whether the command was carried out. A reply that comes late is handed to the
//!            caller if it still listens, since the reply names what was charged.
//! Rule       A link connects again at once when its connection ends, then after ever longer pauses. All links of a
//!            node go to the same address: one that finds another address behind the name takes the others along.
//! Bound      At most [`MAX_IN_FLIGHT`] commands are under way; one more is refused at once. Without a connection every
//!            command is refused, except during the first attempt to connect and the first to connect again: these
//!            commands wait, at most as long as for an answer.
//!
//! The client libraries that share a connection do not fit. They send when a future is first polled, not when it is
//! made; they keep a timer for every request; or they resend commands that Redis may have carried out.

mod serving;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Waker;
use std::time::Duration;

use flowgate::{Span, Time};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::node::Node;
use super::target::{ConnectError, Connection};
use super::wire::Reply;
use crate::lock::Lock;
use serving::{LinkEnd, Serving};

/// The most commands without a reply on a link: ten times what a busy Redis answers within the usual deadline.
const MAX_IN_FLIGHT: usize = 32 * 1024;

/// A connection that has lived this long is made anew at once when it ends. One that ends sooner may do so again.
const SETTLED_AFTER: Span = Span::from_millis(400);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two attempts to connect. With the time of an attempt, recovery stays well within two
/// seconds.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// There is no connection; nothing was sent.
    #[error("there is no connection")]
    Down,
    /// Too many commands are under way; nothing was sent.
    #[error("too many requests are under way")]
    Full,
    /// Redis answered with an error.
    #[error("Redis cannot do it")]
    Refused,
    /// No answer came in time.
    #[error("no answer in time")]
    Timeout,
    /// The connection ended before the answer.
    #[error("the connection was lost")]
    Lost,
}

/// A reply to come; it is closed when the connection is lost.
pub(crate) type Arrival = oneshot::Receiver<CommandResult>;

/// The result of a command that was sent.
#[derive(Debug)]
pub(crate) enum CommandResult {
    /// The reply came in time.
    Reply(Reply),
    /// There was no reply in time. This one arrives if the connection lasts until Redis gives it.
    Late(oneshot::Receiver<Reply>),
}

/// The end of a link that requests see. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    driver: JoinHandle<()>,
    /// How often a script was loaded over this link.
    loads: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    node: Arc<Node>,
    queue: Lock<Queue>,
}

#[derive(Debug)]
struct Queue {
    state: State,
    /// The commands to be sent, and the waiting ends of their replies.
    bytes: Vec<u8>,
    waiters: VecDeque<Waiter>,
    /// The number of commands without a reply, sent or not.
    in_flight: usize,
    /// Wakes the driver when it has something to do.
    driver: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first attempt to connect, or to connect again, is under way.
    Starting,
    Up,
    Down,
}

#[derive(Debug)]
struct Waiter {
    kind: Kind,
    deadline: Time,
}

/// What a reply is for.
#[derive(Debug)]
enum Kind {
    Request(oneshot::Sender<CommandResult>),
    /// For a request whose caller was told that the deadline is over.
    Late(oneshot::Sender<Reply>),
    /// For nobody: the reply is dropped.
    Unread,
    Probe,
}

impl Link {
    /// A link whose connection is made and kept on `runtime`.
    pub(crate) fn start(node: Arc<Node>, runtime: &Handle) -> Link {
        let (bytes, waiters) = (Vec::new(), VecDeque::new());
        let queue = Queue { state: State::Starting, bytes, waiters, in_flight: 0, driver: None };
        let shared = Arc::new(Shared { node, queue: Lock::new(queue) });
        let driver = runtime.spawn(drive(Arc::clone(&shared)));
        Link { shared, driver, loads: AtomicU64::new(0) }
    }

    /// The server at the other end of the link.
    pub(crate) fn node(&self) -> &Node {
        &self.shared.node
    }

    /// True if the link has ended for good.
    pub(crate) fn has_ended(&self) -> bool {
        self.driver.is_finished()
    }

    /// How often a script was loaded over this link. Callers hand the number to [`Link::must_load`].
    pub(crate) fn loads(&self) -> u64 {
        self.loads.load(Relaxed)
    }

    /// Whether a caller that Redis answered `NOSCRIPT` must load the script. `loads` is the number that the caller read
    /// before it sent its call. True for the first of several such callers; the others send their calls again behind
    /// that load.
    pub(crate) fn must_load(&self, loads: u64) -> bool {
        self.loads.compare_exchange(loads, loads + 1, Relaxed, Relaxed).is_ok()
    }

    /// Lets the driver check the breaker: an idle link does not notice that the breaker has opened.
    pub(crate) fn wake(&self) {
        let driver = self.shared.queue.lock().driver.take();
        driver.into_iter().for_each(Waker::wake);
    }

    /// Sends what `write` appends, which is `commands` commands. Only the reply to the last of them arrives.
    pub(crate) fn send(&self, commands: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<Arrival, Failure> {
        self.send_at(self.shared.node.now(), commands, write)
    }

    /// As [`Link::send`], by a clock that was read already.
    pub(crate) fn send_at(
        &self,
        now: Time,
        commands: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Arrival, Failure> {
        let mut queue = self.shared.queue.lock();
        if queue.state == State::Down {
            return Err(Failure::Down);
        }
        if queue.in_flight + commands > MAX_IN_FLIGHT {
            drop(queue);
            self.shared.node.failed(now);
            return Err(Failure::Full);
        }
        write(&mut queue.bytes);
        queue.in_flight += commands;
        let deadline = now + self.shared.node.timeout;
        let (reply, arrival) = oneshot::channel();
        queue.waiters.extend((1..commands).map(|_| Waiter { kind: Kind::Unread, deadline }));
        queue.waiters.push_back(Waiter { kind: Kind::Request(reply), deadline });
        let driver = queue.driver.take();
        drop(queue);
        if let Some(driver) = driver {
            driver.wake();
        }
        Ok(arrival)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Shared {
    /// Notes that there is a connection: the commands that waited for it can be sent.
    fn up(&self) {
        self.queue.lock().state = State::Up;
    }

    /// Notes that the connection is lost and that the link connects again at once. Unsent commands wait for the new
    /// connection.
    fn restart(&self) {
        let mut queue = self.queue.lock();
        queue.state = State::Starting;
        queue.in_flight = queue.waiters.len();
    }

    /// Notes that the link has no connection. Dropping the waiters tells their callers.
    fn down(&self) {
        let mut queue = self.queue.lock();
        let waiters = std::mem::take(&mut queue.waiters);
        queue.state = State::Down;
        queue.bytes = Vec::new();
        queue.in_flight = 0;
        drop(queue);
        // This wakes tasks, which must not happen under the lock.
        drop(waiters);
    }
}

/// Releases all waiting callers when the driver ends, for whatever reason, the end of the runtime included.
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
    let mut pause = Duration::ZERO;
    let mut last = None;
    loop {
        let address = node.address();
        let (lead, known) = match last.take() {
            Some(LinkEnd::Moved) => (address, None),
            Some(LinkEnd::Replaced) => (None, None),
            Some(LinkEnd::Lost(_)) | None => (None, address),
        };
        match connect(shared, lead, known).await {
            Ok(Connection { stream, address }) => {
                let (place, since) = (node.is_at(address), node.now());
                shared.up();
                tracing::debug!(redis = %node.target, "connected to Redis");
                let ended = Serving::new(shared, stream, place).await;
                tracing::debug!(redis = %node.target, error = %ended, "the connection to Redis has ended");
                let at_once = matches!(ended, LinkEnd::Moved) || node.now().since(since) >= SETTLED_AFTER;
                if at_once {
                    pause = Duration::ZERO;
                    shared.restart();
                } else {
                    pause = longer(pause);
                    shared.down();
                }
                last = Some(ended);
            }
            Err(error) => {
                shared.down();
                let (for_all, last_pause) = (node.unreachable(&error.to_string()), pause);
                pause = longer(pause);
                // Logged once, when the pause has grown to the longest. If no link has a connection, the breaker logs that instead.
                if !for_all && last_pause < pause && pause == LONGEST_PAUSE {
                    tracing::warn!(redis = %node.target, %error, "an event loop has no connection to Redis");
                }
            }
        }
        sleep(pause).await;
    }
}

fn longer(pause: Duration) -> Duration {
    if pause.is_zero() { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) }
}

async fn connect(
    shared: &Shared,
    lead: Option<SocketAddr>,
    known: Option<SocketAddr>,
) -> Result<Connection, ConnectError> {
    let node = &shared.node;
    let deadline = Duration::from_nanos(node.timeout.as_nanos());
    let connecting = node.target.connect(lead, known);
    let mut connecting = pin!(timeout(CONNECT_TIMEOUT.max(deadline), connecting));
    match timeout(deadline, connecting.as_mut()).await {
        Ok(connected) => connected.unwrap_or(Err(ConnectError::Silent)),
        Err(_) => {
            // The commands that wait for this connection have waited long enough.
            shared.down();
            connecting.await.unwrap_or(Err(ConnectError::Silent))
        }
    }
}

#[cfg(test)]
mod tests;
