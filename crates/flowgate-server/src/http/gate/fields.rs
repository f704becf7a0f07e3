//! The fields of the original request: `ip`, `method`, `host`, `path`, `header.NAME` and `query.NAME`, each in one
//! spelling, as far as rules and bans use them.
//!
//! Rule       A header or parameter that is given twice with different values is a contradiction: a client that adds a
//!            value beside the one that the site reads would choose what is counted.
//! Rule       Conditions and bans see the client's whole address. An IPv6 client is counted by its network.

use std::borrow::Cow;
use std::net::IpAddr;

use flowgate_engine::{
    Request,
    http::{Client, PathSpelling, escaped_text, normalized_host, normalized_method, query_values},
};
use smallvec::SmallVec;

use super::original::{Original, Unclear};
use crate::http::head::{self, Header};

/// The fields: names as in rules and bans, and values.
#[derive(Debug)]
pub(super) struct GateFields<'a> {
    values: SmallVec<[(&'a str, Cow<'a, str>); 8]>,
    /// The network by which an IPv6 client is counted.
    network: Option<String>,
}

const ADDRESS: &str = "ip";

impl<'a> GateFields<'a> {
    /// Reads the fields with these names, without those that the request lacks.
    pub(super) fn read(
        original: &'a Original<'_>,
        headers: &'a [Header<'a>],
        spelling: PathSpelling,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<GateFields<'a>, Unclear<'a>> {
        let mut values = SmallVec::new();
        for name in names {
            if let Some(value) = value(original, headers, spelling, name)? {
                values.push((name, value));
            }
        }
        let Client { address, counted, .. } = original.client;
        Ok(GateFields { values, network: (counted != address).then(|| counted.to_string()) })
    }

    pub(super) fn request(&self) -> Request<'_> {
        let request: Request<'_> = self.values.iter().map(|(name, value)| (*name, &**value)).collect();
        match &self.network {
            Some(network) => request.counted_as(ADDRESS, network),
            None => request,
        }
    }
}

fn value<'a>(
    original: &'a Original<'_>,
    headers: &'a [Header<'a>],
    spelling: PathSpelling,
    name: &'a str,
) -> Result<Option<Cow<'a, str>>, Unclear<'a>> {
    let value = match name {
        ADDRESS => Some(Cow::Owned(address_text(original.client.address))),
        "method" => Some(normalized_method(&original.method)),
        "host" => original.host.as_deref().map(normalized_host),
        "path" => original.path().map(|path| spelling.spell(path)),
        _ => {
            let found = if let Some(header) = name.strip_prefix("header.") {
                only(head::values(headers, header)).map(|value| value.map(escaped_text))
            } else if let Some(parameter) = name.strip_prefix("query.") {
                original.query().map_or(Ok(None), |query| only(query_values(query, parameter)))
            } else {
                Ok(None)
            };
            return found.map_err(|Differ| Unclear::Contradiction(name));
        }
    };
    Ok(value)
}

/// An address as text. Formatting takes 1,300 instructions for an IPv4 address, these digits a tenth of it.
fn address_text(address: IpAddr) -> String {
    let IpAddr::V4(v4) = address else { return address.to_string() };
    let mut text = String::with_capacity("255.255.255.255".len());
    for (index, octet) in v4.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        text.push_str(itoa::Buffer::new().format(octet));
    }
    text
}

/// Two values of a header or parameter differ.
#[derive(Debug, PartialEq, Eq)]
struct Differ;

/// The one value that all of `values` equal.
fn only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Result<Option<T>, Differ> {
    let first = values.next();
    if values.all(|value| first.as_ref() == Some(&value)) { Ok(first) } else { Err(Differ) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_the_standard_library_writes_them() {
        for address in ["0.0.0.0", "1.20.255.9", "255.255.255.255", "203.0.113.100", "::1", "2001:db8::9"] {
            assert_eq!(address_text(address.parse().unwrap()), address);
        }
    }

    #[test]
    fn query_parameters_are_decoded() {
        let query = b"a=1&b=x%20y+z&b=x+y%20z&%61b=3&c&d=%zz&=e&f=1&%66=2&g=&g=1&g=";
        for (name, value) in [
            ("a", Ok(Some("1"))),
            ("b", Ok(Some("x y z"))),
            ("ab", Ok(Some("3"))),
            ("c", Ok(Some(""))),
            ("d", Ok(Some("%zz"))),
            ("e", Ok(None)),
            ("f", Err(Differ)),
            ("g", Err(Differ)),
        ] {
            assert_eq!(only(query_values(&query[..], name)), value.map(|value| value.map(Cow::Borrowed)), "{name}");
        }
    }
}
