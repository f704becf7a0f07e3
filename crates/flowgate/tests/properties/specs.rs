//! Random limits as plain numbers, and random steps that seek out their edges.

use flowgate::{Decision, Limit, Op, Unit};
use proptest::prelude::*;

pub(crate) const MICROS: u64 = 1_000;
pub(crate) const MILLIS: u64 = 1_000_000;
pub(crate) const SECONDS: u64 = 1_000_000_000;
pub(crate) const DAYS: u64 = 86_400 * SECONDS;

/// A limit in numbers that a reader can follow; times are nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) limit: Limit,
    pub(crate) algorithm: Algorithm,
    /// N in millionths.
    pub(crate) micros: u64,
    /// P. For a calendar window about its length.
    pub(crate) period: u64,
    pub(crate) after: Option<(u64, Window)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Algorithm {
    Bucket {
        burst: u64,
    },
    /// `max_wait` is absent for `none`.
    Pace {
        burst: u64,
        max_wait: Option<u64>,
    },
    Fixed(Window),
    Sliding,
    Approx,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Window {
    Plain(u64),
    Calendar(Unit, &'static str),
}

impl Spec {
    /// N rounded down.
    pub(crate) fn count(&self) -> u64 {
        self.micros / 1_000_000
    }

    /// The most that can be taken at once.
    pub(crate) fn most(&self) -> u64 {
        match self.algorithm {
            Algorithm::Bucket { burst } | Algorithm::Pace { burst, .. } => burst,
            _ => self.count(),
        }
    }
}

/// Any limit, a third of them with `after=`.
pub(crate) fn any_spec() -> impl Strategy<Value = Spec> {
    let plain = prop_oneof![bucket(), pace(), fixed(), calendar(), sliding(), approx()];
    (plain, prop::option::weighted(0.3, after())).prop_map(|(spec, after)| match after {
        None => spec,
        Some((free, Window::Plain(length))) => spec.with_after(free, Window::Plain(length)),
        // A zone is one for both windows.
        Some((free, Window::Calendar(unit, zone))) => match spec.algorithm {
            Algorithm::Fixed(Window::Calendar(_, own)) => spec.with_after(free, Window::Calendar(unit, own)),
            _ => spec.with_after(free, Window::Calendar(unit, zone)),
        },
    })
}

impl Spec {
    fn with_after(self, free: u64, window: Window) -> Spec {
        let own_tz = self.limit.tz().is_some();
        let text = match &window {
            // `1us` is one unit: with a zone it would follow that.
            Window::Plain(MICROS) if own_tz => return self,
            Window::Calendar(..) if self.algorithm == Algorithm::Fixed(Window::Plain(MICROS)) => return self,
            Window::Plain(length) => format!("{} after={free}/{}us", self.limit, in_us(*length)),
            Window::Calendar(unit, _) if own_tz => format!("{} after={free}/{}", self.limit, name(*unit)),
            Window::Calendar(unit, zone) => format!("{} after={free}/{} tz={zone}", self.limit, name(*unit)),
        };
        Spec { limit: text.parse().unwrap(), after: Some((free, window)), ..self }
    }
}

pub(crate) fn bucket() -> impl Strategy<Value = Spec> {
    let burst = prop::option::of(prop_oneof![1..4u64, 1..100u64, 1..10_000u64]);
    (micros(), period(), burst).prop_filter_map("too long to fill", |(micros, period, burst)| {
        let option = burst.map_or(String::new(), |burst| format!(" burst={burst}"));
        let limit = format!("bucket {}/{}us{option}", decimal(micros), in_us(period)).parse().ok()?;
        let burst = burst.unwrap_or(micros.div_ceil(1_000_000));
        Some(Spec { limit, algorithm: Algorithm::Bucket { burst }, micros, period, after: None })
    })
}

pub(crate) fn pace() -> impl Strategy<Value = Spec> {
    let burst = prop_oneof![2 => Just(1), 1 => 2..20u64];
    let max_wait = prop_oneof![Just(None), Just(Some(0)), (1..5_000_000u64).prop_map(|us| Some(us * MICROS))];
    (micros(), period(), burst, max_wait).prop_filter_map("too long to fill", |(micros, period, burst, max_wait)| {
        let wait = match max_wait {
            None => "none".to_owned(),
            Some(0) => "0s".to_owned(),
            Some(nanos) => format!("{}us", in_us(nanos)),
        };
        let text = format!("pace {}/{}us burst={burst} max_wait={wait}", decimal(micros), in_us(period));
        let limit = text.parse().ok()?;
        Some(Spec { limit, algorithm: Algorithm::Pace { burst, max_wait }, micros, period, after: None })
    })
}

pub(crate) fn fixed() -> impl Strategy<Value = Spec> {
    (count(), period()).prop_map(|(count, period)| {
        let limit = format!("fixed {count}/{}us", in_us(period)).parse().unwrap();
        let algorithm = Algorithm::Fixed(Window::Plain(period));
        Spec { limit, algorithm, micros: count * 1_000_000, period, after: None }
    })
}

pub(crate) fn calendar() -> impl Strategy<Value = Spec> {
    (count(), unit(), zone()).prop_map(|(count, unit, zone)| {
        let limit = format!("fixed {count}/{} tz={zone}", name(unit)).parse().unwrap();
        let algorithm = Algorithm::Fixed(Window::Calendar(unit, zone));
        Spec { limit, algorithm, micros: count * 1_000_000, period: about(unit), after: None }
    })
}

pub(crate) fn sliding() -> impl Strategy<Value = Spec> {
    (count(), period()).prop_map(|(count, period)| {
        let limit = format!("sliding {count}/{}us", in_us(period)).parse().unwrap();
        Spec { limit, algorithm: Algorithm::Sliding, micros: count * 1_000_000, period, after: None }
    })
}

pub(crate) fn approx() -> impl Strategy<Value = Spec> {
    (count(), period()).prop_map(|(count, period)| {
        let limit = format!("approx {count}/{}us", in_us(period)).parse().unwrap();
        Spec { limit, algorithm: Algorithm::Approx, micros: count * 1_000_000, period, after: None }
    })
}

fn after() -> impl Strategy<Value = (u64, Window)> {
    let calendar = (unit(), zone()).prop_map(|(unit, zone)| Window::Calendar(unit, zone));
    (prop_oneof![1..4u64, count()], prop_oneof![3 => period().prop_map(Window::Plain), 1 => calendar])
}

/// Around the edge of the grid of sliding, and of every magnitude.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1..12u64,
        2 => 1..2_100u64,
        1 => prop::sample::select(vec![1_023, 1_024, 1_025, 10_000, 1_000_000, 4_000_000_000]),
    ]
}

