//! Flowgate as a server: the Redis protocol, HTTP and gRPC.
//!
//! All protocols decide. gRPC is Envoy's rate limit service. HTTP also answers gateways, administers rules and bans, and
//! serves the console, metrics and health.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use flowgate_server::{Config, Server, Shutdown};
//!
//! let config = Config::from_toml("listen = { http = 'off', resp = '127.0.0.1:0' }").unwrap();
//! let server = Server::bind(&config).await?;
//! println!("RESP on {:?}", server.listening.resp);
//!
//! let (trigger, shutdown) = Shutdown::new();
//! let running = tokio::spawn(server.run(shutdown));
//! trigger.stop();
//! running.await??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

pub mod admin_token;
mod answer;
mod author;
mod clock_report;
mod durable;
mod fronts;
mod grpc;
mod http;
mod koala;
mod limit_cache;
mod listener;
mod lock;
mod loops;
mod metrics;
mod observer;
mod owned_request;
mod readiness;
mod recent;
mod redis;
mod reload;
mod resp;
mod rules_file;
mod server;
mod service;
mod shutdown;
mod tls;
mod wrong_secrets;

/// For the fuzz targets; not covered by semantic versioning.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::grpc::read_rate_limit_request;
    pub use crate::resp::fuzzing::*;
}

pub use author::Author;
pub use durable::DurableError;
pub use flowgate_engine::config::Config;
pub use koala::KoalaInForce;
pub use readiness::{Readiness, Ready};
pub use redis::SharedStats;
pub use reload::{POLL_INTERVAL, Reload, ReloadError, ReloadStatus, Reloader};
pub use rules_file::{Loader, MAX_VERSIONS, RulesFile};
pub use server::{BindError, RunError, Server, StartError};
pub use service::{
    Answer, AnswerFuture, BanError, JointRequest, KeyDecision, MAX_PAUSE, Operation, Pause, Service, Snapshot,
    StoreAway,
};
pub use shutdown::{Shutdown, Trigger};
pub use tls::{Certificates, CompiledCertificates, TlsError};
