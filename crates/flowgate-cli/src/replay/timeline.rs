//! What happened when: counts per slot of time, and the worst minute and hour.
//!
//! Rule       Time never runs back here, so the newest slot is the one that counts. Slots begin at a second; when
//!            there are too many they are made wider, by a width that people know.
//! Bound      `SLOTS` slots, however long the trace and however large its gaps.

use flowgate::{Span, Time};

/// More than a chart has bars.
const SLOTS: usize = 720;
/// The widths in seconds; each is a multiple of the one before. Behind the last one they double.
const WIDTHS: [u64; 12] = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 604_800];
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Counts per slot.
#[derive(Clone, Debug)]
pub struct Timeline {
    width: u64,
    /// Those in which something happened, in order.
    slots: Vec<Slot>,
}

/// A slot of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Its number since the epoch.
    index: u64,
    /// Requests that passed.
    pub passed: u64,
    /// Requests that were denied.
    pub denied: u64,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { width: WIDTHS[0], slots: Vec::with_capacity(SLOTS) }
    }
}

impl Timeline {
    /// Counts a request.
    #[inline]
    pub fn add(&mut self, now: Time, allowed: bool) {
        let index = now.as_nanos() / NANOS_PER_SECOND / self.width;
        match self.slots.last_mut() {
            Some(slot) if slot.index == index => slot.count(allowed),
            _ => self.open(now, allowed),
        }
    }

    #[cold]
    fn open(&mut self, now: Time, allowed: bool) {
        let second = now.as_nanos() / NANOS_PER_SECOND;
        let first = self.slots.first().map_or(second, |slot| slot.index * self.width);
        while self.slots.len() >= SLOTS || second / self.width - first / self.width >= SLOTS as u64 {
            self.widen();
        }
        let index = second / self.width;
        match self.slots.last_mut() {
            Some(slot) if slot.index == index => slot.count(allowed),
            _ => {
                let mut slot = Slot { index, ..Slot::default() };
                slot.count(allowed);
                self.slots.push(slot);
            }
        }
    }

    fn widen(&mut self) {
        let wider = WIDTHS.into_iter().find(|width| *width > self.width).unwrap_or(self.width * 2);
        let factor = wider / self.width;
        self.width = wider;
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

    /// The same with at most `number` slots from the first to the last, which may be empty: their width, and each
    /// with its start.
    pub fn slots(&self, number: usize) -> (Span, Vec<(Time, Slot)>) {
        let mut shown = self.clone();
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else {
            return (Span::from_secs(self.width), Vec::new());
        };
        let (first, last) = (first.index * self.width, last.index * self.width);
        while last / shown.width - first / shown.width >= number.max(1) as u64 {
            shown.widen();
        }
        let mut counted = shown.slots.iter().copied().peekable();
        let all = (first / shown.width..=last / shown.width).map(|index| {
            let slot = counted.next_if(|slot| slot.index == index).unwrap_or_default();
            (Time::from_secs(index * shown.width), slot)
        });
        (Span::from_secs(shown.width), all.collect())
    }
}

impl Slot {
    #[inline]
    fn count(&mut self, allowed: bool) {
        self.passed += u64::from(allowed);
        self.denied += u64::from(!allowed);
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        self.passed + self.denied
    }
}

/// The minute, or the hour, with the most denials.
#[derive(Clone, Copy, Debug)]
pub struct Worst {
    width: u64,
    current: Slot,
    best: Slot,
}

impl Worst {
    /// Of spans of so many seconds.
    pub fn of_seconds(width: u64) -> Worst {
        Worst { width, current: Slot::default(), best: Slot::default() }
    }

    /// Counts a request.
    #[inline]
    pub fn add(&mut self, now: Time, allowed: bool) {
        let index = now.as_nanos() / NANOS_PER_SECOND / self.width;
        if index != self.current.index {
            self.best = self.better();
            self.current = Slot { index, ..Slot::default() };
        }
        self.current.count(allowed);
    }

    /// The first with the most denials, and its start; `None` where nothing was denied.
    pub fn found(&self) -> Option<(Time, Slot)> {
        let best = self.better();
        (best.denied > 0).then(|| (Time::from_secs(best.index * self.width), best))
    }

    fn better(&self) -> Slot {
        if self.current.denied > self.best.denied { self.current } else { self.best }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_grow_wider_and_keep_every_count() {
        for step in [1, 7, 60, 3_601, 86_400, 100_000_000] {
            let (mut timeline, mut minute) = (Timeline::default(), Worst::of_seconds(60));
            let count = if step > 1_000_000 { 90 } else { 5_000 };
            for number in 0..count {
                let now = Time::from_secs(1_000_000 + number * step);
                timeline.add(now, number % 10 != 0);
                minute.add(now, number % 10 != 0);
            }
            assert!(timeline.slots.len() <= SLOTS);
            for number in [1, 50, 200] {
                let (width, slots) = timeline.slots(number);
                assert!(slots.len() <= number, "{step}: {} slots of {width}", slots.len());
                assert!(slots.len() * 8 > number.min(count as usize), "{step}: {} slots of {width}", slots.len());
                assert_eq!(slots.iter().map(|(_, slot)| slot.requests()).sum::<u64>(), count);
                assert_eq!(slots.iter().map(|(_, slot)| slot.denied).sum::<u64>(), count / 10);
                assert!(slots.windows(2).all(|pair| pair[1].0.since(pair[0].0) == width));
            }
            assert!(minute.found().is_some());
        }
    }

    #[test]
    fn the_ends_of_time() {
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
        let mut minute = Worst::of_seconds(60);
        assert_eq!(minute.found(), None);
        for (second, allowed) in [(60, false), (61, true), (119, false), (120, false), (180, false), (239, false)] {
            minute.add(Time::from_secs(second), allowed);
        }
        let (start, slot) = minute.found().unwrap();
        assert_eq!((start, slot.passed, slot.denied), (Time::from_secs(60), 1, 2));
    }
}
