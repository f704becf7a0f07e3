//! The gRPC listener: Envoy's rate limit service, health and reflection.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

mod access;
mod bounds;
mod envoy;
mod outcomes;
mod shared;

use flowgate::ManualClock;
use flowgate_server::{Config, Server, Service};
use flowgate_testkit::envoy::{Client, Code, DescriptorStatus, RateLimitResponse};
use flowgate_testkit::server::RunningServer;

/// A server with this configuration on a clock that the test moves, and a client of it.
async fn start(toml: &str) -> (RunningServer, ManualClock, Client) {
    start_prepared(toml, |_| {}).await
}

async fn start_prepared(
    toml: &str,
    prepare: impl FnOnce(&Server) + Send + 'static,
) -> (RunningServer, ManualClock, Client) {
    let (server, clock) = RunningServer::start_on_manual_clock(config(toml), prepare);
    let client = Client::connect(server.grpc.unwrap()).await;
    (server, clock, client)
}

/// A server whose service the test calls, too.
fn start_with_service(config: Config) -> (RunningServer, Service) {
    let bind = async move || Server::bind(&config).await.unwrap();
    RunningServer::start_with(bind, |server| server.service.clone())
}

/// The configuration with a gRPC listener and one event loop; `toml` begins with what belongs to the top level.
fn config(toml: &str) -> Config {
    Config::from_toml(&format!("listen.grpc = '127.0.0.1:0'\nlisten.http = '127.0.0.1:0'\nlisten.resp = 'off'\n{toml}"))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// `OK 2 of 3/MINUTE by reply, 60 s` for each status.
fn statuses(response: &RateLimitResponse) -> Vec<String> {
    response.statuses.iter().map(status).collect()
}

fn status(status: &DescriptorStatus) -> String {
    let mut text = format!("{} {}", status.code().as_str_name(), status.limit_remaining);
    if let Some(limit) = &status.current_limit {
        assert_eq!(limit.unit_multiplier, None, "Envoys before 1.40 do not know it");
        text += &format!(" of {}/{} by {}", limit.requests_per_unit, limit.unit().as_str_name(), limit.name);
    }
    assert_eq!(status.quota, None, "Envoy does not implement it");
    let reset = status.duration_until_reset.unwrap();
    assert_eq!(reset.nanos, 0, "Envoy cuts off fractions");
    text + &format!(", {} s", reset.seconds)
}

/// The overall code and the first status.
fn first(response: &RateLimitResponse) -> (Code, String) {
    (response.overall_code(), status(&response.statuses[0]))
}

fn header<'r>(response: &'r RateLimitResponse, name: &str) -> Option<&'r str> {
    let mut headers = response.response_headers_to_add.iter();
    headers.find(|header| header.key == name).map(|header| header.value.as_str())
}

/// A value of the dynamic metadata as text.
fn metadata(response: &RateLimitResponse, name: &str) -> Option<String> {
    use prost_types::value::Kind;
    let value = response.dynamic_metadata.as_ref()?.fields.get(name)?;
    Some(match value.kind.as_ref()? {
        Kind::NumberValue(number) => number.to_string(),
        Kind::StringValue(text) => text.clone(),
        Kind::BoolValue(value) => value.to_string(),
        other => panic!("{other:?}"),
    })
}
