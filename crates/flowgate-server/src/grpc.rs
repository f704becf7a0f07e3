//! gRPC: Envoy's rate limit service, health and reflection.
//!
//! ```text
//! connection -> call    -> message -> question -> the service -> reply      ShouldRateLimit
//!                       -> tonic                                            health, reflection
//! ```
//!
//! The one call that every request of Envoy's clients waits for is read and written by hand, in [`message`] and [`reply`]: its
//! bounds are checked while it is read, values that are not UTF-8 are no error, and nothing is copied. tonic answers the rest.

mod body;
mod connection;
mod health;
mod message;
mod question;
mod reply;
mod status;
mod wire;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flowgate_engine::config::{Config, Secret};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tonic::codegen::Service as TonicService;
use tonic_health::pb::health_server::HealthServer;

use crate::http::auth::{Access, Tokens};
use crate::listener::{Peer, Protocol, Stream};
use crate::loops::Loops;
use crate::metrics::Counter;
use crate::metrics::sampling::{self, Kind};
use crate::readiness::Readiness;
use crate::service::{JointRequest, Service};
use crate::shutdown::Shutdown;
use body::ReplyBody;
use connection::CallGuard;
use health::Health;
use message::RateLimitRequest;
use question::FieldNames;
pub(crate) use status::Code;
use status::Failure;

/// The service's name.
const SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH: &str = "/grpc.health.v1.Health/";
/// The longest question about health: a name of a service.
const MAX_HEALTH_BYTES: usize = 1024;
/// The longest question about descriptors.
const MAX_REFLECTION_BYTES: usize = 16 * 1024;
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/";
const REFLECTION_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/";

/// The descriptors of the service's messages. `scripts/protos` makes them from `proto/`.
const DESCRIPTORS: &[u8] = include_bytes!("grpc/descriptors.bin");

/// The number of entries of each descriptor of a message; `None` if it is refused. For the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_rate_limit_request(message: &[u8]) -> Option<Vec<usize>> {
    let call = RateLimitRequest::read(message).ok()?;
    Some(call.descriptors.iter().map(|descriptor| descriptor.entries.len()).collect())
}

/// What the gRPC listener counts.
#[derive(Debug, Default)]
pub(crate) struct GrpcCounters {
    pub(crate) open: Counter,
    pub(crate) connections: Counter,
    pub(crate) refused: Counter,
    /// Failed TLS handshakes.
    pub(crate) handshakes: Counter,
    /// All calls, health and reflection included.
    pub(crate) requests: Counter,
    pub(crate) unauthorized: Counter,
    /// Calls of the rate limit service, by [`Code::ALL`].
    pub(crate) codes: [Counter; Code::ALL.len()],
    /// The descriptors of these calls.
    pub(crate) descriptors: Counter,
}

/// gRPC for one listener.
#[derive(Clone, Debug)]
pub(crate) struct Grpc {
    shared: Arc<Shared>,
    loops: Arc<Loops>,
}

/// What all connections share.
pub(crate) struct Shared {
    service: Service,
    tokens: Tokens,
    /// The most bytes of a message.
    max_message: usize,
    /// The longest time for a message to arrive, and for the service to answer.
    request_timeout: Duration,
    idle_timeout: Duration,
    health: Handler,
    reflection: Handler,
    reflection_alpha: Handler,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("service", &self.service).finish_non_exhaustive()
    }
}

type TonicResponse = Pin<Box<dyn Future<Output = Response<tonic::body::Body>> + Send>>;

/// A service of tonic.
type Handler = Box<dyn Fn(Request<Incoming>) -> TonicResponse + Send + Sync>;

fn handler<S>(service: S) -> Handler
where
    S: TonicService<Request<Incoming>, Response = Response<tonic::body::Body>, Error = Infallible>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    Box::new(move |request| {
        let answer = service.clone().call(request);
        Box::pin(async move {
            match answer.await {
                Ok(response) => response,
            }
        })
    })
}

impl Grpc {
    /// Serves `service` on `loops`.
    pub(crate) fn new(
        config: &Config,
        service: Service,
        readiness: Readiness,
        loops: Arc<Loops>,
    ) -> Result<Grpc, tonic_reflection::server::Error> {
        let max_message = usize::try_from(config.server.max_request.bytes()).unwrap_or(usize::MAX);
        let health = HealthServer::new(Health { readiness }).max_decoding_message_size(MAX_HEALTH_BYTES);
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let shared = Shared {
            service,
            tokens: Tokens::new(&config.auth),
            max_message,
            request_timeout: config.server.request_timeout,
            idle_timeout: config.server.idle_timeout,
            health: handler(health),
            reflection: handler(reflection().build_v1()?.max_decoding_message_size(MAX_REFLECTION_BYTES)),
            reflection_alpha: handler(reflection().build_v1alpha()?.max_decoding_message_size(MAX_REFLECTION_BYTES)),
        };
        Ok(Grpc { shared: Arc::new(shared), loops })
    }

    /// Sets the admin token, unless the configuration has one.
    pub(crate) fn set_admin_token(&self, token: Secret) {
        self.shared.tokens.set_admin(token);
    }
}

impl Protocol for Grpc {
    /// A client of HTTP/2 reads frames only, so it gets the end of the connection.
    const FULL: &'static [u8] = b"";

    fn runtime(&self) -> Handle {
        self.loops.next().clone()
    }

    fn for_local_address(self, _: Option<IpAddr>) -> Grpc {
        self
    }

    fn note_refused(&self) {
        self.shared.service.metrics().grpc.refused.add(1);
    }

    fn note_failed_handshake(&self) {
        self.shared.service.metrics().grpc.handshakes.add(1);
    }

