//! Talks to a running server over HTTP, for the commands that ask it something.

#[cfg(unix)]
mod unix;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use ureq::config::Config;
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
#[cfg(unix)]
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Body};

/// A decision takes a millisecond; whoever waits longer waits for a server that is not there.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Which server, and by what right.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// Where the server speaks HTTP: a URL, or unix:PATH
    #[arg(long, value_name = "URL", env = "FLOWGATE_SERVER", default_value = "http://127.0.0.1:7070")]
    server: String,
    /// A file with the token to show; or set FLOWGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// For https: a file with the certificates to trust, in PEM, instead of the usual authorities
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// A server to talk to.
pub(crate) struct Client {
    agent: Agent,
    base: String,
    token: Option<String>,
}

impl Server {
    /// # Errors
    /// When a file cannot be read, or the URL is none.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let base = self.server.trim_end_matches('/').to_owned();
        let socket = base.strip_prefix("unix:");
        if socket.is_none() && !base.starts_with("http://") && !base.starts_with("https://") {
            bail!("--server {base}: expected a URL such as http://127.0.0.1:7070, or unix:PATH");
        }
        let token = match &self.token_file {
            Some(file) => Some(read(file)?),
            None => env::var("FLOWGATE_TOKEN").ok(),
        };
        let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
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
        let agent = match socket {
            Some(path) => agent_on(path, config.build())?,
            None => config.build().into(),
        };
        Ok(Client { agent, base, token })
    }
}

/// An agent that asks through a socket. What names the host is then of no matter, but HTTP wants one.
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
    pub(crate) fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, Some(body))
    }

    /// # Errors
    /// As [`Client::post`].
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, None)
    }

    /// # Errors
    /// As [`Client::post`].
    pub(crate) fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::DELETE, path, None)
    }

    /// What a request names as its host.
    fn url(&self) -> &str {
        if self.base.starts_with("unix:") { "http://localhost" } else { &self.base }
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url()));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body.to_string());
                self.agent.run(request.context("the request")?)
            }
            None => self.agent.run(request.body(()).context("the request")?),
        };
        read_answer(&mut answer.map_err(|error| self.unreachable(error))?)
    }

    fn unreachable(&self, error: ureq::Error) -> anyhow::Error {
        let base = &self.base;
        match error {
            // What is not HTTP is most likely an alert of TLS.
            ureq::Error::Protocol(_) if base.starts_with("http://") => anyhow::Error::new(error).context(format!(
                "cannot ask {base}: its answer is not HTTP; if it has TLS, ask https:// with --ca FILE"
            )),
            error => {
                let hint = certificate_hint(&error.to_string());
                anyhow::Error::new(error).context(format!("cannot ask {base}{hint}"))
            }
        }
    }
}

/// What to do about a certificate that is not trusted. Its reason is told apart by its name: the library has no other for
/// it.
fn certificate_hint(error: &str) -> &'static str {
    if error.contains("UnknownIssuer") {
        ": it is not known who vouches for its certificate; give theirs by --ca FILE"
    } else if error.contains("CaUsedAsEndEntity") {
        ": its certificate is one for an authority, and none for a server; make one with basicConstraints=CA:FALSE"
    } else {
        ""
    }
}

fn read_answer(answer: &mut Response<Body>) -> anyhow::Result<Value> {
    let status = answer.status();
    let text = answer.body_mut().read_to_string().context("the answer broke off")?;
    let value = if text.is_empty() { json!({}) } else { serde_json::from_str(&text).unwrap_or(Value::String(text)) };
    if status.is_success() {
        return match value {
            Value::String(_) => bail!("this is no Flowgate server: its answer is not JSON"),
            value => Ok(value),
        };
    }
    let token = match status {
        StatusCode::UNAUTHORIZED => "; give it by FLOWGATE_TOKEN or --token-file",
        _ => "",
    };
    let problem = value["error"].as_str().unwrap_or("no reason given");
    match value["field"].as_str() {
        Some(field) if !problem.starts_with(field) => bail!("{field}: {problem} (status {status}){token}"),
        _ => bail!("{problem} (status {status}){token}"),
    }
}
