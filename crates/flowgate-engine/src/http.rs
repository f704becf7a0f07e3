//! Facts of HTTP that the server and the middleware share: how a decision reads in headers, which client is behind the
//! proxies, and the one spelling of a path, of a host, of a method and of bytes that are not text. Nothing here does I/O.

mod client_address;
mod headers;
mod host;
mod method;
mod path;
mod text;

pub use client_address::{Client, ClientAddresses, UntrustedPeers};
pub use headers::Quota;
pub(crate) use host::HOST_FIELD;
pub use host::normalized_host;
pub(crate) use method::METHOD_FIELD;
pub use method::normalized_method;
pub(crate) use path::PATH_FIELD;
pub use path::{PathPart, PathSpelling, decoded_query, query_values};
pub use text::escaped_text;
