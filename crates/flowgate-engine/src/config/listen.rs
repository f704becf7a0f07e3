//! `[listen]`: one address per protocol.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::form;
use super::render::quoted;
use super::report::Report;
use super::section::{Keys, Section};
use super::tree::{Node, Value};
use super::value;

/// The addresses of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The API, the gateway check, the console, metrics.
    pub http: ListenAddress,
    /// The Redis protocol.
    pub resp: ListenAddress,
    /// Envoy's rate limit service.
    pub grpc: ListenAddress,
}

/// The address of one protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// The protocol is off.
    Off,
    /// An address and a port; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Default for Listen {
    fn default() -> Listen {
        let local = |port| ListenAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Listen { http: local(7070), resp: local(7071), grpc: ListenAddress::Off }
    }
}

impl Section for Listen {
    const NAME: &'static str = "listen";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("http", &mut self.http, form::text(|report, node| address(report, node, Unix::Allowed)));
        keys.key("resp", &mut self.resp, form::text(|report, node| address(report, node, Unix::Allowed)));
        keys.key("grpc", &mut self.grpc, form::text(|report, node| address(report, node, Unix::Refused)));
    }
}

impl Listen {
    /// The addresses with their keys.
    pub(crate) fn addresses(&self) -> [(&'static str, &ListenAddress); 3] {
        [("http", &self.http), ("resp", &self.resp), ("grpc", &self.grpc)]
    }
}

impl ListenAddress {
    /// True if other machines can reach it.
    pub fn is_public(&self) -> bool {
        matches!(self, ListenAddress::Tcp(address) if !address.ip().to_canonical().is_loopback())
    }

    /// The TCP address; `None` for a unix socket, and if the protocol is off.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            ListenAddress::Tcp(address) => Some(*address),
            ListenAddress::Unix(_) | ListenAddress::Off => None,
        }
    }

    /// How to write the address that was probably meant by a text that is not one.
    pub fn suggestion(text: &str) -> String {
        if text.parse::<std::net::IpAddr>().is_ok() {
            let bracketed = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
            return format!("add a port, such as \"{bracketed}:7070\"");
        }
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let port = port.parse::<u16>().ok();
        match (host, port) {
            ("" | "*", Some(port)) => format!("for all addresses write \"0.0.0.0:{port}\""),
            ("localhost", Some(port)) => format!("write \"127.0.0.1:{port}\""),
            (host, _) if host.parse::<Ipv4Addr>().is_ok() => "a port is a number up to 65535".to_owned(),
            (_, None) if text.parse::<u16>().is_ok() => format!("write \"127.0.0.1:{text}\""),
            _ => "such as \"127.0.0.1:7070\" or \"[::1]:7070\"; names are not looked up".to_owned(),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Off => f.write_str("off"),
            ListenAddress::Tcp(address) => address.fmt(f),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unix {
    Allowed,
    Refused,
}

fn address(report: &mut Report, node: &Node, unix: Unix) -> Option<ListenAddress> {
    if let Value::Integer(port, _) = &node.value {
        let hint = format!("write \"127.0.0.1:{port}\"");
        return report.error(node.at, "expected an address with a port, found a number").hint(hint).refuse();
    }
    let text = value::text(report, node)?;
    if text == "off" {
        return Some(ListenAddress::Off);
    }
    if let Some(path) = text.strip_prefix("unix:") {
        if unix == Unix::Refused {
            return report.error(node.at, "grpc listens on an address with a port only, not on a unix socket").refuse();
        }
        if path.is_empty() {
            let hint = "such as \"unix:/run/flowgate.sock\"";
            return report.error(node.at, "expected a path after \"unix:\"").hint(hint).refuse();
        }
        return Some(ListenAddress::Unix(report.sources.resolve(node.at.source, path)));
    }
    if let Ok(address) = text.parse() {
        return Some(ListenAddress::Tcp(address));
    }
    let message = format!("expected an address with a port, or \"off\", found {}", quoted(text));
    report.error(node.at, message).hint(ListenAddress::suggestion(text)).refuse()
}
