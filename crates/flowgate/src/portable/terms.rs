//! Terms: the numbers with which the other side applies a limit or a ban.

use smallvec::SmallVec;

use super::scale::{Exact, Scale};
use crate::algorithm::{Bucket, MAX_DEBT_NANOS, MAX_EXACT_INTEGER, Pace, Ticks, Window};
use crate::ask::Op;
use crate::ban::Ban;
use crate::calendar::Calendar;
use crate::limit::{After, Law, Limit, MAX_COUNT, Unit};
use crate::time::{NANOS_PER_MICRO, Time};

/// How far the other side's clock may be from the caller's before it has to ask for other ends of calendar periods.
const MAX_CLOCK_SKEW_NANOS: u64 = 60 * 1_000_000_000;

const MAX_DEBT_MICROS: u64 = MAX_DEBT_NANOS / NANOS_PER_MICRO;

/// What the other side needs to know of a limit in order to apply it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The limit's own.
    pub own: AlgorithmTerms,
    /// Those of `after=`.
    pub after: Option<AfterTerms>,
    /// A request that is denied is denied for good.
    pub never: bool,
}

/// What a limit needs, by its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlgorithmTerms {
    /// Nothing is counted.
    Unlimited,
    /// `bucket` and `pace`.
    Bucket {
        /// How many ticks a microsecond has.
        ticks: u64,
        /// What the request takes, no more than the longest debt (of a refund: than 2^53 - 1 microseconds).
        want: Exact,
        /// It passes if no more than this is owed; `None`: never.
        room: Option<Exact>,
        /// Above this a denied request does not raise the debt.
        capacity: Exact,
    },
    /// A counter per window.
    Fixed {
        /// The most in a window.
        count: u64,
        /// How windows end.
        window: WindowTerms,
    },
    /// A log.
    Sliding {
        /// The most in a period.
        count: u64,
        /// In microseconds.
        period: u64,
        /// Times are rounded up to the next multiple of this many microseconds; 0 keeps them.
        grid: u64,
    },
    /// Two counters.
    Approx {
        /// The most by the estimate.
        count: u64,
        /// In microseconds.
        period: u64,
    },
}

/// `after=`: the units that are free in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfterTerms {
    /// How many.
    pub free: u64,
    /// How windows end.
    pub window: WindowTerms,
}

/// How windows end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowTerms {
    /// This many microseconds after the first counted request.
    Plain(u64),
    /// At multiples of this many microseconds since the epoch.
    Aligned(u64),
    /// With the periods of a calendar: known from `from` until the last of `ends`, in microseconds.
    Calendar {
        /// The first instant for which `ends` holds.
        from: u64,
        /// The ends of the periods, in order.
        ends: SmallVec<[u64; 4]>,
    },
}

/// What the other side needs to know of a ban, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanTerms {
    /// The number of strikes that starts a ban.
    pub after: u64,
    /// The span in which the strikes have to happen.
    pub within: u64,
    /// How long the bans last, the last length repeating.
    pub lengths: SmallVec<[u64; 4]>,
    /// How long after its end a ban is remembered.
    pub forget: u64,
}

impl Limit {
    /// What the other side needs to know in order to apply `op` at about the time `around`.
    pub fn terms(&self, op: Op, cost: u64, around: Time) -> Terms {
        let around = around.as_nanos();
        let (own, never) = match self.law() {
            Law::Unlimited => (AlgorithmTerms::Unlimited, false),
            Law::Bucket(bucket) => bucket.terms(op, cost),
            Law::WideBucket(bucket) => bucket.terms(op, cost),
            Law::Pace(pace) if let Op::TakeWithin(longest) = op => pace.within(longest).terms(op, cost),
            Law::Pace(pace) => pace.terms(op, cost),
            Law::Fixed(fixed) => {
                (AlgorithmTerms::Fixed { count: fixed.count, window: fixed.window.terms(around) }, cost > fixed.count)
            }
            Law::Sliding(sliding) => {
                let (count, period, grid) = sliding.numbers_in_nanos();
                let grid = if grid == 1 { 0 } else { grid / NANOS_PER_MICRO };
                (AlgorithmTerms::Sliding { count, period: period / NANOS_PER_MICRO, grid }, cost > count)
            }
            Law::Approx(approx) => {
                let (count, period) = approx.numbers_in_nanos();
                (AlgorithmTerms::Approx { count, period: period / NANOS_PER_MICRO }, cost > count)
            }
        };
        let after = self.after_window();
        // When the period of `seen` ends, what the free allowance holds is free again.
        let never = never && after.is_none_or(|after| cost > after.free);
        Terms { own, never, after: after.map(|after| after.terms(around)) }
    }
}

