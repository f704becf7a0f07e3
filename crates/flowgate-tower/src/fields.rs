//! Fields of a request: functions from the request's head to a text, ready-made for the usual fields.
//!
//! Rule       A value that a client can spell in several ways has one spelling here: a path is normalised, a host is in
//!            lower case and has neither a port nor a final dot.
//! Rule       Conditions and bans see the client's whole address; an IPv6 client is counted by its network.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use flowgate_engine::http::{
    Client, ClientAddresses, PathSpelling, UntrustedPeers, escaped_text, normalized_method, query_values,
};
use http::header::{AsHeaderName, HOST};
use http::request::Parts;

/// The value of a field: a text, or a client's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue {
    /// The value that conditions and bans by hand see.
    pub(crate) text: String,
    /// The value that rules count by, if it differs from the text.
    pub(crate) counted: Option<String>,
}

impl FieldValue {
    /// The value that rules count by.
    pub(crate) fn into_counted(self) -> String {
        self.counted.unwrap_or(self.text)
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> FieldValue {
        FieldValue { text, counted: None }
    }
}

impl From<Client> for FieldValue {
    fn from(Client { address, counted, .. }: Client) -> FieldValue {
        FieldValue { text: address.to_string(), counted: (counted != address).then(|| counted.to_string()) }
    }
}

/// What the function of a field returns: a value; an `Option`, where `None` is a request without the field; or a `Result`,
/// whose error refuses the request. Values are texts, addresses and numbers.
pub trait IntoField {
    /// The value, if the request has one.
    ///
    /// # Errors
    /// If the request cannot be counted.
    fn into_field(self) -> Result<Option<FieldValue>, FieldError>;
}

impl<V: IntoField> IntoField for Option<V> {
    fn into_field(self) -> Result<Option<FieldValue>, FieldError> {
        self.map_or(Ok(None), V::into_field)
    }
}

impl<V: IntoField, E: Into<FieldError>> IntoField for Result<V, E> {
    fn into_field(self) -> Result<Option<FieldValue>, FieldError> {
        self.map_err(Into::into)?.into_field()
    }
}

macro_rules! plain_values {
    ($($type:ty: $value:ident => $field:expr;)*) => {$(
        impl IntoField for $type {
            fn into_field(self) -> Result<Option<FieldValue>, FieldError> {
                let $value = self;
                Ok(Some($field.into()))
            }
        }
    )*};
}

plain_values! {
    FieldValue: value => value;
    Client: client => client;
    String: text => text;
    &'static str: text => text.to_owned();
    IpAddr: address => address.to_string();
    u32: number => number.to_string();
    u64: number => number.to_string();
    i64: number => number.to_string();
    u128: number => number.to_string();
}

/// Why a request cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The service is set up wrongly. The layer answers with 500.
    #[error(transparent)]
    UnknownClient(#[from] UnknownClient),
    /// The client sends a path that servers read in different ways. The layer answers with 403.
    #[error(transparent)]
    AmbiguousPath(#[from] AmbiguousPath),
    /// The client sends a parameter twice, with different values. The layer answers with 403.
    #[error(transparent)]
    AmbiguousQuery(#[from] AmbiguousQuery),
}

/// Servers read the path in [different ways](PathSpelling::is_ambiguous), so that a client could choose how it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path of the request can be read in several ways")]
pub struct AmbiguousPath;

/// A parameter of the query has several values, so that a client could choose by which one it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a parameter of the request has several values")]
pub struct AmbiguousQuery;

/// The request does not say from which address it comes, so clients cannot be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "rate limit: the address of the client is unknown. With axum, serve \
     `app.into_make_service_with_connect_info::<SocketAddr>()` and use flowgate-tower with the feature `axum`. In other \
     services, put the peer's `SocketAddr` into the extensions of each request."
)]
pub struct UnknownClient;

/// The client's address: that of the connection, or behind proxies that `addresses` trusts the address in their
/// `X-Forwarded-For`, walked from the right. Conditions see the whole address; an IPv6 client is counted by its network.
///
/// The request's extensions give the connection's address: a [`SocketAddr`], an [`IpAddr`], or with the feature `axum`
/// axum's `ConnectInfo<SocketAddr>`. Without an address a service could not tell its clients apart, so the layer answers
/// such a request with 500 and the reason, and the first one logs an error. `X-Forwarded-For` of a peer that is not trusted
/// logs a warning, once for each peer.
///
/// ```
/// use flowgate_tower::{ClientAddresses, RateLimit, client_ip};
///
/// // Behind a load balancer in 10.0.0.0/8.
/// let addresses = ClientAddresses { trusted_proxies: vec!["10.0.0.0/8".parse()?], ..ClientAddresses::default() };
/// let limit = RateLimit::new("api", "300/60s")?.by(client_ip(addresses));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn client_ip(
    addresses: ClientAddresses,
) -> impl Fn(&Parts) -> Result<Client, UnknownClient> + Send + Sync + 'static {
    let told = AtomicBool::new(false);
    let untrusted_peers = UntrustedPeers::default();
    move |request| {
        let Some(peer) = peer(request) else {
            if !told.swap(true, Relaxed) {
                tracing::error!("{UnknownClient}");
            }
            return Err(UnknownClient);
        };
        // Proxies append to the client's text: bytes that are not UTF-8 spoil their own entry, and none to its right.
        let lines = request.headers.get_all("x-forwarded-for").iter();
        // The iterator has no reverse, and the walk starts at the last line.
        let lines: Vec<_> = lines.map(|value| escaped_text(value.as_bytes())).collect();
        let client = addresses.find(peer, lines.iter().map(|line| &**line));
        if client.untrusted_header && untrusted_peers.insert(peer) {
            tracing::warn!(
                %peer,
                "X-Forwarded-For of an untrusted peer is ignored; if this is your proxy, add it to the trusted proxies of \
                 ClientAddresses"
            );
        }
        Ok(client)
    }
}

