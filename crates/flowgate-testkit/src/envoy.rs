//! A client of Envoy's rate limit service, over HTTP/2 with prior knowledge. Messages are those of `prost`.

#[allow(missing_docs, clippy::all, unreachable_pub, reason = "build.rs makes it from the server's proto/")]
pub mod messages {
    include!(concat!(env!("OUT_DIR"), "/messages.rs"));
}

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};

pub use messages::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
pub use messages::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{Entry, RateLimitOverride};
pub use messages::envoy::service::ratelimit::v3::rate_limit_response::{Code, DescriptorStatus};
pub use messages::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};

/// The path of the one method of the service.
pub const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// One connection. Clones share it.
#[derive(Clone, Debug)]
pub struct Client {
    connection: SendRequest<Full<Bytes>>,
    /// Metadata of every call.
    pub metadata: Vec<(&'static str, String)>,
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status of HTTP.
    pub http: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The code of gRPC, from the headers or the trailers.
    pub code: Option<u16>,
    /// The text beside the code.
    pub message: String,
    /// All messages, each behind its prefix.
    pub body: Bytes,
}

impl Client {
    /// Connects.
    ///
    /// # Panics
    ///
    /// If the server does not answer.
    pub async fn connect(address: impl ToSocketAddrs) -> Client {
        Client::on(TcpStream::connect(address).await.unwrap()).await
    }

    /// Speaks HTTP/2 on a stream.
    ///
    /// # Panics
    ///
    /// If the server does not.
    pub async fn on(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Client {
        let (connection, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(driver);
        Client { connection, metadata: Vec::new() }
    }

    /// Whether the server has ended the connection, or asked to.
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Asks the service.
    ///
    /// # Errors
    /// When the call has another code than 0; the error has the code and its text.
    ///
    /// # Panics
    ///
    /// If the connection fails, or the answer is not one message.
    pub async fn ask(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, (u16, String)> {
        let reply = self.call(SHOULD_RATE_LIMIT, &framed(request)).await.unwrap();
        match reply.code.unwrap() {
            0 => Ok(reply.first::<RateLimitResponse>()),
            code => Err((code, reply.message)),
        }
    }

    /// Sends these bytes to a method, and reads the whole answer.
    ///
    /// # Errors
    /// When the connection or the stream fails.
    ///
    /// # Panics
    ///
    /// If the answer cannot be read.
    pub async fn call(&self, path: &str, body: &[u8]) -> hyper::Result<Reply> {
        let mut request = Request::post(format!("http://flowgate{path}")).header("te", "trailers");
        request = request.header("content-type", "application/grpc");
        for (name, value) in &self.metadata {
            request = request.header(*name, value);
        }
        self.send(request.body(Full::new(Bytes::copy_from_slice(body))).unwrap()).await
    }

    /// Sends a request as it is.
    ///
    /// # Errors
    /// The same as for [`Client::call`].
    ///
    /// # Panics
    ///
    /// Like [`Client::call`].
    pub async fn send(&self, request: Request<Full<Bytes>>) -> hyper::Result<Reply> {
        let mut connection = self.connection.clone();
        connection.ready().await?;
        let (head, body) = connection.send_request(request).await?.into_parts();
        let collected = body.collect().await?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let text = |name: &str| head.headers.get(name).or(trailers.get(name)).map(|value| value.to_str().unwrap());
        Ok(Reply {
            http: head.status,
            code: text("grpc-status").map(|code| code.parse().unwrap()),
            message: text("grpc-message").unwrap_or_default().to_owned(),
            body: collected.to_bytes(),
            headers: head.headers,
        })
    }
}

impl Reply {
    /// The first message.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn first<M: Message + Default>(&self) -> M {
        self.messages().into_iter().next().expect("a message")
    }

    /// All messages.
    ///
    /// # Panics
    ///
    /// If they cannot be read.
    pub fn messages<M: Message + Default>(&self) -> Vec<M> {
        let (mut rest, mut messages) = (&self.body[..], Vec::new());
        while let Some((prefix, behind)) = rest.split_first_chunk::<5>() {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            messages.push(M::decode(&behind[..length]).unwrap());
            rest = &behind[length..];
        }
        messages
    }
}

/// A message behind its prefix.
pub fn framed(message: &impl Message) -> Vec<u8> {
    let message = message.encode_to_vec();
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    framed.extend_from_slice(&message);
    framed
}

/// A descriptor of these keys and values.
pub fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |&(key, value): &(&str, &str)| Entry { key: key.to_owned(), value: value.to_owned() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

/// A call about these descriptors.
pub fn request(domain: &str, descriptors: Vec<RateLimitDescriptor>) -> RateLimitRequest {
    RateLimitRequest { domain: domain.to_owned(), descriptors, hits_addend: 0 }
}
