//! Calls Envoy's rate limit service from many streams, and prints how many calls were answered.
//!
//!     grpc_load ADDRESS CONNECTIONS STREAMS SECONDS KEYS
//!
//! Every stream of every connection asks again as soon as it is answered, each time for another of KEYS addresses. An answer
//! that is not `OK` ends the run.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{self, SendRequest};
use http::{HeaderMap, Method, Request, Version};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const METHOD: &str = "http://flowgate/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

type Failure = Box<dyn Error + Send + Sync>;

struct Load {
    next: AtomicU64,
    answered: AtomicU64,
    keys: u64,
    until: Instant,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, connections, streams, seconds, keys] = words.as_slice() else {
        return Err("usage: grpc_load ADDRESS CONNECTIONS STREAMS SECONDS KEYS".into());
    };
    let address: SocketAddr = address.parse()?;
    let (connections, streams): (u32, u32) = (connections.parse()?, streams.parse()?);
    let began = Instant::now();
    let load = Arc::new(Load {
        next: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        keys: keys.parse()?,
        until: began + Duration::from_secs_f64(seconds.parse()?),
    });
    let mut asking = JoinSet::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (client, connection) = client::handshake(stream).await?;
        tokio::spawn(connection);
        for _ in 0..streams {
            asking.spawn(ask(client.clone(), Arc::clone(&load)));
        }
    }
    while let Some(asked) = asking.join_next().await {
        asked??;
    }
    println!("{} {:.3}", load.answered.load(Relaxed), began.elapsed().as_secs_f64());
    Ok(())
}

/// Asks until the time is over.
async fn ask(client: SendRequest<Bytes>, load: Arc<Load>) -> Result<(), Failure> {
    while Instant::now() < load.until {
        let key = load.next.fetch_add(1, Relaxed) % load.keys;
        let mut client = client.clone().ready().await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(METHOD)
            .version(Version::HTTP_2)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (response, mut body) = client.send_request(request, false)?;
        body.send_data(message(key), true)?;
        let mut answer = response.await?.into_body();
        let mut first = Bytes::new();
        while let Some(part) = answer.data().await {
            let part = part?;
            answer.flow_control().release_capacity(part.len())?;
            if first.is_empty() {
                first = part;
            }
        }
        check(&first, answer.trailers().await?)?;
        load.answered.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// A call with one descriptor: `remote_address`, one of many.
fn message(key: u64) -> Bytes {
    let address = format!("10.{}.{}.{}", key >> 16, key >> 8 & 0xff, key & 0xff);
    let entry = [field(1, b"remote_address"), field(2, address.as_bytes())].concat();
    let call = [field(1, b"edge"), field(2, &field(1, &entry))].concat();
    let mut framed = BytesMut::with_capacity(call.len() + 5);
    framed.put_u8(0);
    framed.put_u32(call.len() as u32);
    framed.extend_from_slice(&call);
    framed.freeze()
}

/// Bytes of less than 128, as protobuf writes them.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

/// `overall_code` is OK, and so is the gRPC status.
fn check(answer: &[u8], trailers: Option<HeaderMap>) -> io::Result<()> {
    let is_ok = answer.get(5..7) == Some(&[0x08, 0x01]);
    let status = trailers.and_then(|trailers| trailers.get("grpc-status").cloned());
    match is_ok && status.as_ref().is_some_and(|status| status == "0") {
        true => Ok(()),
        false => Err(io::Error::other(format!("answered {answer:?} with status {status:?}"))),
    }
}
