//! The server as a whole: it opens its doors, serves, and closes them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use flowgate_engine::PolicyError;
use flowgate_engine::config::{self, Config, Secret};

use crate::door::{Door, Protocol};
use crate::http::Http;
use crate::loops::Loops;
use crate::readiness::Readiness;
use crate::resp::Resp;
use crate::rules_file::RulesFile;
use crate::service::Service;
use crate::shutdown::Shutdown;
use crate::tls::{Certificates, TlsError};

/// Opens the doors that `config` names and serves until `shutdown`.
///
/// To learn the addresses that the system chose, use [`Server::bind`] and [`Server::run`].
///
/// # Errors
/// As [`Server::bind`] and [`Server::run`].
pub async fn run(config: &Config, shutdown: Shutdown) -> Result<(), ServeError> {
    Server::bind(config).await?.run(shutdown).await?;
    Ok(())
}

/// A server whose doors are open: clients can connect, and are answered once it runs.
#[derive(Debug)]
pub struct Server {
    service: Service,
    readiness: Readiness,
    certificates: Option<Certificates>,
    http: Option<(Door, Http)>,
    resp: Option<(Door, Resp)>,
    loops: Arc<Loops>,
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
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    address: config::Door,
    source: io::Error,
}

/// Why a server ended that nobody had asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nobody can connect any more.
    #[error("cannot listen on {address} for {protocol} any more")]
    Door {
        /// What is spoken there.
        protocol: &'static str,
        /// Where it was.
        address: config::Door,
        /// Why.
        source: io::Error,
    },
    /// The connections of an event loop are gone.
    #[error("event loop {0} failed")]
    Loop(usize),
}

/// Why [`run`] did not serve, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It ended by itself.
    #[error(transparent)]
    Run(#[from] RunError),
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
        if config.listen.http == config::Door::Off && config.listen.resp == config::Door::Off {
            return Err(StartError::NoDoor);
        }
        let readiness = Readiness::default();
        service.watch(&readiness);
        let certificates = config.tls.as_ref().map(Certificates::load).transpose()?;
        let http = open("http", &config.listen.http, &config.server, certificates.clone()).await?;
        let resp = open("resp", &config.listen.resp, &config.server, certificates.clone()).await?;
        let loops = Arc::new(Loops::start(config.server.threads).map_err(StartError::Threads)?);
        let http = http.map(|door| {
            let http = Http::new(config, service.clone(), readiness.clone(), Arc::clone(&loops));
            (door, http)
        });
        let resp = resp.map(|door| (door, Resp::new(config, service.clone(), Arc::clone(&loops))));
        Ok(Self { service, readiness, certificates, http, resp, loops })
    }

    /// What decides, for whoever shares it or replaces its rules.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// What the server says of itself to whoever asks whether to send it work.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// What clients are shown, for whoever renews it; `None`: no TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Lets admins read and write the configuration file over HTTP, where that is spoken.
    pub fn administer(&self, file: RulesFile) {
        if let Some((_, http)) = &self.http {
            http.administer(file);
        }
    }

    /// Sets the admin token, unless the configuration has one. Without any, nobody may administer over HTTP.
    pub fn set_admin_token(&self, token: Secret) {
        if let Some((_, http)) = &self.http {
            http.set_admin_token(token);
        }
    }

    /// Where HTTP is spoken; `None`: nowhere.
    pub fn http_door(&self) -> Option<&config::Door> {
        self.http.as_ref().map(|(door, _)| door.address())
    }

    /// Where the Redis protocol is spoken; `None`: nowhere.
    pub fn resp_door(&self) -> Option<&config::Door> {
        self.resp.as_ref().map(|(door, _)| door.address())
    }

    /// The address of [`Server::http_door`], if it has one.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_door().and_then(tcp)
    }

    /// The address of [`Server::resp_door`], if it has one.
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.resp_door().and_then(tcp)
    }

    /// Serves until `shutdown`. Then the server is not ready any more, closes the doors and waits at most the
    /// configured time for what is under way.
    ///
    /// # Errors
    /// When a part of the server fails. The rest then ends as on `shutdown`: half a server would be worse than none.
    pub async fn run(self, mut shutdown: Shutdown) -> Result<(), RunError> {
        let Self { service: _, readiness, certificates: _, http, resp, loops } = self;
        let (trigger, stopping) = Shutdown::new();
        let stop = || {
            readiness.drain();
            trigger.stop();
        };
        let doors = async {
            let http = async { serve("http", http, stopping.clone()).await.inspect_err(|_| stop()) };
            let resp = async { serve("resp", resp, stopping.clone()).await.inspect_err(|_| stop()) };
            let (http, resp) = tokio::join!(http, resp);
            http.and(resp)
        };
        let asked = async {
            shutdown.requested().await;
            stop();
            std::future::pending().await
        };
        tokio::select! {
            served = doors => served,
            never = asked => never,
            number = loops.failed() => Err(RunError::Loop(number)),
        }
    }
}

async fn serve<P: Protocol>(
    protocol: &'static str,
    door: Option<(Door, P)>,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    let Some((door, speaker)) = door else { return Ok(()) };
    let address = door.address().clone();
    door.serve(speaker, shutdown).await.map_err(|source| RunError::Door { protocol, address, source })
}

/// A key that does nothing would let its author believe that it does.
fn refuse_what_is_not_there(config: &Config) -> Result<(), StartError> {
    let refuse = |asked, what, instead| if asked { Err(StartError::NotYet { what, instead }) } else { Ok(()) };
    refuse(config.listen.grpc != config::Door::Off, "listen.grpc", "write \"off\"")?;
    Ok(())
}

fn tcp(door: &config::Door) -> Option<SocketAddr> {
    match door {
        config::Door::Tcp(address) => Some(*address),
        config::Door::Unix(_) | config::Door::Off => None,
    }
}

async fn open(
    protocol: &'static str,
    door: &config::Door,
    bounds: &config::Server,
    certificates: Option<Certificates>,
) -> Result<Option<Door>, BindError> {
    let opened = Door::bind(door, bounds, certificates).await;
    opened.map_err(|source| BindError { protocol, address: door.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_there_is_refused_by_name() {
        for (toml, expected) in [
            ("[listen]\ngrpc = \"127.0.0.1:0\"", "listen.grpc is not there yet: write \"off\""),
            ("[listen]\nhttp = \"off\"\nresp = \"off\"", "every door is off: set http or resp in [listen]"),
        ] {
            let config = Config::from_toml(toml).unwrap();
            assert_eq!(Server::bind(&config).await.unwrap_err().to_string(), expected);
        }
    }
}
