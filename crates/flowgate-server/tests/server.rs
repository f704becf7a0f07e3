//! The server from outside: real sockets on ports that the system chooses, no sleeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::net::SocketAddr;
use std::time::Duration;

use flowgate_engine::config::{ByteSize, ListenAddress};
use flowgate_server::{Config, RunError, Server, Shutdown, Trigger};
use flowgate_testkit::wait::HANG_TIMEOUT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A running server, stopped when it is dropped.
struct Running {
    http: SocketAddr,
    resp: SocketAddr,
    trigger: Trigger,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    async fn start(config: Config) -> Self {
        let server = Server::bind(&config).await.unwrap();
        let (trigger, shutdown) = Shutdown::new();
        Self {
            http: server.listening.http.tcp().unwrap(),
            resp: server.listening.resp.tcp().unwrap(),
            trigger,
            task: tokio::spawn(server.run(shutdown)),
        }
    }

    /// Asks the server to stop and waits until it has.
    async fn stop(self) {
        self.trigger.stop();
        in_time(self.task).await.unwrap().unwrap();
    }
}

fn config() -> Config {
    Config::from_toml("listen = { http = '127.0.0.1:0', resp = '127.0.0.1:0' }").unwrap()
}

fn one_connection() -> Config {
    let mut config = config();
    config.server.max_connections = 1;
    config
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG_TIMEOUT, work).await.expect("the server is stuck")
}

async fn connect(address: SocketAddr) -> TcpStream {
    in_time(TcpStream::connect(address)).await.unwrap()
}

/// Everything the server says until it closes the connection.
async fn read_all(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    in_time(stream.read_to_end(&mut said)).await.unwrap();
    String::from_utf8(said).unwrap()
}

/// Sends `request` and expects exactly `reply`, the connection staying open.
async fn exchange(stream: &mut TcpStream, request: &str, reply: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = vec![0; reply.len()];
    in_time(stream.read_exact(&mut said)).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&said), reply, "in answer to {request:?}");
}

