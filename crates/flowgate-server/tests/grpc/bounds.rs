//! Bounds: what is too large, too slow or too much is refused, counts nothing, and holds up no other call.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use flowgate_testkit::envoy::{
    Client, RateLimitDescriptor, RateLimitOverride, SHOULD_RATE_LIMIT, descriptor, framed, request,
};
use flowgate_testkit::server::RunningServer;
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Body, Frame};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{config, start};

const ONE: &str = "rule = [{ name = 'one', limits = ['3/h'] }]";

/// What is left of the limit of [`ONE`], once a call has taken one unit.
async fn left(client: &Client) -> u32 {
    client.ask(&request("d", vec![descriptor(&[("k", "v")])])).await.unwrap().statuses[0].limit_remaining
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn refused_calls_count_nothing_and_the_connection_goes_on() {
    let (_server, _, client) = start(ONE).await;
    let one = descriptor(&[("k", "v")]);
    let whole = framed(&request("d", vec![one.clone()]));
    let refused = async |body: &[u8]| {
        let reply = client.call(SHOULD_RATE_LIMIT, body).await.unwrap();
        (reply.code.unwrap(), reply.message)
    };
    let message = async |message| refused(&framed(&message)).await;
    assert_eq!(message(request("", vec![one.clone()])).await, (3, "the domain is empty".to_owned()));
    assert_eq!(message(request("d", vec![])).await, (3, "there is no descriptor".to_owned()));
    let many = message(request("d", vec![one.clone(); 129])).await;
    assert_eq!(many, (3, "there are more than 128 descriptors".to_owned()));
    let long = message(request("d", vec![descriptor(&vec![("k", "v"); 257])])).await;
    assert_eq!(long, (3, "a descriptor has more than 256 entries".to_owned()));
    let nameless = message(request("d", vec![one.clone(), descriptor(&[("", "v")])])).await;
    assert_eq!(nameless, (3, "an entry has an empty key".to_owned()));
    let limit = Some(RateLimitOverride { requests_per_unit: 1, unit: 0, unit_multiplier: None });
    let unit = message(request("d", vec![one.clone(), RateLimitDescriptor { limit, ..one.clone() }])).await;
    assert_eq!(unit, (3, "the limit of a descriptor has the unknown unit 0".to_owned()));
    assert_eq!(refused(b"").await.0, 3);
    assert_eq!(refused(b"\0\0\0\0\x02\xff").await.0, 3, "shorter than announced");
    assert_eq!(refused(b"\0\0\0\0\x01\xff").await.0, 3, "not a message");
    assert_eq!(refused(&[&whole[..], &whole[..]].concat()).await.0, 3, "two messages");
    assert_eq!(left(&client).await, 2);
    assert!(!client.is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_above_max_request_is_refused() {
    let (_server, _, client) = start(&format!("server.max_request = '4KB'\n{ONE}")).await;
    let long = "x".repeat(5_000);
    let call = framed(&request("d", vec![descriptor(&[("k", &long)])]));
    let reply = client.call(SHOULD_RATE_LIMIT, &call).await.unwrap();
    assert_eq!(reply.code, Some(8), "{}", reply.message);
    let announced = client.call(SHOULD_RATE_LIMIT, b"\0\xff\xff\xff\xff").await.unwrap();
    assert_eq!(announced.code, Some(8), "the announced length is checked, not allocated");
    assert_eq!(left(&client).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn compressed_messages_are_unimplemented() {
    let (_server, _, mut client) = start(ONE).await;
    client.metadata.push(("grpc-encoding", "gzip".to_owned()));
    let mut compressed = framed(&request("d", vec![descriptor(&[("k", "v")])]));
    compressed[0] = 1;
    let reply = client.call(SHOULD_RATE_LIMIT, &compressed).await.unwrap();
    assert_eq!((reply.code, reply.headers["grpc-accept-encoding"].to_str().unwrap()), (Some(12), "identity"));
    client.metadata.clear();
    let unknown = client.call("/envoy.service.ratelimit.v3.RateLimitService/Other", b"\0\0\0\0\0").await.unwrap();
    assert_eq!(unknown.code, Some(12));
    let get = Request::get("http://flowgate/").body(Full::new(Bytes::new())).unwrap();
    assert_eq!(client.send(get).await.unwrap().http, 405);
    let json = Request::post(format!("http://flowgate{SHOULD_RATE_LIMIT}")).header("content-type", "application/json");
    assert_eq!(client.send(json.body(Full::new(Bytes::new())).unwrap()).await.unwrap().http, 415);
    assert_eq!(left(&client).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn metadata_beyond_16_kib_is_refused() {
    let (_server, _, mut client) = start(ONE).await;
    client.metadata.push(("x-long", "x".repeat(20_000)));
    let refused = client.call(SHOULD_RATE_LIMIT, &framed(&request("d", vec![descriptor(&[("k", "v")])]))).await;
    assert!(refused.is_err() || refused.is_ok_and(|reply| reply.http == 431));
    client.metadata.clear();
    assert_eq!(left(&client).await, 2, "the connection goes on");
}

/// A body that does not come.
struct NeverSent;

impl Body for NeverSent {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn slow_message_is_cut_off_after_the_request_timeout() {
    let (_server, _, client) = start(&format!("server.request_timeout = '100ms'\n{ONE}")).await;
    let stream = TcpStream::connect(_server.grpc.unwrap()).await.unwrap();
    let (mut connection, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    for method in [SHOULD_RATE_LIMIT, "/grpc.health.v1.Health/Check"] {
        let slow = Request::post(format!("http://flowgate{method}")).header("content-type", "application/grpc");
        let reply = connection.send_request(slow.body(NeverSent).unwrap()).await.unwrap();
        assert_eq!(reply.headers()["grpc-status"], "4", "{method}");
    }
    assert_eq!(left(&client).await, 2);
}

/// A call whose message does not come, and a watch of the health, end with `drain` at the latest.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_stops_ends_after_drain_whatever_is_open() {
    let bounds = "server = { drain = '1500ms', request_timeout = '10m', idle_timeout = '10m' }";
    let server = RunningServer::start(config(&format!("{bounds}\n{ONE}")));
    let stream = TcpStream::connect(server.grpc.unwrap()).await.unwrap();
    let (mut connection, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let slow = Request::post(format!("http://flowgate{SHOULD_RATE_LIMIT}")).header("content-type", "application/grpc");
    let open = tokio::spawn(connection.send_request(slow.body(NeverSent).unwrap()));
    while !super::access::metrics(&server).contains("flowgate_requests_total{protocol=\"grpc\"} 1\n") {
        tokio::task::yield_now().await;
    }
    let stopped = tokio::task::spawn_blocking(move || drop(server));
    timeout(Duration::from_secs(20), stopped).await.expect("the server ends").unwrap();
    assert!(open.await.unwrap().is_err());
}

/// Envoy resets every call that it no longer waits for, all at once after a stall.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn resets_of_all_calls_at_once_do_not_end_the_connection() {
    let (_server, _, client) = start("rule = [{ name = 'all', limits = ['1000000/h'] }]").await;
    let address = _server.grpc.unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    // For each call a head without an end, and its reset, all in one write: none is accepted in between.
    let mut calls = Vec::new();
    for number in 0..900_u32 {
        let id = (2 * number + 1).to_be_bytes();
        let head = b"\x83\x86\x04\x01/\x01\x08flowgate";
        calls.extend_from_slice(&[0, 0, head.len() as u8, 1, 4]);
        calls.extend_from_slice(&id);
        calls.extend_from_slice(head);
        calls.extend_from_slice(&[0, 0, 4, 3, 0]);
        calls.extend_from_slice(&id);
        calls.extend_from_slice(&8_u32.to_be_bytes());
    }
    calls.extend_from_slice(b"\0\0\x08\x06\0\0\0\0\0flowgate");
    stream.write_all(&calls).await.unwrap();
    // The answer to the PING comes, and no GOAWAY before it.
    let pong = timeout(Duration::from_secs(20), async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            stream.read_exact(&mut payload).await.unwrap();
            assert_ne!(head[3], 7, "GOAWAY {payload:?}");
            if head[3] == 6 && head[4] & 1 == 1 && payload == b"flowgate" {
                break;
            }
        }
    });
    pong.await.expect("the connection answers");
    left(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn streams_at_a_time_are_announced() {
    let (_server, _, _client) = start(ONE).await;
    let mut stream = TcpStream::connect(_server.grpc.unwrap()).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "SETTINGS come first");
    let mut settings = vec![0; usize::from(head[2])];
    stream.read_exact(&mut settings).await.unwrap();
    let setting =
        |number: u8| settings.chunks(6).find(|setting| setting[1] == number).map(|setting| setting[2..].to_vec());
    assert_eq!(setting(3), Some(1_000_u32.to_be_bytes().to_vec()), "MAX_CONCURRENT_STREAMS");
    assert_eq!(setting(6), Some(16_384_u32.to_be_bytes().to_vec()), "MAX_HEADER_LIST_SIZE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_grpc_connection_is_told_to_go_and_a_busy_one_is_not() {
    let (_server, _, client) = start(&format!("server.idle_timeout = '1s'\n{ONE}")).await;
    let idle = Client::connect(_server.grpc.unwrap()).await;
    timeout(Duration::from_secs(30), async {
        while !idle.is_closed() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if !idle.is_closed() {
                client.ask(&request("d", vec![descriptor(&[("k", "v")])])).await.unwrap();
            }
        }
    })
    .await
    .expect("the idle connection is closed");
    assert!(!client.is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_grpc_connection_too_many_is_closed() {
    let server = RunningServer::start(config(&format!("server.max_connections = 1\n{ONE}")));
    let client = Client::connect(server.grpc.unwrap()).await;
    assert_eq!(left(&client).await, 2);
    let mut second = TcpStream::connect(server.grpc.unwrap()).await.unwrap();
    assert_eq!(second.read(&mut [0; 16]).await.unwrap_or(0), 0);
    let first = client.ask(&request("d", vec![descriptor(&[("k", "v")])])).await.unwrap();
    assert_eq!(super::first(&first).1, "OK 1 of 3/HOUR by one, 3600 s");
}
