//! A Redis server to connect to: its address taken apart, and how a connection to it begins.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use flowgate_engine::config::{Login, RedisUrl};
use percent_encoding::percent_decode_str;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::wire::{self, Reply};
use crate::listener::Stream;

/// The address of a Redis server, and the login.
#[derive(Clone)]
pub(crate) struct Target {
    place: Place,
    user: Option<String>,
    password: Option<String>,
    database: u32,
}

#[derive(Clone, Debug)]
enum Place {
    Tcp { host: String, port: u16, tls: Option<Tls> },
    Unix { path: String },
}

/// The TLS settings, or why there are none. Clones share them.
#[derive(Clone)]
struct Tls(Result<Arc<ClientConfig>, Arc<str>>);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Redis refused the login: a wrong password, a missing database, or data that is still being loaded.
    #[error("{0}")]
    Refused(String),
    #[error("it does not answer")]
    Silent,
}

/// A connection.
pub(crate) struct Connection {
    pub(crate) stream: Box<dyn Stream>,
    /// The address that the connection leads to; `None`: it is unknown.
    pub(crate) address: Option<SocketAddr>,
}

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// The most bytes of the replies in an exchange outside of a link.
const MAX_EXCHANGE_BYTES: usize = 64 << 10;

impl Target {
    /// The server at an address of the configuration.
    pub(crate) fn new(url: &RedisUrl) -> Target {
        Target::with_default_port(url, DEFAULT_PORT)
    }

    /// The sentinel at an address of the configuration.
    pub(crate) fn of_sentinel(url: &RedisUrl, login: &Login) -> Target {
        Target { database: 0, ..Target::with_default_port(url, DEFAULT_SENTINEL_PORT) }.logging_in(login)
    }

    /// The login and TLS for the servers that sentinels name, without an address.
    pub(crate) fn behind_sentinels(tls: bool, login: &Login, database: u32) -> Target {
        let place = Place::Tcp { host: String::new(), port: 0, tls: tls.then(Tls::of_system) };
        Target { place, user: None, password: None, database }.logging_in(login)
    }

    fn logging_in(self, login: &Login) -> Target {
        let password = login.password.as_ref().map(|password| password.expose().to_owned());
        Target { user: login.username.clone(), password, ..self }
    }

    fn with_default_port(url: &RedisUrl, default_port: u16) -> Target {
        let (scheme, rest) = url.expose().split_once("://").unwrap_or(("redis", url.expose()));
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => (decoded(user), decoded(password)),
            None => (None, None),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let asked = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let (place, database) = if scheme.ends_with("unix") {
            (Place::Unix { path: rest.to_owned() }, asked("db"))
        } else {
            let (address, database) = rest.split_once('/').unwrap_or((rest, ""));
            let (host, port) = match address.rsplit_once(':') {
                Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(default_port)),
                _ => (address, default_port),
            };
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let tls = (scheme == "rediss").then(Tls::of_system);
            (Place::Tcp { host, port, tls }, Some(database))
        };
        let database = database.and_then(|number| number.parse().ok()).unwrap_or(0);
        Target { place, user, password, database }
    }

    /// Another server with the same login and TLS, such as one that a cluster names.
    pub(crate) fn at(&self, host: &str, port: u16) -> Target {
        let tls = match &self.place {
            Place::Tcp { tls, .. } => tls.clone(),
            Place::Unix { .. } => None,
        };
        Target { place: Place::Tcp { host: host.to_owned(), port, tls }, ..self.clone() }
    }

    /// The host, if there is one. A cluster leaves out a host that the client knows.
    pub(crate) fn host(&self) -> Option<&str> {
        match &self.place {
            Place::Tcp { host, .. } => Some(host),
            Place::Unix { .. } => None,
        }
    }

    /// Connects and logs in: to `lead`, or else to an address of the name, `known` first.
    pub(crate) async fn connect(
        &self,
        lead: Option<SocketAddr>,
        known: Option<SocketAddr>,
    ) -> Result<Connection, ConnectError> {
        let mut address = None;
        let mut stream: Box<dyn Stream> = match &self.place {
            Place::Unix { path } => Box::new(UnixStream::connect(path).await?),
            Place::Tcp { host, port, tls } => {
                let addresses = match lead {
                    Some(lead) => vec![lead],
                    None => addresses(host, *port, known).await?,
                };
                let stream = TcpStream::connect(&addresses[..]).await?;
                address = Some(stream.peer_addr()?);
                // Commands are small, and their replies are awaited.
                stream.set_nodelay(true)?;
                match tls {
                    None => Box::new(stream),
                    Some(Tls(config)) => {
                        let config = config.as_ref().map_err(|error| ConnectError::Refused(error.to_string()))?;
                        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                        let connector = TlsConnector::from(Arc::clone(config));
                        Box::new(connector.connect(name, stream).await?)
                    }
                }
            }
        };
        self.greet(stream.as_mut()).await?;
        Ok(Connection { stream, address })
    }

    async fn greet(&self, stream: &mut dyn Stream) -> Result<(), ConnectError> {
        let (mut greeting, mut expected) = (Vec::new(), 1);
        if let Some(password) = self.password.as_deref().filter(|password| !password.is_empty()) {
            expected += 1;
            match self.user.as_deref().filter(|user| !user.is_empty()) {
                Some(user) => wire::command(&mut greeting, &[b"AUTH", user.as_bytes(), password.as_bytes()]),
                None => wire::command(&mut greeting, &[b"AUTH", password.as_bytes()]),
            }
        }
        if self.database != 0 {
            expected += 1;
            wire::command(&mut greeting, &[b"SELECT", self.database.to_string().as_bytes()]);
        }
        // The reply tells whether Redis is still loading its data.
        wire::command(&mut greeting, &[b"PING"]);
        exchange(stream, &greeting, expected).await.map(drop)
    }
}

