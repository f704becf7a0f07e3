//! Internet addresses as numbers, so that a network is a range and a match is two comparisons.
//!
//! Invariant  One address has one form: an IPv4 address mapped into IPv6 (`::ffff:10.0.0.1`) is the IPv4 address. A
//!            range lies within one family; `::/0` is every IPv6 address and no IPv4 one.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The prefix length at which the IPv4 addresses mapped into IPv6 begin.
const MAPPED_BITS: u32 = 96;

/// The version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// The bits of an address.
    fn width(self) -> u32 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address {
    pub(crate) family: Family,
    pub(crate) bits: u128,
}

impl Address {
    /// Reads an address; `None` if the text is not one.
    pub(crate) fn parse(text: &str) -> Option<Address> {
        // Most values of most fields are not addresses, as their first byte shows.
        let start = text.as_bytes().first()?;
        if !start.is_ascii_hexdigit() && *start != b':' {
            return None;
        }
        text.parse::<IpAddr>().ok().map(Address::from)
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        match address.to_canonical() {
            IpAddr::V4(v4) => Address { family: Family::V4, bits: v4.to_bits().into() },
            IpAddr::V6(v6) => Address { family: Family::V6, bits: v6.to_bits() },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            Family::V4 => Ipv4Addr::from_bits(self.bits as u32).fmt(f),
            Family::V6 => Ipv6Addr::from_bits(self.bits).fmt(f),
        }
    }
}

/// The addresses from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AddressRange {
    pub(crate) family: Family,
    pub(crate) first: u128,
    pub(crate) last: u128,
}

/// Why a text that begins like an address range is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeError {
    pub(crate) expected: &'static str,
}

impl AddressRange {
    /// The addresses that a text names: one (`10.0.0.1`), a network (`10.0.0.0/8`; bits beyond the prefix are
    /// ignored), a range (`10.0.0.1..10.0.0.9`) or an IPv4 wildcard (`10.0.24.*`).
    ///
    /// `Ok(None)` when the text does not look like any of these.
    ///
    /// # Errors
    /// If the text begins like one of these but is wrong: half an address, a prefix that is too long, a range that runs
    /// backwards.
    pub(crate) fn parse(text: &str) -> Result<Option<AddressRange>, RangeError> {
        if let Some((first, last)) = text.split_once("..") {
            return AddressRange::between(first, last);
        }
        if let Some((base, bits)) = text.split_once('/') {
            return base.parse().ok().map(|base| AddressRange::network(base, bits)).transpose();
        }
        if let Some(wildcard) = wildcard(text)? {
            return Ok(Some(wildcard));
        }
        Ok(Address::parse(text).map(AddressRange::from))
    }

    pub(crate) fn contains(&self, address: Address) -> bool {
        self.family == address.family && (self.first..=self.last).contains(&address.bits)
    }

    /// True if every address of the other range is in this one.
    pub(crate) fn encloses(&self, other: &AddressRange) -> bool {
        self.family == other.family && self.first <= other.first && other.last <= self.last
    }

    /// The length of the prefix that exactly these addresses share; `None` if the range is not a network.
    pub(crate) fn prefix_bits(&self) -> Option<u32> {
        let host = self.first ^ self.last;
        let is_network = host & self.first == 0 && host & host.wrapping_add(1) == 0;
        is_network.then(|| host.leading_zeros() - (u128::BITS - self.family.width()))
    }

    /// From the first address of one range to the last of another; `None` if the families or the order do not fit.
    pub(crate) fn up_to(&self, other: &AddressRange) -> Option<AddressRange> {
        let fits = self.family == other.family && self.first <= other.last;
        fits.then_some(AddressRange { last: other.last, ..*self })
    }

    /// From one address to another; `Ok(None)` if neither is an address.
    pub(crate) fn between(first: &str, last: &str) -> Result<Option<AddressRange>, RangeError> {
        const EXPECTED: &str = "two addresses of one family, the lower one first, such as 10.0.0.1..10.0.0.9";
        let range = match (Address::parse(first), Address::parse(last)) {
            (None, None) => return Ok(None),
            (Some(first), Some(last)) => AddressRange::from(first).up_to(&last.into()),
            _ => None,
        };
        range.map(Some).ok_or(RangeError { expected: EXPECTED })
    }

