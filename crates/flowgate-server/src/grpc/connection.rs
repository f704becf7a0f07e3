//! One HTTP/2 connection: its bounds, when it is idle, and how it ends.
//!
//! Bound      1,000 calls at a time and 16 KiB of metadata each.
//! Rule       Envoy resets every call that it no longer waits for. After a stall all calls under way are reset at once,
//!            so more resets than calls are let in: with fewer, HTTP/2 would take them for an attack and end the
//!            connection.
//! Rule       A connection without a call for `idle_timeout` gets GOAWAY. So does every connection a moment after the
//!            server begins to stop: clients that ask for its health go elsewhere in that time. Calls that are under
//!            way, or on their way, are answered.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::{Answering, Shared};
use crate::listener::{LAST_CALL, Stream};
use crate::shutdown::Shutdown;

/// The most calls of a connection at a time.
pub(crate) const MAX_STREAMS: u32 = 1_000;

/// The most resets of calls that the connection has not handled yet.
const MAX_PENDING_RESETS: usize = 2 * MAX_STREAMS as usize;

/// The most bytes of the metadata of a call.
const MAX_METADATA_BYTES: u32 = 16 * 1024;

/// The bytes that a call may send before the server reads them. Nearly every message is smaller.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;

/// The bytes that all calls of a connection together may send before the server reads them.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// A connection is idle after this many quiet parts of `idle_timeout`.
const IDLE_PARTS: u32 = 8;

/// What the calls of one connection share.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) shared: Arc<Shared>,
    begun: AtomicU64,
    under_way: AtomicUsize,
}

/// Counts a call as under way while it lives.
#[derive(Debug)]
pub(crate) struct CallGuard(Arc<Conversation>);

impl Conversation {
    fn new(shared: Arc<Shared>) -> Conversation {
        shared.service.metrics().grpc.listener.begin_connection();
        Conversation { shared, begun: AtomicU64::new(0), under_way: AtomicUsize::new(0) }
    }

    /// Returns when no call was under way for `idle_timeout`.
    async fn idle(&self, idle_timeout: Duration) {
        let (mut begun, mut quiet_parts) = (0, 0);
        while quiet_parts < IDLE_PARTS {
            tokio::time::sleep(idle_timeout / IDLE_PARTS).await;
            let is_quiet = self.begun.load(Relaxed) == begun && self.under_way.load(Relaxed) == 0;
            quiet_parts = if is_quiet { quiet_parts + 1 } else { 0 };
            begun = self.begun.load(Relaxed);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.shared.service.metrics().grpc.listener.open.subtract(1);
    }
}

impl CallGuard {
    pub(super) fn new(conversation: &Arc<Conversation>) -> CallGuard {
        conversation.begun.fetch_add(1, Relaxed);
        conversation.under_way.fetch_add(1, Relaxed);
        CallGuard(Arc::clone(conversation))
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

/// Spawns the calls of a connection on the event loop of the connection.
#[derive(Clone, Copy, Debug)]
struct OnThisLoop;

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for OnThisLoop {
    fn execute(&self, call: F) {
        tokio::spawn(call);
    }
}

/// Serves a connection until it ends, is idle, or the server stops.
pub(super) async fn serve<S: Stream>(
    shared: Arc<Shared>,
    stream: S,
    mut shutdown: Shutdown,
    answer: fn(CallGuard, Request<Incoming>) -> Answering,
) -> io::Result<()> {
    let idle_timeout = shared.idle_timeout;
    let conversation = Arc::new(Conversation::new(shared));
    let service = service_fn(|request| answer(CallGuard::new(&conversation), request));
    let mut builder = http2::Builder::new(OnThisLoop);
    builder
        .timer(TokioTimer::new())
        // Clients of gRPC do not read the date.
        .auto_date_header(false)
        .max_concurrent_streams(MAX_STREAMS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_header_list_size(MAX_METADATA_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let is_idle = tokio::select! {
        biased;
        served = connection.as_mut() => return served.map_err(io::Error::other),
        () = shutdown.last_call(LAST_CALL) => false,
        () = conversation.idle(idle_timeout) => true,
    };
    connection.as_mut().graceful_shutdown();
    if !is_idle {
        // The listener ends the connection after `drain`.
        return connection.await.map_err(io::Error::other);
    }
    // A client that does not answer the GOAWAY is cut off.
    let ended = tokio::time::timeout(conversation.shared.request_timeout, connection).await;
    ended.unwrap_or(Ok(())).map_err(io::Error::other)
}
