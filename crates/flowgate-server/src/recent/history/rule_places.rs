//! The rules that have a history of their own. Their number is bounded.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::rings::{Resolution, Rings};
use super::{StepCounts, Tally};

/// A rule that has not decided for this many seconds gives its place to a rule that decides.
const QUIET_SECONDS: u64 = 600;

#[derive(Debug)]
pub(super) struct RulePlaces {
    most: usize,
    pub(super) places: HashMap<Box<str>, Place>,
    /// The tallies of the rules that have decided and have no place.
    pub(super) others: HashMap<Box<str>, Tally>,
}

#[derive(Debug)]
pub(super) struct Place {
    before: Tally,
    /// When the rule got its place.
    pub(super) since: u64,
    /// The last second in which the rule decided.
    active: u64,
    pub(super) counts: Rings<StepCounts>,
}

/// The counts that a record adds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) total: Tally,
    /// The decisions of rules without a place.
    pub(super) other: Tally,
    /// The counts of rules that have lost their place.
    pub(super) displaced: Vec<Rings<StepCounts>>,
}

impl RulePlaces {
    pub(super) fn new(most: usize) -> RulePlaces {
        RulePlaces { most, places: HashMap::new(), others: HashMap::new() }
    }

    pub(super) fn clear(&mut self, begun: &[(Resolution, u64)]) {
        self.places.values_mut().for_each(|place| place.counts.clear(begun));
    }

    /// Adds what is new in the tallies to the steps that hold `second`.
    pub(super) fn record<'r>(&mut self, rules: impl Iterator<Item = (Cow<'r, str>, Tally)>, second: u64) -> Found {
        let mut found = Found::default();
        for (name, tally) in rules {
            if let Some(place) = self.places.get_mut(&*name) {
                let new = tally.since(std::mem::replace(&mut place.before, tally));
                found.total += new;
                place.add(new, second);
                continue;
            }
            let new = tally.since(self.others.get(&*name).copied().unwrap_or_default());
            if new.is_zero() {
                continue;
            }
            found.total += new;
            match self.make_place(second, &mut found) {
                true => {
                    self.others.remove(&*name);
                    let mut place = Place { before: tally, since: second, active: second, counts: Rings::default() };
                    place.add(new, second);
                    self.places.insert(name.into(), place);
                }
                false => {
                    found.other += new;
                    self.others.insert(name.into(), tally);
                }
            }
        }
        found
    }

    /// True if there is a place for one more rule. If all places are taken, the rule that was quiet longest may lose
    /// its place.
    fn make_place(&mut self, second: u64, found: &mut Found) -> bool {
        if self.places.len() < self.most {
            return true;
        }
        let Some((name, place)) = self.places.iter().min_by_key(|(_, place)| place.active) else { return false };
        if second.saturating_sub(place.active) < QUIET_SECONDS {
            return false;
        }
        let name = name.clone();
        if let Some(place) = self.places.remove(&name) {
            self.others.insert(name, place.before);
            found.displaced.push(place.counts);
        }
        true
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let places = self.places.iter();
        places.map(|(name, place)| name.len() + size_of::<Place>() + place.counts.bytes()).sum()
    }
}

impl Place {
    fn add(&mut self, new: Tally, second: u64) {
        if !new.is_zero() {
            self.active = second;
            self.counts.change(second, |counts| counts.add(new));
        }
    }
}
