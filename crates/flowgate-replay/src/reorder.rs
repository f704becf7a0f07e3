//! Lines in the order of their times: each waits until no earlier line can come.
//!
//! State      Batches of consecutive slots of time, one second wide unless the window is very long.
//! Rule       A slot is due when it ends a whole window before the latest time. A line within the window of the latest
//!            time is therefore always in time for its slot.
//! Bound      [`MAX_HELD_BYTES`] of lines. Beyond that the oldest slot is due early, and the window is shorter for a
//!            while. The buffers take at most twice as much, since they grow by doubling.

use std::collections::VecDeque;

use flowgate::{Span, Time};

use super::batch::{Batch, ReadLine};

/// The window unless the caller gives another. Servers log a request when it ends, and few requests take longer than a
/// minute.
pub const DEFAULT_WINDOW: Span = Span::from_secs(60);

/// Room for half a million lines with a few fields each: one minute of 8,000 requests a second.
const MAX_HELD_BYTES: usize = 64 << 20;
/// The most slots of a window. A longer window has wider slots.
const MAX_SLOTS: u64 = 4096;
/// The number of empty batches that are kept for reuse. One slot of a busy log takes a megabyte.
const MAX_SPARE_BATCHES: usize = 4;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Lines that wait until no earlier line can come.
#[derive(Debug)]
pub(crate) struct Reorder {
    pub(crate) window: Span,
    /// The width of a slot in seconds.
    width: u64,
    /// The number of the first slot since the epoch.
    first: u64,
    slots: VecDeque<Batch>,
    spare: Vec<Batch>,
    held_bytes: usize,
    max_bytes: usize,
    /// Lines before this time are too late, because memory was short.
    floor: Time,
}

impl Reorder {
    pub(crate) fn new(window: Span) -> Reorder {
        Reorder::bounded(window, MAX_HELD_BYTES)
    }

    fn bounded(window: Span, max_bytes: usize) -> Reorder {
        Reorder {
            window,
            width: (window.as_nanos() / NANOS_PER_SECOND).div_ceil(MAX_SLOTS).max(1),
            first: 0,
            slots: VecDeque::new(),
            spare: Vec::new(),
            held_bytes: 0,
            max_bytes,
            floor: Time::EPOCH,
        }
    }

    /// Whether the window was shorter for a while because memory was full.
    pub(crate) fn was_full(&self) -> bool {
        self.floor > Time::EPOCH
    }

    /// Whether a line of this time comes too late to be put in order.
    #[inline]
    pub(crate) fn is_too_late(&self, time: Time, latest: Time) -> bool {
        time < self.floor || latest.since(time) > self.window
    }

    /// Adds a line whose time is at most `latest`, and not too late. All slots that are due must have been taken, so
    /// that the slots span one window at most.
    #[inline]
    pub(crate) fn add(&mut self, line: &ReadLine<'_>) {
        let slot = self.slot(line.time);
        self.held_bytes += self.slots[slot].add(line);
    }

    /// The position of the slot of this time.
    #[inline]
    fn slot(&mut self, time: Time) -> usize {
        let second = time.as_nanos() / NANOS_PER_SECOND;
        let number = if self.width == 1 { second } else { second / self.width };
        match number.checked_sub(self.first) {
            Some(position) if position < self.slots.len() as u64 => position as usize,
            _ => self.open(number),
        }
    }

    #[cold]
    fn open(&mut self, number: u64) -> usize {
        if self.slots.is_empty() {
            self.first = number;
        }
        while number < self.first {
            let batch = self.spare.pop().unwrap_or_default();
            self.slots.push_front(batch);
            self.first -= 1;
        }
        while number - self.first >= self.slots.len() as u64 {
            let batch = self.spare.pop().unwrap_or_default();
            self.slots.push_back(batch);
        }
        (number - self.first) as usize
    }

    /// The next batch that no line can join any more, in order; the caller gives it back with
    /// [`recycle`](Reorder::recycle).
    #[inline]
    pub(crate) fn due(&mut self, latest: Time) -> Option<Batch> {
        let open_from = latest.as_nanos().saturating_sub(self.window.as_nanos());
        let ends = |first: u64, width: u64| (first + 1).saturating_mul(width * NANOS_PER_SECOND);
        while !self.slots.is_empty() {
            let is_complete = ends(self.first, self.width) <= open_from;
            if !is_complete && self.held_bytes <= self.max_bytes {
                return None;
            }
            let batch = self.take_first()?;
            if !is_complete && let Some(last) = batch.lines.last() {
                self.floor = self.floor.max(last.time);
            }
            if batch.lines.is_empty() {
                self.recycle(batch);
            } else {
                return Some(batch);
            }
        }
        None
    }

