//! Passed and denied requests over time: counts per slot of time, and the worst minute and hour.
//!
//! Rule       Times ascend, so a request belongs to the newest slot or to a new one. A slot is one second wide at
//!            first. When there are too many slots, all become wider: 5 seconds, 15 seconds, a minute and so on.
//! Bound      [`MAX_SLOTS`] slots for a trace of any length and with gaps of any length.

use flowgate::{Span, Time};

/// Four times the number of bars in a chart.
const MAX_SLOTS: usize = 720;
/// The widths of slots. Each is a multiple of the one before. Beyond the last width, widening doubles it.
const SLOT_WIDTHS_SECONDS: [u64; 12] = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800];
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The counts of consecutive slots of time.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    width_seconds: u64,
    /// The slots with at least one request, in order.
    slots: Vec<Slot>,
}

/// The requests in one slot of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The number of the slot since the epoch.
    index: u64,
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { width_seconds: SLOT_WIDTHS_SECONDS[0], slots: Vec::with_capacity(MAX_SLOTS) }
    }
}

impl Timeline {
    /// Counts a request.
    #[inline]
    pub(crate) fn add(&mut self, now: Time, allowed: bool) {
        let index = now.as_nanos() / NANOS_PER_SECOND / self.width_seconds;
        let slot = match self.slots.last_mut() {
            Some(slot) if slot.index == index => slot,
            _ => self.open(now),
        };
        slot.count(allowed);
    }

    /// The slot of the time `now`, which becomes the last slot. Makes all slots wider while there are too many.
    #[cold]
    fn open(&mut self, now: Time) -> &mut Slot {
        let second = now.as_nanos() / NANOS_PER_SECOND;
        let first = self.slots.first().map_or(second, |slot| slot.index * self.width_seconds);
        while self.slots.len() >= MAX_SLOTS
            || second / self.width_seconds - first / self.width_seconds >= MAX_SLOTS as u64
        {
            self.widen();
        }
        let index = second / self.width_seconds;
        if self.slots.last().is_none_or(|slot| slot.index != index) {
            self.slots.push(Slot { index, ..Slot::default() });
        }
        let last = self.slots.len() - 1;
        &mut self.slots[last]
    }

    fn widen(&mut self) {
        let wider =
            SLOT_WIDTHS_SECONDS.into_iter().find(|width| *width > self.width_seconds).unwrap_or(self.width_seconds * 2);
        let factor = wider / self.width_seconds;
        self.width_seconds = wider;
        self.slots.dedup_by(|next, slot| {
            let same = next.index / factor == slot.index / factor;
            if same {
                slot.passed += next.passed;
                slot.denied += next.denied;
            }
            same
        });
        self.slots.iter_mut().for_each(|slot| slot.index /= factor);
    }

    /// The timeline with at most `number` slots, empty ones included: the width of a slot, and each slot with its
    /// start.
    pub(crate) fn slots(&self, number: usize) -> (Span, Vec<(Time, Slot)>) {
        let mut shown = self.clone();
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else {
            return (Span::from_secs(self.width_seconds), Vec::new());
        };
        let (first, last) = (first.index * self.width_seconds, last.index * self.width_seconds);
        while last / shown.width_seconds - first / shown.width_seconds >= number.max(1) as u64 {
            shown.widen();
        }
        let mut counted = shown.slots.iter().copied().peekable();
        let all = (first / shown.width_seconds..=last / shown.width_seconds).map(|index| {
            let slot = counted.next_if(|slot| slot.index == index).unwrap_or_default();
            (Time::from_secs(index * shown.width_seconds), slot)
        });
        (Span::from_secs(shown.width_seconds), all.collect())
    }
}

impl Slot {
    #[inline]
    fn count(&mut self, allowed: bool) {
        self.passed += u64::from(allowed);
        self.denied += u64::from(!allowed);
    }
}

/// The period of a fixed length with the most denials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorstPeriod {
    width_seconds: u64,
    current: Slot,
    worst: Slot,
}

impl WorstPeriod {
    /// The worst period of this many seconds.
    pub(crate) fn new(width_seconds: u64) -> WorstPeriod {
        WorstPeriod { width_seconds, current: Slot::default(), worst: Slot::default() }
    }

    /// Counts a request.
    #[inline]
    pub(crate) fn add(&mut self, now: Time, allowed: bool) {
        let index = now.as_nanos() / NANOS_PER_SECOND / self.width_seconds;
        if index != self.current.index {
            self.worst = self.worse();
            self.current = Slot { index, ..Slot::default() };
        }
        self.current.count(allowed);
    }

    /// The first period with the most denials, and its start; `None` without a denial.
    pub(crate) fn slot(&self) -> Option<(Time, Slot)> {
        let worst = self.worse();
        (worst.denied > 0).then(|| (Time::from_secs(worst.index * self.width_seconds), worst))
    }

    fn worse(&self) -> Slot {
        if self.current.denied > self.worst.denied { self.current } else { self.worst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_wider_and_keep_every_count() {
        for step in [1, 7, 60, 3_601, 86_400, 100_000_000] {
            let (mut timeline, mut minute) = (Timeline::default(), WorstPeriod::new(60));
            let count = if step > 1_000_000 { 90 } else { 5_000 };
            for number in 0..count {
                let now = Time::from_secs(1_000_000 + number * step);
                timeline.add(now, number % 10 != 0);
                minute.add(now, number % 10 != 0);
            }
            assert!(timeline.slots.len() <= MAX_SLOTS);
            for number in [1, 50, 200] {
                let (width, slots) = timeline.slots(number);
                assert!(slots.len() <= number, "{step}: {} slots of {width}", slots.len());
                assert!(slots.len() * 8 > number.min(count as usize), "{step}: {} slots of {width}", slots.len());
                assert_eq!(slots.iter().map(|(_, slot)| slot.passed + slot.denied).sum::<u64>(), count);
                assert_eq!(slots.iter().map(|(_, slot)| slot.denied).sum::<u64>(), count / 10);
                assert!(slots.windows(2).all(|pair| pair[1].0.since(pair[0].0) == width));
            }
            assert!(minute.slot().is_some());
        }
    }

    #[test]
    fn first_and_last_instant_share_a_timeline() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.slots(10).1, []);
        timeline.add(Time::EPOCH, true);
        timeline.add(Time::MAX, false);
        let (_, slots) = timeline.slots(100);
        assert_eq!((slots[0].1.passed, slots.last().unwrap().1.denied), (1, 1));
        assert!(slots.len() <= 100);
    }

    #[test]
    fn the_worst_is_the_first_of_equals() {
        let mut minute = WorstPeriod::new(60);
        assert_eq!(minute.slot(), None);
        for (second, allowed) in [(60, false), (61, true), (119, false), (120, false), (180, false), (239, false)] {
            minute.add(Time::from_secs(second), allowed);
        }
        let (start, slot) = minute.slot().unwrap();
        assert_eq!((start, slot.passed, slot.denied), (Time::from_secs(60), 1, 2));
    }
}
