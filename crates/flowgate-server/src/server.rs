//! The server as a whole: it binds its listeners, serves, and closes them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flowgate_engine::PolicyError;
use flowgate_engine::config::{self, Config, Secret};

use crate::durable::DurableError;
use crate::grpc::Grpc;
use crate::http::Http;
use crate::http::auth::Tokens;
use crate::listener::{Listener, Protocol};
use crate::loops::Loops;
use crate::readiness::Readiness;
use crate::recent::RecorderThread;
use crate::resp::Resp;
use crate::rules_file::RulesFile;
use crate::service::Service;
use crate::shutdown::Shutdown;
use crate::tls::{Certificates, TlsError};

/// A server with bound listeners: clients can connect, and get answers once [`Server::run`] runs.
#[derive(Debug)]
pub struct Server {
    /// The service that decides. Callers may share it, or replace its rules.
    pub service: Service,
    /// Whether `/readyz` answers that the server takes requests.
    pub readiness: Readiness,
    /// The certificates in force, for a caller that renews them; `None`: no TLS.
    pub certificates: Option<Certificates>,
    /// The addresses that are bound.
    pub listening: config::Listen,
    http: Option<(Listener, Http)>,
    resp: Option<(Listener, Resp)>,
    grpc: Option<(Listener, Grpc)>,
    tokens: Arc<Tokens>,
    recorder: RecorderThread,
    loops: Loops,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No protocol has an address.
    #[error("every listener is off: set http, resp or grpc in [listen]")]
    NoListener,
    /// The descriptors for gRPC reflection cannot be read.
    #[error("cannot offer gRPC reflection")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The rules do not fit together.
    #[error("the rules do not fit together")]
    Policy(#[from] PolicyError),
    /// Durable counters cannot be used.
    #[error(transparent)]
    Durable(#[from] DurableError),
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system refuses threads for the event loops and the recorder.
    #[error("cannot start the threads of the server")]
    Threads(#[source] io::Error),
}

/// An address on which the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address} for {protocol}")]
pub struct BindError {
    protocol: &'static str,
    address: config::ListenAddress,
    source: io::Error,
}

/// Why a server ended before `shutdown`.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A listening socket became unusable.
    #[error("cannot listen on {address} for {protocol} any more")]
    Listener {
        /// The protocol of the listener.
        protocol: &'static str,
        /// The address of the listener.
        address: config::ListenAddress,
        /// The error of the system.
        source: io::Error,
    },
    /// An event loop panicked; its connections are closed.
    #[error("event loop {0} failed")]
    Loop(usize),
}

impl Server {
    /// Puts the rules in force and binds all listeners, or none.
    ///
    /// # Errors
    /// When the rules contradict each other, or an address cannot be bound.
    pub async fn bind(config: &Config) -> Result<Self, StartError> {
        Self::bind_in(config, None).await
    }

    /// Like [`Server::bind`]. Durable counters are in `state` unless the configuration names a directory; they are read
    /// before any listener opens.
    ///
    /// # Errors
    /// The same as for [`Server::bind`], and when durable counters cannot be read or written.
    pub async fn bind_in(config: &Config, state: Option<&Path>) -> Result<Self, StartError> {
        let (opened_by, state) = (config.clone(), state.map(Path::to_owned));
        let opening = tokio::task::spawn_blocking(move || Service::open(&opened_by, state.as_deref()));
        // The task neither panics nor is cancelled.
        let service = opening.await.map_err(|error| StartError::Threads(io::Error::other(error)))??;
        Self::bind_service(config, service).await
    }

    /// Like [`Server::bind`], for an existing service, for instance one on another clock. The rules and the store of
    /// `config` are ignored.
    ///
    /// # Errors
    /// The same as for [`Server::bind`].
    pub async fn bind_service(config: &Config, service: Service) -> Result<Self, StartError> {
        let config::Listen { http, resp, grpc } = &config.listen;
        if [http, resp, grpc].iter().all(|address| **address == config::ListenAddress::Off) {
            return Err(StartError::NoListener);
        }
        let readiness = Readiness::default();
        service.watch(&readiness);
        let certificates = config.tls.as_ref().map(Certificates::compile).transpose()?.map(Certificates::new);
        let http = bind("http", &config.listen.http, &config.server, certificates.clone()).await?;
        let resp = bind("resp", &config.listen.resp, &config.server, certificates.clone()).await?;
        let grpc =
            bind("grpc", &config.listen.grpc, &config.server, certificates.as_ref().map(Certificates::for_http2))
                .await?;
        let bound = |listener: &Option<Listener>| {
            listener.as_ref().map_or(config::ListenAddress::Off, |listener| listener.address.clone())
        };
        let listening = config::Listen { http: bound(&http), resp: bound(&resp), grpc: bound(&grpc) };
        let loops = Loops::start(config.server.threads).map_err(StartError::Threads)?;
        let tokens = Arc::new(Tokens::new(&config.auth));
        let http = http.map(|listener| {
            let http = Http::new(config, service.clone(), readiness.clone(), Arc::clone(&tokens));
            (listener, http)
        });
        let resp = resp.map(|listener| (listener, Resp::new(config, service.clone(), Arc::clone(&tokens))));
        let grpc = grpc.map(|listener| {
            let grpc = Grpc::new(config, service.clone(), readiness.clone(), Arc::clone(&tokens))?;
            Ok::<_, StartError>((listener, grpc))
        });
        let grpc = grpc.transpose()?;
        let recorder = RecorderThread::start(service.clone()).map_err(StartError::Threads)?;
        Ok(Self { service, readiness, certificates, listening, http, resp, grpc, tokens, recorder, loops })
    }

    /// Lets admins read and write the configuration file over HTTP, if that has a listener.
    pub fn administer(&self, file: RulesFile) {
        if let Some((_, http)) = &self.http {
            http.administer(file);
        }
    }

    /// Reads the console's files from a directory, for those who work on them. By default they come from the binary.
    pub fn set_console_directory(&self, directory: PathBuf) {
        if let Some((_, http)) = &self.http {
            http.set_console_directory(directory);
        }
    }

    /// Sets the admin token, unless the configuration has one. Without a token, administration over HTTP is refused.
    /// Over the Redis protocol it is the password of the user `admin`.
    pub fn set_admin_token(&self, token: Secret) {
        self.tokens.set_admin(token);
    }

    /// Serves until `shutdown`. Then `/readyz` fails, the listeners close, and open connections have `server.drain` to
    /// end.
    ///
    /// # Errors
    /// When a listener or an event loop fails. The rest then ends as on `shutdown`: a whole server that is down is
    /// noticed sooner than half a server.
    pub async fn run(self, mut shutdown: Shutdown) -> Result<(), RunError> {
        // The recorder records until the end.
        let Self { service, readiness, http, resp, grpc, recorder: _recorder, loops, .. } = self;
        let (trigger, stopping) = Shutdown::new();
        let stop = || {
            readiness.drain();
            trigger.stop();
        };
        let listeners = async {
            let http = async { serve("http", http, &loops, stopping.clone()).await.inspect_err(|_| stop()) };
            let resp = async { serve("resp", resp, &loops, stopping.clone()).await.inspect_err(|_| stop()) };
            let grpc = async { serve("grpc", grpc, &loops, stopping.clone()).await.inspect_err(|_| stop()) };
            let (http, resp, grpc) = tokio::join!(http, resp, grpc);
            http.and(resp).and(grpc)
        };
        let stopped = async {
            shutdown.requested().await;
            stop();
            std::future::pending().await
        };
        let served = tokio::select! {
            served = listeners => served,
            never = stopped => never,
            number = loops.failed() => Err(RunError::Loop(number)),
        };
        if let Some(durable) = service.durable.as_ref().cloned() {
            // The journal logs a failure. The counters that it could not write are lost in any case.
            let _ = tokio::task::spawn_blocking(move || durable.stop()).await;
        }
        served
    }
}

async fn serve<P: Protocol>(
    name: &'static str,
    listener: Option<(Listener, P)>,
    loops: &Loops,
    shutdown: Shutdown,
) -> Result<(), RunError> {
    let Some((listener, protocol)) = listener else { return Ok(()) };
    let address = listener.address.clone();
    let served = listener.serve(protocol, || loops.next().clone(), shutdown).await;
    served.map_err(|source| RunError::Listener { protocol: name, address, source })
}

async fn bind(
    protocol: &'static str,
    address: &config::ListenAddress,
    bounds: &config::Server,
    certificates: Option<Certificates>,
) -> Result<Option<Listener>, BindError> {
    let bound = Listener::bind(address, bounds, certificates).await;
    bound.map_err(|source| BindError { protocol, address: address.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_without_a_listener_is_refused() {
        let config = Config::from_toml("[listen]\nhttp = \"off\"\nresp = \"off\"").unwrap();
        let expected = "every listener is off: set http, resp or grpc in [listen]";
        assert_eq!(Server::bind(&config).await.unwrap_err().to_string(), expected);
    }
}
