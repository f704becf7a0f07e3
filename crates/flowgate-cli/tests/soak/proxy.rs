//! A proxy before a Redis server: it delays, cuts and swallows what goes through.
//!
//! Rule       Bytes leave in the order in which they came, each chunk no earlier than its delay after it came.
//! Rule       A cut ends a connection without a word to either side: at once, or with the next reply, half of which is
//!            still delivered. Then the command was carried out, and the node cannot know.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::random::Random;

/// A proxy on a port of its own. It ends with its runtime.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    /// How long a chunk is held up in each direction.
    delay: Mutex<Option<Range<Duration>>>,
    random: Mutex<Random>,
    cuts: watch::Sender<(u64, Cut)>,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    AtOnce,
    /// The connection ends with the next reply, of which half is delivered.
    WithNextReply,
}

impl Proxy {
    /// Starts a proxy before the server on that port of this machine.
    pub(crate) fn start(upstream: u16, seed: u64, runtime: &Handle) -> Proxy {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (upstream, delay) = (SocketAddr::from(([127, 0, 0, 1], upstream)), Mutex::new(None));
        let (random, cuts) = (Mutex::new(Random::new(seed)), watch::Sender::new((0, Cut::AtOnce)));
        let shared = Arc::new(Shared { upstream, delay, random, cuts });
        runtime.spawn(accept(listener, Arc::clone(&shared)));
        Proxy { port, shared }
    }

    /// Holds up every chunk, in each direction, for a random time in this range; `None`: not at all.
    pub(crate) fn delay(&self, delay: Option<Range<Duration>>) {
        *self.shared.delay.lock().unwrap() = delay;
    }

    /// Cuts each connection with a probability of one half.
    pub(crate) fn cut(&self, cut: Cut) {
        self.shared.cuts.send_modify(|(number, how)| {
            *number += 1;
            *how = cut;
        });
    }
}

impl Shared {
    fn due(&self) -> Instant {
        let delay = self.delay.lock().unwrap().clone();
        Instant::now() + delay.map_or(Duration::ZERO, |delay| self.random.lock().unwrap().between(delay))
    }

    fn tosses_heads(&self) -> bool {
        self.random.lock().unwrap().once_in(2)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // The accept fails if a client has left already. The loop goes on with the next client.
        if let Ok((client, _)) = listener.accept().await {
            tokio::spawn(carry(client, Arc::clone(&shared)));
        }
    }
}

/// Carries one connection. If the server is away, the client's connection ends at once.
async fn carry(client: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let mut cuts = shared.cuts.subscribe();
    let server = TcpStream::connect(shared.upstream).await.ok()?;
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (commands, replies) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    let lose_reply = watch::Sender::new(false);
    let cut = async {
        while cuts.changed().await.is_ok() {
            let (_, how) = *cuts.borrow_and_update();
            match (shared.tosses_heads(), how) {
                (true, Cut::AtOnce) => return,
                (true, Cut::WithNextReply) => drop(lose_reply.send(true)),
                (false, _) => {}
            }
        }
    };
    let never = watch::Sender::new(false).subscribe();
    // If one direction ends, both end: bytes under way are lost.
    tokio::select! {
        () = take_in(from_client, commands.0, &shared) => {}
        () = take_in(from_server, replies.0, &shared) => {}
        () = hand_on(commands.1, to_server, never) => {}
        () = hand_on(replies.1, to_client, lose_reply.subscribe()) => {}
        () = cut => {}
    }
    Some(())
}

/// Reads chunks and notes when each is due at the other end.
async fn take_in(mut from: OwnedReadHalf, queue: UnboundedSender<(Instant, Vec<u8>)>, shared: &Shared) {
    loop {
        let mut chunk = Vec::with_capacity(16 * 1024);
        match from.read_buf(&mut chunk).await {
            Ok(1..) if queue.send((shared.due(), chunk)).is_ok() => {}
            _ => return,
        }
    }
}

/// Writes chunks when they are due.
async fn hand_on(
    mut queue: UnboundedReceiver<(Instant, Vec<u8>)>,
    mut to: OwnedWriteHalf,
    lose_next: watch::Receiver<bool>,
) {
    while let Some((due, chunk)) = queue.recv().await {
        if due > Instant::now() {
            sleep_until(due).await;
        }
        let lost = *lose_next.borrow();
        let part = if lost { &chunk[..chunk.len() / 2] } else { &chunk[..] };
        if to.write_all(part).await.is_err() || lost {
            return;
        }
    }
}
