//! The sliding logs of a shard that need more than a slot: those of more than one entry. A log keeps its place until it is
//! removed, so its slot knows it by the number of the place.

use std::ops::{Index, IndexMut};

use crate::algorithm::Log;

/// Logs by the number of their place. The places come first, because [`Shard`](super::shard::Shard) wants them in its second
/// cache line.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Logs {
    places: Vec<Place>,
    len: usize,
    /// The first vacant place, or the place after the last one.
    vacant: usize,
}

/// A place for a log. It is aligned, so that none lies across two cache lines.
#[derive(Debug)]
#[repr(align(32))]
struct Place(Content);

const _: () = assert!(size_of::<Place>() == 32);

#[derive(Debug)]
enum Content {
    Log(Log),
    /// A vacant place, with the index of the next vacant one.
    Vacant(usize),
}

impl Logs {
    /// The bytes of a place.
    pub(super) const PLACE_BYTES: usize = size_of::<Place>();

    pub(super) fn with_capacity(places: usize) -> Logs {
        Logs { places: Vec::with_capacity(places), ..Logs::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The places that are allocated.
    pub(super) fn capacity(&self) -> usize {
        self.places.capacity()
    }

    /// Allocates room for `more` logs, and no more than that.
    pub(super) fn reserve_exact(&mut self, more: usize) {
        let vacant = self.places.len() - self.len;
        self.places.reserve_exact(more.saturating_sub(vacant));
    }

    /// Keeps a log, and returns its place.
    pub(super) fn insert(&mut self, log: Log) -> usize {
        let place = self.vacant;
        match self.places.get_mut(place) {
            Some(Place(content)) => {
                if let Content::Vacant(next) = *content {
                    self.vacant = next;
                }
                *content = Content::Log(log);
            }
            None => {
                self.places.push(Place(Content::Log(log)));
                self.vacant = self.places.len();
            }
        }
        self.len += 1;
        place
    }

    /// Takes the log at a place.
    pub(super) fn remove(&mut self, place: usize) -> Option<Log> {
        let Place(content) = self.places.get_mut(place)?;
        match std::mem::replace(content, Content::Vacant(self.vacant)) {
            Content::Log(log) => {
                self.vacant = place;
                self.len -= 1;
                Some(log)
            }
            vacant => {
                *content = vacant;
                None
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&Log> {
        match &self.places.get(place)?.0 {
            Content::Log(log) => Some(log),
            Content::Vacant(_) => None,
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Log> {
        match &mut self.places.get_mut(place)?.0 {
            Content::Log(log) => Some(log),
            Content::Vacant(_) => None,
        }
    }

    /// The address of a place. Reads nothing of the place.
    #[inline]
    pub(super) fn address(&self, place: usize) -> *const u8 {
        self.places.as_ptr().wrapping_add(place).cast()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Log> {
        (0..self.places.len()).filter_map(|place| self.get(place))
    }
}

impl Index<usize> for Logs {
    type Output = Log;

    #[inline]
    fn index(&self, place: usize) -> &Log {
        self.get(place).expect(PLACE_IS_TAKEN)
    }
}

impl IndexMut<usize> for Logs {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut Log {
        self.get_mut(place).expect(PLACE_IS_TAKEN)
    }
}

const PLACE_IS_TAKEN: &str = "a slot of kind `Log` names the place of its log";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Entry;

    fn log(units: u64) -> Log {
        Log::One(Entry { leaves_at: 1, units })
    }

    #[test]
    fn a_log_keeps_its_place_and_vacant_places_are_used_again() {
        let mut logs = Logs::default();
        let places: Vec<usize> = (0..5).map(|units| logs.insert(log(units))).collect();
        assert_eq!(logs.remove(places[1]), Some(log(1)));
        assert_eq!(logs.remove(places[3]), Some(log(3)));
        assert_eq!(logs.remove(places[3]), None, "it is vacant");
        assert_eq!(logs.remove(99), None);
        assert_eq!((logs.len(), logs.get(places[1])), (3, None));
        let capacity = logs.capacity();
        assert_eq!([logs.insert(log(7)), logs.insert(log(8))], [places[3], places[1]]);
        assert_eq!((logs[places[4]].clone(), logs[places[1]].clone()), (log(4), log(8)));
        assert_eq!((logs.len(), logs.capacity(), logs.insert(log(9))), (5, capacity, 5));
    }
}
