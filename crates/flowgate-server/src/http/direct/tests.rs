//! A connection at its limits, on a stream that never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use flowgate_engine::config::Config;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::yield_now;

use super::*;
use crate::http::Http;
use crate::http::auth::Tokens;
use crate::listener::{Peer, Protocol};
use crate::readiness::Readiness;
use crate::service::Service;

const REQUEST: &[u8] = b"GET /gate HTTP/1.1\r\n\r\n";

/// What the server has done to a [`Flood`].
#[derive(Debug, Default)]
struct Seen {
    largest_write: AtomicUsize,
    ended: AtomicBool,
}

/// A client that has sent this number of requests, takes every answer at once, and then leaves.
#[derive(Debug)]
struct Flood {
    requests: usize,
    seen: Arc<Seen>,
}

impl AsyncRead for Flood {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let requests = self.requests.min(into.remaining() / REQUEST.len());
        self.requests -= requests;
        into.put_slice(&REQUEST.repeat(requests));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Flood {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.seen.largest_write.fetch_max(bytes.len(), Relaxed);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.seen.ended.store(true, Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_flood_of_requests_holds_up_nobody_and_needs_little_memory() {
    const REQUESTS: usize = 5000;
    let config = Config::from_toml("").unwrap();
    let service = Service::start(&config).unwrap();
    let http = Http::new(&config, service.clone(), Readiness::default(), Arc::new(Tokens::new(&config.auth)));
    let (seen, (_trigger, shutdown)) = (Arc::<Seen>::default(), Shutdown::new());
    let flood = Flood { requests: REQUESTS, seen: Arc::clone(&seen) };
    let serving = tokio::spawn(http.serve_connection(flood, Peer::Unix, shutdown));
    let (mut answered, mut most) = (0, 0);
    while !serving.is_finished() {
        yield_now().await;
        let now = service.metrics().http.requests.get();
        (answered, most) = (now, most.max(now - answered));
    }
    serving.await.unwrap().unwrap();
    assert_eq!(answered, REQUESTS as u64);
    assert!(most <= 128, "{most} requests were answered before another task had its turn");
    let largest = seen.largest_write.load(Relaxed);
    assert!(largest <= 2 * buffers::READ_BYTES, "{largest} bytes of answers were held");
    assert!(seen.ended.load(Relaxed), "the client was not told of the end");
}
