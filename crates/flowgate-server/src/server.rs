//! The server as a whole: it opens its doors, serves, and closes them.

use std::io;
use std::net::SocketAddr;

use crate::config::Config;
use crate::door::Door;
use crate::http::Http;
use crate::resp::Resp;
use crate::shutdown::Shutdown;

/// Opens the doors that `config` names and serves until `shutdown`.
///
/// To learn the addresses that the system chose, use [`Server::bind`] and [`Server::run`].
pub async fn run(config: Config, shutdown: Shutdown) -> Result<(), BindError> {
    Server::bind(config).await?.run(shutdown).await;
    Ok(())
}

/// A server whose doors are open: clients can connect, and are answered once it runs.
#[derive(Debug)]
pub struct Server {
    config: Config,
    http: Door,
    resp: Door,
}

/// An address on which the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {protocol}")]
pub struct BindError {
    protocol: &'static str,
    address: SocketAddr,
    source: io::Error,
}

impl Server {
    /// Opens all doors, or none.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        let open = async |protocol, address| {
            Door::bind(address, config.max_connections, config.drain).await.map_err(|source| BindError {
                protocol,
                address,
                source,
            })
        };
        let http = open("http", config.http).await?;
        let resp = open("resp", config.resp).await?;
        Ok(Self { config, http, resp })
    }

    /// Where HTTP is spoken.
    pub fn http_address(&self) -> SocketAddr {
        self.http.address()
    }

    /// Where the Redis protocol is spoken.
    pub fn resp_address(&self) -> SocketAddr {
        self.resp.address()
    }

    /// Serves until `shutdown`, then closes the doors and waits at most the configured time for open connections.
    pub async fn run(self, shutdown: Shutdown) {
        let Self { config, http, resp } = self;
        tokio::join!(
            http.serve(Http::new(config.idle_timeout), shutdown.clone()),
            resp.serve(Resp { idle_timeout: config.idle_timeout }, shutdown),
        );
    }
}
