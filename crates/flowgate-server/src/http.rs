//! HTTP/1.1: a connection -> [`routes`] -> one file per kind of endpoint -> the service -> [`reply`].
//!
//! Endpoints translate and call [`crate::Service`], which decides. [`Call`] holds the request, [`Shared`] the state of
//! all connections. An [`Error`] becomes an answer by the table there. To add an endpoint, see [`routes`].
//!
//! The documents that clients send and get are types of [`flowgate_api`]; [`body`] reads them, [`auth`] lets clients in.

pub(crate) mod auth;
mod bans;
pub(crate) mod body;
mod console;
mod decide;
mod direct;
mod error;
mod explain;
mod find_bans;
mod gate;
pub(crate) mod head;
mod health;
mod limit;
mod origin;
mod pause;
mod policy;
mod progress;
mod query;
pub(crate) mod reply;
mod request;
pub(crate) mod route_table;
mod routes;
mod rules;
pub(crate) mod sample;
mod session;
mod session_key;
mod stats;
mod stats_history;
mod subjects;
mod write_timeout;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use flowgate::{Reading, Span};
use flowgate_engine::config::{self, Config};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderName};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::timeout;

use crate::author::Author;
use crate::listener::{LAST_CALL, Peer, Protocol, Stream};
use crate::metrics::ListenerCounters;
use crate::metrics::sampling::{self, Kind};
use crate::readiness::Readiness;
use crate::rules_file::{AdminFile, RulesFile};
use crate::service::{Answer, Service};
use crate::shutdown::Shutdown;
use crate::wrong_secrets::{Source, WrongSecrets};
pub(crate) use auth::Access;
use auth::Tokens;
use body::Body;
use console::Console;
use direct::Direct;
pub(crate) use error::Error;
use gate::Gate;
use head::{Head, Header};
pub(crate) use policy::broken;
use progress::{Progress, Stage};
pub(crate) use reply::Reply;
use write_timeout::WriteTimeout;

/// The longest request line and headers.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The client's name for a request: returned with the answer, and logged with a denial.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request id that is longer is ignored.
const MAX_REQUEST_ID_BYTES: usize = 128;

/// Answers of the API are for the client alone: caches must not store them, browsers must not show them as pages, and pages
/// of other origins must not use them.
const PRIVATE_HEADERS: &str =
    "x-content-type-options: nosniff\r\ncache-control: no-store\r\ncross-origin-resource-policy: same-origin\r\n";

/// HTTP for one listener, or for one of its clients.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    shared: Arc<Shared>,
    idle_timeout: Duration,
    /// The address that the client connected to; `None`: a unix socket.
    local: Option<IpAddr>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) service: Service,
    readiness: Readiness,
    tokens: Arc<Tokens>,
    gate: Gate,
    console: Console,
    /// The name of the machine.
    node: String,
    /// All settings, secrets hidden. A reload does not change them: it changes rules, lists and certificates only.
    settings: Vec<(String, String)>,
    /// The settings of the shared store, if there is one.
    redis: Option<config::Redis>,
    /// The most connections of a listener.
    max_connections: usize,
    /// How long a login lasts.
    session: Span,
    /// The addresses that have tried to log in with wrong tokens.
    wrong_tokens: WrongSecrets,
    /// The configuration file; empty if the server was started without one.
    pub(crate) rules: OnceLock<Arc<AdminFile>>,
    /// The most bytes of a body.
    max_body: usize,
    /// The longest time for a head to arrive, for a body to arrive, and for the service to answer.
    request_timeout: Duration,
}

/// What the requests of one connection share. Each request holds a reference while it is answered. The reference
/// count is the connection's own, so requests on different loops do not share a cache line.
#[derive(Debug)]
struct Conversation {
    shared: Arc<Shared>,
    peer: IpAddr,
    local: Option<IpAddr>,
    progress: Arc<Progress>,
}

impl Conversation {
    fn new(shared: Arc<Shared>, peer: IpAddr, local: Option<IpAddr>, progress: Arc<Progress>) -> Conversation {
        shared.service.metrics().http.begin_connection();
        Conversation { shared, peer, local, progress }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.shared.service.metrics().http.open.subtract(1);
    }
}

