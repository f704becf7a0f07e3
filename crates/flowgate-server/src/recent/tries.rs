//! Tries of drafts on the recorded traffic. One try runs at a time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::metrics::Counter;

#[derive(Debug, Default)]
pub(crate) struct Tries {
    pub(super) is_under_way: AtomicBool,
    pub(super) ends: [Counter; TRY_ENDS.len()],
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TryEnd {
    Finished,
    /// Another try was under way.
    Refused,
    TooLong,
    /// The client of the try has left.
    Left,
}

/// All ends, with their names in the metrics, in the order of their declaration.
pub(super) const TRY_ENDS: [(TryEnd, &str); 4] = [
    (TryEnd::Finished, "finished"),
    (TryEnd::Refused, "refused"),
    (TryEnd::TooLong, "too_long"),
    (TryEnd::Left, "left"),
];

impl Tries {
    /// True if a try may begin: none is under way. [`Tries::end`] must follow.
    pub(crate) fn begin(&self) -> bool {
        let may_begin = !self.is_under_way.swap(true, Relaxed);
        if !may_begin {
            self.count(TryEnd::Refused);
        }
        may_begin
    }

    /// Notes that the try under way has ended.
    pub(crate) fn end(&self, end: TryEnd) {
        self.count(end);
        self.is_under_way.store(false, Relaxed);
    }

    fn count(&self, end: TryEnd) {
        self.ends[end as usize].add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_try_at_a_time() {
        let tries = Tries::default();
        assert!(tries.begin() && !tries.begin() && tries.is_under_way.load(Relaxed));
        tries.end(TryEnd::TooLong);
        assert!(!tries.is_under_way.load(Relaxed) && tries.begin());
        tries.end(TryEnd::Finished);
        assert_eq!(tries.ends.each_ref().map(Counter::get), [1, 1, 1, 0]);
        assert!(TRY_ENDS.iter().enumerate().all(|(index, (end, _))| *end as usize == index));
    }
}