    /// The addresses that share the first `bits` bits with this one; `None` if it has fewer.
    pub(crate) fn around(Address { family, bits: address }: Address, bits: u32) -> Option<AddressRange> {
        let host_bits = family.width().checked_sub(bits)?;
        let host = u128::MAX.checked_shr(u128::BITS - host_bits).unwrap_or(0);
        Some(AddressRange { family, first: address & !host, last: address | host })
    }

    fn network(base: IpAddr, bits: &str) -> Result<AddressRange, RangeError> {
        // `parse` accepts a sign and leading zeros, which a prefix length must not have.
        let digits = bits.bytes().all(|b| b.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
        let bits: u32 = if digits { bits.parse().unwrap_or(u32::MAX) } else { u32::MAX };
        let (base, bits, expected) = match base {
            IpAddr::V4(_) => (base.into(), bits, "a prefix length from 0 to 32 after the slash"),
            IpAddr::V6(v6) => {
                let expected = "a prefix length from 0 to 128 after the slash";
                match v6.to_ipv4_mapped() {
                    Some(_) if bits >= MAPPED_BITS => (base.into(), bits - MAPPED_BITS, expected),
                    _ => (Address { family: Family::V6, bits: v6.to_bits() }, bits, expected),
                }
            }
        };
        AddressRange::around(base, bits).ok_or(RangeError { expected })
    }
}

impl From<Address> for AddressRange {
    fn from(Address { family, bits }: Address) -> AddressRange {
        AddressRange { family, first: bits, last: bits }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, last] = [self.first, self.last].map(|bits| Address { family: self.family, bits });
        match self.prefix_bits() {
            _ if first == last => write!(f, "{first}"),
            Some(bits) => write!(f, "{first}/{bits}"),
            None => write!(f, "{first}..{last}"),
        }
    }
}

/// Four parts. The last ones are `*`, but not all four. A text of fewer parts may be a version number, so it is a glob.
fn wildcard(text: &str) -> Result<Option<AddressRange>, RangeError> {
    if !text.ends_with(".*") || text.split('.').count() != 4 {
        return Ok(None);
    }
    let (mut first, mut last, mut open) = (0, 0, false);
    for part in text.split('.') {
        let (low, high) = match part {
            "*" => (0, 255),
            _ if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) => return Ok(None),
            // `10.*.24.*` is not a range; as a glob it matches the text of such addresses.
            _ if open => return Ok(None),
            _ => {
                let value = part.parse::<u8>().ok().filter(|_| part == "0" || !part.starts_with('0'));
                let expected = "numbers from 0 to 255 before the `*`";
                let value = u128::from(value.ok_or(RangeError { expected })?);
                (value, value)
            }
        };
        open |= part == "*";
        (first, last) = (first << 8 | low, last << 8 | high);
    }
    Ok(Some(AddressRange { family: Family::V4, first, last }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn range(text: &str) -> Option<String> {
        AddressRange::parse(text).unwrap().map(|range| range.to_string())
    }

    #[test]
    fn networks_ranges_and_wildcards_are_ranges() {
        let cases = [
            ("10.0.0.1", "10.0.0.1"),
            ("10.9.8.7/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("1.2.3.4/32", "1.2.3.4"),
            ("10.0.0.1..10.0.0.9", "10.0.0.1..10.0.0.9"),
            ("10.0.0.0..10.0.0.255", "10.0.0.0/24"),
            ("10.0.24.*", "10.0.24.0/24"),
            ("10.*.*.*", "10.0.0.0/8"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::/0", "::/0"),
            ("::1", "::1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("2001:db8::1..2001:db8::9", "2001:db8::1..2001:db8::9"),
        ];
        for (text, shown) in cases {
            assert_eq!(range(text).as_deref(), Some(shown), "{text}");
            assert_eq!(range(shown).as_deref(), Some(shown), "{shown}");
        }
    }

    #[test]
    fn other_texts_are_left_alone() {
        for text in ["", "x", "1", "10.0", "10.*", "*.*.*.*.*", "a.b.c.*", "10.*.24.*", "/api/*", "a..b", "1..9", "a/8"]
        {
            assert_eq!(range(text), None, "{text}");
        }
    }

    #[test]
    fn half_an_address_is_an_error() {
        let wrong = [
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "::/129",
            "10.0.300.*",
            "10.0.01.*",
            "10.0.0.9..10.0.0.1",
            "10.0.0.1..x",
            "1..10.0.0.1",
            "10.0.0.1..::1",
        ];
        for text in wrong {
            assert!(AddressRange::parse(text).is_err(), "{text}");
        }
    }
}
