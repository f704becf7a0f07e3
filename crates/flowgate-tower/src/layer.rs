//! The layer, and the service it makes of another.
//!
//! Rule       A request is decided before the inner service sees it, at the time of one clock reading. A denied request
//!            never reaches the inner service.
//! Rule       A refund after the response has the fields and the cost of the charge.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flowgate::{Clock, IntoLimits, LimitError, MemoryStore, Op};
use flowgate_engine::config::HeaderFamily;
use flowgate_engine::{self as engine, Decision, Engine, Limits, Policy, PolicyError, RuleDef};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use crate::fields::FieldValue;
use crate::future::ResponseFuture;
use crate::response;

/// The field by which the one rule of [`RateLimit::new`] counts.
const KEY_FIELD: &str = "key";

/// The longest hold of a request for its turn, unless [`RateLimit::max_delay`] says otherwise.
const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(10);

type FieldFn = Arc<dyn Fn(&Parts) -> Option<FieldValue> + Send + Sync>;
type CostFn = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
type RefundFn = Arc<dyn Fn(Outcome<'_>) -> bool + Send + Sync>;
type DenyFn = Arc<dyn Fn(&Decision, &Parts) -> Response<Bytes> + Send + Sync>;

/// Limits the requests to a service. Cheap to clone; all clones, and all services made by them, share their counters.
#[derive(Clone)]
pub struct RateLimit {
    settings: Arc<Settings>,
}

/// Why a layer cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A limit is wrong.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The name is wrong.
    #[error(transparent)]
    Name(#[from] PolicyError),
}

/// How the inner service answered a request that passed.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The service responded.
    Answered {
        /// The response's status.
        status: StatusCode,
        /// Its headers.
        headers: &'a HeaderMap,
    },
    /// The service failed without a response.
    Failed,
}

#[derive(Clone)]
pub(crate) struct Settings {
    engine: Arc<Engine>,
    clock: Clock,
    /// Names, and the functions that give their values. [`KEY_FIELD`] always has a value, if only an empty one.
    fields: Vec<(Box<str>, FieldFn)>,
    cost: Option<CostFn>,
    refund_if: Option<RefundFn>,
    on_deny: Option<DenyFn>,
    families: Vec<HeaderFamily>,
    max_delay: Duration,
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

    /// Lets the rules of an engine decide. Their fields are those that [`field`](RateLimit::field) names.
    pub fn with_engine(engine: Arc<Engine>) -> RateLimit {
        let families = vec![HeaderFamily::RateLimit, HeaderFamily::XRateLimit];
        let (cost, refund_if, on_deny) = (None, None, None);
        let (clock, fields, max_delay) = (Clock::System, Vec::new(), DEFAULT_MAX_DELAY);
        let settings = Settings { engine, clock, fields, cost, refund_if, on_deny, families, max_delay };
        RateLimit { settings: Arc::new(settings) }
    }

    /// Counts requests by the value of `key`, which replaces an earlier key. Requests without a value are counted
    /// together.
    #[must_use]
    pub fn by<V: Into<FieldValue>>(self, key: impl Fn(&Parts) -> Option<V> + Send + Sync + 'static) -> RateLimit {
        self.field(KEY_FIELD, move |request| {
            Some(key(request).map(|value| value.into().into_counted()).unwrap_or_default())
        })
    }

    /// Gives requests a field for rules to read; `None`: the request lacks it. A second field of the same name replaces
    /// the first.
    #[must_use]
    pub fn field<V: Into<FieldValue>>(
        self,
        name: &str,
        value: impl Fn(&Parts) -> Option<V> + Send + Sync + 'static,
    ) -> RateLimit {
        self.with(|settings| {
            settings.fields.retain(|(known, _)| **known != *name);
            settings.fields.push((name.into(), Arc::new(move |request| value(request).map(Into::into))));
        })
    }

