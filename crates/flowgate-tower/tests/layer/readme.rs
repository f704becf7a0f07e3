use std::net::SocketAddr;

use axum::{Router, routing::get};
use flowgate_tower::{ClientAddresses, RateLimit, client_ip};
use tokio::net::TcpListener;

type Error = Box<dyn std::error::Error>;

async fn serve(listener: TcpListener) -> Result<(), Error> {
    let limit = RateLimit::new("api", ["300/60s", "100/5s"])?.by(client_ip(ClientAddresses::default()));
    let app = Router::new().route("/", get(|| async { "hello" })).layer(limit.refund_failures());
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    serve(TcpListener::bind("127.0.0.1:3000").await?).await
}
