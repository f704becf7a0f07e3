//! A set of addresses: sorted ranges that do not touch, found by binary search.
//!
//! Invariant  Within a family the ranges ascend, with at least one address between two of them. A million networks of
//!            IPv4 take 8 MB at most.

use crate::address::{Address, AddressRange, Family};

#[derive(Clone, Debug, Default)]
pub(super) struct AddressSet {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl AddressSet {
    pub(super) fn new(ranges: Vec<AddressRange>) -> AddressSet {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for range in ranges {
            match range.family {
                Family::V4 => v4.push((range.first as u32, range.last as u32)),
                Family::V6 => v6.push((range.first, range.last)),
            }
        }
        let (next_v4, next_v6) = (|last: u32| last.saturating_add(1), |last: u128| last.saturating_add(1));
        AddressSet { v4: Ranges::new(v4, next_v4), v6: Ranges::new(v6, next_v6) }
    }

    pub(super) fn contains(&self, address: Address) -> bool {
        match address.family {
            Family::V4 => self.v4.contains(address.bits as u32),
            Family::V6 => self.v6.contains(address.bits),
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

impl<T: Copy + Ord> Ranges<T> {
    /// `next` gives the address after the given one, or at the end of the family the same address.
    fn new(mut ranges: Vec<(T, T)>, next: impl Fn(T) -> T) -> Ranges<T> {
        ranges.sort_unstable();
        let mut merged: Vec<(T, T)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, before)) if first <= next(*before) => *before = last.max(*before),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The test uses few distinct values, so that ranges overlap and touch, also at both ends of the family.
    fn bits() -> impl Strategy<Value = u32> {
        prop_oneof![0..40u32, (u32::MAX - 20)..=u32::MAX]
    }

    fn range() -> impl Strategy<Value = AddressRange> {
        (bits(), bits(), any::<bool>()).prop_map(|(a, b, v6)| {
            let (first, last) = (a.min(b), a.max(b));
            let family = if v6 { Family::V6 } else { Family::V4 };
            AddressRange { family, first: first.into(), last: last.into() }
        })
    }

    proptest! {
        #[test]
        fn a_lookup_agrees_with_asking_each_range(ranges in proptest::collection::vec(range(), 0..12), probes in proptest::collection::vec(bits(), 40)) {
            let set = AddressSet::new(ranges.clone());
            for probe in probes {
                for address in [Family::V4, Family::V6].map(|family| Address { family, bits: probe.into() }) {
                    prop_assert_eq!(set.contains(address), ranges.iter().any(|range| range.contains(address)));
                }
            }
            prop_assert!(set.v4.firsts.iter().skip(1).zip(&set.v4.lasts).all(|(first, last)| *first > last + 1));
        }
    }
}
