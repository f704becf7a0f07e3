//! Talks to a running server over HTTP, for the commands that ask it something.

mod token;
#[cfg(unix)]
mod unix;

use std::fs;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use flowgate_api::ErrorBody;
use flowgate_engine::config::Secret;
use serde::{Deserialize, Serialize};
use ureq::config::Config;
use ureq::http::{Method, Request, Response, StatusCode, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
#[cfg(unix)]
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body};

pub(crate) use token::Tokens;

/// The longest wait for an answer. A server decides within a millisecond, so a longer wait means that the server is
/// away.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Which server, and by what right.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// Where the server speaks HTTP: a URL, or unix:PATH
    #[arg(
        long,
        visible_alias = "url",
        value_name = "URL",
        env = "FLOWGATE_SERVER",
        default_value = "http://127.0.0.1:7070"
    )]
    server: String,
    /// A file with the token to show; or set FLOWGATE_TOKEN. Commands for administrators show a server on this machine
    /// the token that it has made
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// For https: a file with the certificates to trust, in PEM, instead of the usual authorities
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// The right that a command needs. It decides which tokens the command sends if the user names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// To ask for decisions. Most servers need no token for that, and any program may listen on a port of this machine,
    /// so the command sends only a token that the user names.
    Decide,
    /// To change bans and rules.
    Admin,
}

/// A server to talk to.
pub(crate) struct Client {
    agent: Agent,
    base: String,
    tokens: Tokens,
}

/// The body of a server's answer.
#[derive(Debug)]
pub(crate) struct Answer(String);

impl Answer {
    /// The body as a document.
    ///
    /// # Errors
    /// If the body is not such a document.
    pub(crate) fn document<'a, T: Deserialize<'a>>(&'a self) -> anyhow::Result<T> {
        serde_json::from_str(&self.0).context("the server is not a Flowgate server: its answer")
    }

    /// The answer as the server wrote it, on a line.
    pub(crate) fn json(&self) -> String {
        format!("{}\n", self.0)
    }
}

impl Server {
    /// # Errors
    /// If a file cannot be read, or the URL is not valid.
    pub(crate) fn client(&self, right: Right) -> anyhow::Result<Client> {
        let base = self.server.trim_end_matches('/').to_owned();
        let socket = base.strip_prefix("unix:");
        if socket.is_none() && !base.starts_with("http://") && !base.starts_with("https://") {
            let note =
                if base.starts_with("redis") { "; commands ask over HTTP, not over the Redis protocol" } else { "" };
            bail!("--server {base}: expected a URL such as http://127.0.0.1:7070, or unix:PATH{note}");
        }
        let is_here = socket.is_some() || is_loopback(&base);
        let tokens = match Tokens::given(self.token_file.as_deref())? {
            Some(given) => given,
            None if is_here && right == Right::Admin => Tokens::of_this_machine(),
            None => Tokens::default(),
        };
        let mut config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("flowgate/", env!("CARGO_PKG_VERSION")));
        if let Some(file) = &self.ca {
            let certificates = certificates(&read(file)?).with_context(|| file.display().to_string())?;
            config =
                config.tls_config(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&certificates)).build());
        }
        if is_here {
            // A proxy that the environment names is another host, and would see the token.
            config = config.proxy(None);
        }
        let agent = match socket {
            Some(path) => agent_on(path, config.build())?,
            None => config.build().into(),
        };
        Ok(Client { agent, base, tokens })
    }
}

/// Whether a URL leads to this machine and nowhere else.
fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>().map(|address| address.to_canonical().is_loopback());
    address.unwrap_or_else(|_| host.eq_ignore_ascii_case("localhost"))
}

/// An agent that asks through a unix socket. HTTP requires a host in the URL; the agent ignores its value.
#[cfg(unix)]
fn agent_on(path: &str, config: Config) -> anyhow::Result<Agent> {
    Ok(Agent::with_parts(config, unix::Socket(path.into()), DefaultResolver::default()))
}

#[cfg(not(unix))]
fn agent_on(path: &str, _: Config) -> anyhow::Result<Agent> {
    bail!("--server unix:{path}: this system has no unix sockets")
}

fn read(file: &PathBuf) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn certificates(pem: &str) -> anyhow::Result<Vec<Certificate<'static>>> {
    let mut found = Vec::new();
    for item in ureq::tls::parse_pem(pem.as_bytes()) {
        if let PemItem::Certificate(certificate) = item? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        bail!("no certificate in it");
    }
    Ok(found)
}

