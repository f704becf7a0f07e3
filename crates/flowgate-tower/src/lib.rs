//! Rate limits for tower, axum and hyper services, as a layer in the service's own process.
//!
//! A [`RateLimit`] is a [tower layer](tower_layer::Layer). It charges the cost of every request to a limit, or lets
//! rules decide. It tells clients how much is left (`RateLimit-Policy`, `RateLimit`, `X-RateLimit-*`). It answers denied
//! requests itself: 429 with `Retry-After` and a problem document (RFC 9457).
//!
//! # A limit
//!
//! ```
//! use axum::{Router, routing::get};
//! use flowgate_tower::{ClientAddresses, RateLimit, client_ip};
//! use std::net::SocketAddr;
//!
//! // 300 a minute, but no more than 100 in 5 seconds, for each address.
//! let limit = RateLimit::new("api", ["300/60s", "100/5s"])?.by(client_ip(ClientAddresses::default()));
//! let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(limit);
//! // axum::serve(listener, service): without the connect info nothing would know the clients' addresses.
//! let service = app.into_make_service_with_connect_info::<SocketAddr>();
//! # Ok::<(), flowgate_tower::Error>(())
//! ```
//!
//! Limits are written in the [language of `flowgate`](flowgate::Limit). Of several limits, a request passes all or is
//! counted by none. Without [`by`](RateLimit::by) all requests share one counter.
//!
//! # Rules
//!
//! A file can say which requests are limited how: it has the same rules, lists and bans that `flowgate serve` takes, and
//! one file does the same here and behind a gateway. [`Config::from_file`] reads it.
//!
//! ```
//! use flowgate_tower::{Config, RateLimit};
//!
//! let config = Config::from_toml(r#"
//!     [[rule]]
//!     name = "health"
//!     when = { path = "/healthz" }
//!     action = "allow"
//!
//!     [[rule]]
//!     name = "login"
//!     when = { path = "/login" }
//!     by = ["ip"]
//!     limits = ["5/60s"]
//!     ban = { after = 3, within = "10m", for = ["10m", "1h"], forget = "24h" }
//!
//!     [[rule]]
//!     name = "key"
//!     by = ["header.x-api-key"]
//!     limits_by = { field = "plan", pro = ["1000/60s"], default = ["100/60s"] }
//! "#)?;
//! let limit = RateLimit::from_config(&config)?
//!     .field("plan", |request| if request.uri.path().starts_with("/pro/") { "pro" } else { "free" });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Rules see `ip`, `method`, `host`, `path`, `header.NAME` and `query.NAME`, as behind a gateway and in a log. Every other
//! field that rules read needs a function, or making the service panics: without it the rule would limit no request.
//!
//! Keep a clone of the layer: [`Engine::replace`] of its [`engine`](RateLimit::engine) puts other rules in force while
//! requests go on. Fields of rules that come later are [not checked](RateLimit::missing_fields) by themselves. Programs with
//! stores or fields of their own begin with [`RateLimit::with_engine`].
//!
//! # What else it does
//!
//! * **Failures need not count.** [`refund_failures`](RateLimit::refund_failures) refunds the charge of a request that
//!   ends in a 5xx or an error; [`refund_if`](RateLimit::refund_if) leaves the choice to you.
//! * **Aborting a request refunds nothing.** A client that leaves while the handler works stays charged, with
//!   `refund_failures`, too; `refund_if` sees [`Outcome::Dropped`]. A handler that panics counts as dropped.
//! * **Turns are kept.** A request is held until the turn that a `pace` limit gives it, [at
//!   most](RateLimit::max_delay) ten seconds; a request whose turn is further away is denied. A request that is dropped
//!   before its turn never reaches the handler and is refunded: the last turn that was given is free again.
//! * **You can make the response to a denied request**: [`on_deny`](RateLimit::on_deny) takes axum's responses, and every
//!   other.
//! * **Handlers see the decision**: `request.extensions().get::<Arc<Decision>>()`, for example to log shadow rules.
//!
//! # Pitfalls
//!
//! * **Behind a proxy** every connection is the proxy's. [`client_ip`] walks `X-Forwarded-For` from the right, past the
//!   proxies that you trust and no further. Name your proxies in [`ClientAddresses`], or all clients share one counter; the
//!   log warns of a proxy that is not named. By default only loopback is trusted, so `curl -H 'X-Forwarded-For: 1.2.3.4'`
//!   on your own machine is another client. From elsewhere it changes nothing.
//! * **axum tells peers' addresses only when asked**: serve `app.into_make_service_with_connect_info::<SocketAddr>()` and
//!   use this crate with the feature `axum`. In other services put the peer's `SocketAddr` into the request's extensions;
//!   in tests axum's `MockConnectInfo` will do. A request without an address is answered with 500, which says so.
//! * **Clients choose their headers.** Count by a header only behind a proxy or a layer that checks it.
//! * **Counters live in the process.** Three instances grant three times the limit. For shared counters run a server.

mod charge;
mod fields;
mod future;
mod layer;
mod response;

pub use fields::{
    AmbiguousPath, AmbiguousQuery, FieldError, FieldValue, IntoField, UnknownClient, client_ip, header, host, method,
    path, path_spelled, query,
};
/// Re-exports of what this crate's functions take and return, so that rules need no other crate of Flowgate.
pub use flowgate::{Clock, IntoLimits, Limit, LimitError, ManualClock, MemoryConfig, MemoryStore};
pub use flowgate_engine::{
    DecidedBy, Decision, Engine, Policy, PolicyError, Rule,
    config::{Config, HeaderFamily},
    http::{Client, ClientAddresses, PathPart, PathSpelling},
};
pub use future::ResponseFuture;
pub use layer::{Error, Outcome, RateLimit, RateLimited};
pub use response::problem;

/// The README's examples are tests. This crate has all of their dependencies.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
