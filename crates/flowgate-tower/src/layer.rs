//! The layer, and the service it makes of another.
//!
//! Rule       A request is decided before the inner service sees it, at the time of one clock reading. A denied request
//!            never reaches the inner service.
//! Rule       A refund after the response has the fields and the cost of the charge.
//! Rule       A charge is settled once: by the response, by an error, or when the response's future is dropped. Dropped
//!            before the request reached the inner service, the charge is refunded. Dropped later it stays, unless
//!            `refund_if` says otherwise: a client that aborts its requests must not escape its limits.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flowgate::{Clock, IntoLimits, LimitError, MemoryConfig, MemoryStore};
use flowgate_engine::config::{Config, Durability, HeaderFamily};
use flowgate_engine::http::ClientAddresses;
use flowgate_engine::{Decision, Engine, Limits, Policy, PolicyError, RuleDef};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use crate::charge::Charge;
use crate::fields::{FieldError, FieldValue, IntoField, client_ip, header, host, method, path_spelled, query};
use crate::future::ResponseFuture;
use crate::response;

/// The field by which the one rule of [`RateLimit::new`] counts.
const KEY_FIELD: &str = "key";

/// The longest hold of a request for its turn, unless [`RateLimit::max_delay`] says otherwise.
const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(10);

type FieldFn = Arc<dyn Fn(&Parts) -> Result<Option<FieldValue>, FieldError> + Send + Sync>;
type CostFn = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
type RefundFn = Arc<dyn Fn(Outcome<'_>) -> bool + Send + Sync>;
type DenyFn<D> = Arc<dyn Fn(&Decision, &Parts) -> Response<D> + Send + Sync>;

/// Limits the requests to a service. Cheap to clone; all clones, and all services made by them, share their counters.
///
/// `D` is the body of the response to a denied request, see [`on_deny`](RateLimit::on_deny).
pub struct RateLimit<D = Bytes> {
    settings: Arc<Settings>,
    on_deny: DenyFn<D>,
}

/// Why a layer cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A limit is wrong.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The name, or a rule, is wrong.
    #[error(transparent)]
    Name(#[from] PolicyError),
    /// The configuration wants counters that several machines share.
    #[error(
        "store.type = \"redis\": the layer counts in its own process. Take the section [store] out, or run `flowgate serve` \
         for counters that several machines share."
    )]
    SharedStore,
}

/// How the inner service answered a request that passed.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The service responded.
    Answered {
        /// The response's status.
        status: StatusCode,
        /// The response's headers.
        headers: &'a HeaderMap,
    },
    /// The service failed without a response.
    Failed,
    /// The request had reached the service when its response was dropped: the client left, or a timeout outside of this
    /// layer ended.
    Dropped,
}

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Clock,
    /// Names, and the functions that give their values. [`KEY_FIELD`] always has a value, if only an empty one.
    pub(crate) fields: Vec<(Box<str>, FieldFn)>,
    pub(crate) cost: Option<CostFn>,
    pub(crate) refund_if: Option<RefundFn>,
    pub(crate) families: Vec<HeaderFamily>,
    pub(crate) max_delay: Duration,
}

impl RateLimit {
    /// Limits all requests together, or with [`by`](RateLimit::by) those of each client. The name stands for the policy
    /// in `RateLimit` headers and problem documents: letters, digits, `_`, `.` and `-`.
    ///
    /// # Errors
    /// When the name or a limit is wrong.
    pub fn new(name: &str, limits: impl IntoLimits) -> Result<RateLimit, Error> {
        let limits = Limits::Fixed(limits.into_limits()?);
        let rule = RuleDef { by: vec![KEY_FIELD.to_owned()], limits, ..RuleDef::named(name) };
        let engine = Engine::new(&Policy { rules: vec![rule], ..Policy::default() }, MemoryStore::default())?;
        Ok(RateLimit::with_engine(Arc::new(engine)).by(|_| None::<String>))
    }