    async fn serve_connection<S: Stream>(self, stream: S, _: Peer, shutdown: Shutdown) -> io::Result<()> {
        connection::serve(self.shared, stream, shutdown, answer).await
    }
}

async fn answer(guard: CallGuard, request: Request<Incoming>) -> Response<ReplyBody> {
    let shared = Arc::clone(guard.shared());
    shared.service.metrics().grpc.requests.add(1);
    if let Some(status) = not_grpc(&request) {
        return status::not_grpc(status);
    }
    let path = request.uri().path();
    if path == SHOULD_RATE_LIMIT {
        return should_rate_limit(&shared, request).await;
    }
    if path.starts_with(HEALTH) {
        return by_tonic(&shared.health, guard, request).await;
    }
    if let Err(failure) = check_access(&shared, request.headers()) {
        return failure.response();
    }
    if path.starts_with(REFLECTION) {
        return by_tonic(&shared.reflection, guard, request).await;
    }
    if path.starts_with(REFLECTION_ALPHA) {
        return by_tonic(&shared.reflection_alpha, guard, request).await;
    }
    Failure::new(Code::Unimplemented, "unknown method").response()
}

/// The status of a request that is not a call.
fn not_grpc(request: &Request<Incoming>) -> Option<StatusCode> {
    if request.method() != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let is_grpc = content_type.strip_prefix(b"application/grpc").is_some_and(|rest| !rest.starts_with(b"-web"));
    (!is_grpc).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

/// The message of a call has `request_timeout` to arrive; a stream of answers may last.
async fn by_tonic(handler: &Handler, guard: CallGuard, request: Request<Incoming>) -> Response<ReplyBody> {
    match timeout(guard.shared().request_timeout, handler(request)).await {
        Ok(response) => response.map(|body| ReplyBody::Tonic { body, _guard: guard }),
        Err(_) => Failure::new(Code::DeadlineExceeded, "the message did not arrive in time").response(),
    }
}

fn check_access(shared: &Shared, headers: &HeaderMap) -> Result<(), Failure> {
    shared.tokens.check_token(Access::Decide, headers).map_err(|_| {
        shared.service.metrics().grpc.unauthorized.add(1);
        Failure::new(Code::Unauthenticated, "this needs the API token, as authorization: Bearer")
    })
}

async fn should_rate_limit(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<ReplyBody> {
    let service = &shared.service;
    let began = service.read();
    let sampled = sampling::weight(Kind::Latency, began.now);
    let answer = match read(shared, request).await {
        Ok(message) => decide(shared, message).await,
        Err(failure) => Err(failure),
    };
    let code = answer.as_ref().err().map_or(Code::Ok, |failure| failure.code);
    service.metrics().grpc.codes[code.index()].add(1);
    if let Some(weight) = sampled {
        let took = began.real_wait(service.now().since(began.now));
        service.metrics().grpc_latency.note(took, weight.into());
    }
    match answer {
        Ok(reply) => status::response(ReplyBody::Message(reply)),
        Err(failure) => {
            // Envoy lets requests pass on an error, so an error is worth a line.
            tracing::warn!(code = ?failure.code, message = %failure.message, "a call of the rate limit service was refused");
            failure.response()
        }
    }
}

async fn read(shared: &Shared, request: Request<Incoming>) -> Result<Bytes, Failure> {
    check_access(shared, request.headers())?;
    let late = |_| Failure::new(Code::DeadlineExceeded, "the message did not arrive in time");
    timeout(shared.request_timeout, body::read(request.into_body(), shared.max_message)).await.map_err(late)?
}

async fn decide(shared: &Arc<Shared>, message: Bytes) -> Result<Bytes, Failure> {
    if !shared.service.is_shared() {
        return decided(shared, &message).await;
    }
    // Envoy gives up after a few milliseconds. What was sent to the store is then still carried out to its end.
    let (deciding, request_timeout) = (Arc::clone(shared), shared.request_timeout);
    let decided = tokio::spawn(async move { decided(&deciding, &message).await });
    let unanswered = || Failure::new(Code::Unavailable, "the store does not answer");
    match timeout(request_timeout, decided).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(unanswered()),
    }
}

async fn decided(shared: &Shared, message: &[u8]) -> Result<Bytes, Failure> {
    let refused = |error: &dyn fmt::Display| Failure::new(Code::InvalidArgument, error.to_string());
    let call = RateLimitRequest::read(message).map_err(|error| refused(&error))?;
    let names: SmallVec<[FieldNames<'_>; 2]> = call.descriptors.iter().map(FieldNames::new).collect();
    let mut requests: SmallVec<[JointRequest<'_>; 1]> = SmallVec::new();
    for (descriptor, names) in call.descriptors.iter().zip(&names) {
        let (op, cost) = question::operation(&call, descriptor);
        let limit = descriptor.limit.map(|limit| question::key_limit(&call.domain, descriptor, limit));
        let limit = limit.transpose().map_err(|error| refused(&error))?;
        requests.push(JointRequest { op, request: question::request(&call, descriptor, names, cost), limit });
    }
    let service = &shared.service;
    service.metrics().grpc.descriptors.add(requests.len() as u64);
    let answers = service.decide_joint(&service.snapshot(), &requests, service.read()).await;
    let answers = answers.map_err(|error| refused(&error))?;
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(&[0; body::PREFIX_BYTES]);
    reply::write(&mut out, &answers, call.hits_addend.max(1));
    // Nothing here is as long as 4 GiB.
    let length = (out.len() - body::PREFIX_BYTES) as u32;
    out[1..body::PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(out.into())
}
