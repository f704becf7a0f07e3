//! A door: one listening socket, and the connections that came through it.
//!
//! Bound      At most `max_connections` are open at a time. One more is told so in its own protocol and closed,
//!            so that it can try elsewhere instead of waiting unseen.
//! Isolation  Each connection is a task of its own; what goes wrong in it ends it and nothing else.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use crate::shutdown::Shutdown;

/// The pause after a failed accept. Most failures mean that the process is out of descriptors: trying again
/// at once would only burn the processor until a connection ends.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is spoken behind a door.
pub(crate) trait Protocol: Clone + Send + 'static {
    /// What a client hears when every place is taken.
    const FULL: &'static [u8];

    /// Where the next connection is served; by default where the door is.
    fn home(&self) -> Handle {
        Handle::current()
    }

    /// Takes note that a client found every place taken.
    fn refused(&self) {}

    /// Serves one connection to its end; after a shutdown request it comes to the end soon.
    fn converse(self, stream: TcpStream, shutdown: Shutdown) -> impl Future<Output = io::Result<()>> + Send;
}

/// A bound socket that nobody serves yet.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    address: SocketAddr,
    places: Arc<Semaphore>,
    drain: Duration,
}

impl Door {
    pub(crate) async fn bind(address: SocketAddr, max_connections: usize, drain: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, places: Arc::new(Semaphore::new(max_connections)), drain })
    }

    /// Where the door really is, with the port that the system chose if port 0 was asked for.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets clients in until shutdown, then gives those inside `drain` to finish.
    pub(crate) async fn serve<P: Protocol>(self, protocol: P, mut shutdown: Shutdown) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.admit(stream, &protocol, &shutdown, &mut connections),
                    Err(error) => {
                        tracing::warn!(address = %self.address, %error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = connections.join_next() => report_panic(ended),
                () = shutdown.requested() => break,
            }
        }
        drop(self.listener);

        let all_ended = async {
            while let Some(ended) = connections.join_next().await {
                report_panic(ended);
            }
        };
        if tokio::time::timeout(self.drain, all_ended).await.is_err() {
            let open = connections.len();
            tracing::warn!(address = %self.address, open, "closing connections that did not finish");
            connections.shutdown().await;
        }
    }

    fn admit<P: Protocol>(&self, stream: TcpStream, protocol: &P, shutdown: &Shutdown, connections: &mut JoinSet<()>) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            protocol.refused();
            // One attempt into an empty send buffer; a client that cannot take even this has nothing to hear.
            // The socket does not block, so this cannot hold up the door.
            let _ = stream.into_std().and_then(|mut stream| stream.write(P::FULL));
            return;
        };
        // Answers are small and waited for: holding them back to fill packets only costs time. Failing to say
        // so is harmless.
        let _ = stream.set_nodelay(true);
        let stream = stream.into_std();
        let (protocol, shutdown) = (protocol.clone(), shutdown.clone());
        let home = protocol.home();
        let conversation = async move {
            let _place = place;
            // Where it is served, its readiness is watched.
            let served = match stream.and_then(TcpStream::from_std) {
                Ok(stream) => protocol.converse(stream, shutdown).await,
                Err(error) => Err(error),
            };
            if let Err(error) = served {
                tracing::debug!(%error, "connection ended");
            }
        };
        connections.spawn_on(conversation, &home);
    }
}

fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc;

    use super::*;

    /// A protocol that says `!`, then goes wrong in the way the test wants.
    #[derive(Clone)]
    struct Faulty {
        fault: Fault,
        admitted: mpsc::UnboundedSender<()>,
    }

    #[derive(Clone)]
    enum Fault {
        NeverEnds,
        Panics,
    }

    impl Protocol for Faulty {
        const FULL: &'static [u8] = b"full";

        async fn converse(self, mut stream: TcpStream, _: Shutdown) -> io::Result<()> {
            stream.write_all(b"!").await?;
            self.admitted.send(()).unwrap();
            match self.fault {
                Fault::NeverEnds => std::future::pending().await,
                Fault::Panics => panic!("a fault in a protocol (part of a test)"),
            }
        }
    }

    async fn door(drain: Duration) -> Door {
        Door::bind(([127, 0, 0, 1], 0).into(), 1, drain).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_never_ends_is_cut_after_the_drain() {
        let (admitted, mut was_admitted) = mpsc::unbounded_channel();
        let (trigger, shutdown) = Shutdown::new();
        let door = door(Duration::from_secs(3)).await;
        let address = door.address();
        let serving = tokio::spawn(door.serve(Faulty { fault: Fault::NeverEnds, admitted }, shutdown));

        let mut client = TcpStream::connect(address).await.unwrap();
        was_admitted.recv().await.unwrap();
        trigger.stop();
        // The clock is the runtime's, which jumps to the next timer when all wait.
        serving.await.unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "!");
    }

    #[tokio::test]
    async fn a_panic_ends_its_own_connection_only_and_frees_its_place() {
        let (admitted, mut was_admitted) = mpsc::unbounded_channel();
        let (trigger, shutdown) = Shutdown::new();
        let door = door(Duration::ZERO).await;
        let address = door.address();
        let serving = tokio::spawn(door.serve(Faulty { fault: Fault::Panics, admitted }, shutdown));

        for _ in 0..3 {
            let mut said = String::new();
            TcpStream::connect(address).await.unwrap().read_to_string(&mut said).await.unwrap();
            assert_eq!(said, "!");
            was_admitted.recv().await.unwrap();
        }
        trigger.stop();
        serving.await.unwrap();
    }
}