    /// Lets the rules of a configuration decide, as `flowgate serve` with the same file does behind a gateway: with its
    /// lists, its `[gate]` (trusted proxies, status and headers, spelling of paths) and the memory bound of its `[store]`.
    /// Rules get the fields `ip`, `method`, `host`, `path`, `header.NAME` and `query.NAME`; [`field`](RateLimit::field) gives
    /// them others. The other sections are a server's, and have no effect here.
    ///
    /// ```no_run
    /// use flowgate_tower::{Config, RateLimit};
    ///
    /// let limit = RateLimit::from_config(&Config::from_file("rules.toml")?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a rule is wrong, or when the configuration wants counters in Redis.
    pub fn from_config(config: &Config) -> Result<RateLimit, Error> {
        let Config { store, gate, policy, .. } = config;
        if store.redis.is_some() {
            return Err(Error::SharedStore);
        }
        if store.durable.mode != Durability::Off {
            tracing::warn!("store.durable has no effect in a layer: its counters end with the process");
        }
        let max_bytes = usize::try_from(store.max_memory.bytes()).unwrap_or(usize::MAX);
        let memory = MemoryConfig { max_bytes, when_full: store.when_full, ..MemoryConfig::default() };
        let engine = Arc::new(Engine::new(policy, MemoryStore::new(memory))?);
        let mut limit = RateLimit::with_engine(Arc::clone(&engine)).headers(gate.headers.iter().copied());
        for name in engine.rules().field_names() {
            limit = match name.split_once('.') {
                None if name == "ip" => limit.field(name, client_ip(ClientAddresses::from(gate))),
                None if name == "method" => limit.field(name, method()),
                None if name == "host" => limit.field(name, host()),
                None if name == "path" => limit.field(name, path_spelled(gate.path_spelling())),
                Some(("header", header_name)) if header_name.parse::<HeaderName>().is_ok() => {
                    limit.field(name, header(header_name))
                }
                Some(("query", parameter)) => limit.field(name, query(parameter)),
                _ => limit,
            };
        }
        // The configuration accepts valid statuses only.
        let status = StatusCode::from_u16(gate.deny_status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
        Ok(limit.on_deny(move |decision, _| response::problem_with_status(decision, status)))
    }

    /// Lets the rules of an engine decide. Their fields are those that [`field`](RateLimit::field) names.
    pub fn with_engine(engine: Arc<Engine>) -> RateLimit {
        let families = vec![HeaderFamily::RateLimit, HeaderFamily::XRateLimit];
        let (cost, refund_if) = (None, None);
        let (clock, fields, max_delay) = (Clock::System, Vec::new(), DEFAULT_MAX_DELAY);
        let settings = Settings { engine, clock, fields, cost, refund_if, families, max_delay };
        RateLimit { settings: Arc::new(settings), on_deny: Arc::new(|decision, _| response::problem(decision)) }
    }
}

impl<D> RateLimit<D> {
    /// Counts requests by the value of `key`, which replaces an earlier key. Requests without a value are counted
    /// together.
    ///
    /// ```
    /// use flowgate_tower::{RateLimit, header};
    ///
    /// #[derive(Clone)]
    /// struct UserId(u64); // what a layer further out has put into the request
    ///
    /// let by_key = RateLimit::new("key", "300/60s")?.by(header("x-api-key"));
    /// let by_user = RateLimit::new("user", "300/60s")?.by(|request| Some(request.extensions.get::<UserId>()?.0));
    /// let by_first_segment =
    ///     RateLimit::new("part", "300/60s")?.by(|request| request.uri.path().split('/').nth(1).map(str::to_owned));
    /// # Ok::<(), flowgate_tower::Error>(())
    /// ```
    #[must_use]
    pub fn by<V: IntoField>(self, key: impl Fn(&Parts) -> V + Send + Sync + 'static) -> RateLimit<D> {
        self.field(KEY_FIELD, move |request| {
            key(request).into_field().map(|value| value.map(FieldValue::into_counted).unwrap_or_default())
        })
    }

    /// Gives requests a field for rules to read; `None`: the request lacks it. A second field of the same name replaces
    /// the first.
    #[must_use]
    pub fn field<V: IntoField>(self, name: &str, value: impl Fn(&Parts) -> V + Send + Sync + 'static) -> RateLimit<D> {
        self.with(|settings| {
            let name = flowgate_engine::field_name::canonical(name);
            settings.fields.retain(|(known, _)| **known != *name);
            settings.fields.push((name.into(), Arc::new(move |request| value(request).into_field())));
        })
    }

    /// The fields that rules of the engine read and that requests never have, since no [`field`](RateLimit::field) gives
    /// them: a rule that counts by such a field limits no request.
    ///
    /// [`Layer::layer`] panics if there are any. Look again after [`Engine::replace`].
    pub fn missing_fields(&self) -> Vec<String> {
        let Settings { engine, fields, .. } = &*self.settings;
        let rules = engine.rules();
        let given = |name: &&str| fields.iter().any(|(known, _)| **known == **name);
        rules.field_names().filter(|name| !given(name)).map(str::to_owned).collect()
    }

    /// The engine that decides: [`Engine::replace`] puts other rules in force.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.settings.engine
    }

