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
mod brought_limit;
mod call;
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
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use flowgate_engine::config::Config;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request as HttpRequest, Response, StatusCode};
use tokio::time::timeout;
use tonic::codegen::Service as TonicService;
use tonic_health::pb::health_server::HealthServer;

use crate::http::auth::{Access, Tokens};
use crate::http::head;
use crate::listener::{Peer, Protocol, Stream};
use crate::metrics::{Counter, ListenerCounters};
use crate::readiness::Readiness;
use crate::service::Service;
use crate::shutdown::Shutdown;
use body::ReplyBody;
use brought_limit::BroughtLimits;
use call::RateLimitCall;
use connection::CallGuard;
use health::Health;
#[cfg(any(test, feature = "fuzzing"))]
use message::RateLimitRequest;
pub(crate) use status::Code;
use status::Failure;

/// The service's name.
const SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const HEALTH: &str = "/grpc.health.v1.Health/";
/// The most bytes of a health request, which names a service.
const MAX_HEALTH_BYTES: usize = 1024;
/// The most bytes of a reflection request.
const MAX_REFLECTION_BYTES: usize = 16 * 1024;
const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/";
const REFLECTION_ALPHA: &str = "/grpc.reflection.v1alpha.ServerReflection/";

/// The descriptors of the service's messages. `scripts/protos` makes them from `proto/`.
const DESCRIPTORS: &[u8] = include_bytes!("grpc/descriptors.bin");

/// The number of entries of each descriptor in a message; `None` if the message is refused. For the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_rate_limit_request(message: &[u8]) -> Option<Vec<usize>> {
    let call = RateLimitRequest::read(message).ok()?;
    Some(call.descriptors.iter().map(|descriptor| descriptor.entries.len()).collect())
}

/// What the gRPC listener counts.
#[derive(Debug, Default)]
pub(crate) struct GrpcCounters {
    /// The connections of the listener and all calls, health and reflection included.
    pub(crate) listener: ListenerCounters,
    /// Calls of the rate limit service, by their place in [`Code::ALL`].
    pub(crate) codes: [Counter; Code::ALL.len()],
    /// The descriptors of the calls in `codes`.
    pub(crate) descriptors: Counter,
}

/// gRPC for one listener.
#[derive(Clone, Debug)]
pub(crate) struct Grpc {
    shared: Arc<Shared>,
}

/// What all connections share.
pub(crate) struct Shared {
    service: Service,
    tokens: Arc<Tokens>,
    brought: BroughtLimits,
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
type Handler = Box<dyn Fn(HttpRequest<Incoming>) -> TonicResponse + Send + Sync>;

fn handler<S>(service: S) -> Handler
where
    S: TonicService<HttpRequest<Incoming>, Response = Response<tonic::body::Body>, Error = Infallible>,
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
        tokens: Arc<Tokens>,
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
            tokens,
            brought: BroughtLimits::default(),
            max_message,
            request_timeout: config.server.request_timeout,
            idle_timeout: config.server.idle_timeout,
            health: handler(health),
            reflection: handler(reflection().build_v1()?.max_decoding_message_size(MAX_REFLECTION_BYTES)),
            reflection_alpha: handler(reflection().build_v1alpha()?.max_decoding_message_size(MAX_REFLECTION_BYTES)),
        };
        Ok(Grpc { shared: Arc::new(shared) })
    }
}

impl Protocol for Grpc {
    /// A client of HTTP/2 reads frames only, so it gets the end of the connection.
    const FULL: &'static [u8] = b"";

    fn counters(&self) -> &ListenerCounters {
        &self.shared.service.metrics().grpc.listener
    }

    async fn serve_connection<S: Stream>(self, stream: S, _: Peer, shutdown: Shutdown) -> io::Result<()> {
        connection::serve(self.shared, stream, shutdown, answer).await
    }
}

/// The answer to a request, while it is being made.
pub(crate) enum Answering {
    Now(Option<Response<ReplyBody>>),
    RateLimit(RateLimitCall),
    Later(Pin<Box<dyn Future<Output = Response<ReplyBody>> + Send>>),
}

impl Future for Answering {
    type Output = Result<Response<ReplyBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answering::RateLimit(call) => call.poll(context).map(Ok),
            Answering::Later(answer) => answer.as_mut().poll(context).map(Ok),
            Answering::Now(answer) => answer.take().map_or(Poll::Pending, |answer| Poll::Ready(Ok(answer))),
        }
    }
}

fn answer(guard: CallGuard, request: HttpRequest<Incoming>) -> Answering {
    let shared = guard.shared();
    shared.service.metrics().grpc.listener.requests.add(1);
    if let Some(status) = not_grpc(&request) {
        return Answering::Now(Some(status::not_grpc(status)));
    }
    let path = request.uri().path();
    if path == SHOULD_RATE_LIMIT {
        return Answering::RateLimit(RateLimitCall::new(guard, request));
    }
    if path.starts_with(HEALTH) {
        return Answering::Later(Box::pin(by_tonic(|shared| &shared.health, guard, request)));
    }
    if let Err(failure) = check_access(shared, request.headers()) {
        return Answering::Now(Some(failure.response()));
    }
    if path.starts_with(REFLECTION) {
        return Answering::Later(Box::pin(by_tonic(|shared| &shared.reflection, guard, request)));
    }
    if path.starts_with(REFLECTION_ALPHA) {
        return Answering::Later(Box::pin(by_tonic(|shared| &shared.reflection_alpha, guard, request)));
    }
    Answering::Now(Some(Failure::new(Code::Unimplemented, "unknown method").response()))
}

/// The status of a request that is not a call.
fn not_grpc(request: &HttpRequest<Incoming>) -> Option<StatusCode> {
    if request.method() != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let is_grpc = content_type.strip_prefix(b"application/grpc").is_some_and(|rest| !rest.starts_with(b"-web"));
    (!is_grpc).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

/// Lets tonic answer a call. The message has `request_timeout` to arrive; a stream of answers may last longer.
async fn by_tonic(
    handler: fn(&Shared) -> &Handler,
    guard: CallGuard,
    request: HttpRequest<Incoming>,
) -> Response<ReplyBody> {
    let shared = guard.shared();
    match timeout(shared.request_timeout, handler(shared)(request)).await {
        Ok(response) => response.map(|body| ReplyBody::Tonic { body, _guard: guard }),
        Err(_) => Failure::new(Code::DeadlineExceeded, "the message did not arrive in time").response(),
    }
}

fn check_access(shared: &Shared, headers: &HeaderMap) -> Result<(), Failure> {
    shared.tokens.check_token(Access::Decide, &head::listed(headers), || shared.service.now()).map_err(|_| {
        shared.service.metrics().grpc.listener.unauthorized.add(1);
        Failure::new(Code::Unauthenticated, "this needs the API token, as authorization: Bearer")
    })
}