/// One request without its body.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Shared,
    /// The other end of the connection, which may be a proxy.
    pub(crate) peer: IpAddr,
    /// The address of this machine that the client connected to.
    pub(crate) local: Option<IpAddr>,
    pub(crate) head: Head<'a>,
    /// When the whole request had arrived; `None`: its body may still be arriving.
    arrived: Option<Reading>,
}

impl Call<'_> {
    pub(crate) fn headers(&self) -> &[Header<'_>] {
        self.head.headers
    }

    /// The time at which the request is decided. Call this after the body was read.
    pub(crate) fn time(&self) -> Reading {
        self.arrived.unwrap_or_else(|| self.shared.service.read())
    }

    /// Runs work on a thread of its own, so that no event loop waits. Work that hangs keeps that thread, but not the
    /// client.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let done = timeout(self.shared.request_timeout, tokio::task::spawn_blocking(work)).await;
        // The work does not panic, and its runtime lives as long as this connection.
        done.map_err(|_| Error::Overloaded)?.map_err(|_| Error::Overloaded)
    }

    /// Lets the request in, or says what it lacks.
    pub(crate) fn check_access(&self, access: Access) -> Result<(), Error> {
        self.count_unauthorized(
            self.shared.tokens.check(access, self.headers(), self.local, || self.shared.service.now()),
        )
    }

    /// Whether the caller may read rules, bans and statistics.
    pub(crate) fn may_read(&self) -> bool {
        self.shared.tokens.check_token(Access::Read, self.headers(), || self.shared.service.now()).is_ok()
    }

    /// As [`Call::check_access`], for a gateway: the origin that it passes on is the browser's.
    pub(crate) fn check_gateway(&self) -> Result<(), Error> {
        let now = || self.shared.service.now();
        self.count_unauthorized(self.shared.tokens.check_token(Access::Decide, self.headers(), now))
    }

    fn count_unauthorized(&self, checked: Result<(), Error>) -> Result<(), Error> {
        checked.inspect_err(|_| self.shared.service.metrics().http.unauthorized.add(1))
    }

    /// The client as the author of a change that needs the admin token. Behind proxies that the gate trusts, it is their
    /// client.
    pub(crate) fn author(&self) -> Author {
        let agent = head::text(self.headers(), "user-agent");
        let Some(client) = self.client() else { return Author::admin_token(None, None, agent) };
        let peer = self.peer.to_canonical();
        Author::admin_token(Some(client), (client != peer).then_some(peer), agent)
    }

    /// The client as the source of wrong tokens.
    pub(crate) fn source(&self) -> Source {
        self.client().map_or(Source::Unix, Source::from)
    }

    /// The client's address; `None`: it is on a unix socket. Behind proxies that the gate trusts, it is their client.
    fn client(&self) -> Option<IpAddr> {
        self.local?;
        let forwarded = head::values(self.headers(), "x-forwarded-for");
        let forwarded: Vec<&str> = forwarded.filter_map(head::printable).collect();
        Some(self.shared.gate.addresses.find(self.peer, forwarded).address)
    }

    /// Gives a request the client's request id, by which the log names it.
    pub(crate) fn named<'r>(&'r self, request: flowgate_engine::Request<'r>) -> flowgate_engine::Request<'r> {
        match request_id(self.headers()) {
            Some(id) => request.id(id),
            None => request,
        }
    }

    /// Waits for the service's answer, at most for the request timeout.
    pub(crate) async fn answered<T>(&self, answer: Answer<T>) -> Result<T, Error> {
        match answer {
            Answer::Now(answer) => Ok(answer),
            Answer::Later(answer) => timeout(self.shared.request_timeout, answer).await.map_err(|_| Error::Overloaded),
        }
    }
}

impl Http {
    pub(crate) fn new(config: &Config, service: Service, readiness: Readiness, tokens: Arc<Tokens>) -> Http {
        let shared = Shared {
            service,
            readiness,
            tokens,
            gate: Gate::new(&config.gate),
            console: Console::new(config.console.enabled),
            node: node(),
            settings: config.settings(),
            redis: config.store.redis.clone(),
            max_connections: config.server.max_connections,
            session: config.console.session.into(),
            wrong_tokens: WrongSecrets::default(),
            rules: OnceLock::new(),
            max_body: usize::try_from(config.server.max_request.bytes()).unwrap_or(usize::MAX),
            request_timeout: config.server.request_timeout,
        };
        Http { shared: Arc::new(shared), idle_timeout: config.server.idle_timeout, local: None }
    }