async fn http(address: SocketAddr, request_line: &str) -> String {
    let mut stream = connect(address).await;
    let request = format!("{request_line} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

#[tokio::test]
async fn resp_answers_ping_in_both_forms() {
    let server = Running::start(config()).await;
    let mut client = connect(server.resp).await;
    exchange(&mut client, "*1\r\n$4\r\nPING\r\n", "+PONG\r\n").await;
    exchange(&mut client, "*2\r\n$4\r\nping\r\n$5\r\nhello\r\n", "$5\r\nhello\r\n").await;
    exchange(&mut client, "PING\r\n", "+PONG\r\n").await;
    exchange(&mut client, "Ping hello\n", "$5\r\nhello\r\n").await;
    exchange(&mut client, "PING a b\r\n", "-ERR wrong number of arguments for 'ping' command\r\n").await;
    server.stop().await;
}

#[tokio::test]
async fn resp_names_an_unknown_command_and_goes_on() {
    let server = Running::start(config()).await;
    let mut client = connect(server.resp).await;
    exchange(
        &mut client,
        "*2\r\n$3\r\nFLY\r\n$1\r\nx\r\n",
        "-ERR unknown command 'FLY', with args beginning with: 'x' \r\n",
    )
    .await;
    exchange(&mut client, "PING\r\n", "+PONG\r\n").await;
    server.stop().await;
}

#[tokio::test]
async fn resp_answers_a_pipeline_in_order() {
    let server = Running::start(config()).await;
    let mut client = connect(server.resp).await;
    let request: String = (0..10_000).map(|i| format!("PING {i}\r\n")).collect();
    let reply: String = (0..10_000).map(|i| format!("${}\r\n{i}\r\n", i.to_string().len())).collect();
    let (mut read, mut write) = client.split();
    let send = async { write.write_all(request.as_bytes()).await.unwrap() };
    let mut said = vec![0; reply.len()];
    let receive = async { read.read_exact(&mut said).await.unwrap() };
    in_time(async { tokio::join!(send, receive) }).await;
    assert!(said == reply.as_bytes());
    server.stop().await;
}

#[tokio::test]
async fn resp_refuses_what_is_too_large_or_malformed_and_closes() {
    let mut config = config();
    config.server.max_request = ByteSize::new(65_536);
    let server = Running::start(config).await;
    let too_large = "-ERR Protocol error: command exceeds 65536 bytes\r\n";
    for (request, reply) in [
        (format!("*2\r\n$4\r\nPING\r\n$70000\r\n{}", "a".repeat(70_000)), too_large),
        ("a".repeat(70_000), too_large),
        ("*1000000000\r\n".into(), "-ERR Protocol error: invalid multibulk length\r\n"),
        ("PING\r\n*1\r\n!".into(), "+PONG\r\n-ERR Protocol error: expected '$', got '!'\r\n"),
    ] {
        let mut client = connect(server.resp).await;
        client.write_all(request.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_all(&mut client).await, reply);
    }
    server.stop().await;
}

#[tokio::test]
async fn http_is_healthy_and_knows_nothing_else() {
    let server = Running::start(config()).await;
    let healthy = http(server.http, "GET /healthz").await;
    assert!(healthy.starts_with("HTTP/1.1 200 OK\r\n") && healthy.ends_with("\r\n\r\nok"), "{healthy}");
    let unknown = http(server.http, "GET /nothing").await;
    assert!(unknown.starts_with("HTTP/1.1 404 Not Found\r\n"), "{unknown}");
    server.stop().await;
}

#[tokio::test]
async fn http_refuses_a_head_that_is_too_large() {
    let server = Running::start(config()).await;
    let mut client = connect(server.http).await;
    // Not a byte more than the server reads: closing with unread input could cut off its answer.
    let start = "GET /healthz HTTP/1.1\r\nhost: test\r\nx: ";
    let head = start.to_owned() + &"a".repeat(64 * 1024 - start.len());
    exchange(&mut client, &head, "HTTP/1.1 431 Request Header Fields Too Large\r\n").await;
    server.stop().await;
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_on_its_own_door_only() {
    let server = Running::start(one_connection()).await;
    let mut first = connect(server.resp).await;
    exchange(&mut first, "PING\r\n", "+PONG\r\n").await;
    let mut second = connect(server.resp).await;
    assert_eq!(read_all(&mut second).await, "-ERR max number of clients reached\r\n");

    let mut first_http = connect(server.http).await;
    exchange(&mut first_http, "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n", "HTTP/1.1 200 OK\r\n").await;
    let mut second_http = connect(server.http).await;
    assert!(read_all(&mut second_http).await.starts_with("HTTP/1.1 503 "));

    exchange(&mut first, "PING\r\n", "+PONG\r\n").await;
    server.stop().await;
}

#[tokio::test]
async fn a_place_is_free_again_when_its_connection_ends() {
    let server = Running::start(one_connection()).await;
    for _ in 0..20 {
        // Refused until the server has noticed that the one before has left.
        while !pong(&mut connect(server.resp).await).await {}
    }
    server.stop().await;
}

/// Whether the server answers; a refused client may be cut off at any point.
async fn pong(client: &mut TcpStream) -> bool {
    let mut said = [0; 7];
    client.write_all(b"PING\r\n").await.is_ok()
        && in_time(client.read_exact(&mut said)).await.is_ok()
        && &said == b"+PONG\r\n"
}

#[tokio::test]
async fn a_silent_client_is_let_go() {
    let mut config = config();
    config.server.idle_timeout = Duration::from_millis(20);
    let server = Running::start(config).await;
    assert_eq!(read_all(&mut connect(server.resp).await).await, "");
    server.stop().await;
}

#[tokio::test]
async fn stopping_closes_idle_connections_and_both_doors() {
    let server = Running::start(config()).await;
    let (resp_address, http_address) = (server.resp, server.http);
    let mut resp = connect(resp_address).await;
    exchange(&mut resp, "PING\r\n", "+PONG\r\n").await;
    let mut http = connect(http_address).await;
    exchange(&mut http, "GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n", "HTTP/1.1 200 OK\r\n").await;

    server.stop().await;
    assert_eq!(read_all(&mut resp).await, "");
    assert!(read_all(&mut http).await.ends_with("ok"));
    TcpStream::connect(resp_address).await.unwrap_err();
    TcpStream::connect(http_address).await.unwrap_err();
}

#[tokio::test]
async fn dropping_the_trigger_stops_the_server() {
    let Running { trigger, task, .. } = Running::start(config()).await;
    drop(trigger);
    in_time(task).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_taken_address_is_named() {
    let server = Running::start(config()).await;
    let taken = server.resp;
    let mut second = config();
    second.listen.resp = ListenAddress::Tcp(taken);
    let error = Server::bind(&second).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {taken} for resp"));
    server.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn unix_sockets_serve_both_protocols_and_are_removed_at_the_end() {
    use tokio::net::UnixStream;

    let directory = tempfile::tempdir().unwrap();
    let (resp, http) = (directory.path().join("resp"), directory.path().join("http"));
    // A server that was killed leaves its socket.
    drop(std::os::unix::net::UnixListener::bind(&resp).unwrap());
    let mut config = config();
    config.listen.resp = ListenAddress::Unix(resp.clone());
    config.listen.http = ListenAddress::Unix(http.clone());
    let server = Server::bind(&config).await.unwrap();
    assert_eq!(server.listening.resp, config.listen.resp);
    assert_eq!(server.listening.http.tcp(), None);
    let error = Server::bind(&config).await.unwrap_err().to_string();
    assert_eq!(error, format!("cannot listen on unix:{} for http", http.display()));
    let (trigger, shutdown) = Shutdown::new();
    let task = tokio::spawn(server.run(shutdown));

    let mut said = String::new();
    let mut client = in_time(UnixStream::connect(&resp)).await.unwrap();
    client.write_all(b"PING\r\nQUIT\r\n").await.unwrap();
    in_time(client.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "+PONG\r\n+OK\r\n");
    let mut client = in_time(UnixStream::connect(&http)).await.unwrap();
    client.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    in_time(client.read_to_string(&mut said)).await.unwrap();
    assert!(said.ends_with("\r\n\r\nready"), "{said}");

    trigger.stop();
    in_time(task).await.unwrap().unwrap();
    assert!(!resp.exists() && !http.exists());
}

#[tokio::test]
async fn a_server_that_stops_is_not_ready_and_finishes_what_is_under_way() {
    let server = Running::start(config()).await;
    let mut inside = connect(server.http).await;
    exchange(&mut inside, "GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n").await;
    // This one has asked for half of it.
    let mut halfway = connect(server.http).await;
    halfway.write_all(b"GET /readyz HTTP/1.1\r\n").await.unwrap();
    exchange(&mut connect(server.http).await, "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n").await;
    server.trigger.stop();
    // The listener is closed...
    while TcpStream::connect(server.http).await.is_ok() {}
    // ...but a client in the middle of a request is answered.
    halfway.write_all(b"host: x\r\n\r\n").await.unwrap();
    let said = read_all(&mut halfway).await;
    assert!(said.starts_with("HTTP/1.1 503 ") && said.ends_with("draining"), "{said}");
    server.stop().await;
}
