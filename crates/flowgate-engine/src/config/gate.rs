//! `[gate]`: the answers to gateways.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::render::quoted;
use super::report::Report;
use super::table_reader::TableReader;
use super::tree::Node;
use super::value;
use super::writer::Writer;
use crate::address::{Address, AddressRange};
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
    pub(crate) fn read(report: &mut Report, mut fields: TableReader<'_>) -> Gate {
        let mut gate = Gate::default();
        fields.read_into(report, "trusted_proxies", &mut gate.trusted_proxies, |report, node| {
            value::list(report, node, proxy_addresses)
        });
        fields.read_into(report, "ipv6_prefix", &mut gate.ipv6_prefix, |report, node| {
            value::integer(report, node, 1..=128).and_then(|bits| bits.try_into().ok())
        });
        fields.read_into(report, "headers", &mut gate.headers, |report, node| {
            value::list(report, node, |report, item| value::word(report, item, &HEADERS))
        });
        fields.read_into(report, "deny_status", &mut gate.deny_status, |report, node| {
            value::integer(report, node, 400..=599).and_then(|status| status.try_into().ok())
        });
        fields.read_into(report, "path_ignores", &mut gate.path_ignores, |report, node| {
            value::list(report, node, |report, item| value::word(report, item, &PATH_PARTS))
        });
        fields.finish(report);
        gate
    }

    /// The spelling of the field `path`.
    pub fn path_spelling(&self) -> PathSpelling {
        PathSpelling::ignoring(self.path_ignores.iter().copied())
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("gate");
        out.texts("trusted_proxies", self.trusted_proxies.iter().map(ProxyAddresses::to_string));
        out.raw("ipv6_prefix", self.ipv6_prefix);
        out.texts("headers", self.headers.iter().map(|family| value::word_of(&HEADERS, *family)));
        out.raw("deny_status", self.deny_status);
        out.texts("path_ignores", self.path_ignores.iter().map(|part| value::word_of(&PATH_PARTS, *part)));
    }
}

impl ProxyAddresses {
    /// True if `address` is one of them. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(match address.to_canonical() {
            IpAddr::V4(v4) => Address::V4(v4.to_bits()),
            IpAddr::V6(v6) => Address::V6(v6.to_bits()),
        })
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
