//! An anchor: the time at one monotonic instant, from which the time at later ones follows.

use super::Reading;
use crate::time::{Span, Time};

/// At the monotonic instant `since` the time was `time`, which was `ahead` nanoseconds ahead of the wall clock.
///
/// From there the clock runs at half speed until `ahead` is worked off, then at full speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) since: u64,
    pub(super) time: u64,
    pub(super) ahead: u64,
}

impl Anchor {
    /// The time at a monotonic instant. One before the anchor counts as the anchor's own.
    #[inline]
    pub(super) fn read(self, monotonic: u64) -> Reading {
        let elapsed = monotonic.saturating_sub(self.since);
        if self.ahead == 0 {
            return Time::from_nanos(self.time + elapsed).into();
        }
        // Rounded so that after a wait of `2 * w` the time is `w` later, and one nanosecond earlier it is not.
        let lost = elapsed.div_ceil(2).min(self.ahead);
        Reading { now: Time::from_nanos(self.time + elapsed - lost), ahead: Span::from_nanos(self.ahead - lost) }
    }
}