/// Sends commands and waits for their replies. The first reply that is an error ends the exchange.
pub(crate) async fn exchange(
    stream: &mut (dyn Stream + '_),
    commands: &[u8],
    expected: usize,
) -> Result<Vec<Reply>, ConnectError> {
    stream.write_all(commands).await?;
    let (mut input, mut parsed, mut replies) = (Vec::new(), 0, Vec::new());
    while replies.len() < expected {
        match wire::parse(&input[parsed..]).map_err(io::Error::other)? {
            Some((Reply::Error(error), _)) => return Err(ConnectError::Refused(error)),
            Some((reply, length)) => {
                parsed += length;
                replies.push(reply);
            }
            None if input.len() > MAX_EXCHANGE_BYTES => return Err(io::Error::other("its reply is too long").into()),
            None if stream.read_buf(&mut input).await? == 0 => {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            None => {}
        }
    }
    Ok(replies)
}

impl Tls {
    /// Trusts the system's certificate authorities, or those in the file that `SSL_CERT_FILE` names.
    fn of_system() -> Tls {
        Tls(Tls::config().map(Arc::new).map_err(|error| error.to_string().into()))
    }

    fn config() -> io::Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
            return Err(io::Error::other(format!("no certificate of the system can be read: {why}")));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Ok(builder.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth())
    }
}

/// The addresses of a name, with `known` first if it is one of them.
async fn addresses(host: &str, port: u16, known: Option<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    let mut addresses: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
    addresses.sort_by_key(|address| Some(*address) != known);
    Ok(addresses)
}

/// Decodes `%40` to `@`: a password may hold any character. A wrong escape stays as it is.
fn decoded(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp { host, port, .. } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Place::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
            Place::Unix { path } => f.write_str(path),
        }
    }
}

impl fmt::Debug for Target {
    /// The password is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, shown: &str, login: (Option<&str>, Option<&str>), database: u32) {
        let target = Target::new(&RedisUrl::parse(url).unwrap());
        assert_eq!(target.to_string(), shown);
        assert_eq!((target.user.as_deref(), target.password.as_deref()), login);
        assert_eq!(target.database, database);
    }

    #[test]
    fn addresses_are_taken_apart() {
        check("redis://127.0.0.1:7000/3", "127.0.0.1:7000", (None, None), 3);
        check("redis.example", "redis.example:6379", (None, None), 0);
        check("redis://user:p%40ss%@h:1", "h:1", (Some("user"), Some("p@ss%")), 0);
        check("redis://u:%+5%4@h:1", "h:1", (Some("u"), Some("%+5%4")), 0);
        check("redis://:secret@[::1]", "[::1]:6379", (Some(""), Some("secret")), 0);
        check("redis://[::1]:7000/1", "[::1]:7000", (None, None), 1);
        check("unix:///run/redis.sock?db=2", "/run/redis.sock", (None, None), 2);
        check("unix://u:p@/run/r", "/run/r", (Some("u"), Some("p")), 0);
    }

    #[tokio::test]
    async fn replies_outside_of_a_link_are_bounded() {
        let (mut ours, mut theirs) = tokio::io::duplex(4096);
        let flood =
            tokio::spawn(async move { while theirs.write_all(b"$1000000\r\nxxxxxxxxxxxxxxxx").await.is_ok() {} });
        let error = exchange(&mut ours, b"PING\r\n", 1).await.unwrap_err();
        assert_eq!(error.to_string(), "its reply is too long");
        drop(ours);
        flood.await.unwrap();
    }

    #[test]
    fn sentinels_have_a_port_and_a_login_of_their_own() {
        let login = Login { username: Some("sam".to_owned()), password: None };
        let target = Target::of_sentinel(&RedisUrl::parse("10.0.0.5").unwrap(), &login);
        assert_eq!((target.to_string().as_str(), target.user.as_deref()), ("10.0.0.5:26379", Some("sam")));
        let server = Target::behind_sentinels(false, &Login::default(), 3).at("::1", 7000);
        assert_eq!((server.to_string().as_str(), server.database), ("[::1]:7000", 3));
    }
}
