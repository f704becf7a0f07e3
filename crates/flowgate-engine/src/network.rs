//! A network: the addresses that share a prefix.
//!
//! Invariant Two networks are nested or apart. Other ranges may overlap in part, so [`Network::new`] refuses them.

use std::cmp::Ordering;
use std::fmt;

use crate::address::{Address, AddressRange, Family};

/// The addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network(pub(crate) AddressRange);

impl Network {
    /// `None` if the range is not a network.
    pub(crate) fn new(range: AddressRange) -> Option<Network> {
        range.prefix_bits().map(|_| Network(range))
    }

    /// The network of `bits` prefix bits around an address; `None` if the address has fewer bits.
    pub(crate) fn around(address: Address, bits: u32) -> Option<Network> {
        AddressRange::around(address, bits).map(Network)
    }

    /// Its family, and the length of its prefix.
    pub(crate) fn prefix(&self) -> (Family, u32) {
        // `new` refuses a range without a prefix.
        (self.0.family, self.0.prefix_bits().unwrap_or_default())
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
        let AddressRange { family, first, last } = other.0;
        (self.0.family, self.0.first).cmp(&(family, first)).then(last.cmp(&self.0.last))
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