    /// Lets admins read and write a configuration file. Only the first call has an effect.
    pub(crate) fn administer(&self, file: RulesFile) {
        self.shared.rules.get_or_init(|| Arc::new(AdminFile::new(file)));
    }

    /// Reads the files of the console from a directory. Only the first call has an effect.
    pub(crate) fn set_console_directory(&self, directory: PathBuf) {
        self.shared.console.directory.get_or_init(|| directory);
    }
}

impl Protocol for Http {
    const FULL: &'static [u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
        content-type: application/json\r\ncontent-length: 87\r\n\r\n\
        {\"error\":\"too many connections\",\"field\":null,\"code\":\"too-many-connections\",\"values\":{}}";

    fn for_local_address(self, local: Option<IpAddr>) -> Http {
        Http { local, ..self }
    }

    fn counters(&self) -> &ListenerCounters {
        &self.shared.service.metrics().http
    }

    async fn serve_connection<S: Stream>(self, stream: S, peer: Peer, mut shutdown: Shutdown) -> io::Result<()> {
        let peer = match peer {
            Peer::Address(address) => address.ip(),
            // A client of a unix socket is on this machine.
            Peer::Unix => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let Http { shared, idle_timeout, local, .. } = self;
        let progress = Arc::new(Progress::default());
        let mut stream = WriteTimeout::new(stream, Arc::clone(&progress), idle_timeout, shared.request_timeout);
        let conversation = Arc::new(Conversation::new(shared, peer, local, Arc::clone(&progress)));
        match Direct::new(&mut stream, &conversation, idle_timeout).run(shutdown.clone()).await? {
            Some(unread) => stream.put_back(unread),
            None => return Ok(()),
        }
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(idle_timeout)
            .max_buf_size(MAX_HEAD_BYTES)
            // Answers are small: writing one buffer is faster than writing a list of two.
            .writev(false)
            .serve_connection(TokioIo::new(stream), service_fn(|request| answer(Arc::clone(&conversation), request)));
        let mut connection = pin!(connection);
        let last_call = async {
            shutdown.requested().await;
            progress.stop();
            tokio::time::sleep(LAST_CALL).await;
        };
        let served = tokio::select! {
            biased;
            served = connection.as_mut() => served,
            () = last_call => {
                // A request that has begun to arrive is answered; its answer closes the connection.
                if progress.stage() == Stage::Idle {
                    connection.as_mut().graceful_shutdown();
                }
                connection.await
            }
        };
        served.map_err(io::Error::other)
    }
}

async fn answer(
    conversation: Arc<Conversation>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let headers = head::listed(&head.headers);
    let (path, query) = (head.uri.path(), head.uri.query());
    let head = Head { method: &head.method, path, query, headers: &headers };
    let began = conversation.shared.service.read();
    Ok(conversation.respond(head, Body::Arriving(body), began).await.into_response())
}

impl Conversation {
    /// Answers one request, whose head had arrived when it `began`.
    async fn respond(&self, head: Head<'_>, body: Body<'_>, began: Reading) -> Reply {
        self.progress.begin_answer();
        let service = &self.shared.service;
        service.metrics().http.requests.add(1);
        let timed = sampling::weight(Kind::Latency, began.now);
        let arrived = match body {
            Body::Whole(_) => Some(began),
            Body::Arriving(_) => None,
        };
        let call = Call { shared: &self.shared, peer: self.peer, local: self.local, head, arrived };
        let mut reply = routes::answer(&call, body).await.unwrap_or_else(|error| error.reply());
        if let Some(id) = request_id(head.headers) {
            reply.header(&REQUEST_ID, id);
        }
        if head.path.starts_with("/v1/") {
            reply.header_lines(PRIVATE_HEADERS);
        }
        if let Some(weight) = timed {
            let took = began.real_wait(service.now().since(began.now));
            service.metrics().http_latency.note(took, weight.into());
        }
        if self.progress.is_stopping() {
            reply.header(&CONNECTION, "close");
        }
        self.progress.end_answer();
        reply
    }
}

/// The name of this machine.
fn node() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = String::new();
    name
}

/// The client's name for a request, if it is short and printable.
fn request_id<'h>(headers: &'h [Header<'_>]) -> Option<&'h str> {
    let id = head::text(headers, REQUEST_ID.as_str())?;
    let is_name = !id.is_empty() && id.len() <= MAX_REQUEST_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then_some(id)
}