    /// Sets the cost of a request; without it each request costs 1.
    #[must_use]
    pub fn cost(self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> RateLimit<D> {
        self.with(|settings| settings.cost = Some(Arc::new(cost)))
    }

    /// Refunds the charge of a request for whose outcome `refund` is true. With it, for example, successful logins do not
    /// count.
    #[must_use]
    pub fn refund_if(self, refund: impl Fn(Outcome<'_>) -> bool + Send + Sync + 'static) -> RateLimit<D> {
        self.with(|settings| settings.refund_if = Some(Arc::new(refund)))
    }

    /// Refunds the charge of a request if the service fails or responds with 5xx. A request whose client leaves before
    /// the response stays charged.
    #[must_use]
    pub fn refund_failures(self) -> RateLimit<D> {
        self.refund_if(|outcome| match outcome {
            Outcome::Answered { status, .. } => status.is_server_error(),
            Outcome::Failed => true,
            Outcome::Dropped => false,
        })
    }

    /// Makes the response to a denied request; [`problem`](crate::problem) is the default. The layer adds `Retry-After`
    /// and the rate limit headers that the response lacks.
    ///
    /// The response may have any body from which the service's own can be made. In axum that is every response:
    ///
    /// ```
    /// use axum::{Json, http::StatusCode, response::IntoResponse};
    /// use flowgate_tower::RateLimit;
    ///
    /// let limit = RateLimit::new("api", "300/60s")?.on_deny(|decision, request| {
    ///     let wait = decision.retry_after_header();
    ///     (StatusCode::TOO_MANY_REQUESTS, Json((request.uri.path(), wait))).into_response()
    /// });
    /// let app: axum::Router = axum::Router::new().layer(limit);
    /// # Ok::<(), flowgate_tower::Error>(())
    /// ```
    #[must_use]
    pub fn on_deny<E>(
        self,
        respond: impl Fn(&Decision, &Parts) -> Response<E> + Send + Sync + 'static,
    ) -> RateLimit<E> {
        RateLimit { settings: self.settings, on_deny: Arc::new(respond) }
    }

    /// Sets the families of headers that tell how much is left; both by default.
    #[must_use]
    pub fn headers(self, families: impl IntoIterator<Item = HeaderFamily>) -> RateLimit<D> {
        self.with(|settings| settings.families = families.into_iter().collect())
    }

    /// Sets the longest hold of a request for the turn that a `pace` limit gives it; ten seconds by default. A request
    /// whose turn is further away is denied. (`max_wait=` of the limit itself is the better bound.)
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> RateLimit<D> {
        self.with(|settings| settings.max_delay = delay)
    }

    /// Sets the clock that decisions read; tests use one that they move by hand.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> RateLimit<D> {
        self.with(|settings| settings.clock = clock.into())
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> RateLimit<D> {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

// Derived impls would require the same traits of the body.
impl<D> Clone for RateLimit<D> {
    fn clone(&self) -> RateLimit<D> {
        RateLimit { settings: Arc::clone(&self.settings), on_deny: Arc::clone(&self.on_deny) }
    }
}

impl<D> fmt::Debug for RateLimit<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&str> = self.settings.fields.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("RateLimit").field("fields", &fields).finish_non_exhaustive()
    }
}

impl<S, D> Layer<S> for RateLimit<D> {
    type Service = RateLimited<S, D>;

    /// # Panics
    /// When rules read fields that requests never have: see [`RateLimit::missing_fields`].
    fn layer(&self, inner: S) -> RateLimited<S, D> {
        let missing = self.missing_fields();
        assert!(
            missing.is_empty(),
            "rate limit: rules read the fields {missing:?}, and the layer gives requests none of them. Add \
             `.field(\"{0}\", ..)`; for a field that requests here never have, `.field(\"{0}\", |_| None::<String>)`.",
            missing[0]
        );
        RateLimited { inner, limit: self.clone() }
    }
}

/// A service whose requests are limited.
pub struct RateLimited<S, D = Bytes> {
    inner: S,
    limit: RateLimit<D>,
}

impl<S: Clone, D> Clone for RateLimited<S, D> {
    fn clone(&self) -> RateLimited<S, D> {
        RateLimited { inner: self.inner.clone(), limit: self.limit.clone() }
    }
}

impl<S: fmt::Debug, D> fmt::Debug for RateLimited<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimited").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R, D> Service<Request<B>> for RateLimited<S, D>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: From<Bytes> + From<D>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        let (mut head, body) = request.into_parts();
        let charge = match Charge::new(&self.limit.settings, &head) {
            Ok(charge) => charge,
            Err(error) => return ResponseFuture::denied(response::uncounted(error).map(R::from)),
        };
        if !charge.decision.allowed() {
            return ResponseFuture::denied(self.limit.denial(&charge.decision, &head).map(R::from));
        }
        head.extensions.insert(Arc::clone(&charge.decision));
        // `poll_ready` was true of `self.inner`, so that service takes the call. Its clone stays, and is polled again.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        ResponseFuture::passed(inner, Request::from_parts(head, body), charge)
    }
}

impl<D> RateLimit<D> {
    fn denial(&self, decision: &Decision, head: &Parts) -> Response<D> {
        let mut response = (self.on_deny)(decision, head);
        response::add_headers(response.headers_mut(), decision, &self.settings.families);
        response
    }
}