    /// The next batch, due or not, after the end of all traces.
    pub(crate) fn take_first(&mut self) -> Option<Batch> {
        let mut batch = self.slots.pop_front()?;
        self.first += 1;
        self.held_bytes -= batch.bytes();
        batch.sort();
        Some(batch)
    }

    /// Keeps the memory of a batch for reuse.
    pub(crate) fn recycle(&mut self, mut batch: Batch) {
        if self.spare.len() < MAX_SPARE_BATCHES {
            batch.clear();
            self.spare.push(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Format};

    /// Adds lines of these times in milliseconds and returns the numbers of the lines, from 1, in the order in which
    /// they become due, and how many were too late.
    fn order(reorder: &mut Reorder, times: &[u64]) -> (Vec<u64>, usize) {
        let (mut latest, mut decided, mut late) = (Time::EPOCH, Vec::new(), 0);
        let mut last = Time::EPOCH;
        let mut take = |batch: &Batch| {
            for line in &batch.lines {
                assert!(line.time >= last, "time runs back");
                last = line.time;
                decided.push(line.number);
            }
        };
        let mut event = Event::default();
        let text = r#"{"ts":1,"fields":{"user":"7"}}"#;
        Format::Jsonl.read(text, &mut event).unwrap();
        for (number, millis) in (1..).zip(times) {
            let written = Time::from_millis(*millis);
            latest = latest.max(written);
            let is_late = reorder.is_too_late(written, latest);
            late += usize::from(is_late);
            let time = if is_late { latest } else { written };
            while let Some(batch) = reorder.due(latest) {
                take(&batch);
                reorder.recycle(batch);
            }
            let keeps_time_text = false;
            reorder.add(&ReadLine {
                time,
                source: 0,
                number,
                text,
                event: &event,
                second_event: None,
                keeps_time_text,
            });
            assert!(reorder.slots.len() as u64 <= MAX_SLOTS + 2, "{} slots", reorder.slots.len());
        }
        while let Some(batch) = reorder.take_first() {
            take(&batch);
        }
        assert_eq!(reorder.held_bytes, 0);
        (decided, late)
    }

    #[test]
    fn lines_within_the_window_are_put_in_order() {
        let order = |seconds, times: &[u64]| order(&mut Reorder::new(Span::from_secs(seconds)), times);
        assert_eq!(order(60, &[5_000, 4_000, 4_500, 4_000, 6_000]), (vec![2, 4, 3, 1, 5], 0));
        assert_eq!(order(60, &[100_000, 40_000, 39_999]), (vec![2, 1, 3], 1), "60 s late is in time");
        assert_eq!(order(0, &[5_000, 4_000, 5_500, 5_200]), (vec![1, 2, 3, 4], 2), "no window: all in their order");
        assert_eq!(order(7 * 86_400, &[9_000_000_000, 8_500_000_000, 1]), (vec![2, 1, 3], 1));
        let year = 366 * 86_400_000;
        assert_eq!(order(60, &[1, 100 * year, 50 * year, 100 * year - 7]), (vec![1, 4, 2, 3], 1), "a gap of years");
        assert_eq!(order(60, &[Time::MAX.as_nanos() / 1_000_000, 5]), (vec![1, 2], 1));
    }

    #[test]
    fn memory_bounds_the_window() {
        let mut reorder = Reorder::bounded(Span::from_secs(60), 5_000);
        // 100 lines a second in pairs of seconds that are swapped.
        let times: Vec<u64> = (0..3_000).map(|line| 1_000 * ((line / 100) ^ 1)).collect();
        let (decided, late) = order(&mut reorder, &times);
        assert_eq!(decided.len(), times.len());
        assert!(reorder.was_full() && late > 0, "{late}");
        let mut wide = Reorder::bounded(Span::from_secs(60), 100_000);
        assert_eq!(order(&mut wide, &times).1, 0, "a window of some seconds is enough");
        assert!(wide.was_full());
        let one_second = vec![7_000; 3_000];
        assert_eq!(order(&mut Reorder::bounded(Span::from_secs(60), 10_000), &one_second).1, 0);
    }
}
