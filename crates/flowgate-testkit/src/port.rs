//! TCP ports for servers that must be told one.

use std::net::{SocketAddr, TcpListener, UdpSocket};

/// A free TCP port of this machine. Servers that can choose a port themselves get port 0 instead.
///
/// Tests run in several processes, and another test may look for a port before the server binds this one. So a claim
/// also binds the UDP port of the same number, which no server uses.
#[derive(Debug)]
#[must_use = "the claim ends with it"]
pub struct Port {
    /// The port's number.
    pub number: u16,
    _claim: UdpSocket,
}

impl Port {
    /// Claims a free port below those that the system hands out.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn claim() -> Port {
        const PORTS: std::ops::Range<u16> = 20_000..32_000;
        let claimed = PORTS.into_iter().find_map(|number| {
            let claim = UdpSocket::bind(("127.0.0.1", number)).ok()?;
            TcpListener::bind(("127.0.0.1", number)).ok()?;
            Some(Port { number, _claim: claim })
        });
        claimed.expect("a free port")
    }

    /// The address of the port on this machine.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.number).into()
    }
}