impl After {
    fn terms(&self, around: u64) -> AfterTerms {
        AfterTerms { free: self.free, window: self.window.terms(around) }
    }
}

impl Window {
    fn terms(&self, around: u64) -> WindowTerms {
        match self {
            Window::Plain(length) => WindowTerms::Plain(length / NANOS_PER_MICRO),
            Window::Calendar(calendar) => calendar.terms(around),
        }
    }
}

impl Calendar {
    /// The ends of the periods around an instant, so that it does not matter if the other clock is a little off.
    fn terms(&self, around: u64) -> WindowTerms {
        // Zones differ from each other by whole seconds, so shorter units are the same in all of them.
        if let Unit::Microsecond | Unit::Millisecond | Unit::Second = self.unit {
            return WindowTerms::Aligned(self.unit.nanos().map_or(1, |nanos| nanos / NANOS_PER_MICRO));
        }
        let from = around.saturating_sub(MAX_CLOCK_SKEW_NANOS);
        let from = from - from % NANOS_PER_MICRO;
        let mut ends = SmallVec::new();
        let mut end = self.end(from);
        ends.push(end / NANOS_PER_MICRO);
        while end <= around + MAX_CLOCK_SKEW_NANOS {
            end = self.end(end);
            ends.push(end / NANOS_PER_MICRO);
        }
        WindowTerms::Calendar { from: from / NANOS_PER_MICRO, ends }
    }
}

impl<T: Ticks> Bucket<T> {
    fn terms(&self, op: Op, cost: u64) -> (AlgorithmTerms, bool) {
        self.terms_with(op, cost, 0)
    }

    /// The terms of a bucket that hands out what is beyond its capacity as a delay of up to `max_wait` ticks.
    fn terms_with(&self, op: Op, cost: u64, max_wait: u128) -> (AlgorithmTerms, bool) {
        let scale = Scale::new(self);
        let (_, per_unit) = self.ticks();
        let asked = per_unit.wide() * u128::from(cost.min(MAX_COUNT));
        let (capacity, longest) = self.bounds();
        // A debt beyond the longest is never taken on, and no wait changes what is beyond by itself.
        let beyond = capacity + max_wait > longest;
        let most = (capacity + max_wait).min(longest);
        let too_much = asked > capacity + max_wait || cost > MAX_COUNT;
        let room = most.checked_sub(asked).filter(|_| !too_much);
        let at_most = if op == Op::Refund { MAX_EXACT_INTEGER } else { MAX_DEBT_MICROS };
        let own = AlgorithmTerms::Bucket {
            ticks: scale.per_micro(),
            want: scale.exact(asked, at_most),
            room: room.map(|room| scale.exact(room, MAX_DEBT_MICROS)),
            capacity: scale.exact(capacity, MAX_DEBT_MICROS),
        };
        (own, too_much || beyond)
    }
}

impl Pace {
    fn terms(&self, op: Op, cost: u64) -> (AlgorithmTerms, bool) {
        self.bucket.terms_with(op, cost, self.max_wait_ticks())
    }
}

impl Ban {
    /// What the other side needs to know of the ban.
    pub fn terms(&self) -> BanTerms {
        let (after, within, _) = self.strikes.numbers_in_nanos();
        let micros = |nanos: u64| nanos.div_ceil(NANOS_PER_MICRO);
        let lengths = self.lengths.iter().copied().map(micros).collect();
        BanTerms { after, within: micros(within), lengths, forget: micros(self.forget) }
    }
}
