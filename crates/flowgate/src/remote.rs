//! Counters that something else keeps: what a store needs whose arithmetic happens elsewhere, such as in a script that
//! runs in Redis.
//!
//! Rule       [`Limit::terms`] gives the numbers with which the other side adds and compares. It hands back the states
//!            that it **found**; [`restore`](Hit::restore) puts them into the hits and [`decide`] derives the answers with
//!            the very functions that decide in memory. So both stores give the same answers as long as the other side
//!            counts alike.
//! Invariant  Times are whole microseconds. Every number of a term, and every sum that the other side makes of two,
//!            is below 2^53 until the year 2155: a double holds it exactly.
//!
//! A microsecond is divided further only by `bucket` and `pace`: an instant is whole microseconds and *ticks*, of which
//! a microsecond has as many as make the interval of the limit a whole number of them, less than 10^15.

use smallvec::SmallVec;

use crate::algorithm::{Bucket, Counted, Counter, Entry, FullAt, Log, MAX_DEBT_NANOS, Pair, State, Ticks, Window};
use crate::ban::{Ban, BanHit, Banned, Record};
use crate::calendar::Calendar;
use crate::decision::Decision;
use crate::limit::{After, Law, Limit, MAX_COUNT, Unit};
use crate::plan::{self, Hit, Op, Rule};
use crate::time::{NANOS_PER_MICRO, Time};

/// How far from the caller's the other side's clock may be before it has to ask for other ends of calendar periods.
const CLOCKS_APART: u64 = 60 * 1_000_000_000;

/// Applies `op` to hits whose states were restored, as of the other side's `now`, and fills in their outcomes.
pub fn decide(op: Op, cost: u64, now: Time, hits: &mut [Hit<'_>], bans: &mut [BanHit<'_>]) {
    plan::decide_banning(op, cost, now, hits, bans);
}

/// Whole microseconds and ticks of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Exact {
    /// Whole microseconds.
    pub micros: u64,
    /// Of the next microsecond; see [`Own::Bucket`] for how many it has.
    pub ticks: u64,
}

/// What the other side needs to know of a limit in order to apply it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The limit's own.
    pub own: Own,
    /// Those of `after=`.
    pub after: Option<AfterTerms>,
    /// A request that is denied is denied for good.
    pub never: bool,
}

/// What a limit needs, by its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Own {
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
        /// Times are rounded up to the next multiple of so many microseconds; 0 keeps them.
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

/// `after=`: so many are free in a window.
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
    /// So many microseconds after the first counted request.
    Plain(u64),
    /// At multiples of so many microseconds since the epoch.
    Aligned(u64),
    /// With the periods of a calendar: known from `from` until the last of `ends`, in microseconds.
    Calendar {
        /// The first instant for which `ends` holds.
        from: u64,
        /// The ends of the periods, in order.
        ends: SmallVec<[u64; 4]>,
    },
}

/// A state as the other side keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// When the bucket is full again.
    Bucket(Exact),
    /// A window.
    Fixed(Counts),
    /// When units leave, oldest first, and how many at each.
    Sliding(SmallVec<[(u64, u64); 3]>),
    /// Two windows; the newer one ends a period before `forget_at`.
    Approx {
        /// In microseconds.
        forget_at: u64,
        /// Units of the older window.
        previous: u64,
        /// Units of the newer window.
        current: u64,
    },
}

/// An open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// In microseconds.
    pub ends_at: u64,
    /// What was counted in it.
    pub count: u64,
}

/// How to undo a charge: its name is when, or in which window, it was made. What bears another name by now is somebody
/// else's, and is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The limit's own count, if it was charged.
    pub own: Option<UndoOwn>,
    /// The end of the window of `after=`.
    pub seen: Option<u64>,
}

