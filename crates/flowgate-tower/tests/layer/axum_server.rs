//! The layer in an axum server, with clients on real connections.

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The program in the README.
mod readme {
    include!("readme.rs");

    pub(super) async fn run(listener: TcpListener) {
        serve(listener).await.unwrap();
    }

    /// Its `main` serves on the port that the README names, so no test calls it.
    const _: fn() -> Result<(), Error> = main;
}

/// A server on a free port, until the test ends.
pub(super) async fn serve(app: Router) -> SocketAddr {
    let (listener, address) = listen().await;
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
    address
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Sends a request with these headers.
pub(super) async fn send(address: SocketAddr, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// A server's response to a request with these headers, in lower case.
pub(super) async fn raw(address: SocketAddr, headers: &str) -> String {
    let mut said = String::new();
    send(address, headers).await.read_to_string(&mut said).await.unwrap();
    said.to_lowercase()
}

#[tokio::test]
async fn an_axum_server_tells_clients_apart_by_their_connection() {
    let without_proxies = ClientAddresses { trusted_proxies: Vec::new(), ..ClientAddresses::default() };
    let limit = RateLimit::new("api", "2/60s").unwrap().by(client_ip(without_proxies));
    let app = Router::new().route("/", get(|| async { Body::from("hello") })).layer(limit);
    let address = serve(app).await;
    for (client, status) in [("1.1.1.1", "200"), ("2.2.2.2", "200"), ("3.3.3.3", "429")] {
        let said = raw(address, &format!("x-forwarded-for: {client}\r\n")).await;
        assert!(said.starts_with(&format!("http/1.1 {status}")), "{said}");
        assert!(said.contains("ratelimit-policy: \"api\";q=2;w=60"), "{said}");
        assert_eq!(said.contains("retry-after: 60"), status == "429", "{said}");
    }
}

#[tokio::test]
async fn a_server_without_connect_info_fails_at_the_first_request() {
    let rules = r#"rule = [{ name = "all", by = ["ip"], limits = ["1/60s"] }]"#;
    let engine = Engine::new(&Config::from_toml(rules).unwrap().policy, MemoryStore::default()).unwrap();
    let client = || client_ip(ClientAddresses::default());
    for limit in [
        RateLimit::new("api", "1/60s").unwrap().by(client()),
        RateLimit::with_engine(Arc::new(engine)).field("ip", client()),
    ] {
        let reached = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&reached);
        let handler = get(move || async move { counted.fetch_add(1, Relaxed).to_string() });
        let app = Router::new().route("/", handler).layer(limit);
        let (listener, address) = listen().await;
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        for _ in 0..2 {
            let said = raw(address, "").await;
            assert!(said.starts_with("http/1.1 500"), "{said}");
            assert!(said.contains("into_make_service_with_connect_info::<socketaddr>()"), "{said}");
        }
        assert_eq!(reached.load(Relaxed), 0);
    }
}

#[tokio::test]
async fn the_program_of_the_readme_limits_each_client() {
    let program = include_str!("readme.rs");
    for (name, text) in [
        ("README.md", include_str!("../../../../README.md")),
        ("README.zh-CN.md", include_str!("../../../../README.zh-CN.md")),
    ] {
        assert!(text.contains(&format!("```rust,no_run\n{program}```\n")), "{name} has another program");
    }

    let (listener, address) = listen().await;
    tokio::spawn(readme::run(listener));
    let (from, other) = ("x-forwarded-for: 203.0.113.7\r\n", "x-forwarded-for: 203.0.113.8\r\n");
    for number in 0..100 {
        let said = raw(address, from).await;
        assert!(said.starts_with("http/1.1 200") && said.ends_with("hello"), "request {number}: {said}");
    }
    // The hundred may have taken longer than the five seconds of the limit, on a machine that is busy.
    let said = raw(address, from).await;
    assert!(said.contains("ratelimit-policy: \"api\";q="), "{said}");
    let left =
        |said: &str| said.split("x-ratelimit-remaining: ").nth(1).unwrap().lines().next().unwrap().parse::<u32>();
    assert!(left(&said).unwrap() < 200, "{said}");
    let said = raw(address, other).await;
    assert!(said.starts_with("http/1.1 200"), "another client: {said}");
    assert_eq!(left(&said).unwrap(), 99, "another client has a counter of its own: {said}");
}

#[tokio::test]
async fn on_deny_takes_the_responses_of_axum() {
    let limit = RateLimit::new("api", "1/60s").unwrap().on_deny(|decision, request| {
        let rule = decision.rule().unwrap().name().to_owned();
        (StatusCode::SERVICE_UNAVAILABLE, Json([rule, request.uri.path().to_owned()])).into_response()
    });
    let address = serve(Router::new().route("/", get(|| async { "hello" })).layer(limit)).await;
    assert!(raw(address, "").await.starts_with("http/1.1 200"));
    let said = raw(address, "").await;
    assert!(said.starts_with("http/1.1 503"), "{said}");
    assert!(said.contains("content-type: application/json") && said.contains("retry-after: 60"), "{said}");
    assert!(said.ends_with(r#"["api","/"]"#), "{said}");
}
