//! The target of a ban: a text, or the addresses of a network, in a field.
//!
//! Rule       A value that is an address or a network stands for those addresses, in any spelling. Any other value
//!            stands for itself.
//! Invariant  Two orders have the same [name](Target::name) if and only if they ban the same values of the same field.

use std::fmt;

use super::BanOrderError;
use crate::address::{AddressRange, Family};
use crate::field_name::canonical;
use crate::network::Network;

/// The field in which gateways and access logs give the client's address.
pub const ADDRESS_FIELD: &str = "ip";

/// The target of a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) field: &'a str,
    pub(super) value: Value<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Network(Network),
}

impl<'a> Target<'a> {
    /// Reads the field and the value of an order. In the field of the client's address, a text that is not an address
    /// is a mistake, because such a ban would never match.
    pub(super) fn parse(field: &'a str, value: &'a str) -> Result<Target<'a>, BanOrderError> {
        if field.is_empty() {
            return Err(BanOrderError::Field);
        }
        let field = canonical(field);
        let error = |expected| BanOrderError::Value { found: value.to_owned(), expected };
        if value.is_empty() {
            return Err(error("a value, an address or a network such as 1.2.3.0/24"));
        }
        let value = match AddressRange::parse(value).map_err(|wrong| error(wrong.expected))? {
            None if field == ADDRESS_FIELD => {
                return Err(error("an address or a network, such as 1.2.3.4 or 1.2.3.0/24"));
            }
            None => Value::Text(value),
            Some(range) => {
                let network = Network::new(range);
                Value::Network(network.ok_or_else(|| error("an address or a network such as 1.2.3.0/24"))?)
            }
        };
        Ok(Target { field, value })
    }

    /// The name of the target, the same for all its spellings.
    pub(super) fn name(self) -> String {
        let (field, length) = (self.field, self.field.len());
        match self.value {
            Value::Text(text) => format!("{length}:{field}={text}"),
            Value::Network(network) => format!("{length}:{field}@{network}"),
        }
    }
}

/// The network of a value, if it is so large that a ban on it is most likely a slip: more than an IPv4 /8 or an IPv6
/// /16. `None`: the value is smaller, or not a network.
///
/// ```
/// use flowgate_engine::bans::wide_network;
///
/// let words = |value| wide_network(value).map(|wide| wide.to_string());
/// assert_eq!(words("0.0.0.0/0").as_deref(), Some("every IPv4 address"));
/// assert_eq!(words("128.0.0.0/2").as_deref(), Some("1 of 4 of all IPv4 addresses"));
/// assert_eq!(wide_network("10.0.0.0/8"), None);
/// ```
pub fn wide_network(value: &str) -> Option<WideNetwork> {
    let range = AddressRange::parse(value).ok()??;
    let (family, smallest) = match range.family {
        Family::V4 => ("IPv4", 8),
        Family::V6 => ("IPv6", 16),
    };
    let bits = range.prefix_bits()?;
    (bits < smallest).then(|| WideNetwork { family, one_in: 1 << bits })
}

/// A network of very many addresses. Displayed as `1 of 4 of all IPv4 addresses`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideNetwork {
    /// `IPv4` or `IPv6`.
    pub family: &'static str,
    /// The network holds one of this many equal parts of the family's addresses; 1: every address.
    pub one_in: u32,
}

impl fmt::Display for WideNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WideNetwork { family, one_in } = self;
        match one_in {
            1 => write!(f, "every {family} address"),
            _ => write!(f, "1 of {one_in} of all {family} addresses"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_very_large_networks_are_wide() {
        for (value, expected) in [
            ("0.0.0.0/0", Some("every IPv4 address")),
            ("1.2.3.4/0", Some("every IPv4 address")),
            ("*.*.*.*", Some("every IPv4 address")),
            ("::/0", Some("every IPv6 address")),
            ("0.0.0.0/1", Some("1 of 2 of all IPv4 addresses")),
            ("10.0.0.0/7", Some("1 of 128 of all IPv4 addresses")),
            ("2000::/3", Some("1 of 8 of all IPv6 addresses")),
            ("10.0.0.0/8", None),
            ("2001::/16", None),
            ("10.0.0.1", None),
            ("::1", None),
            ("7", None),
            ("everyone", None),
        ] {
            assert_eq!(wide_network(value).map(|wide| wide.to_string()).as_deref(), expected, "{value}");
        }
    }

    fn name(field: &str, value: &str) -> Result<String, BanOrderError> {
        Target::parse(field, value).map(Target::name)
    }

    #[test]
    fn one_network_has_one_name() {
        assert_eq!(name("ip", "10.9.9.9/8"), name("ip", "10.0.0.0/8"));
        assert_eq!(name("ip", "::ffff:10.0.0.1"), name("ip", "10.0.0.1"));
        assert_ne!(name("ip", "10.0.0.0/8"), name("ip", "10.0.0.0/9"));
        assert_ne!(name("ip", "10.0.0.0/8"), name("x", "10.0.0.0/8"));
        assert_ne!(name("a", "b=c"), name("a=b", "c"));
        assert_eq!(name("ua", "x"), name("header.User-Agent", "x"));
    }

    #[test]
    fn what_is_neither_a_text_nor_addresses_is_an_error() {
        for value in ["", "1.2.3.0/33", "1.2.3.4..1.2.3.9", "1.2.3/24", "999.1.1.1", "*", "1.2.3.4/33"] {
            assert!(matches!(name("ip", value), Err(BanOrderError::Value { .. })), "{value}");
        }
        assert!(name("user", "999.1.1.1").is_ok(), "a text in any other field");
        assert_eq!(name("", "x"), Err(BanOrderError::Field));
    }
}
