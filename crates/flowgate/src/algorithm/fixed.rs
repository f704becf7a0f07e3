//! Fixed: a counter per window.
//!
//! State      `ends_at` and `count` of the open window. No state, or `now >= ends_at`, means no window is open.
//! Rule       Allowed iff `count + cost <= N`. A plain window opens with the first counted request; a calendar
//!            window is the period of the zone's calendar that holds `now`.
//! Invariant  A window with nothing counted is not kept: a refund to zero closes it.
//! Bound      N in a window; up to 2N in a span P across a boundary, which is why `sliding` is the default.
//! Portable   Terms `count window`; state `ends_at count`, zeros if unused; undo `f ends_at`. A window is `p length`
//!            (plain), `c unit` (ends at multiples of the unit), or `l from number {end}` (the ends of calendar
//!            periods).

#[cfg(feature = "portable")]
mod portable;

use super::{Charge, MAX_EXACT_INTEGER, Meter, Numbers, Words};
use crate::ask::Ask;
use crate::calendar::Calendar;
use crate::decision::{Retry, Verdict};
use crate::time::Span;

/// How long a window lasts.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    /// This many nanoseconds from the first counted request.
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
    pub(crate) fn counted(&self, state: Option<WindowCount>, now: u64, units: u64, cap: u64) -> WindowCount {
        let open = state.filter(|window| now < window.ends_at);
        let WindowCount { ends_at, count } = open.unwrap_or_else(|| WindowCount { ends_at: self.end(now), count: 0 });
        WindowCount { ends_at, count: count.saturating_add(units).min(cap).max(count) }
    }
}

/// An open window: when it ends and what was counted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowCount {
    pub(crate) ends_at: u64,
    pub(crate) count: u64,
}

impl WindowCount {
    /// The number of units in the window that is open at `now`; 0 if none is open.
    #[inline]
    pub(crate) fn count_at(state: Option<&WindowCount>, now: u64) -> u64 {
        state.filter(|window| now < window.ends_at).map_or(0, |window| window.count)
    }

    #[inline]
    pub(crate) fn reset_after(state: Option<&WindowCount>, now: u64) -> Span {
        Span::from_nanos(state.map_or(0, |window| window.ends_at.saturating_sub(now)))
    }

    /// The window once `units` are given back; `None` when nothing is left in it.
    pub(crate) fn refunded(state: Option<WindowCount>, now: u64, units: u64) -> Option<WindowCount> {
        let WindowCount { ends_at, count } = state.filter(|window| now < window.ends_at)?;
        (count > units).then(|| WindowCount { ends_at, count: count - units })
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
}

impl Meter for Fixed {
    type State = WindowCount;

    #[inline]
    fn check(&self, state: Option<&WindowCount>, ask: Ask) -> Verdict {
        let (now, cost) = (ask.now.as_nanos(), ask.cost);
        if cost > self.count {
            Verdict::Deny(Retry::Never)
        } else if WindowCount::count_at(state, now) + cost <= self.count {
            Verdict::PASS
        } else {
            Verdict::Deny(Retry::After(WindowCount::reset_after(state, now)))
        }
    }

    #[inline]
    fn charged(&self, state: Option<WindowCount>, now: u64, cost: u64, charge: Charge) -> WindowCount {
        let cap = match charge {
            Charge::Counted => MAX_EXACT_INTEGER,
            Charge::Denied => self.count,
        };
        self.window.counted(state, now, cost, cap)
    }

    fn refunded(&self, state: Option<WindowCount>, now: u64, cost: u64) -> Option<WindowCount> {
        WindowCount::refunded(state, now, cost)
    }

    #[inline]
    fn used(&self, state: Option<&WindowCount>, now: u64) -> u64 {
        WindowCount::count_at(state, now)
    }

    #[inline]
    fn numbers(&self, state: Option<&WindowCount>, now: u64) -> Numbers {
        let remaining = self.count.saturating_sub(WindowCount::count_at(state, now));
        Numbers { limit: self.count, remaining, reset_after: WindowCount::reset_after(state, now) }
    }
}

impl Words for WindowCount {
    #[inline]
    fn pack(&self) -> [u64; 2] {
        [self.ends_at, self.count]
    }

    #[inline]
    fn unpack([ends_at, count]: [u64; 2]) -> WindowCount {
        WindowCount { ends_at, count }
    }
}
