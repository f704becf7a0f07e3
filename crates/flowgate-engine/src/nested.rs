//! Regions that are nested or apart, and which of them cover a point: prefixes of texts, networks of addresses.
//!
//! Invariant  Regions are sorted by where they begin, larger ones first, and no two overlap without one enclosing
//!            the other. Hence whatever covers a point encloses, or is, the last region that begins at or before it:
//!            one binary search, then up the chain of parents.

use crate::address::{Address, AddressRange};

/// A region that is nested in every other one that it overlaps.
pub(crate) trait Region: Ord {
    type Point: ?Sized;

    fn begins_by(&self, point: &Self::Point) -> bool;
    fn covers(&self, point: &Self::Point) -> bool;
    fn encloses(&self, other: &Self) -> bool;
}

/// All texts that begin with this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TextPrefix(pub(crate) Box<str>);

impl Region for TextPrefix {
    type Point = str;

    fn begins_by(&self, point: &str) -> bool {
        *self.0 <= *point
    }

    fn covers(&self, point: &str) -> bool {
        point.starts_with(&*self.0)
    }

    fn encloses(&self, other: &TextPrefix) -> bool {
        self.covers(&other.0)
    }
}

/// The addresses of a network. (Ranges that are no network may overlap by halves and have no place here.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network(AddressRange);

impl Network {
    pub(crate) fn new(range: AddressRange) -> Option<Network> {
        range.prefix_bits().map(|_| Network(range))
    }

    /// The network of that prefix length around an address; `None` if the family has fewer bits.
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

    pub(crate) fn is_v6(&self) -> bool {
        matches!(self.0, AddressRange::V6 { .. })
    }

    /// The length of its prefix.
    pub(crate) fn bits(&self) -> u32 {
        // A range that is no network was refused.
        self.0.prefix_bits().unwrap_or_default()
    }

    fn ends(&self) -> (Address, Address) {
        match self.0 {
            AddressRange::V4 { first, last } => (Address::V4(first), Address::V4(last)),
            AddressRange::V6 { first, last } => (Address::V6(first), Address::V6(last)),
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Ord for Network {
    fn cmp(&self, other: &Network) -> std::cmp::Ordering {
        let ((first, last), (other_first, other_last)) = (self.ends(), other.ends());
        first.cmp(&other_first).then(other_last.cmp(&last))
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Region for Network {
    type Point = Address;

    fn begins_by(&self, point: &Address) -> bool {
        self.ends().0 <= *point
    }

    fn covers(&self, point: &Address) -> bool {
        self.0.contains(*point)
    }

    fn encloses(&self, other: &Network) -> bool {
        let (first, last) = other.ends();
        self.0.contains(first) && self.0.contains(last)
    }
}

/// Regions with something attached to each.
#[derive(Clone, Debug)]
pub(crate) struct Nested<R, T> {
    entries: Box<[Entry<R, T>]>,
}

#[derive(Clone, Debug)]
struct Entry<R, T> {
    region: R,
    /// The smallest region that encloses this one.
    parent: Option<u32>,
    attached: T,
}

impl<R, T> Default for Nested<R, T> {
    fn default() -> Self {
        Nested { entries: Box::default() }
    }
}

impl<R: Region, T> FromIterator<(R, T)> for Nested<R, T> {
    /// The regions must differ.
    fn from_iter<I: IntoIterator<Item = (R, T)>>(regions: I) -> Nested<R, T> {
        let attach = |(region, attached)| Entry { region, parent: None, attached };
        let mut entries: Vec<Entry<R, T>> = regions.into_iter().map(attach).collect();
        entries.sort_by(|a, b| a.region.cmp(&b.region));
        for index in 1..entries.len() {
            let mut parent = Some(index as u32 - 1);
            while let Some(above) =
                parent.filter(|&above| !entries[above as usize].region.encloses(&entries[index].region))
            {
                parent = entries[above as usize].parent;
            }
            entries[index].parent = parent;
        }
        Nested { entries: entries.into() }
    }
}

impl<R: Region, T> Nested<R, T> {
    /// What is attached to the regions that cover a point, the smallest region first.
    pub(crate) fn covering<'a, 'p>(&'a self, point: &'p R::Point) -> impl Iterator<Item = &'a T> + use<'a, 'p, R, T> {
        let behind = self.entries.partition_point(|entry| entry.region.begins_by(point));
        let last = behind.checked_sub(1).map(|last| &self.entries[last]);
        let up = |entry: &&'a Entry<R, T>| entry.parent.map(|parent| &self.entries[parent as usize]);
        let chain = std::iter::successors(last, up);
        chain.filter(|entry| entry.region.covers(point)).map(|entry| &entry.attached)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The regions found are those that cover the point, the smallest first.
    fn check<R: Region + Clone + std::fmt::Debug>(regions: BTreeSet<R>, point: &R::Point) {
        let nested: Nested<R, R> = regions.iter().map(|region| (region.clone(), region.clone())).collect();
        let found: Vec<&R> = nested.covering(point).collect();
        let naive: Vec<&R> = regions.iter().rev().filter(|region| region.covers(point)).collect();
        assert_eq!(found, naive);
    }

    proptest! {
        #[test]
        fn prefixes_are_found(prefixes in proptest::collection::btree_set("[ab/]{0,5}", 0..20), point in "[ab/]{0,8}") {
            check(prefixes.into_iter().map(|prefix| TextPrefix(prefix.into())).collect(), point.as_str());
        }

        #[test]
        fn networks_are_found(networks in proptest::collection::vec((any::<u8>(), 0..=8u32, any::<bool>()), 0..20), point: u8, v6: bool) {
            let network = |(bits, prefix, v6): (u8, u32, bool)| {
                let host = 255u8.checked_shr(prefix).unwrap_or(0);
                let (first, last) = (bits & !host, bits | host);
                let v4 = AddressRange::V4 { first: first.into(), last: last.into() };
                Network::new(if v6 { AddressRange::V6 { first: first.into(), last: last.into() } } else { v4 }).unwrap()
            };
            let point = if v6 { Address::V6(point.into()) } else { Address::V4(point.into()) };
            check(networks.into_iter().map(network).collect(), &point);
        }
    }
}
