//! `[gate]`: the answers to gateways.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::form;
use super::render::quoted;
use super::report::Report;
use super::section::{Keys, Section};
use super::tree::Node;
use super::value;
use crate::address::AddressRange;
use crate::http::{PathPart, PathSpelling};
use crate::rules::shown;

/// The gateway check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The proxies whose `X-Forwarded-*` headers count.
    pub trusted_proxies: Vec<ProxyAddresses>,
    /// IPv6 clients are counted by this prefix.
    pub ipv6_prefix: u8,
    /// The families of headers that answers carry.
    pub headers: Vec<HeaderFamily>,
    /// The status of a denial.
    pub deny_status: u16,
    /// The differences between two spellings of one path.
    pub path_ignores: Vec<PathPart>,
}

/// The addresses of trusted proxies: a network, a range, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyAddresses(AddressRange);

/// A family of headers with the limit and what is left of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderFamily {
    /// `RateLimit-Policy` and `RateLimit`.
    RateLimit,
    /// `X-RateLimit-*`.
    XRateLimit,
}

const ADDRESSES_HINT: &str = "such as \"10.0.0.0/8\", \"192.168.1.7\" or \"fd00::/8\"";

const HEADERS: [(&str, HeaderFamily); 2] =
    [("ratelimit", HeaderFamily::RateLimit), ("x-ratelimit", HeaderFamily::XRateLimit)];

const PATH_PARTS: [(&str, PathPart); 4] = [
    ("case", PathPart::Case),
    ("parameters", PathPart::Parameters),
    ("spaces", PathPart::Spaces),
    ("trailing-slash", PathPart::TrailingSlash),
];

impl Default for Gate {
    fn default() -> Gate {
        let loopback = ["127.0.0.0/8", "::1/128"];
        Gate {
            trusted_proxies: loopback.into_iter().filter_map(|network| network.parse().ok()).collect(),
            ipv6_prefix: 64,
            headers: vec![HeaderFamily::RateLimit, HeaderFamily::XRateLimit],
            deny_status: 429,
            path_ignores: PATH_PARTS.map(|(_, part)| part).to_vec(),
        }
    }
}

impl Gate {
    /// The spelling of the field `path`.
    pub fn path_spelling(&self) -> PathSpelling {
        PathSpelling::ignoring(self.path_ignores.iter().copied())
    }
}

impl Section for Gate {
    const NAME: &'static str = "gate";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.key("trusted_proxies", &mut self.trusted_proxies, form::list(form::text(proxy_addresses)));
        keys.key("ipv6_prefix", &mut self.ipv6_prefix, form::integer(1..=128));
        keys.key("headers", &mut self.headers, form::list(form::word(&HEADERS)));
        keys.key("deny_status", &mut self.deny_status, form::integer(400..=599));
        keys.key("path_ignores", &mut self.path_ignores, form::list(form::word(&PATH_PARTS)));
    }
}

impl ProxyAddresses {
    /// True if `address` is one of them. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(address.into())
    }
}

impl FromStr for ProxyAddresses {
    type Err = ProxyAddressesError;

    fn from_str(text: &str) -> Result<ProxyAddresses, ProxyAddressesError> {
        match AddressRange::parse(text) {
            Ok(Some(range)) => Ok(ProxyAddresses(range)),
            Ok(None) => Err(ProxyAddressesError { found: shown(text), hint: ADDRESSES_HINT }),
            Err(error) => Err(ProxyAddressesError { found: shown(text), hint: error.expected }),
        }
    }
}

/// A text that does not name addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address or a network, found `{found}`: {hint}")]
pub struct ProxyAddressesError {
    found: String,
    hint: &'static str,
}

impl fmt::Display for ProxyAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn proxy_addresses(report: &mut Report, node: &Node) -> Option<ProxyAddresses> {
    let text = value::text(report, node)?;
    match text.parse() {
        Ok(addresses) => Some(addresses),
        Err(ProxyAddressesError { hint, .. }) => {
            let message = format!("expected an address or a network, found {}", quoted(text));
            report.error(node.at, message).hint(hint).refuse()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_addresses_belong_to_an_ipv4_network() {
        let local = "127.0.0.0/8".parse::<ProxyAddresses>().unwrap();
        assert!(local.contains("127.9.9.9".parse().unwrap()) && local.contains("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!local.contains("128.0.0.1".parse().unwrap()) && !local.contains("::1".parse().unwrap()));
    }
}