fn micros() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => count().prop_map(|count| count * 1_000_000),
        1 => 1..20_000_000u64,
        1 => (1..100_000_000u64).prop_map(|tenths| tenths * 100_000),
    ]
}

fn period() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![MICROS, MILLIS, SECONDS, 60 * SECONDS, DAYS, 366 * DAYS]),
        (1..2_000u64).prop_map(|us| us * MICROS),
        (1..100_000_000u64).prop_map(|us| us * MICROS),
        (1..10_000u64).prop_map(|secs| secs * SECONDS),
    ]
}

fn unit() -> impl Strategy<Value = Unit> {
    use Unit::{Day, Hour, Millisecond, Minute, Month, Second, Week};
    prop::sample::select(vec![Millisecond, Second, Minute, Hour, Day, Week, Month])
}

fn zone() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Cairo",
    ])
}

fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Microsecond => "us",
        Unit::Millisecond => "ms",
        Unit::Second => "second",
        Unit::Minute => "minute",
        Unit::Hour => "hour",
        Unit::Day => "day",
        Unit::Week => "week",
        Unit::Month => "month",
    }
}

fn about(unit: Unit) -> u64 {
    match unit {
        Unit::Microsecond => MICROS,
        Unit::Millisecond => MILLIS,
        Unit::Second => SECONDS,
        Unit::Minute => 60 * SECONDS,
        Unit::Hour => 3_600 * SECONDS,
        Unit::Day => DAYS,
        Unit::Week => 7 * DAYS,
        Unit::Month => 30 * DAYS,
    }
}

