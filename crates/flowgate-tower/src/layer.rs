//! The layer, and the service it makes of another.
//!
//! Rule       A request is decided before the inner service sees it, on the time of one clock reading. A denied one
//!            never reaches it.
//! Rule       What is given back after the answer is what was taken: the same fields and the same cost.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flowgate::{Clock, IntoLimits, LimitError, MemoryStore, Op};
use flowgate_engine::config::HeaderFamily;
use flowgate_engine::{Decision, Engine, Limits, Policy, PolicyError, Request as Asked, RuleDef};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use crate::fields::FieldValue;
use crate::future::ResponseFuture;
use crate::response;

/// The field by which the one rule of [`RateLimit::new`] counts.
const KEY: &str = "key";

/// The longest that a request is held for its turn, unless [`RateLimit::max_delay`] says otherwise.
const MAX_DELAY: Duration = Duration::from_secs(10);

type FieldOf = Arc<dyn Fn(&Parts) -> Option<FieldValue> + Send + Sync>;
type CostOf = Arc<dyn Fn(&Parts) -> u64 + Send + Sync>;
type RefundIf = Arc<dyn Fn(Outcome<'_>) -> bool + Send + Sync>;
type OnDeny = Arc<dyn Fn(&Decision, &Parts) -> Response<Bytes> + Send + Sync>;

/// Limits the requests to a service. Cheap to clone; all clones, and all services made by them, share their counters.
#[derive(Clone)]
pub struct RateLimit {
    settings: Arc<Settings>,
}

/// Why a limit cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The limit is wrong.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The name is.
    #[error(transparent)]
    Name(#[from] PolicyError),
}

/// How a request went that had passed.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// It was answered.
    Answered {
        /// The answer's status.
        status: StatusCode,
        /// Its headers.
        headers: &'a HeaderMap,
    },
    /// The service failed without an answer.
    Failed,
}

#[derive(Clone)]
pub(crate) struct Settings {
    engine: Arc<Engine>,
    clock: Clock,
    /// Names, and what gives their values. The one of [`KEY`] is counted by even where it has no value.
    fields: Vec<(Box<str>, FieldOf)>,
    cost: Option<CostOf>,
    refund_if: Option<RefundIf>,
    on_deny: Option<OnDeny>,
    families: Vec<HeaderFamily>,
    max_delay: Duration,
}

impl RateLimit {
    /// Limits all requests together, or with [`by`](RateLimit::by) those of each client. The name is the policy's in
    /// `RateLimit` headers and problem documents: letters, digits, `_`, `.` and `-`.
    ///
    /// # Errors
    /// When the name or a limit is wrong.
    pub fn new(name: &str, limits: impl IntoLimits) -> Result<RateLimit, Error> {
        let limits = Limits::Fixed(limits.into_limits()?);
        let rule = RuleDef { by: vec![KEY.to_owned()], limits, ..RuleDef::named(name) };
        let engine = Engine::new(&Policy { rules: vec![rule], ..Policy::default() }, MemoryStore::default())?;
        Ok(RateLimit::with_engine(Arc::new(engine)).by(|_| None::<String>))
    }

    /// Lets the rules of an engine decide. Their fields are those that [`field`](RateLimit::field) names.
    pub fn with_engine(engine: Arc<Engine>) -> RateLimit {
        let families = vec![HeaderFamily::RateLimit, HeaderFamily::XRateLimit];
        let (cost, refund_if, on_deny) = (None, None, None);
        let (clock, fields, max_delay) = (Clock::System, Vec::new(), MAX_DELAY);
        let settings = Settings { engine, clock, fields, cost, refund_if, on_deny, families, max_delay };
        RateLimit { settings: Arc::new(settings) }
    }

    /// Counts by this, in place of an earlier one; requests for which it is `None` are counted together.
    #[must_use]
    pub fn by<V: Into<FieldValue>>(self, key: impl Fn(&Parts) -> Option<V> + Send + Sync + 'static) -> RateLimit {
        self.field(KEY, move |request| Some(key(request).map(|value| value.into().into_counted()).unwrap_or_default()))
    }

    /// Gives requests a field, for rules; `None`: the request lacks it. A field that is named again is replaced.
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

