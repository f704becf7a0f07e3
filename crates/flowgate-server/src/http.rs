//! HTTP/1.1: the routes, and how one connection is served.

use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;

use crate::door::{Peer, Protocol, Stream};
use crate::readiness::{Readiness, Ready};
use crate::shutdown::Shutdown;

/// A request's line and headers.
const MAX_HEAD: usize = 64 * 1024;

/// Speaks HTTP with one client.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    router: Router,
    idle_timeout: Duration,
}

impl Http {
    pub(crate) fn new(idle_timeout: Duration, readiness: Readiness) -> Self {
        let router = Router::new()
            .route("/healthz", get(|| async { "ok" }))
            .route("/readyz", get(|| async move { ready(&readiness.get()) }));
        Self { router, idle_timeout }
    }
}

fn ready(ready: &Ready) -> (StatusCode, String) {
    match ready {
        Ready::Yes => (StatusCode::OK, "ready".to_owned()),
        Ready::Degraded(missing) => (StatusCode::OK, format!("degraded: {missing}")),
        Ready::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining".to_owned()),
    }
}

impl Protocol for Http {
    const FULL: &'static [u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

    async fn converse<S: Stream>(self, stream: S, _: Peer, mut shutdown: Shutdown) -> io::Result<()> {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle_timeout)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router));
        let mut connection = pin!(connection);
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = shutdown.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        served.map_err(io::Error::other)
    }
}