/// The first value of a header. Bytes that are not UTF-8 are [escaped](escaped_text): different bytes, different values.
///
/// # Panics
/// When no header can have that name.
pub fn header(name: impl AsHeaderName + AsRef<str>) -> impl Fn(&Parts) -> Option<String> + Send + Sync + 'static {
    let name: http::HeaderName = name.as_ref().parse().expect("the name of a header");
    move |request| Some(escaped_text(request.headers.get(&name)?.as_bytes()).into_owned())
}

/// The path in one spelling: escapes decoded, `//` and dot segments resolved, and without the parts that the default
/// [`PathSpelling`] ignores: `/Login/`, `/login;x` and `/login%20` are `/login`.
///
/// A path that servers read in [different ways](PathSpelling::is_ambiguous), such as `/search/x%2f..`, is denied with 403, as
/// the server's gate denies it.
pub fn path() -> impl Fn(&Parts) -> Result<String, AmbiguousPath> + Send + Sync + 'static {
    path_spelled(PathSpelling::default())
}

/// Like [`path`], in another spelling: that of the rules, if their file sets `gate.path_ignores`.
pub fn path_spelled(
    spelling: PathSpelling,
) -> impl Fn(&Parts) -> Result<String, AmbiguousPath> + Send + Sync + 'static {
    move |request| match spelling.is_ambiguous(request.uri.path()) {
        true => Err(AmbiguousPath),
        false => Ok(spelling.spell(request.uri.path()).into_owned()),
    }
}

/// A parameter of the query, decoded. A request with several different values of it is denied with 403, as the server's
/// gate denies it.
pub fn query(name: &str) -> impl Fn(&Parts) -> Result<Option<String>, AmbiguousQuery> + Send + Sync + 'static {
    let name = name.to_owned();
    move |request| {
        let mut values = query_values(request.uri.query().unwrap_or_default().as_bytes(), &name);
        let first = values.next();
        match values.all(|value| first.as_ref() == Some(&value)) {
            true => Ok(first.map(Cow::into_owned)),
            false => Err(AmbiguousQuery),
        }
    }
}

/// The method, in upper case: `GET`.
pub fn method() -> impl Fn(&Parts) -> Option<String> + Send + Sync + 'static {
    |request| Some(normalized_method(request.method.as_str()).into_owned())
}

