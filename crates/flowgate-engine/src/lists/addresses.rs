//! A set of addresses: sorted ranges that do not touch, searched by halving.
//!
//! Invariant  Within a family the ranges ascend, with at least one address between two of them. A million networks of
//!            IPv4 take 8 MB at most.

use crate::address::{Address, AddressRange};

#[derive(Clone, Debug, Default)]
pub(super) struct AddressSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl AddressSet {
    pub(super) fn new(ranges: Vec<AddressRange>) -> AddressSet {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for range in ranges {
            match range {
                AddressRange::V4 { first, last } => v4.push((first, last)),
                AddressRange::V6 { first, last } => v6.push((first, last)),
            }
        }
        AddressSet { v4: Ranges::new(v4), v6: Ranges::new(v6) }
    }

    pub(super) fn contains(&self, address: Address) -> bool {
        match address {
            Address::V4(bits) => self.v4.contains(bits),
            Address::V6(bits) => self.v6.contains(bits),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.v4.firsts.is_empty() && self.v6.firsts.is_empty()
    }
}

/// The ranges of one family: their beginnings and their ends, apart, so that a search touches fewer cache lines.
#[derive(Clone, Debug, Default)]
struct Ranges<T> {
    firsts: Box<[T]>,
    lasts: Box<[T]>,
}

impl<T: Copy + Ord + Successor> Ranges<T> {
    fn new(mut ranges: Vec<(T, T)>) -> Ranges<T> {
        ranges.sort_unstable();
        let mut merged: Vec<(T, T)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, before)) if first <= before.successor() => *before = last.max(*before),
                _ => merged.push((first, last)),
            }
        }
        Ranges { firsts: merged.iter().map(|r| r.0).collect(), lasts: merged.iter().map(|r| r.1).collect() }
    }

    fn contains(&self, bits: T) -> bool {
        let behind = self.firsts.partition_point(|&first| first <= bits);
        behind.checked_sub(1).is_some_and(|index| bits <= self.lasts[index])
    }
}

/// The next number, or the same at the end of the family.
trait Successor {
    fn successor(self) -> Self;
}

impl Successor for u32 {
    fn successor(self) -> u32 {
        self.saturating_add(1)
    }
}

impl Successor for u128 {
    fn successor(self) -> u128 {
        self.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Few distinct values, so that ranges overlap and touch, also at both ends of the family.
    fn bits() -> impl Strategy<Value = u32> {
        prop_oneof![0..40u32, (u32::MAX - 20)..=u32::MAX]
    }

    fn range() -> impl Strategy<Value = AddressRange> {
        (bits(), bits(), any::<bool>()).prop_map(|(a, b, v6)| {
            let (first, last) = (a.min(b), a.max(b));
            if v6 {
                AddressRange::V6 { first: first.into(), last: last.into() }
            } else {
                AddressRange::V4 { first, last }
            }
        })
    }

    proptest! {
        #[test]
        fn a_lookup_agrees_with_asking_each_range(ranges in proptest::collection::vec(range(), 0..12), probes in proptest::collection::vec(bits(), 40)) {
            let set = AddressSet::new(ranges.clone());
            for probe in probes {
                for address in [Address::V4(probe), Address::V6(probe.into())] {
                    prop_assert_eq!(set.contains(address), ranges.iter().any(|range| range.contains(address)));
                }
            }
            prop_assert!(set.v4.firsts.iter().skip(1).zip(&set.v4.lasts).all(|(first, last)| *first > last + 1));
        }
    }
}
