//! What a server is told before it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The configuration of a server. Port 0 lets the system choose one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where HTTP is spoken.
    pub http: SocketAddr,
    /// Where the Redis protocol is spoken.
    pub resp: SocketAddr,
    /// The most connections open at a time on each address, so that a crowd at one cannot close the other.
    pub max_connections: usize,
    /// A connection on which nothing arrives, or whose client takes nothing, for this long is closed.
    pub idle_timeout: Duration,
    /// How long open connections may take to finish when the server stops.
    pub drain: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            http: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            resp: SocketAddr::from((Ipv4Addr::LOCALHOST, 7071)),
            max_connections: 10_000,
            idle_timeout: Duration::from_secs(5 * 60),
            drain: Duration::from_secs(10),
        }
    }
}