impl Client {
    /// # Errors
    /// When the server cannot be reached, or does not do what it is asked.
    pub(crate) fn post(&self, path: &str, document: &impl Serialize) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, Some(serde_json::to_string(document).context("the request")?))
    }

    /// # Errors
    /// The same as for [`Client::post`].
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, None)
    }

    /// # Errors
    /// The same as for [`Client::post`].
    pub(crate) fn delete(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::DELETE, path, None)
    }

    /// The base of a request's URL.
    fn url(&self) -> &str {
        if self.base.starts_with("unix:") { "http://localhost" } else { &self.base }
    }

    /// Sends a request, with one token after the other until the server accepts one. A request that the server refuses
    /// for its token changes nothing.
    fn send(&self, method: Method, path: &str, body: Option<String>) -> anyhow::Result<Answer> {
        let mut tokens = self.tokens.list.iter();
        loop {
            let token = tokens.next();
            let mut answer = self.ask(method.clone(), path, body.as_deref(), token)?;
            if answer.status() != StatusCode::UNAUTHORIZED || tokens.len() == 0 {
                return self.read_answer(&mut answer);
            }
        }
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&str>,
        token: Option<&Secret>,
    ) -> anyhow::Result<Response<Body>> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url()));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body);
                self.agent.run(request.context("the request")?)
            }
            None => self.agent.run(request.body(()).context("the request")?),
        };
        answer.map_err(|error| self.unreachable(error))
    }

    fn read_answer(&self, answer: &mut Response<Body>) -> anyhow::Result<Answer> {
        let status = answer.status();
        let text = answer.body_mut().read_to_string().context("the answer broke off")?;
        if status.is_success() {
            return Ok(Answer(text));
        }
        let advice = match status {
            StatusCode::UNAUTHORIZED => self.tokens.advice(),
            _ => String::new(),
        };
        let no_reason = ErrorBody { error: "no reason given".into(), ..ErrorBody::default() };
        let ErrorBody { error, field, .. } = serde_json::from_str(&text).unwrap_or(no_reason);
        match field {
            Some(field) if !error.starts_with(&*field) => bail!("{field}: {error} (status {status}){advice}"),
            _ => bail!("{error} (status {status}){advice}"),
        }
    }

    fn unreachable(&self, error: ureq::Error) -> anyhow::Error {
        let base = &self.base;
        match error {
            // An answer that is not HTTP/1 is most likely a TLS alert, else a frame of HTTP/2.
            ureq::Error::Protocol(_) if base.starts_with("http://") => anyhow::Error::new(error).context(format!(
                "cannot ask {base}: its answer is not HTTP; if it has TLS, ask https:// with --ca FILE; if it is the port of gRPC, \
                 ask that of HTTP"
            )),
            ureq::Error::Io(refused) if refused.kind() == ErrorKind::ConnectionRefused => {
                anyhow::anyhow!(
                    "cannot ask {base}: no server listens there; `flowgate serve` starts one, --server names another"
                )
            }
            ureq::Error::Io(missing) if missing.kind() == ErrorKind::NotFound && base.starts_with("unix:") => {
                anyhow::anyhow!(
                    "cannot ask {base}: there is no such socket; `flowgate serve --http {base}` makes it, --server names \
                     another"
                )
            }
            // The server closes the connection of a client that speaks HTTP on the port of the Redis protocol, or
            // HTTP/1 on the port of gRPC.
            ureq::Error::Io(closed) if is_closed(&closed) => anyhow::Error::new(closed).context(format!(
                "cannot ask {base}: it closed the connection without an answer; is that the port of the Redis protocol \
                 (7071) or of gRPC? Commands ask over HTTP (7070), at the address that `flowgate serve` prints as http"
            )),
            error => {
                let hint = tls_hint(&error.to_string());
                anyhow::Error::new(error).context(format!("cannot ask {base}{hint}"))
            }
        }
    }
}

/// Whether the other side has ended the connection.
fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)
}

/// What to do about a server without TLS, or a certificate that is not trusted. The text of the error gives the reason:
/// the library has no type for it.
fn tls_hint(error: &str) -> &'static str {
    if error.contains("InvalidContentType") {
        ": its answer is not TLS; ask http://, unless another port has TLS"
    } else if error.contains("UnknownIssuer") {
        ": it is not known who vouches for its certificate; give theirs by --ca FILE"
    } else if error.contains("CaUsedAsEndEntity") {
        ": its certificate is one for an authority, and none for a server; make one with basicConstraints=CA:FALSE"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn every_token_is_tried_until_one_is_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let mut shown = Vec::new();
            while shown.len() < 2 {
                let mut reader = BufReader::new(listener.accept().unwrap().0);
                let lines = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                let token =
                    lines.filter_map(|line| Some(line.strip_prefix("authorization: Bearer ")?.to_owned())).last();
                let (status, body) = match token.as_deref() {
                    Some("two") => ("200 OK", "{}"),
                    _ => ("401 Unauthorized", r#"{"error":"wrong","field":null}"#),
                };
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                reader.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
                shown.extend(token);
            }
            shown
        });
        let mut client = Server { server: base, token_file: None, ca: None }.client(Right::Admin).unwrap();
        client.tokens.list = ["one", "two", "three"].map(Secret::new).into();
        assert_eq!(client.get("/v1/bans").unwrap().json(), "{}\n");
        assert_eq!(server.join().unwrap(), ["one", "two"]);
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for url in [
            "http://localhost",
            "http://LOCALHOST:7070/x",
            "https://127.0.0.1:7070",
            "http://127.8.9.1",
            "http://[::1]:7070",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.1@evil.example",
            "http://localhost:7070@evil.example",
            "http://evil.example/127.0.0.1",
            "http://[::2]",
            "http://0.0.0.0",
            "http://192.0.2.1",
            "http://",
            "http://a b",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
