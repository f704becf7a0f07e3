//! Who may call, health, reflection, TLS, the end, and what is counted.

use std::sync::Arc;
use std::time::Duration;

use flowgate_testkit::certificates::Authority;
use flowgate_testkit::envoy::{Client, Code, SHOULD_RATE_LIMIT, descriptor, framed, request};
use flowgate_testkit::redis::Redis;
use flowgate_testkit::server::RunningServer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use super::{config, metadata, start};

const RULES: &str = "rule = [{ name = 'all', limits = ['1000/h'] }]";
const SERVICE: &str = "envoy.service.ratelimit.v3.RateLimitService";

fn call() -> Vec<u8> {
    framed(&request("d", vec![descriptor(&[("k", "v")])]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_api_token_is_asked_for() {
    let (server, _, mut client) = start(&format!("auth.api_token = 'a-token-of-sixteen-letters'\n{RULES}")).await;
    assert_eq!(client.call(SHOULD_RATE_LIMIT, &call()).await.unwrap().code, Some(16));
    client.metadata.push(("authorization", "Bearer wrong".to_owned()));
    assert_eq!(client.call(SHOULD_RATE_LIMIT, &call()).await.unwrap().code, Some(16));
    let health = framed(&HealthCheckRequest::default());
    assert_eq!(client.call("/grpc.health.v1.Health/Check", &health).await.unwrap().code, Some(0), "health is open");
    client.metadata[0].1 = "Bearer a-token-of-sixteen-letters".to_owned();
    assert_eq!(client.call(SHOULD_RATE_LIMIT, &call()).await.unwrap().code, Some(0));
    let metrics = metrics(&server);
    assert!(metrics.contains("flowgate_authentication_failures_total{protocol=\"grpc\"} 2\n"), "{metrics}");
    assert!(metrics.contains("flowgate_grpc_calls_total{code=\"UNAUTHENTICATED\"} 2\n"));
    assert!(metrics.contains("flowgate_grpc_calls_total{code=\"OK\"} 1\n"));
    assert!(metrics.contains("flowgate_grpc_descriptors_total 1\n"));
    assert!(metrics.contains("flowgate_requests_total{protocol=\"grpc\"} 4\n"));
    assert!(metrics.contains("flowgate_connections{protocol=\"grpc\"} 1\n"));
}

pub(super) fn metrics(server: &RunningServer) -> String {
    let url = format!("http://{}/metrics", server.http.unwrap());
    let output = std::process::Command::new("curl").args(["-s", &url]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn health_by_name() {
    let (_server, _, client) = start(RULES).await;
    let check = async |service: &str| {
        let request = framed(&HealthCheckRequest { service: service.to_owned() });
        let reply = client.call("/grpc.health.v1.Health/Check", &request).await.unwrap();
        (reply.code.unwrap(), reply.messages::<HealthCheckResponse>().first().map(|response| response.status))
    };
    assert_eq!(check("").await, (0, Some(1)));
    assert_eq!(check(SERVICE).await, (0, Some(1)));
    assert_eq!(check("other").await, (5, None));
    let other = framed(&HealthCheckRequest { service: "other".to_owned() });
    assert_eq!(client.call("/grpc.health.v1.Health/Watch", &other).await.unwrap().code, Some(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_whose_store_is_away_is_serving() {
    let away = Redis::absent(&[]);
    let store = format!("store = {{ type = 'redis', url = '{}', on_failure = 'allow' }}", away.url());
    let server = RunningServer::start(config(&format!("{store}\n{RULES}")));
    let client = Client::connect(server.grpc.unwrap()).await;
    let decided = client.ask(&request("d", vec![descriptor(&[("k", "v")])])).await.unwrap();
    assert_eq!(metadata(&decided, "degraded").as_deref(), Some("true"));
    let check = framed(&HealthCheckRequest { service: SERVICE.to_owned() });
    let reply = client.call("/grpc.health.v1.Health/Check", &check).await.unwrap();
    assert_eq!(reply.first::<HealthCheckResponse>().status, 1, "SERVING");
}

/// A watch hears that the server stops; calls under way are answered; the connection then ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_stops_says_so_and_answers() {
    let (server, _, client) = start(RULES).await;
    let watching = client.clone();
    let watch = tokio::spawn(async move {
        watching.call("/grpc.health.v1.Health/Watch", &framed(&HealthCheckRequest::default())).await.unwrap()
    });
    let (answered, mut answers) = watch::channel(0);
    let calls = {
        let client = client.clone();
        tokio::spawn(async move {
            // Until the connection is told to go, every call has an answer.
            while let Ok(reply) = client.call(SHOULD_RATE_LIMIT, &call()).await {
                assert_eq!(reply.code, Some(0));
                answered.send_modify(|number| *number += 1);
                tokio::task::yield_now().await;
            }
        })
    };
    timeout(Duration::from_secs(20), answers.wait_for(|number| *number > 100)).await.unwrap().unwrap();
    server.trigger.stop();
    let watch = timeout(Duration::from_secs(20), watch).await.unwrap().unwrap();
    let statuses: Vec<i32> = watch.messages::<HealthCheckResponse>().iter().map(|response| response.status).collect();
    assert_eq!(statuses, [1, 2], "SERVING, then NOT_SERVING");
    timeout(Duration::from_secs(20), calls).await.unwrap().unwrap();
    assert!(client.is_closed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reflection_shows_the_services_in_both_versions() {
    let (_server, _, client) = start(RULES).await;
    for version in ["v1", "v1alpha"] {
        let ask = async |request: MessageRequest| {
            let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
            let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
            let reply = client.call(&path, &framed(&request)).await.unwrap();
            reply.first::<ServerReflectionResponse>().message_response.unwrap()
        };
        let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices(String::new())).await else {
            panic!("no list")
        };
        let names: Vec<&str> = list.service.iter().map(|service| service.name.as_str()).collect();
        assert!(names.contains(&SERVICE) && names.contains(&"grpc.health.v1.Health"), "{names:?}");
        let symbol = MessageRequest::FileContainingSymbol("envoy.service.ratelimit.v3.RateLimitRequest".to_owned());
        assert!(matches!(ask(symbol).await, MessageResponse::FileDescriptorResponse(_)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tls_with_client_certificates() {
    let authority = Authority::new();
    authority.issue("server");
    authority.issue("client");
    let [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| authority.text(name));
    let tls = format!("tls = {{ cert = '{cert}', key = '{key}', client_ca = '{ca}' }}\n{RULES}");
    let server = RunningServer::start(config(&tls));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.path("ca.pem")).unwrap()).unwrap();
    let builder = || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(roots.clone())
    };
    let certificate = CertificateDer::from_pem_file(authority.path("client.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(authority.path("client.key")).unwrap();
    let mut known = builder().with_client_auth_cert(vec![certificate], key).unwrap();
    known.alpn_protocols = vec![b"h2".to_vec()];
    let connect = async |config: ClientConfig| {
        let stream = TcpStream::connect(server.grpc.unwrap()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    };
    let stream = connect(known.clone()).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let client = Client::on(stream).await;
    let answer = client.ask(&request("d", vec![descriptor(&[("k", "v")])])).await.unwrap();
    assert_eq!(answer.overall_code(), Code::Ok);
    // Without a certificate the handshake fails, for the client at its first read.
    use tokio::io::AsyncReadExt;
    let mut unknown = connect(builder().with_no_client_auth()).await;
    assert!(unknown.read(&mut [0; 1]).await.is_err());
}
