//! A small web service with limits in its own process.
//!
//! ```sh
//! cargo run -p flowgate-tower --features axum --example axum
//! for i in 1 2 3 4 5 6; do curl -si 127.0.0.1:3000/ | grep -iE '^(HTTP|ratelimit|retry)'; done
//! curl -i -X POST 127.0.0.1:3000/login       # failures count, successes do not
//! ```

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use flowgate_tower::{ClientAddresses, Config, Outcome, RateLimit, client_ip};

const RULES: &str = r#"
    [[rule]]
    name = "page"
    when = { path = "/" }
    by = ["ip"]
    limits = ["5/60s"]

    [[rule]]
    name = "report"
    when = { path = "/report" }
    limits = ["pace 2/s max_wait=5s"]
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rules = RateLimit::from_config(&Config::from_toml(RULES)?)?.refund_failures();

    // Three wrong passwords a minute for each address; right ones are given back.
    let client = client_ip(ClientAddresses::default());
    let login = RateLimit::new("login", "3/60s")?.by(client).refund_if(|outcome| match outcome {
        Outcome::Answered { status, .. } => status != StatusCode::UNAUTHORIZED,
        Outcome::Failed => true,
        Outcome::Dropped => false, // or clients would try passwords and hang up
    });

    let app = Router::new()
        .route("/", get(|| async { "hello\n" }))
        .route("/report", get(|| async { "two of these a second, in turn\n" }))
        .route("/login", post(|| async { (StatusCode::UNAUTHORIZED, "wrong\n") }).layer(login))
        .layer(rules);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 3000)).await?;
    eprintln!("http://{}", listener.local_addr()?);
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}
