//! `[server]`: bounds of the process.

use std::time::Duration;

use super::duration::MAX_DURATION;
use super::form;
use super::section::{Keys, Section};
use super::size::ByteSize;

/// Bounds of clients, and of the end of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The most connections at a time.
    pub max_connections: usize,
    /// A connection without input for this long is closed.
    pub idle_timeout: Duration,
    /// The longest time for one request.
    pub request_timeout: Duration,
    /// The largest HTTP body and RESP command.
    pub max_request: ByteSize,
    /// The time for requests under way to finish when the server stops.
    pub drain: Duration,
    /// Event loops; 0: one per core.
    pub threads: usize,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            max_connections: 10_000,
            idle_timeout: Duration::from_secs(5 * 60),
            request_timeout: Duration::from_secs(5),
            max_request: ByteSize::new(1_000_000),
            drain: Duration::from_secs(10),
            threads: 0,
        }
    }
}

/// Far more than one machine serves: a larger number is a typing mistake.
const MAX_CONNECTIONS: u64 = 10_000_000;
const MAX_THREADS: u64 = 1024;
/// The smallest size still holds the fields of a rule; the largest fits into memory many times.
const REQUEST_SIZES: std::ops::RangeInclusive<ByteSize> = ByteSize::new(1024)..=ByteSize::new(1 << 30);
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

impl Section for Server {
    const NAME: &'static str = "server";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("max_connections", &mut self.max_connections, form::integer(1..=MAX_CONNECTIONS));
        keys.key("idle_timeout", &mut self.idle_timeout, form::span(MIN_TIMEOUT..=MAX_DURATION));
        keys.key("request_timeout", &mut self.request_timeout, form::span(MIN_TIMEOUT..=MAX_DURATION));
        keys.key("max_request", &mut self.max_request, form::size(REQUEST_SIZES));
        keys.key("drain", &mut self.drain, form::span(Duration::ZERO..=MAX_DURATION));
        keys.key("threads", &mut self.threads, form::integer(0..=MAX_THREADS));
    }
}
