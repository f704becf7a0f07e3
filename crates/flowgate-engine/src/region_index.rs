//! An index of regions that finds those which cover a point: prefixes of a text, networks around an address.
//!
//! Invariant  Regions are sorted by where they begin, larger ones first, and two regions are nested or apart. Every
//!            region that covers a point is therefore the last one that begins at or before the point, or encloses it:
//!            one binary search, then up the chain of parents.

use crate::address::Address;
use crate::network::Network;

/// A set of points. Two regions of a type are nested or apart.
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

impl Region for Network {
    type Point = Address;

    fn begins_by(&self, point: &Address) -> bool {
        (self.0.family, self.0.first) <= (point.family, point.bits)
    }

    fn covers(&self, point: &Address) -> bool {
        self.0.contains(*point)
    }

    fn encloses(&self, other: &Network) -> bool {
        self.0.encloses(&other.0)
    }
}

/// Regions with a value each.
#[derive(Clone, Debug)]
pub(crate) struct RegionIndex<R, T> {
    nodes: Box<[RegionNode<R, T>]>,
}

#[derive(Clone, Debug)]
struct RegionNode<R, T> {
    region: R,
    /// The index of the smallest region that encloses this one.
    parent: Option<u32>,
    value: T,
}

impl<R, T> Default for RegionIndex<R, T> {
    fn default() -> Self {
        RegionIndex { nodes: Box::default() }
    }
}

impl<R: Region, T> FromIterator<(R, T)> for RegionIndex<R, T> {
    /// Builds the index. No region may occur twice.
    fn from_iter<I: IntoIterator<Item = (R, T)>>(regions: I) -> RegionIndex<R, T> {
        let node = |(region, value)| RegionNode { region, parent: None, value };
        let mut nodes: Vec<RegionNode<R, T>> = regions.into_iter().map(node).collect();
        nodes.sort_by(|a, b| a.region.cmp(&b.region));
        for index in 1..nodes.len() {
            let mut parent = Some(index as u32 - 1);
            while let Some(above) = parent.filter(|&above| !nodes[above as usize].region.encloses(&nodes[index].region))
            {
                parent = nodes[above as usize].parent;
            }
            nodes[index].parent = parent;
        }
        RegionIndex { nodes: nodes.into() }
    }
}

impl<R: Region, T> RegionIndex<R, T> {
    /// The values of the regions that cover a point, the smallest region first.
    pub(crate) fn covering<'a, 'p>(&'a self, point: &'p R::Point) -> impl Iterator<Item = &'a T> + use<'a, 'p, R, T> {
        let behind = self.nodes.partition_point(|node| node.region.begins_by(point));
        let last = behind.checked_sub(1).map(|last| &self.nodes[last]);
        let up = |node: &&'a RegionNode<R, T>| node.parent.map(|parent| &self.nodes[parent as usize]);
        let chain = std::iter::successors(last, up);
        chain.filter(|node| node.region.covers(point)).map(|node| &node.value)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::address::{AddressRange, Family};

    /// The regions found are those that cover the point, the smallest first.
    fn check<R: Region + Clone + std::fmt::Debug>(regions: BTreeSet<R>, point: &R::Point) {
        let index: RegionIndex<R, R> = regions.iter().map(|region| (region.clone(), region.clone())).collect();
        let found: Vec<&R> = index.covering(point).collect();
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
            let family = |v6| if v6 { Family::V6 } else { Family::V4 };
            let network = |(bits, prefix, v6): (u8, u32, bool)| {
                let host = 255u8.checked_shr(prefix).unwrap_or(0);
                let (first, last) = (bits & !host, bits | host);
                Network::new(AddressRange { family: family(v6), first: first.into(), last: last.into() }).unwrap()
            };
            let point = Address { family: family(v6), bits: point.into() };
            check(networks.into_iter().map(network).collect(), &point);
        }
    }
}
