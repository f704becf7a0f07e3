//! A listener: one listening socket and the connections that it accepted.
//!
//! Bound      At most `max_connections` are open at a time. The next client gets an error in its own protocol and is
//!            closed, so that it can try another server instead of waiting.
//! Isolation  Each connection is a task of its own: a failure ends that connection only.
//! Stopping   The listener accepts the connections in the system's queue, closes the socket, and then tells the open
//!            connections to end. A client that is told to reconnect therefore cannot reach a socket about to close.
//! End        When the socket becomes unusable, `serve` returns the error, and the server ends with it.

mod socket;
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

use crate::metrics::ListenerCounters;
use crate::shutdown::Shutdown;
use crate::tls::Certificates;
use socket::{Incoming, Socket};

pub(crate) use socket::Peer;

/// The pause after a failed accept. Most failures mean that the process is out of descriptors: an immediate retry
/// only spends processor time until a connection ends.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long an open connection may still send a request after the server begins to stop. The server answers what
/// arrives within this time, because the client may not know yet that the server stops.
pub(crate) const LAST_CALL: Duration = Duration::from_secs(1);

/// After `drain`, connection tasks are aborted. A task that does not end within this time is abandoned.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A two-way stream of bytes. Each protocol is compiled for each kind of stream, so plain TCP does not pay for TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for S {}

/// The protocol of a listener.
pub(crate) trait Protocol: Clone + Send + 'static {
    /// The message to a client beyond `max_connections`.
    const FULL: &'static [u8];

    /// The protocol for a client that connected to `local`, an address of this machine; `None`: to a unix socket.
    #[must_use]
    fn for_local_address(self, _local: Option<IpAddr>) -> Self {
        self
    }

    /// The counters of this listener.
    fn counters(&self) -> &ListenerCounters;

    /// Serves one connection until it ends, which it does soon after a shutdown request.
    fn serve_connection<S: Stream>(
        self,
        stream: S,
        peer: Peer,
        shutdown: Shutdown,
    ) -> impl Future<Output = io::Result<()>> + Send;
}

/// A bound socket. Connections wait in the system's queue until [`Listener::serve`].
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    /// The bound address. For port 0 it holds the port that the system chose.
    pub(crate) address: config::ListenAddress,
    permits: Arc<Semaphore>,
    /// If set, TCP clients must use TLS. Clients of a unix socket do not: their bytes stay on this machine, and the
    /// file's permissions decide who may connect.
    certificates: Option<Certificates>,
    /// The longest TLS handshake.
    handshake_timeout: Duration,
    drain: Duration,
}

impl Listener {
    /// Listens at `address`; `None` for `off`.
    pub(crate) async fn bind(
        address: &config::ListenAddress,
        bounds: &config::Server,
        certificates: Option<Certificates>,
    ) -> io::Result<Option<Self>> {
        let Some(socket) = Socket::bind(address).await? else { return Ok(None) };
        let address = socket.address()?;
        let permits = Arc::new(Semaphore::new(bounds.max_connections));
        Ok(Some(Self {
            socket,
            address,
            permits,
            certificates,
            handshake_timeout: bounds.request_timeout,
            drain: bounds.drain,
        }))
    }

    /// Accepts connections until shutdown, then waits up to `drain` for the open ones to end. Each is served on the
    /// runtime that `next_runtime` names for it.
    ///
    /// # Errors
    /// When the socket becomes unusable. Open connections are aborted.
    pub(crate) async fn serve<P: Protocol>(
        self,
        protocol: P,
        next_runtime: impl Fn() -> Handle,
        mut shutdown: Shutdown,
    ) -> io::Result<()> {
        let mut connections = JoinSet::new();
        let (trigger, stopping) = Shutdown::new();
        loop {
            tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok(incoming) => self.admit(incoming, &protocol, next_runtime(), &stopping, &mut connections),
                    Err(error) if socket::is_dead(&error) => return Err(error),
                    Err(error) => {
                        tracing::warn!(address = %self.address, %error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = connections.join_next() => report_panic(ended),
                () = shutdown.requested() => break,
            }
        }
        // For these clients the connection is established, so a request may be on its way already.
        while let Ok(incoming) = self.socket.accept_waiting() {
            self.admit(incoming, &protocol, next_runtime(), &stopping, &mut connections);
        }
        drop(self.socket);
        trigger.stop();

        let all_ended = async {
            while let Some(ended) = connections.join_next().await {
                report_panic(ended);
            }
        };
        if tokio::time::timeout(self.drain, all_ended).await.is_err() {
            let open = connections.len();
            tracing::warn!(address = %self.address, open, "aborting connections that did not end within drain");
            if tokio::time::timeout(ABORT_TIMEOUT, connections.shutdown()).await.is_err() {
                tracing::error!(address = %self.address, open = connections.len(), "abandoning connections that do not end");
            }
        }
        Ok(())
    }

    fn admit<P: Protocol>(
        &self,
        incoming: Incoming,
        protocol: &P,
        runtime: Handle,
        shutdown: &Shutdown,
        connections: &mut JoinSet<()>,
    ) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            protocol.counters().refused.add(1);
            // Over TLS the message would take several round trips.
            let clear = self.certificates.is_none() || incoming.peer() == Peer::Unix;
            return incoming.dismiss(if clear { P::FULL } else { b"" });
        };
        let for_this_client = protocol.clone().for_local_address(self.local(&incoming));
        let task =
            ConnectionTask { protocol: for_this_client, peer: incoming.peer(), shutdown: shutdown.clone(), permit };
        // The stream is made on the event loop that serves it, since that loop watches its readiness.
        match incoming {
            Incoming::Tcp(stream, _) => match self.certificates.clone() {
                None => connections.spawn_on(task.serve(async { TcpStream::from_std(stream) }), &runtime),
                Some(certificates) => {
                    let (protocol, timeout, mut shutdown) =
                        (protocol.clone(), self.handshake_timeout, shutdown.clone());
                    let opening = async move {
                        tokio::select! {
                            opened = certificates.accept(TcpStream::from_std(stream)?, timeout) => {
                                opened.inspect_err(|_| protocol.counters().handshakes.add(1))
                            }
                            // No request has arrived on this connection yet.
                            () = shutdown.last_call(LAST_CALL) => Err(io::ErrorKind::ConnectionAborted.into()),
                        }
                    };
                    connections.spawn_on(task.serve(opening), &runtime)
                }
            },
            #[cfg(unix)]
            Incoming::Unix(stream) => {
                connections.spawn_on(task.serve(async { UnixStream::from_std(stream) }), &runtime)
            }
        };
    }

    /// The address that the client connected to. A listener on all addresses asks the connection for it.
    fn local(&self, incoming: &Incoming) -> Option<IpAddr> {
        match &self.address {
            config::ListenAddress::Tcp(address) if address.ip().is_unspecified() => incoming.local(),
            config::ListenAddress::Tcp(address) => Some(address.ip()),
            config::ListenAddress::Unix(_) | config::ListenAddress::Off => None,
        }
    }
}