/// The requested host, from the request's target, else from `Host`: in lower case, without a port and without a final
/// dot.
pub fn host() -> impl Fn(&Parts) -> Option<String> + Send + Sync + 'static {
    |request| {
        let target = request.uri.host();
        let host = target.or_else(|| request.headers.get(HOST)?.to_str().ok().map(without_port))?;
        Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are within brackets.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

fn peer(request: &Parts) -> Option<IpAddr> {
    let extensions = &request.extensions;
    #[cfg(feature = "axum")]
    {
        use axum::extract::ConnectInfo;
        use axum::extract::connect_info::MockConnectInfo;
        if let Some(ConnectInfo(address)) = extensions.get::<ConnectInfo<SocketAddr>>() {
            return Some(address.ip());
        }
        if let Some(MockConnectInfo(address)) = extensions.get::<MockConnectInfo<SocketAddr>>() {
            return Some(address.ip());
        }
    }
    extensions.get().map(SocketAddr::ip).or_else(|| extensions.get().copied())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> Parts {
        build(Request::builder()).body(()).unwrap().into_parts().0
    }

    #[test]
    fn the_peer_is_where_a_server_puts_it() {
        let find = |request: &Parts| Ok(client_ip(ClientAddresses::default())(request)?.address.to_string());
        let socket: SocketAddr = "203.0.113.7:4711".parse().unwrap();
        assert_eq!(find(&parts(|request| request.extension(socket))).unwrap(), "203.0.113.7");
        assert_eq!(find(&parts(|request| request.extension(socket.ip()))).unwrap(), "203.0.113.7");
        #[cfg(feature = "axum")]
        {
            use axum::extract::{ConnectInfo, connect_info::MockConnectInfo};
            assert_eq!(find(&parts(|request| request.extension(ConnectInfo(socket)))).unwrap(), "203.0.113.7");
            assert_eq!(find(&parts(|request| request.extension(MockConnectInfo(socket)))).unwrap(), "203.0.113.7");
        }
        assert_eq!(find(&parts(|request| request)), Err(UnknownClient));
    }

    #[test]
    fn headers_count_from_the_right_over_all_lines() {
        let find = client_ip(ClientAddresses::default());
        let from = |lines: &[&'static [u8]]| {
            let local: SocketAddr = "127.0.0.1:1".parse().unwrap();
            let start = Request::builder().extension(local);
            let add = |request: http::request::Builder, line: &&'static [u8]| request.header("x-forwarded-for", *line);
            FieldValue::from(find(&lines.iter().fold(start, add).body(()).unwrap().into_parts().0).unwrap())
        };
        let address = |text: &str| FieldValue::from(text.to_owned());
        assert_eq!(from(&[b"6.6.6.6", b"203.0.113.7"]), address("203.0.113.7"));
        assert_eq!(from(&[b"203.0.113.7", b"127.0.0.2"]), address("203.0.113.7"));
        let network = Some("2001:db8:1:2::".to_owned());
        assert_eq!(from(&[b"2001:db8:1:2:3::4"]), FieldValue { counted: network, ..address("2001:db8:1:2:3::4") });
        assert_eq!(from(&[b"203.0.113.7", b"\xff"]), address("127.0.0.1"));
        assert_eq!(from(&[b"\xff, 203.0.113.7"]), address("203.0.113.7"));
    }

    #[test]
    fn paths_have_one_spelling() {
        assert_eq!(path()(&parts(|request| request.uri("//a/%62?x=1"))).unwrap(), "/a/b");
        for uri in ["/login", "/login;x", "/login/", "/LOGIN", "/login%20", "/login#x", "/login;x?y#z"] {
            assert_eq!(path()(&parts(|request| request.uri(uri))).unwrap(), "/login", "{uri}");
        }
        let exact = path_spelled(PathSpelling::ignoring([]));
        assert_eq!(exact(&parts(|request| request.uri("/Login;x/"))).unwrap(), "/Login;x/");
        assert_eq!(method()(&parts(|request| request)).unwrap(), "GET");
        for (value, expected) in [
            ("Example.COM:8080", "example.com"),
            ("a.b.:80", "a.b"),
            ("a.b.", "a.b"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(host()(&parts(|request| request.header(HOST, value))).unwrap(), expected);
        }
        assert_eq!(host()(&parts(|request| request.uri("http://A.b.:1/").header(HOST, "c"))).unwrap(), "a.b");
        assert_eq!(host()(&parts(|request| request)), None);
        let token = |uri: &str| query("tok")(&parts(|request| request.uri(uri)));
        assert_eq!([token("/?x=1"), token("/")], [Ok(None), Ok(None)]);
        assert_eq!([token("/?tok=a+b"), token("/?%74ok=a%20b&tok=a+b")], [(); 2].map(|()| Ok(Some("a b".to_owned()))));
        assert_eq!(token("/?tok=a&tok=b"), Err(AmbiguousQuery));
        let key = header("X-Key");
        assert_eq!(key(&parts(|request| request.header("x-key", "k1").header("x-key", "k2"))).unwrap(), "k1");
        assert_eq!(key(&parts(|request| request)), None);
        let of_bytes = |value: &'static [u8]| key(&parts(|request| request.header("x-key", value))).unwrap();
        assert_ne!(of_bytes(b"k\xff"), of_bytes(b"k\xfe"));
    }
}
