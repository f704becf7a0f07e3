//! A door: one listening socket, and the connections that came through it.
//!
//! Bound      At most `max_connections` are open at a time. One more is told so in its own protocol and closed,
//!            so that it can try elsewhere instead of waiting unseen.
//! Isolation  Each connection is a task of its own; what goes wrong in it ends it and nothing else.
//! Stopping   First the door lets in those who stand before it, then it closes, and only then do those inside hear of it:
//!            a client that is told to connect elsewhere does not come to a door that is about to close.
//! End        A door that cannot let anybody in any more says so and ends; the server ends with it.

mod listener;
#[cfg(unix)]
mod unix;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use flowgate_engine::config;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

use crate::shutdown::Shutdown;
use crate::tls::Certificates;
use listener::{Caller, Listener};

pub(crate) use listener::Peer;

/// The pause after a failed accept. Most failures mean that the process is out of descriptors: trying again
/// at once would only burn the processor until a connection ends.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a client that has a connection when the server stops may take to say something on it. What it sends
/// within this time is answered: it cannot know that the server stops before it is told.
pub(crate) const LAST_CALL: Duration = Duration::from_secs(1);

/// After `drain`, connections are cut off. Whatever does not let itself be cut off within this time is left behind.
const CUT_OFF: Duration = Duration::from_secs(1);

/// What bytes come and go through. Protocols are compiled for each kind, so that none pays for the others.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// What is spoken behind a door.
pub(crate) trait Protocol: Clone + Send + 'static {
    /// What a client hears when every place is taken.
    const FULL: &'static [u8];

    /// Where the next connection is served; by default where the door is.
    fn home(&self) -> Handle {
        Handle::current()
    }

    /// Takes note of the address of this machine at which a client has arrived; `None`: a unix socket.
    #[must_use]
    fn arrived_at(self, _local: Option<IpAddr>) -> Self {
        self
    }

    /// Takes note that a client found every place taken.
    fn refused(&self) {}

    /// Takes note that a client came to no understanding over TLS.
    fn misunderstood(&self) {}

    /// Serves one connection to its end; after a shutdown request it comes to the end soon.
    fn converse<S: Stream>(
        self,
        stream: S,
        peer: Peer,
        shutdown: Shutdown,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// A bound socket that nobody serves yet.
#[derive(Debug)]
pub(crate) struct Door {
    listener: Listener,
    address: config::Door,
    places: Arc<Semaphore>,
    /// With these, clients from other machines must speak TLS. Those on a unix socket need none: what they say does not
    /// leave the machine, and the file's permissions say who may.
    certificates: Option<Certificates>,
    /// How long they may take to come to an understanding.
    patience: Duration,
    drain: Duration,
}

impl Door {
    /// Listens at `door`; `None` when it is off.
    pub(crate) async fn bind(
        door: &config::Door,
        bounds: &config::Server,
        certificates: Option<Certificates>,
    ) -> io::Result<Option<Self>> {
        let Some(listener) = Listener::bind(door).await? else { return Ok(None) };
        let address = listener.address()?;
        let places = Arc::new(Semaphore::new(bounds.max_connections));
        Ok(Some(Self {
            listener,
            address,
            places,
            certificates,
            patience: bounds.request_timeout,
            drain: bounds.drain,
        }))
    }

    /// Where the door really is, with the port that the system chose if port 0 was asked for.
    pub(crate) fn address(&self) -> &config::Door {
        &self.address
    }

    /// Lets clients in until shutdown, then gives those inside `drain` to finish.
    ///
    /// # Errors
    /// When nobody can come in any more. Those inside are cut off.
    pub(crate) async fn serve<P: Protocol>(self, protocol: P, mut shutdown: Shutdown) -> io::Result<()> {
        let mut connections = JoinSet::new();
        let (trigger, stopping) = Shutdown::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok(caller) => self.admit(caller, &protocol, &stopping, &mut connections),
                    Err(error) if listener::is_dead(&error) => return Err(error),
                    Err(error) => {
                        tracing::warn!(address = %self.address, %error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = connections.join_next() => report_panic(ended),
                () = shutdown.requested() => break,
            }
        }
        // Their connections stand, so they may have asked for something already.
        while let Ok(caller) = self.listener.accept_waiting() {
            self.admit(caller, &protocol, &stopping, &mut connections);
        }
        drop(self.listener);
        trigger.stop();

        let all_ended = async {
            while let Some(ended) = connections.join_next().await {
                report_panic(ended);
            }
        };
        if tokio::time::timeout(self.drain, all_ended).await.is_err() {
            let open = connections.len();
            tracing::warn!(address = %self.address, open, "closing connections that did not finish");
            if tokio::time::timeout(CUT_OFF, connections.shutdown()).await.is_err() {
                tracing::error!(address = %self.address, open = connections.len(), "connections that hang are left");
            }
        }
        Ok(())
    }

    fn admit<P: Protocol>(&self, caller: Caller, protocol: &P, shutdown: &Shutdown, connections: &mut JoinSet<()>) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            protocol.refused();
            // Over TLS it would take several round trips to say so.
            let clear = self.certificates.is_none() || caller.peer() == Peer::Unix;
            return caller.dismiss(if clear { P::FULL } else { b"" });
        };
        let speaker = protocol.clone().arrived_at(self.local(&caller));
        let guest = Guest { protocol: speaker, peer: caller.peer(), shutdown: shutdown.clone(), place };
        let home = protocol.home();
        // A stream is made where it is served: there its readiness is watched.
        match caller {
            Caller::Tcp(stream, _) => match self.certificates.clone() {
                None => connections.spawn_on(guest.serve(async { TcpStream::from_std(stream) }), &home),
                Some(certificates) => {
                    let (protocol, patience, mut shutdown) = (protocol.clone(), self.patience, shutdown.clone());
                    let opening = async move {
                        tokio::select! {
                            opened = certificates.accept(TcpStream::from_std(stream)?, patience) => {
                                opened.inspect_err(|_| protocol.misunderstood())
                            }
                            // It has asked for nothing yet.
                            () = shutdown.last_call(LAST_CALL) => Err(io::ErrorKind::ConnectionAborted.into()),
                        }
                    };
                    connections.spawn_on(guest.serve(opening), &home)
                }
            },
            #[cfg(unix)]
            Caller::Unix(stream) => connections.spawn_on(guest.serve(async { UnixStream::from_std(stream) }), &home),
        };
    }

    /// The address at which a client has arrived: a listener on all addresses does not know it by itself.
    fn local(&self, caller: &Caller) -> Option<IpAddr> {
        match &self.address {
            config::Door::Tcp(address) if address.ip().is_unspecified() => caller.local(),
            config::Door::Tcp(address) => Some(address.ip()),
            config::Door::Unix(_) | config::Door::Off => None,
        }
    }
}