    /// Sets the cost of a request; without it each request costs 1.
    #[must_use]
    pub fn cost(self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> RateLimit {
        self.with(|settings| settings.cost = Some(Arc::new(cost)))
    }

    /// Refunds the charge of a request for whose outcome `refund` is true. With it, for example, successful logins do not
    /// count.
    #[must_use]
    pub fn refund_if(self, refund: impl Fn(Outcome<'_>) -> bool + Send + Sync + 'static) -> RateLimit {
        self.with(|settings| settings.refund_if = Some(Arc::new(refund)))
    }

    /// Refunds the charge of a request if the service fails or responds with 5xx.
    #[must_use]
    pub fn refund_failures(self) -> RateLimit {
        self.refund_if(|outcome| match outcome {
            Outcome::Answered { status, .. } => status.is_server_error(),
            Outcome::Failed => true,
        })
    }

    /// Makes the response to a denied request; [`problem`](crate::problem) is the default. The layer adds `Retry-After`
    /// and the rate limit headers that the response lacks.
    #[must_use]
    pub fn on_deny(self, respond: impl Fn(&Decision, &Parts) -> Response<Bytes> + Send + Sync + 'static) -> RateLimit {
        self.with(|settings| settings.on_deny = Some(Arc::new(respond)))
    }

    /// Sets the families of headers that tell how much is left; both by default.
    #[must_use]
    pub fn headers(self, families: impl IntoIterator<Item = HeaderFamily>) -> RateLimit {
        self.with(|settings| settings.families = families.into_iter().collect())
    }

    /// Sets the longest hold of a request for the turn that a `pace` limit gives it; ten seconds by default. A request
    /// whose turn is further away is denied. (`max_wait=` of the limit itself is the better bound.)
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> RateLimit {
        self.with(|settings| settings.max_delay = delay)
    }

    /// Sets the clock that decisions read; tests use one that they move by hand.
    #[must_use]
    pub fn clock(self, clock: impl Into<Clock>) -> RateLimit {
        self.with(|settings| settings.clock = clock.into())
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> RateLimit {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&str> = self.settings.fields.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("RateLimit").field("fields", &fields).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for RateLimit {
    type Service = RateLimited<S>;

    fn layer(&self, inner: S) -> RateLimited<S> {
        RateLimited { inner, settings: Arc::clone(&self.settings) }
    }
}

/// A service whose requests are limited.
#[derive(Clone)]
pub struct RateLimited<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S: fmt::Debug> fmt::Debug for RateLimited<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimited").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, B, R> Service<Request<B>> for RateLimited<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        let (mut head, body) = request.into_parts();
        let charge = Charge::new(&self.settings, &head);
        if !charge.decision.allowed() {
            return ResponseFuture::denied(charge.denial(&head));
        }
        head.extensions.insert(Arc::clone(&charge.decision));
        // `poll_ready` was true of `self.inner`, so that service takes the call. Its clone stays, and is polled again.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        ResponseFuture::passed(inner, Request::from_parts(head, body), charge)
    }
}

/// What a request was charged: enough to refund it.
pub(crate) struct Charge {
    settings: Arc<Settings>,
    /// The values of the settings' fields.
    values: Vec<Option<FieldValue>>,
    cost: u64,
    pub(crate) decision: Arc<Decision>,
}

impl Charge {
    fn new(settings: &Arc<Settings>, head: &Parts) -> Charge {
        let values: Vec<_> = settings.fields.iter().map(|(_, value)| value(head)).collect();
        let cost = settings.cost.as_ref().map_or(1, |cost| cost(head));
        let at = settings.clock.read();
        let take = Op::TakeWithin(settings.max_delay.into());
        let decision = settings.engine.decide(take, &request(settings, &values, cost), at);
        Charge { settings: Arc::clone(settings), values, cost, decision: Arc::new(decision) }
    }

    fn denial(&self, head: &Parts) -> Response<Bytes> {
        let Settings { on_deny, families, .. } = &*self.settings;
        let mut response =
            on_deny.as_ref().map_or_else(|| response::problem(&self.decision), |on_deny| on_deny(&self.decision, head));
        response::add_headers(response.headers_mut(), &self.decision, families);
        response
    }

    /// The service has failed without a response.
    pub(crate) fn failed(&self) {
        self.settle(Outcome::Failed);
    }

    /// The service has responded: adds the headers, after a refund.
    pub(crate) fn answered<R>(&self, response: &mut Response<R>) {
        let outcome = Outcome::Answered { status: response.status(), headers: response.headers() };
        let refunded = self.settle(outcome);
        let decision = refunded.as_ref().unwrap_or(&self.decision);
        response::add_headers(response.headers_mut(), decision, &self.settings.families);
    }

    /// Refunds the charge if the outcome asks for it, and returns how the limits stand then.
    fn settle(&self, outcome: Outcome<'_>) -> Option<Decision> {
        let Charge { settings, values, cost, .. } = self;
        let refund_if = settings.refund_if.as_ref()?;
        if !refund_if(outcome) {
            return None;
        }
        Some(settings.engine.decide(Op::Refund, &request(settings, values, *cost), settings.clock.read()))
    }
}

/// The request as the engine sees it.
fn request<'a>(settings: &'a Settings, values: &'a [Option<FieldValue>], cost: u64) -> engine::Request<'a> {
    let mut request = engine::Request::new().cost(cost);
    for ((name, _), value) in settings.fields.iter().zip(values) {
        match value {
            Some(FieldValue { text, counted: None }) => request.push(name, text),
            Some(FieldValue { text, counted: Some(counted) }) if request.counted_otherwise().is_none() => {
                request.push(name, text);
                request = request.counted_as(name, counted);
            }
            // A request has one field with a second value to count by. Of further ones conditions see that value, too.
            Some(FieldValue { counted: Some(counted), .. }) => request.push(name, counted),
            None => {}
        }
    }
    request
}
