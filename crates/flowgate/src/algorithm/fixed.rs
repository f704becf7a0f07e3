//! Fixed: a counter per window.
//!
//! State      `ends_at` and `count` of the open window. No state, or `now >= ends_at`, means no window is open.
//! Rule       Allowed iff `count + cost <= N`. A plain window opens with the first counted request; a calendar
//!            window is the period of the zone's calendar that holds `now`.
//! Invariant  A window with nothing counted is not kept: a refund to zero closes it.
//! Bound      N in a window; up to 2N in a span P across a boundary, which is why `sliding` is the default.

use super::MAX_COUNTED;
use crate::calendar::Calendar;
use crate::decision::{Retry, Verdict};
use crate::time::Span;

/// How long a window lasts.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    /// So many nanoseconds from the first counted request.
    Plain(u64),
    Calendar(Box<Calendar>),
}

impl Window {
    /// When a window that opens at `now` ends.
    fn end(&self, now: u64) -> u64 {
        match self {
            Window::Plain(length) => now + length,
            Window::Calendar(calendar) => calendar.end(now),
        }
    }

    /// The window once `units` are counted; the count does not rise above `cap` (nor fall).
    #[inline]
    pub(crate) fn counted(&self, state: Option<Counted>, now: u64, units: u64, cap: u64) -> Counted {
        let open = state.filter(|window| now < window.ends_at);
        let Counted { ends_at, count } = open.unwrap_or_else(|| Counted { ends_at: self.end(now), count: 0 });
        Counted { ends_at, count: count.saturating_add(units).min(cap.min(MAX_COUNTED)).max(count) }
    }
}

/// An open window: when it ends and what was counted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) ends_at: u64,
    pub(crate) count: u64,
}

impl Counted {
    /// What was counted in the window that is open at `now`.
    #[inline]
    pub(crate) fn count_at(state: Option<Counted>, now: u64) -> u64 {
        state.filter(|window| now < window.ends_at).map_or(0, |window| window.count)
    }

    #[inline]
    pub(crate) fn reset_after(state: Option<Counted>, now: u64) -> Span {
        Span::from_nanos(state.map_or(0, |window| window.ends_at.saturating_sub(now)))
    }

    /// The window once `units` are given back; `None` when nothing is left in it.
    pub(crate) fn refunded(state: Option<Counted>, now: u64, units: u64) -> Option<Counted> {
        let Counted { ends_at, count } = state.filter(|window| now < window.ends_at)?;
        (count > units).then(|| Counted { ends_at, count: count - units })
    }
}

/// The numbers of a fixed limit.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    pub(crate) count: u64,
    pub(crate) window: Window,
}

impl Fixed {
    pub(crate) fn new(count: u64, window: Window) -> Fixed {
        Fixed { count, window }
    }

    #[inline]
    pub(crate) fn check(&self, state: Option<Counted>, now: u64, cost: u64) -> Verdict {
        if cost > self.count {
            Verdict::Deny(Retry::Never)
        } else if Counted::count_at(state, now) + cost <= self.count {
            Verdict::PASS
        } else {
            Verdict::Deny(Retry::After(Counted::reset_after(state, now)))
        }
    }

    #[inline]
    pub(crate) fn remaining(&self, state: Option<Counted>, now: u64) -> u64 {
        self.count.saturating_sub(Counted::count_at(state, now))
    }
}