    /// What a request costs, if not 1.
    #[must_use]
    pub fn cost(self, cost: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> RateLimit {
        self.with(|settings| settings.cost = Some(Arc::new(cost)))
    }

    /// Gives back what a request took when this says so of its outcome: logins that succeed need not count, say.
    #[must_use]
    pub fn refund_if(self, refund: impl Fn(Outcome<'_>) -> bool + Send + Sync + 'static) -> RateLimit {
        self.with(|settings| settings.refund_if = Some(Arc::new(refund)))
    }

    /// Gives back what a request took when the service fails or answers 5xx.
    #[must_use]
    pub fn refund_failures(self) -> RateLimit {
        self.refund_if(|outcome| match outcome {
            Outcome::Answered { status, .. } => status.is_server_error(),
            Outcome::Failed => true,
        })
    }

    /// Words the answer to a denied request; [`problem`](crate::problem) is the default. `Retry-After` and the rate
    /// limit headers are added to it, where it has none.
    #[must_use]
    pub fn on_deny(self, answer: impl Fn(&Decision, &Parts) -> Response<Bytes> + Send + Sync + 'static) -> RateLimit {
        self.with(|settings| settings.on_deny = Some(Arc::new(answer)))
    }

    /// Which headers tell how much is left; both by default.
    #[must_use]
    pub fn headers(self, families: impl IntoIterator<Item = HeaderFamily>) -> RateLimit {
        self.with(|settings| settings.families = families.into_iter().collect())
    }

    /// The longest that a request is held for the turn that a `pace` limit gives it; ten seconds by default. A turn
    /// further away is denied. (`max_wait=` of the limit itself is the better bound.)
    #[must_use]
    pub fn max_delay(self, delay: Duration) -> RateLimit {
        self.with(|settings| settings.max_delay = delay)
    }

    /// Where the time comes from: tests bring a clock that they move by hand.
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
        let taken = Taken::new(&self.settings, &head);
        if !taken.decision.allowed() {
            return ResponseFuture::denied(taken.denial(&head));
        }
        head.extensions.insert(Arc::clone(&taken.decision));
        // The service that was ready is the one to call, now or after its turn has come; the other one is asked again.
        let other = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, other);
        ResponseFuture::passed(inner, Request::from_parts(head, body), taken)
    }
}

/// What a request took.
pub(crate) struct Taken {
    settings: Arc<Settings>,
    /// The values of the settings' fields.
    values: Vec<Option<FieldValue>>,
    cost: u64,
    pub(crate) decision: Arc<Decision>,
}

impl Taken {
    fn new(settings: &Arc<Settings>, head: &Parts) -> Taken {
        let values: Vec<_> = settings.fields.iter().map(|(_, value)| value(head)).collect();
        let cost = settings.cost.as_ref().map_or(1, |cost| cost(head));
        let at = settings.clock.read();
        let take = Op::TakeWithin(settings.max_delay.into());
        let decision = settings.engine.decide(take, &asked(settings, &values, cost), at);
        Taken { settings: Arc::clone(settings), values, cost, decision: Arc::new(decision) }
    }

    fn denial(&self, head: &Parts) -> Response<Bytes> {
        let Settings { on_deny, families, .. } = &*self.settings;
        let mut response =
            on_deny.as_ref().map_or_else(|| response::problem(&self.decision), |on_deny| on_deny(&self.decision, head));
        response::add_headers(response.headers_mut(), &self.decision, families);
        response
    }

    /// The request has failed without an answer.
    pub(crate) fn failed(&self) {
        self.settle(Outcome::Failed);
    }

    /// The request has been answered.
    pub(crate) fn answered<R>(&self, response: &mut Response<R>) {
        let outcome = Outcome::Answered { status: response.status(), headers: response.headers() };
        let refunded = self.settle(outcome);
        let decision = refunded.as_ref().unwrap_or(&self.decision);
        response::add_headers(response.headers_mut(), decision, &self.settings.families);
    }

    /// Gives back what was taken, if it is to be, and tells how things stand then.
    fn settle(&self, outcome: Outcome<'_>) -> Option<Decision> {
        let Taken { settings, values, cost, .. } = self;
        let refund_if = settings.refund_if.as_ref()?;
        let refund = || settings.engine.decide(Op::Refund, &asked(settings, values, *cost), settings.clock.read());
        refund_if(outcome).then(refund)
    }
}

fn asked<'a>(settings: &'a Settings, values: &'a [Option<FieldValue>], cost: u64) -> Asked<'a> {
    let mut asked = Asked::new().cost(cost);
    for ((name, _), value) in settings.fields.iter().zip(values) {
        match value {
            Some(FieldValue { text, counted: None }) => asked.push(name, text),
            Some(FieldValue { text, counted: Some(counted) }) if asked.counted_otherwise().is_none() => {
                asked.push(name, text);
                asked = asked.counted_as(name, counted);
            }
            // A request has one such field. A second is what it is counted by, also to conditions.
            Some(FieldValue { counted: Some(counted), .. }) => asked.push(name, counted),
            None => {}
        }
    }
    asked
}
