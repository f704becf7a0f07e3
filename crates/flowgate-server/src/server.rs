//! The server as a whole: it opens its doors, serves, and closes them.

use std::io;
use std::net::SocketAddr;

use flowgate_engine::PolicyError;
use flowgate_engine::config::{self, Config};

use crate::door::Door;
use crate::http::Http;
use crate::loops::Loops;
use crate::resp::Resp;
use crate::service::Service;
use crate::shutdown::Shutdown;

/// Opens the doors that `config` names and serves until `shutdown`.
///
/// To learn the addresses that the system chose, use [`Server::bind`] and [`Server::run`].
///
/// # Errors
/// As [`Server::bind`].
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), StartError> {
    Server::bind(config).await?.run(shutdown).await;
    Ok(())
}

/// A server whose doors are open: clients can connect, and are answered once it runs.
#[derive(Debug)]
pub struct Server {
    service: Service,
    bounds: config::Server,
    http: Option<Door>,
    resp: Option<(Door, Resp)>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration asks for something that has not been built.
    #[error("{what} is not there yet: {instead}")]
    NotYet {
        /// The key or its value.
        what: &'static str,
        /// What to write.
        instead: &'static str,
    },
    /// Nobody could ever reach it.
    #[error("every door is off: set http or resp in [listen]")]
    NoDoor,
    /// The rules do not fit together.
    #[error("the rules do not fit together")]
    Policy(#[from] PolicyError),
    /// An address cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system has no threads for the event loops.
    #[error("cannot start the event loops")]
    Threads(#[source] io::Error),
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
    /// Puts the rules in force and opens all doors, or none.
    ///
    /// # Errors
    /// When the configuration asks for what is not there, or an address cannot be had.
    pub async fn bind(config: &Config) -> Result<Self, StartError> {
        refuse_what_is_not_there(config)?;
        Self::bind_service(config, Service::start(config)?).await
    }

    /// As [`Server::bind`], for a service that is there already: one on another clock, say. The configuration's rules
    /// and store are left aside.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub async fn bind_service(config: &Config, service: Service) -> Result<Self, StartError> {
        let http = tcp("http", &config.listen.http)?;
        let resp = tcp("resp", &config.listen.resp)?;
        if http.is_none() && resp.is_none() {
            return Err(StartError::NoDoor);
        }
        let http = open("http", http, &config.server).await?;
        let resp = match open("resp", resp, &config.server).await? {
            None => None,
            Some(door) => {
                let loops = Loops::start(config.server.threads).map_err(StartError::Threads)?;
                Some((door, Resp::new(config, service.clone(), loops)))
            }
        };
        Ok(Self { service, bounds: config.server.clone(), http, resp })
    }

    /// What decides, for whoever shares it or replaces its rules.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Where HTTP is spoken; `None`: nowhere.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Door::address)
    }

    /// Where the Redis protocol is spoken; `None`: nowhere.
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.resp.as_ref().map(|(door, _)| door.address())
    }

    /// Serves until `shutdown`, then closes the doors and waits at most the configured time for open connections.
    pub async fn run(self, shutdown: Shutdown) {
        let Self { service: _, bounds, http, resp } = self;
        let http = async {
            if let Some(door) = http {
                door.serve(Http::new(bounds.idle_timeout), shutdown.clone()).await;
            }
        };
        let resp = async {
            if let Some((door, protocol)) = resp {
                door.serve(protocol, shutdown.clone()).await;
            }
        };
        tokio::join!(http, resp);
    }
}

/// A key that does nothing would let its author believe that it does.
fn refuse_what_is_not_there(config: &Config) -> Result<(), StartError> {
    let refuse = |asked, what, instead| if asked { Err(StartError::NotYet { what, instead }) } else { Ok(()) };
    refuse(config.store.redis.is_some(), "store.type = \"redis\"", "write \"memory\"")?;
    refuse(config.listen.grpc != config::Door::Off, "listen.grpc", "write \"off\"")?;
    refuse(config.tls.is_some(), "[tls]", "leave it out, and let a proxy do it")?;
    refuse(config.koala.rules.is_some(), "koala.rules", "leave it out")
}

fn tcp(protocol: &'static str, door: &config::Door) -> Result<Option<SocketAddr>, StartError> {
    match door {
        config::Door::Off => Ok(None),
        config::Door::Tcp(address) => Ok(Some(*address)),
        config::Door::Unix(_) => {
            let what = if protocol == "http" { "listen.http = \"unix:..\"" } else { "listen.resp = \"unix:..\"" };
            Err(StartError::NotYet { what, instead: "write an address and a port" })
        }
    }
}

async fn open(
    protocol: &'static str,
    address: Option<SocketAddr>,
    bounds: &config::Server,
) -> Result<Option<Door>, BindError> {
    let Some(address) = address else { return Ok(None) };
    let door = Door::bind(address, bounds.max_connections, bounds.drain).await;
    door.map(Some).map_err(|source| BindError { protocol, address, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_there_is_refused_by_name() {
        for (toml, expected) in [
            ("[store]\ntype = \"redis\"", "store.type = \"redis\" is not there yet: write \"memory\""),
            ("[listen]\ngrpc = \"127.0.0.1:0\"", "listen.grpc is not there yet: write \"off\""),
            ("[tls]\ncert = \"c\"\nkey = \"k\"", "[tls] is not there yet: leave it out, and let a proxy do it"),
            (
                "[listen]\nresp = \"unix:/run/x\"",
                "listen.resp = \"unix:..\" is not there yet: write an address and a port",
            ),
            ("[listen]\nhttp = \"off\"\nresp = \"off\"", "every door is off: set http or resp in [listen]"),
        ] {
            let config = Config::from_toml(toml).unwrap();
            assert_eq!(Server::bind(&config).await.unwrap_err().to_string(), expected);
        }
    }
}
