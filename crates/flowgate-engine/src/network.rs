//! A network: the addresses that share a prefix.
//!
//! Invariant  Two networks are nested or apart. Other ranges may overlap by halves, so [`Network::new`] refuses them.

use std::cmp::Ordering;
use std::fmt;

use crate::address::{Address, AddressRange};

/// The addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network(AddressRange);

impl Network {
    /// `None` if the range is not a network.
    pub(crate) fn new(range: AddressRange) -> Option<Network> {
        range.prefix_bits().map(|_| Network(range))
    }

    /// The network of `bits` prefix bits around an address; `None` if the address has fewer bits.
    pub(crate) fn around(address: Address, bits: u32) -> Option<Network> {
        match address {
            Address::V4(address) if bits <= 32 => {
                let host = u32::MAX.checked_shr(bits).unwrap_or(0);
                Some(Network(AddressRange::V4 { first: address & !host, last: address | host }))
            }
            Address::V6(address) if bits <= 128 => {
                let host = u128::MAX.checked_shr(bits).unwrap_or(0);
                Some(Network(AddressRange::V6 { first: address & !host, last: address | host }))
            }
            _ => None,
        }
    }

    pub(crate) fn contains(&self, address: Address) -> bool {
        self.0.contains(address)
    }

    pub(crate) fn is_v6(&self) -> bool {
        matches!(self.0, AddressRange::V6 { .. })
    }

    /// The length of its prefix.
    pub(crate) fn bits(&self) -> u32 {
        // `new` refuses a range without a prefix.
        self.0.prefix_bits().unwrap_or_default()
    }

    /// The first and the last address.
    pub(crate) fn ends(&self) -> (Address, Address) {
        match self.0 {
            AddressRange::V4 { first, last } => (Address::V4(first), Address::V4(last)),
            AddressRange::V6 { first, last } => (Address::V6(first), Address::V6(last)),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// By the first address, larger networks first.
impl Ord for Network {
    fn cmp(&self, other: &Network) -> Ordering {
        let ((first, last), (other_first, other_last)) = (self.ends(), other.ends());
        first.cmp(&other_first).then(other_last.cmp(&last))
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
