//! `[server]`: bounds of the process.

use std::time::Duration;

use super::duration::{self, MAX_DURATION};
use super::report::Report;
use super::size::{self, ByteSize};
use super::table_reader::TableReader;
use super::value;
use super::writer::Writer;

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

impl Server {
    pub(crate) fn read(report: &mut Report, mut fields: TableReader<'_>) -> Server {
        let mut server = Server::default();
        fields.read_into(report, "max_connections", &mut server.max_connections, |report, node| {
            value::integer(report, node, 1..=MAX_CONNECTIONS).map(|number| number as usize)
        });
        fields.read_into(report, "idle_timeout", &mut server.idle_timeout, |report, node| {
            value::span(report, node, MIN_TIMEOUT..=MAX_DURATION)
        });
        fields.read_into(report, "request_timeout", &mut server.request_timeout, |report, node| {
            value::span(report, node, MIN_TIMEOUT..=MAX_DURATION)
        });
        fields.read_into(report, "max_request", &mut server.max_request, |report, node| {
            size::read(report, node, REQUEST_SIZES)
        });
        fields.read_into(report, "drain", &mut server.drain, |report, node| {
            value::span(report, node, Duration::ZERO..=MAX_DURATION)
        });
        fields.read_into(report, "threads", &mut server.threads, |report, node| {
            value::integer(report, node, 0..=MAX_THREADS).map(|number| number as usize)
        });
        fields.finish(report);
        server
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("server");
        out.raw("max_connections", self.max_connections);
        out.text("idle_timeout", &duration::format(self.idle_timeout));
        out.text("request_timeout", &duration::format(self.request_timeout));
        out.text("max_request", &self.max_request.to_string());
        out.text("drain", &duration::format(self.drain));
        out.raw("threads", self.threads);
    }
}