fn in_us(nanos: u64) -> u64 {
    assert_eq!(nanos % MICROS, 0);
    nanos / MICROS
}

fn decimal(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// When a trace begins: at the epoch, lately, or any time.
pub(crate) fn start() -> impl Strategy<Value = u64> {
    const LATELY: u64 = 1_700_000_000 * SECONDS;
    prop_oneof![1 => Just(0), 4 => LATELY..LATELY + 400 * DAYS, 1 => 0..5_000_000_000 * SECONDS]
}

/// One operation of a trace, relative to what came before and to the limit's own numbers.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: Op,
    cost: Cost,
    gap: Gap,
}

#[derive(Clone, Debug)]
enum Cost {
    Units(u64),
    /// This part, in 16ths, of the most that can be taken at once, and so much more.
    Part(u64, u64),
    /// What the last answer said remains, and so much more.
    Remaining(u64),
}

#[derive(Clone, Debug)]
enum Gap {
    None,
    Nanos(u64),
    /// This part of the period, in 2^16ths.
    Part(u64),
    /// This part of the time for one unit, in 256ths.
    Interval(u64),
    /// Until the last wait, or the last reset, is over; or a nanosecond less.
    Wait(u64),
    Reset(u64),
    Back(u64),
}

/// Takes, mostly.
pub(crate) fn takes() -> impl Strategy<Value = Step> {
    (Just(Op::Take), cost(), gap(false)).prop_map(|(op, cost, gap)| Step { op, cost, gap })
}

/// All operations at all times, also such as run back.
pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![6 => Just(Op::Take), 2 => Just(Op::Peek), 1 => Just(Op::Record), 1 => Just(Op::Refund)];
    (op, cost(), gap(true)).prop_map(|(op, cost, gap)| Step { op, cost, gap })
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        5 => Just(Cost::Units(1)),
        2 => (0..6u64).prop_map(Cost::Units),
        3 => (0..18u64, 0..2u64).prop_map(|(part, more)| Cost::Part(part, more)),
        2 => (0..2u64).prop_map(Cost::Remaining),
    ]
}

fn gap(back: bool) -> impl Strategy<Value = Gap> {
    prop_oneof![
        4 => Just(Gap::None),
        1 => (1..3u64).prop_map(Gap::Nanos),
        2 => (0..1u64 << 15).prop_map(Gap::Part),
        1 => (0..3u64 << 16).prop_map(Gap::Part),
        3 => (0..600u64).prop_map(Gap::Interval),
        3 => (0..2u64).prop_map(Gap::Wait),
        1 => (0..2u64).prop_map(Gap::Reset),
        u32::from(back) => (0..5 * MILLIS).prop_map(Gap::Back),
    ]
}

impl Step {
    pub(crate) fn cost(&self, spec: &Spec, last: Option<&Decision>) -> u64 {
        match self.cost {
            Cost::Units(units) => units,
            Cost::Part(part, more) => spec.most() * part / 16 + more,
            Cost::Remaining(more) => last.and_then(|last| last.remaining).unwrap_or(1) + more,
        }
    }

    pub(crate) fn time(&self, spec: &Spec, now: u64, last: Option<&Decision>) -> u64 {
        let part = |whole: u64, part: u64, of: u128| (u128::from(whole) * u128::from(part) / of) as u64;
        let wait = last.and_then(Decision::retry_after).map_or(0, |wait| wait.as_nanos());
        let reset = last.map_or(0, |last| last.reset_after.as_nanos());
        match self.gap {
            Gap::None => now,
            Gap::Nanos(nanos) => now + nanos,
            Gap::Part(parts) => now + part(spec.period, parts, 1 << 16),
            Gap::Interval(parts) => now + part(spec.period, parts, 256 * u128::from(spec.micros).div_ceil(1_000_000)),
            Gap::Wait(less) => now + wait.saturating_sub(less),
            Gap::Reset(less) => now + reset.saturating_sub(less),
            Gap::Back(nanos) => now.saturating_sub(nanos),
        }
    }
}
