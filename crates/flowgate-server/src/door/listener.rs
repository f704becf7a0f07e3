//! Where clients come in: a TCP address or a socket in the file system.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

use flowgate_engine::config;
use tokio::net::TcpListener;

#[cfg(unix)]
use super::unix::UnixDoor;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Address(SocketAddr),
    /// A process of this machine that may open the socket's file.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no such sockets"))]
    Unix,
}

/// A bound socket.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixDoor),
}

/// A client that has yet to be given a place. It is no part of any event loop.
#[derive(Debug)]
pub(super) enum Caller {
    Tcp(std::net::TcpStream, SocketAddr),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Listener {
    /// Listens where `door` says; `None` for a door that is off.
    pub(super) async fn bind(door: &config::Door) -> io::Result<Option<Listener>> {
        match door {
            config::Door::Off => Ok(None),
            config::Door::Tcp(address) => Ok(Some(Listener::Tcp(TcpListener::bind(address).await?))),
            #[cfg(unix)]
            config::Door::Unix(path) => Ok(Some(Listener::Unix(UnixDoor::bind(path)?))),
            #[cfg(not(unix))]
            config::Door::Unix(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no unix sockets")),
        }
    }

    /// Where it really is, with the port that the system chose if port 0 was asked for.
    pub(super) fn address(&self) -> io::Result<config::Door> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(config::Door::Tcp),
            #[cfg(unix)]
            Listener::Unix(door) => Ok(config::Door::Unix(door.path().to_owned())),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Caller> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Answers are small and waited for: holding them back to fill packets only costs time. Failing to
                // say so is harmless.
                let _ = stream.set_nodelay(true);
                Ok(Caller::Tcp(stream.into_std()?, address))
            }
            #[cfg(unix)]
            Listener::Unix(door) => door.accept().await.map(Caller::Unix),
        }
    }

    /// The next client that waits already.
    ///
    /// # Errors
    /// When none does, or it cannot be let in.
    pub(super) fn accept_waiting(&self) -> io::Result<Caller> {
        // The event loop may not have seen yet that somebody waits, so the system is asked. The copy of the listener is
        // closed again, or the door would stay open.
        #[cfg(unix)]
        {
            use std::os::fd::AsFd;
            let listener = match self {
                Listener::Tcp(listener) => listener.as_fd().try_clone_to_owned()?,
                Listener::Unix(door) => door.as_fd().try_clone_to_owned()?,
            };
            match self {
                Listener::Tcp(_) => {
                    let (stream, address) = std::net::TcpListener::from(listener).accept()?;
                    stream.set_nonblocking(true)?;
                    let _ = stream.set_nodelay(true);
                    Ok(Caller::Tcp(stream, address))
                }
                Listener::Unix(_) => {
                    let (stream, _) = std::os::unix::net::UnixListener::from(listener).accept()?;
                    stream.set_nonblocking(true)?;
                    Ok(Caller::Unix(stream))
                }
            }
        }
        #[cfg(not(unix))]
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Caller {
    pub(super) fn peer(&self) -> Peer {
        match self {
            Caller::Tcp(_, address) => Peer::Address(*address),
            #[cfg(unix)]
            Caller::Unix(_) => Peer::Unix,
        }
    }

    /// The address of this machine at which it has arrived.
    pub(super) fn local(&self) -> Option<IpAddr> {
        match self {
            Caller::Tcp(stream, _) => stream.local_addr().ok().map(|address| address.ip()),
            #[cfg(unix)]
            Caller::Unix(_) => None,
        }
    }

    /// Says a last word: one attempt into an empty send buffer. A client that cannot take even this has nothing to
    /// hear, and the socket does not block, so this cannot hold up the door.
    pub(super) fn dismiss(self, word: &[u8]) {
        let _ = match self {
            Caller::Tcp(mut stream, _) => stream.write(word),
            #[cfg(unix)]
            Caller::Unix(mut stream) => stream.write(word),
        };
    }
}

/// Whether a failure to accept says that the listening socket itself is of no use any more. All others pass: a
/// client that left while it waited, no descriptors, no memory.
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
