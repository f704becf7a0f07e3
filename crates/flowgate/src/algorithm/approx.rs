//! Approx: a sliding window estimated from two counters, 16 bytes a key.
//!
//! State      The units of the newest window that was counted in (`current`) and of the one before (`previous`).
//!            Windows of length P are aligned to the epoch.
//! Rule       With `e` the time since the window began, allowed iff `previous * (P - e) + (current + cost) * P <= N *
//!            P`.
//! Invariant  A request at a time before the newest window is decided at the start of that window. Its
//!            waits count from `now`.
//! Bound      N by the estimate; at worst below 2N in a span P. For huge N and many keys, where 16 bytes matter.
//! Portable   Terms `count period`; state `forget_at previous current`, zeros if unused; undo `a forget_at period`.

use super::{Charge, Meter, Numbers, Words};
use crate::ask::Ask;
use crate::decision::{Retry, Verdict};
#[cfg(feature = "portable")]
use crate::portable::{Arguments, Portable};
use crate::time::{NANOS_PER_MICRO, Span};

/// The numbers of an approx limit.
#[derive(Clone, Debug)]
pub(crate) struct Approx {
    count: u64,
    period: u64,
}

/// Two windows, the newer one ending one period before `forget_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) forget_at: u64,
    pub(crate) previous: u32,
    pub(crate) current: u32,
}

/// A [`Pair`] seen from an instant.
struct View {
    /// The start of the current window.
    start: u64,
    /// The instant the decision is made for: `now`, or `start` where that is later.
    at: u64,
    previous: u64,
    current: u64,
}

impl Approx {
    pub(crate) fn new(count: u64, period: u64) -> Approx {
        Approx { count, period }
    }

    /// The units of both windows. Those of the older window count by its weight. Rounded up.
    #[inline]
    fn estimate(&self, view: &View) -> u64 {
        // At most `previous`, so it fits.
        view.current + self.weighted(view).div_ceil(u128::from(self.period)) as u64
    }

    #[inline]
    fn view(&self, state: Option<&Pair>, now: u64) -> View {
        let start = now - now % self.period;
        // A pair that has expired counts nothing, even if it was written under another period.
        let Some(&Pair { forget_at, previous, current }) = state.filter(|pair| now < pair.forget_at) else {
            return View { start, at: now, previous: 0, current: 0 };
        };
        let (previous, current) = (u64::from(previous), u64::from(current));
        let newest = forget_at.saturating_sub(2 * self.period);
        if newest % self.period != 0 {
            // The pair was written under another period. Its units count as taken now, which is stricter, never laxer.
            View { start, at: now, previous: 0, current: previous + current }
        } else if newest >= start {
            View { start: newest, at: now.max(newest), previous, current }
        } else if newest + self.period == start {
            View { start, at: now, previous: current, current: 0 }
        } else {
            View { start, at: now, previous: 0, current: 0 }
        }
    }

    fn pair(&self, view: &View, current: u64) -> Pair {
        Pair::new(view.start + 2 * self.period, view.previous, current)
    }

    /// `previous * (P - e)`.
    fn weighted(&self, view: &View) -> u128 {
        u128::from(view.previous) * u128::from(self.period - (view.at - view.start))
    }

    /// `units * P`.
    fn whole(&self, units: u64) -> u128 {
        u128::from(units) * u128::from(self.period)
    }

    /// The time since the start of a window after which `units` of the previous window weigh at most `room`.
    fn fades_to(&self, units: u64, room: u64) -> u64 {
        if units <= room {
            return 0;
        }
        // Below P, as room < units.
        self.period - (self.whole(room) / u128::from(units)) as u64
    }
}

impl Meter for Approx {
    type State = Pair;

    #[inline]
    fn check(&self, state: Option<&Pair>, ask: Ask) -> Verdict {
        let (now, cost) = (ask.now.as_nanos(), ask.cost);
        if cost > self.count {
            return Verdict::Deny(Retry::Never);
        }
        let view = self.view(state, now);
        let estimate = self.weighted(&view) + self.whole(view.current + cost);
        if estimate <= self.whole(self.count) {
            return Verdict::PASS;
        }
        let passes_at = if view.current + cost <= self.count {
            // The wait ends when the weighted units of the previous window and those of the current one fit together.
            view.start + self.fades_to(view.previous, self.count - view.current - cost)
        } else {
            // The request fits only in the next window, where the current window is the previous one.
            view.start + self.period + self.fades_to(view.current, self.count - cost)
        };
        let micros = (passes_at - now).div_ceil(NANOS_PER_MICRO);
        Verdict::Deny(Retry::After(Span::from_micros(micros)))
    }

    #[inline]
    fn charged(&self, state: Option<Pair>, now: u64, cost: u64, charge: Charge) -> Pair {
        let view = self.view(state.as_ref(), now);
        let cap = match charge {
            Charge::Counted => u64::from(u32::MAX),
            Charge::Denied => self.count,
        };
        self.pair(&view, (view.current + cost).min(cap).max(view.current))
    }

    fn refunded(&self, state: Option<Pair>, now: u64, cost: u64) -> Option<Pair> {
        let view = self.view(state.as_ref(), now);
        let current = view.current.saturating_sub(cost);
        (current > 0 || view.previous > 0).then(|| self.pair(&view, current))
    }

    #[inline]
    fn used(&self, state: Option<&Pair>, now: u64) -> u64 {
        self.estimate(&self.view(state, now))
    }

    #[inline]
    fn numbers(&self, state: Option<&Pair>, now: u64) -> Numbers {
        let view = self.view(state, now);
        let forgotten_at = match (view.current, view.previous) {
            (0, 0) => now,
            (0, _) => view.start + self.period,
            _ => view.start + 2 * self.period,
        };
        Numbers {
            limit: self.count,
            remaining: self.count.saturating_sub(self.estimate(&view)),
            reset_after: Span::from_nanos(forgotten_at - now),
        }
    }
}

impl Pair {
    fn new(forget_at: u64, previous: u64, current: u64) -> Pair {
        let narrow = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
        Pair { forget_at, previous: narrow(previous), current: narrow(current) }
    }
}

impl Words for Pair {
    #[inline]
    fn pack(&self) -> [u64; 2] {
        [self.forget_at, u64::from(self.previous) << 32 | u64::from(self.current)]
    }

    #[inline]
    fn unpack([forget_at, units]: [u64; 2]) -> Pair {
        Pair { forget_at, previous: (units >> 32) as u32, current: units as u32 }
    }
}

#[cfg(feature = "portable")]
impl Portable for Approx {
    const LETTER: u8 = b'a';

    fn write_terms(&self, _: Ask, args: &mut impl Arguments) {
        args.number(self.count);
        args.number(self.period / NANOS_PER_MICRO);
    }

    fn read(&self, reply: &mut impl Iterator<Item = u64>) -> Option<Option<Pair>> {
        let [forget_at, previous, current] = [reply.next()?, reply.next()?, reply.next()?];
        Some((forget_at > 0).then(|| Pair::new(forget_at * NANOS_PER_MICRO, previous, current)))
    }

    fn write_undo(&self, pair: &Pair, _: Ask, args: &mut impl Arguments) {
        args.letter(b'a');
        args.number(pair.forget_at / NANOS_PER_MICRO);
        args.number(self.period / NANOS_PER_MICRO);
    }
}