/// A client that has a place.
struct Guest<P> {
    protocol: P,
    peer: Peer,
    shutdown: Shutdown,
    place: OwnedSemaphorePermit,
}

impl<P: Protocol> Guest<P> {
    async fn serve<S: Stream>(self, opening: impl Future<Output = io::Result<S>>) {
        let Guest { protocol, peer, shutdown, place: _place } = self;
        let served = match opening.await {
            Ok(stream) => protocol.converse(stream, peer, shutdown).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            tracing::debug!(?peer, %error, "connection ended");
        }
    }
}

fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task failed");
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

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

        async fn converse<S: Stream>(self, mut stream: S, _: Peer, _: Shutdown) -> io::Result<()> {
            stream.write_all(b"!").await?;
            self.admitted.send(()).unwrap();
            match self.fault {
                Fault::NeverEnds => std::future::pending().await,
                Fault::Panics => panic!("a fault in a protocol (part of a test)"),
            }
        }
    }

    async fn door(drain: Duration) -> (Door, SocketAddr) {
        let bounds = config::Server { max_connections: 1, drain, ..config::Server::default() };
        let anywhere = config::Door::Tcp(([127, 0, 0, 1], 0).into());
        let door = Door::bind(&anywhere, &bounds, None).await.unwrap().unwrap();
        let config::Door::Tcp(address) = *door.address() else { panic!("{}", door.address()) };
        (door, address)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_never_ends_is_cut_after_the_drain() {
        let (admitted, mut was_admitted) = mpsc::unbounded_channel();
        let (trigger, shutdown) = Shutdown::new();
        let (door, address) = door(Duration::from_secs(3)).await;
        let serving = tokio::spawn(door.serve(Faulty { fault: Fault::NeverEnds, admitted }, shutdown));

        let mut client = TcpStream::connect(address).await.unwrap();
        was_admitted.recv().await.unwrap();
        trigger.stop();
        // The clock is the runtime's, which jumps to the next timer when all wait.
        serving.await.unwrap().unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "!");
    }

    #[tokio::test]
    async fn a_panic_ends_its_own_connection_only_and_frees_its_place() {
        let (admitted, mut was_admitted) = mpsc::unbounded_channel();
        let (trigger, shutdown) = Shutdown::new();
        let (door, address) = door(Duration::ZERO).await;
        let serving = tokio::spawn(door.serve(Faulty { fault: Fault::Panics, admitted }, shutdown));

        for _ in 0..3 {
            let mut said = String::new();
            TcpStream::connect(address).await.unwrap().read_to_string(&mut said).await.unwrap();
            assert_eq!(said, "!");
            was_admitted.recv().await.unwrap();
        }
        trigger.stop();
        serving.await.unwrap().unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_door_that_dies_says_so() {
        let (admitted, _) = mpsc::unbounded_channel();
        let (_trigger, shutdown) = Shutdown::new();
        let (door, _) = door(Duration::ZERO).await;
        let Listener::Tcp(listener) = &door.listener else { panic!("no TCP") };
        rustix::net::shutdown(listener, rustix::net::Shutdown::Both).unwrap();
        let error = door.serve(Faulty { fault: Fault::NeverEnds, admitted }, shutdown).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
