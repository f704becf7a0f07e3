//! The Redis protocol: bytes -> [`decode`] -> [`command`] -> the service -> [`reply`] -> bytes.
//!
//! [`connection`] moves the bytes; it lives on one of the event loops of [`crate::loops`].

mod batch_metrics;
pub(crate) mod buffers;
mod command;
mod connection;
mod counters;
mod decode;
mod dialogue;
mod error;
mod form;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod memory_bound;
mod pending;
mod planned;
pub(crate) mod rare_waker;
mod reply;
mod session;
mod transaction;
pub(crate) mod yield_once;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use flowgate_engine::config::Config;

use crate::http::auth::Tokens;
use crate::listener::{Peer, Protocol, Stream};
use crate::shutdown::Shutdown;
use connection::Connection;
pub(crate) use counters::Counters;
use memory_bound::MemoryBound;
use session::{Session, Shared};
pub(crate) use yield_once::yield_to_ready_tasks;

use crate::metrics::ListenerCounters;
use crate::service::Service;
use crate::wrong_secrets::WrongSecrets;

/// The most bytes of incomplete commands, transactions and unread replies that all clients together may hold: those of
/// sixteen clients at their own bound.
const MAX_HELD_BYTES: u64 = 256 << 20;

/// The Redis protocol, RESP2 and RESP3, for one listener.
#[derive(Debug, Clone)]
pub(crate) struct Resp {
    shared: Arc<Shared>,
    idle_timeout: Duration,
}

impl Resp {
    pub(crate) fn new(config: &Config, service: Service, tokens: Arc<Tokens>) -> Resp {
        let shared = Shared {
            password: config.auth.resp_password.clone(),
            has_admin_token: config.auth.admin_token.is_some(),
            tokens,
            max_command: usize::try_from(config.server.max_request.bytes()).unwrap_or(usize::MAX),
            memory_bound: MemoryBound::new(MAX_HELD_BYTES, config.server.max_connections),
            wrong_passwords: WrongSecrets::default(),
            counters: Arc::clone(&service.metrics().resp),
            service,
        };
        Resp { shared: Arc::new(shared), idle_timeout: config.server.idle_timeout }
    }
}

impl Protocol for Resp {
    const FULL: &'static [u8] = b"-ERR max number of clients reached\r\n";

    fn counters(&self) -> &ListenerCounters {
        &self.shared.counters.listener
    }

    async fn serve_connection<S: Stream>(self, stream: S, peer: Peer, shutdown: Shutdown) -> io::Result<()> {
        Connection::new(stream, Session::new(self.shared, peer), self.idle_timeout).run(shutdown).await
    }
}
