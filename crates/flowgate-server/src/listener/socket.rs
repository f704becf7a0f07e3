//! A listening socket, on a TCP address or in the file system, and the connections that it accepts.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgate_engine::config;
use tokio::net::TcpListener;

#[cfg(unix)]
use super::unix::UnixSocket;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Address(SocketAddr),
    /// A process of this machine with permission to open the socket's file.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no such sockets"))]
    Unix,
}

/// A bound socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixSocket),
}

/// An accepted connection that no event loop watches yet.
#[derive(Debug)]
pub(super) enum Incoming {
    Tcp(std::net::TcpStream, SocketAddr),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    /// Listens at `address`; `None` for `off`.
    pub(super) async fn bind(address: &config::ListenAddress) -> io::Result<Option<Socket>> {
        match address {
            config::ListenAddress::Off => Ok(None),
            config::ListenAddress::Tcp(address) => Ok(Some(Socket::Tcp(TcpListener::bind(address).await?))),
            #[cfg(unix)]
            config::ListenAddress::Unix(path) => Ok(Some(Socket::Unix(UnixSocket::bind(path)?))),
            #[cfg(not(unix))]
            config::ListenAddress::Unix(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no unix sockets"))
            }
        }
    }

    /// The bound address. For port 0 it holds the port that the system chose.
    pub(super) fn address(&self) -> io::Result<config::ListenAddress> {
        match self {
            Socket::Tcp(listener) => listener.local_addr().map(config::ListenAddress::Tcp),
            #[cfg(unix)]
            Socket::Unix(socket) => Ok(config::ListenAddress::Unix(socket.path.to_owned())),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Incoming> {
        match self {
            Socket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Clients wait for small answers: delaying them to fill packets costs time only. A failure of this
                // call is harmless.
                let _ = stream.set_nodelay(true);
                Ok(Incoming::Tcp(stream.into_std()?, address))
            }
            #[cfg(unix)]
            Socket::Unix(socket) => socket.accept().await.map(Incoming::Unix),
        }
    }

    /// Accepts a connection from the system's queue without waiting.
    ///
    /// # Errors
    /// When the queue is empty, or the connection cannot be accepted.
    pub(super) fn accept_waiting(&self) -> io::Result<Incoming> {
        // The event loop may not know yet of a waiting connection, so this asks the system. The copy of the descriptor
        // is closed again: an open copy would keep the socket listening.
        #[cfg(unix)]
        {
            use std::os::fd::AsFd;
            match self {
                Socket::Tcp(listener) => {
                    let listener = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
                    let (stream, address) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    let _ = stream.set_nodelay(true);
                    Ok(Incoming::Tcp(stream, address))
                }
                Socket::Unix(socket) => {
                    let listener =
                        std::os::unix::net::UnixListener::from(socket.listener.as_fd().try_clone_to_owned()?);
                    let (stream, _) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    Ok(Incoming::Unix(stream))
                }
            }
        }
        #[cfg(not(unix))]
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Incoming {
    pub(super) fn peer(&self) -> Peer {
        match self {
            Incoming::Tcp(_, address) => Peer::Address(*address),
            #[cfg(unix)]
            Incoming::Unix(_) => Peer::Unix,
        }
    }

    /// The address of this machine that the client connected to.
    pub(super) fn local(&self) -> Option<IpAddr> {
        match self {
            Incoming::Tcp(stream, _) => stream.local_addr().ok().map(|address| address.ip()),
            #[cfg(unix)]
            Incoming::Unix(_) => None,
        }
    }

    /// Writes `message` once, into an empty send buffer, and closes the connection. The socket does not block, so
    /// this cannot delay the listener; a message that does not fit is lost.
    pub(super) fn dismiss(self, message: &[u8]) {
        let _ = match self {
            Incoming::Tcp(mut stream, _) => stream.write(message),
            #[cfg(unix)]
            Incoming::Unix(mut stream) => stream.write(message),
        };
    }
}

/// True if the error means that the listening socket itself is unusable. All other errors are temporary: a client
/// that left the queue, no descriptors, no memory.
pub(super) fn is_dead(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let dead = [Errno::BADF, Errno::INVAL, Errno::NOTSOCK, Errno::OPNOTSUPP, Errno::FAULT];
        Errno::from_io_error(error).is_some_and(|errno| dead.contains(&errno))
    }
    #[cfg(not(unix))]
    {
        error.kind() == io::ErrorKind::InvalidInput
    }
}