/// How to undo a charge to a limit's own count, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoOwn {
    /// When it has leaked out again, what it was, and how many ticks a microsecond has.
    Bucket {
        /// When it has leaked out.
        full_at: Exact,
        /// What it was.
        want: Exact,
        /// How many ticks a microsecond has.
        ticks: u64,
    },
    /// The end of its window.
    Fixed(u64),
    /// When its units leave.
    Sliding(u64),
    /// When both its windows are over, and their length.
    Approx {
        /// When both windows are over.
        forget_at: u64,
        /// Their length.
        period: u64,
    },
}

/// What the other side needs to know of a ban, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanTerms {
    /// So many strikes start a ban.
    pub after: u64,
    /// Within so long.
    pub within: u64,
    /// How long the bans last, the last length repeating.
    pub lengths: SmallVec<[u64; 4]>,
    /// How long after its end a ban is remembered.
    pub forget: u64,
}

/// What the other side remembers of the subject of a ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeptBan {
    /// The end of the last ban, in microseconds; 0: there was none.
    pub until: u64,
    /// Until when it is remembered.
    pub forget_at: u64,
    /// How many there were in a row.
    pub level: u8,
    /// The strikes within the window.
    pub strikes: u64,
}

impl Limit {
    /// What the other side needs to know in order to apply `op` at about the time `around`.
    pub fn terms(&self, op: Op, cost: u64, around: Time) -> Terms {
        let around = around.as_nanos();
        let (own, never) = match self.law() {
            Law::Unlimited => (Own::Unlimited, false),
            Law::Bucket(bucket) => bucket.terms(op, cost),
            Law::WideBucket(bucket) => bucket.terms(op, cost),
            Law::Pace(pace) if let Op::TakeWithin(longest) = op => pace.within(longest).terms(op, cost),
            Law::Pace(pace) => pace.terms(op, cost),
            Law::Fixed(fixed) => {
                (Own::Fixed { count: fixed.count, window: fixed.window.terms(around) }, cost > fixed.count)
            }
            Law::Sliding(sliding) => {
                let (count, period, grid) = sliding.numbers_in_nanos();
                let grid = if grid == 1 { 0 } else { grid / NANOS_PER_MICRO };
                (Own::Sliding { count, period: period / NANOS_PER_MICRO, grid }, cost > count)
            }
            Law::Approx(approx) => {
                let (count, period) = approx.numbers_in_nanos();
                (Own::Approx { count, period: period / NANOS_PER_MICRO }, cost > count)
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
        let from = around.saturating_sub(CLOCKS_APART);
        let from = from - from % NANOS_PER_MICRO;
        let mut ends = SmallVec::new();
        let mut end = self.end(from);
        ends.push(end / NANOS_PER_MICRO);
        while end <= around + CLOCKS_APART {
            end = self.end(end);
            ends.push(end / NANOS_PER_MICRO);
        }
        WindowTerms::Calendar { from: from / NANOS_PER_MICRO, ends }
    }
}

/// How the ticks of a microsecond follow from those of a nanosecond.
#[derive(Clone, Copy)]
struct Scale {
    per_nano: u64,
    /// A tick of a microsecond is so many of a nanosecond; divides 1000.
    coarser: u64,
}

impl Scale {
    /// The coarsest ticks of which both a microsecond and the interval are whole numbers.
    fn of<T: Ticks>(bucket: &Bucket<T>) -> Scale {
        let (per_nano, per_unit) = bucket.ticks();
        let mut coarser = NANOS_PER_MICRO;
        let mut rest = (per_unit.wide() % u128::from(coarser)) as u64;
        while rest > 0 {
            (coarser, rest) = (rest, coarser % rest);
        }
        Scale { per_nano, coarser }
    }

    /// Below 10^15: whole counts leave at most 10^12 of them, and decimals have at most 15 digits.
    fn per_micro(self) -> u64 {
        // Divides, and the product fits: a nanosecond has less than 10^15 ticks.
        self.per_nano * (NANOS_PER_MICRO / self.coarser)
    }

    /// From ticks of a nanosecond; rounded down, which no whole number of ticks of a microsecond notices.
    fn exact(self, ticks: u128, at_most: u64) -> Exact {
        let (ticks, per_micro) = (ticks / u128::from(self.coarser), u128::from(self.per_micro()));
        match u64::try_from(ticks / per_micro) {
            Ok(micros) if micros < at_most => Exact { micros, ticks: (ticks % per_micro) as u64 },
            _ => Exact { micros: at_most, ticks: 0 },
        }
    }

    fn full_at(self, Exact { micros, ticks }: Exact) -> FullAt {
        // What a limit with finer ticks has left is less than a microsecond all the same.
        let ticks = u128::from(ticks.min(self.per_micro() - 1)) * u128::from(self.coarser);
        let (nanos, ticks) = Ticks::split(ticks, self.per_nano);
        FullAt { nanos: micros * NANOS_PER_MICRO + nanos, ticks }
    }

    fn exact_full_at(self, FullAt { nanos, ticks }: FullAt) -> Exact {
        let (micros, nanos) = (nanos / NANOS_PER_MICRO, nanos % NANOS_PER_MICRO);
        let ticks = u128::from(nanos) * u128::from(self.per_nano) + u128::from(ticks);
        Exact { micros, ticks: (ticks / u128::from(self.coarser)) as u64 }
    }
}

const MAX_DEBT_MICROS: u64 = MAX_DEBT_NANOS / NANOS_PER_MICRO;
/// The largest number that a double holds with all smaller ones.
const MOST: u64 = (1 << 53) - 1;

impl<T: Ticks> Bucket<T> {
    fn terms(&self, op: Op, cost: u64) -> (Own, bool) {
        self.terms_with(op, cost, 0)
    }

    /// The terms of a bucket that hands out what is beyond its capacity as a delay of up to `max_wait` ticks.
    fn terms_with(&self, op: Op, cost: u64, max_wait: u128) -> (Own, bool) {
        let scale = Scale::of(self);
        let (_, per_unit) = self.ticks();
        let asked = per_unit.wide() * u128::from(cost.min(MAX_COUNT));
        let (capacity, longest) = self.bounds();
        // A debt beyond the longest is never taken on, and no wait changes what is beyond by itself.
        let beyond = capacity + max_wait > longest;
        let most = (capacity + max_wait).min(longest);
        let too_much = asked > capacity + max_wait || cost > MAX_COUNT;
        let room = most.checked_sub(asked).filter(|_| !too_much);
        let at_most = if op == Op::Refund { MOST } else { MAX_DEBT_MICROS };
        let own = Own::Bucket {
            ticks: scale.per_micro(),
            want: scale.exact(asked, at_most),
            room: room.map(|room| scale.exact(room, MAX_DEBT_MICROS)),
            capacity: scale.exact(capacity, MAX_DEBT_MICROS),
        };
        (own, too_much || beyond)
    }
}

impl crate::algorithm::Pace {
    fn terms(&self, op: Op, cost: u64) -> (Own, bool) {
        self.bucket.terms_with(op, cost, self.max_wait_ticks())
    }
}

impl Law {
    fn scale(&self) -> Option<Scale> {
        match self {
            Law::Bucket(bucket) => Some(Scale::of(bucket)),
            Law::WideBucket(bucket) => Some(Scale::of(bucket)),
            Law::Pace(pace) => Some(Scale::of(&pace.bucket)),
            _ => None,
        }
    }
}

impl<'a> Hit<'a> {
    /// A hit on a counter that something else keeps.
    pub fn remote(limit: &'a Limit, rule: Rule) -> Hit<'a> {
        Hit::new(crate::memory::Key::NOWHERE, limit, rule)
    }

    /// Puts in the state that the other side has found.
    pub fn restore(&mut self, own: Option<Kept>, seen: Option<Counts>) {
        let state = own.map_or(State::Unused, |own| state(self.limit, own));
        self.counter = Counter { state, seen: seen.map(Counts::counted) };
    }

    /// Puts in an outcome that was decided elsewhere.
    pub fn settle(&mut self, outcome: Decision) {
        self.outcome = outcome;
    }

    /// How to undo what [`decide`] has charged to it for a `take` of `cost` that passed.
    pub fn undo(&self, cost: u64) -> Undo {
        let free = self.limit.after_window().map_or(0, |after| after.free);
        let seen = self.counter.seen.filter(|_| self.limit.after_window().is_some());
        // As it was charged: only from the last free one on.
        let enforced = seen.is_none_or(|seen| seen.count >= free);
        Undo {
            own: Some(enforced).filter(|enforced| *enforced).and_then(|_| self.undo_own(cost)),
            seen: seen.map(|seen| seen.ends_at / NANOS_PER_MICRO),
        }
    }

    fn undo_own(&self, cost: u64) -> Option<UndoOwn> {
        let micros = |nanos: u64| nanos / NANOS_PER_MICRO;
        Some(match &self.counter.state {
            State::Bucket(full_at) => {
                let scale = self.limit.law().scale()?;
                let Own::Bucket { ticks, want, .. } = self.limit.terms(Op::Take, cost, Time::EPOCH).own else {
                    return None;
                };
                UndoOwn::Bucket { full_at: scale.exact_full_at(*full_at), want, ticks }
            }
            State::Fixed(window) => UndoOwn::Fixed(micros(window.ends_at)),
            State::Sliding(log) => UndoOwn::Sliding(micros(log.last_leaves_at())),
            State::Approx(pair) => {
                let Law::Approx(approx) = self.limit.law() else { return None };
                UndoOwn::Approx { forget_at: micros(pair.forget_at), period: micros(approx.numbers_in_nanos().1) }
            }
            State::Unused | State::Cell(_) | State::Banned(_) => return None,
        })
    }
}

impl Counts {
    fn counted(self) -> Counted {
        Counted { ends_at: self.ends_at * NANOS_PER_MICRO, count: self.count }
    }
}

fn state(limit: &Limit, own: Kept) -> State {
    match own {
        Kept::Bucket(full_at) => {
            limit.law().scale().map_or(State::Unused, |scale| State::Bucket(scale.full_at(full_at)))
        }
        Kept::Fixed(window) => State::Fixed(window.counted()),
        Kept::Sliding(entries) => {
            let entries = entries.into_iter();
            let entries = entries.map(|(at, units)| Entry { leaves_at: at * NANOS_PER_MICRO, units });
            Log::of(entries).map_or(State::Unused, State::Sliding)
        }
        Kept::Approx { forget_at, previous, current } => {
            let narrow = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
            let forget_at = forget_at * NANOS_PER_MICRO;
            State::Approx(Pair { forget_at, previous: narrow(previous), current: narrow(current) })
        }
    }
}

impl<'a> BanHit<'a> {
    /// A ban whose record something else keeps.
    pub fn remote(ban: &'a Ban, rule: u32) -> BanHit<'a> {
        BanHit::new(crate::memory::Key::NOWHERE, ban, rule)
    }

    /// What the other side needs to know.
    pub fn terms(&self) -> BanTerms {
        self.ban.terms()
    }

    /// Puts in what the other side has found at `now`.
    pub fn restore(&mut self, kept: KeptBan, now: Time) {
        let nanos = |micros: u64| micros * NANOS_PER_MICRO;
        let KeptBan { until, forget_at, level, strikes } = kept;
        let last = (until > 0).then(|| Banned { until: nanos(until), forget_at: nanos(forget_at), level });
        // When they leave makes no difference to what a strike does now.
        let inside = Entry { leaves_at: now.as_nanos() + 1, units: strikes };
        let strikes = (strikes > 0).then_some(Log::One(inside));
        self.record = Record { last, strikes };
    }

    /// Puts in a standing that was worked out elsewhere.
    pub fn settle(&mut self, standing: crate::ban::Standing) {
        self.standing = standing;
    }
}