/// A connection within `max_connections`.
struct ConnectionTask<P> {
    protocol: P,
    peer: Peer,
    shutdown: Shutdown,
    permit: OwnedSemaphorePermit,
}

impl<P: Protocol> ConnectionTask<P> {
    async fn serve<S: Stream>(self, opening: impl Future<Output = io::Result<S>>) {
        let ConnectionTask { protocol, peer, shutdown, permit: _permit } = self;
        let served = match opening.await {
            Ok(stream) => protocol.serve_connection(stream, peer, shutdown).await,
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

    /// A protocol that sends `!`, then fails as the test wants.
    #[derive(Clone)]
    struct Faulty {
        fault: Fault,
        admitted: mpsc::UnboundedSender<()>,
        counters: Arc<ListenerCounters>,
    }

    impl Faulty {
        fn new(fault: Fault, admitted: mpsc::UnboundedSender<()>) -> Faulty {
            Faulty { fault, admitted, counters: Arc::default() }
        }
    }

    #[derive(Clone)]
    enum Fault {
        NeverEnds,
        Panics,
    }

    impl Protocol for Faulty {
        const FULL: &'static [u8] = b"full";

        fn counters(&self) -> &ListenerCounters {
            &self.counters
        }

        async fn serve_connection<S: Stream>(self, mut stream: S, _: Peer, _: Shutdown) -> io::Result<()> {
            stream.write_all(b"!").await?;
            self.admitted.send(()).unwrap();
            match self.fault {
                Fault::NeverEnds => std::future::pending().await,
                Fault::Panics => panic!("a fault in a protocol (part of a test)"),
            }
        }
    }

    async fn listener(drain: Duration) -> (Listener, SocketAddr) {
        let bounds = config::Server { max_connections: 1, drain, ..config::Server::default() };
        let anywhere = config::ListenAddress::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::bind(&anywhere, &bounds, None).await.unwrap().unwrap();
        let config::ListenAddress::Tcp(address) = listener.address else { panic!("{}", listener.address) };
        (listener, address)
    }

    #[tokio::test(start_paused = true)]
    async fn connection_that_never_ends_is_aborted_after_drain() {
        let (admitted, mut was_admitted) = mpsc::unbounded_channel();
        let (trigger, shutdown) = Shutdown::new();
        let (listener, address) = listener(Duration::from_secs(3)).await;
        let serving = tokio::spawn(listener.serve(Faulty::new(Fault::NeverEnds, admitted), Handle::current, shutdown));

        let mut client = TcpStream::connect(address).await.unwrap();
        was_admitted.recv().await.unwrap();
        trigger.stop();
        // The paused clock of the runtime jumps to the next timer when all tasks wait.
        serving.await.unwrap().unwrap();
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "!");
    }

    #[tokio::test]
    async fn panic_ends_its_own_connection_only_and_frees_its_permit() {
        let (admitted, mut was_admitted) = mpsc::unbounded_channel();
        let (trigger, shutdown) = Shutdown::new();
        let (listener, address) = listener(Duration::ZERO).await;
        let serving = tokio::spawn(listener.serve(Faulty::new(Fault::Panics, admitted), Handle::current, shutdown));

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
    async fn unusable_socket_ends_the_listener_with_the_error() {
        let (admitted, _) = mpsc::unbounded_channel();
        let (_trigger, shutdown) = Shutdown::new();
        let (listener, _) = listener(Duration::ZERO).await;
        let Socket::Tcp(socket) = &listener.socket else { panic!("no TCP") };
        rustix::net::shutdown(socket, rustix::net::Shutdown::Both).unwrap();
        let error =
            listener.serve(Faulty::new(Fault::NeverEnds, admitted), Handle::current, shutdown).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
