//! Random limits as plain numbers, and random steps that seek out their edges.

use flowgate::{Decision, Limit, MaxWait, Op, Period, Time, Unit};
use proptest::prelude::*;

/// Nanoseconds of a microsecond.
pub const MICROS: u64 = 1_000;
/// Nanoseconds of a millisecond.
pub const MILLIS: u64 = 1_000_000;
/// Nanoseconds of a second.
pub const SECONDS: u64 = 1_000_000_000;
/// Nanoseconds of a day.
pub const DAYS: u64 = 86_400 * SECONDS;

/// A limit `N/P` in plain numbers. Times are nanoseconds.
#[derive(Clone)]
pub struct Spec {
    /// The limit itself.
    pub limit: Limit,
    /// The limit's algorithm with its own numbers.
    pub algorithm: Algorithm,
    /// N in millionths.
    pub micros: u64,
    /// P. A calendar month counts 30 days here.
    pub period: u64,
    /// The free units of `after=` and their window.
    pub after: Option<(u64, Window)>,
}

/// The algorithm of a limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Algorithm {
    /// `bucket`
    Bucket {
        /// The most units at once.
        burst: u64,
    },
    /// `pace`
    Pace {
        /// The units that leave without a delay.
        burst: u64,
        /// The longest delay; `None` for `max_wait=none`.
        max_wait: Option<u64>,
    },
    /// `fixed`
    Fixed(Window),
    /// `sliding`
    Sliding,
    /// `approx`
    Approx,
}

/// The length of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Window {
    /// This many nanoseconds.
    Plain(u64),
    /// A unit of the calendar in a time zone.
    Calendar(Unit, String),
}

impl Spec {
    /// Reads a limit; `None` if the text is not a limit, or is `unlimited`.
    pub fn parse(text: &str) -> Option<Spec> {
        let limit: Limit = text.parse().ok()?;
        let rate = limit.rate()?;
        let window = |period: Period| match limit.tz() {
            Some(zone) if period.number() == 1 => Window::Calendar(period.unit(), zone.to_owned()),
            _ => Window::Plain(length(period)),
        };
        let algorithm = match limit.algorithm() {
            flowgate::Algorithm::Bucket => Algorithm::Bucket { burst: limit.burst()? },
            flowgate::Algorithm::Pace => {
                let max_wait = match limit.max_wait()? {
                    MaxWait::AtMost(span) => Some(span.as_nanos()),
                    MaxWait::Unbounded => None,
                };
                Algorithm::Pace { burst: limit.burst()?, max_wait }
            }
            flowgate::Algorithm::Fixed => Algorithm::Fixed(window(rate.period())),
            flowgate::Algorithm::Sliding => Algorithm::Sliding,
            flowgate::Algorithm::Approx => Algorithm::Approx,
            flowgate::Algorithm::Unlimited => return None,
        };
        let after = limit.after().map(|(free, period)| (free, window(period)));
        Some(Spec { algorithm, micros: rate.micros(), period: length(rate.period()), after, limit })
    }

    /// N rounded down.
    pub fn count(&self) -> u64 {
        self.micros / 1_000_000
    }

    /// The most units that a single take can ask for and pass.
    pub fn most(&self) -> u64 {
        match self.algorithm {
            Algorithm::Bucket { burst } | Algorithm::Pace { burst, .. } => burst,
            _ => self.count(),
        }
    }
}

impl std::fmt::Debug for Spec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.limit)
    }
}

fn length(period: Period) -> u64 {
    period.length().map_or(30 * DAYS, |length| length.as_nanos())
}

/// Any limit, a third of them with `after=`.
pub fn any_spec() -> impl Strategy<Value = Spec> {
    let after = (prop_oneof![1..4u64, count()], prop_oneof![3 => period(), 1 => calendar_period()]);
    let after = after.prop_map(|(free, period)| format!(" after={free}/{period}"));
    let plain = prop_oneof![bucket(), pace(), fixed(), calendar(), sliding(), approx()];
    (plain, prop::option::weighted(0.3, after)).prop_map(|(spec, after)| {
        let Some(after) = after else { return spec };
        // A limit has one time zone for both of its periods.
        let after = if spec.limit.tz().is_some() { after.split(" tz=").next().unwrap() } else { &after };
        Spec::parse(&format!("{}{after}", spec.limit)).unwrap()
    })
}

/// Limits of `bucket`.
pub fn bucket() -> impl Strategy<Value = Spec> {
    let burst = prop_oneof![
        Just(String::new()),
        prop_oneof![1..4u64, 1..100u64, 1..10_000u64].prop_map(|burst| format!(" burst={burst}")),
    ];
    (decimal(), period(), burst)
        .prop_filter_map("too long to fill", |(n, p, burst)| Spec::parse(&format!("bucket {n}/{p}{burst}")))
}

/// Limits of `pace`.
pub fn pace() -> impl Strategy<Value = Spec> {
    let burst = prop_oneof![2 => Just(1), 1 => 2..20u64];
    let max_wait = prop_oneof![
        Just("none".to_owned()),
        Just("0s".to_owned()),
        (1..5_000_000u64).prop_map(|us| format!("{us}us")),
    ];
    (decimal(), period(), burst, max_wait).prop_filter_map("too long to fill", |(n, p, burst, max_wait)| {
        Spec::parse(&format!("pace {n}/{p} burst={burst} max_wait={max_wait}"))
    })
}

/// Limits of `fixed` whose windows begin with the first request.
pub fn fixed() -> impl Strategy<Value = Spec> {
    (count(), period()).prop_filter_map("a limit", |(n, p)| Spec::parse(&format!("fixed {n}/{p}")))
}

/// Limits of `fixed` whose windows follow a calendar.
pub fn calendar() -> impl Strategy<Value = Spec> {
    (count(), calendar_period()).prop_filter_map("a limit", |(n, p)| Spec::parse(&format!("fixed {n}/{p}")))
}

/// Limits of `sliding`.
pub fn sliding() -> impl Strategy<Value = Spec> {
    (count(), period()).prop_filter_map("a limit", |(n, p)| Spec::parse(&format!("sliding {n}/{p}")))
}

/// Limits of `approx`.
pub fn approx() -> impl Strategy<Value = Spec> {
    (count(), period()).prop_filter_map("a limit", |(n, p)| Spec::parse(&format!("approx {n}/{p}")))
}

/// Counts around the edge of the grid of `sliding`, and of every magnitude.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1..12u64,
        2 => 1..2_100u64,
        1 => prop::sample::select(vec![1_023, 1_024, 1_025, 10_000, 1_000_000, 4_000_000_000]),
    ]
}

fn decimal() -> impl Strategy<Value = String> {
    let micros = prop_oneof![
        3 => count().prop_map(|count| count * 1_000_000),
        1 => 1..20_000_000u64,
        1 => (1..100_000_000u64).prop_map(|tenths| tenths * 100_000),
    ];
    micros.prop_map(|micros| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000))
}

fn period() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["us", "ms", "s", "m", "d", "366d"]).prop_map(str::to_owned),
        (1..2_000u64).prop_map(|us| format!("{us}us")),
        (1..100_000_000u64).prop_map(|us| format!("{us}us")),
        (1..10_000u64).prop_map(|secs| format!("{secs}s")),
    ]
}

fn calendar_period() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec!["ms", "second", "minute", "hour", "day", "week", "month"]);
    let zone = prop::sample::select(vec![
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "Asia/Kolkata",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Cairo",
    ]);
    (unit, zone).prop_map(|(unit, zone)| format!("{unit} tz={zone}"))
}

/// When a trace begins, in nanoseconds since the epoch: at the epoch, lately, or at any time.
pub fn start() -> impl Strategy<Value = u64> {
    const LATELY: u64 = 1_700_000_000 * SECONDS;
    prop_oneof![1 => Just(0), 4 => LATELY..LATELY + 400 * DAYS, 1 => 0..5_000_000_000 * SECONDS]
}

/// One operation of a trace. Its cost and time depend on the answer before it and on the limit's own numbers.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub op: Op,
    cost: Cost,
    gap: Gap,
}

#[derive(Clone, Debug)]
enum Cost {
    Units(u64),
    /// This part, in 16ths, of the most that can be taken at once, plus this many units.
    Part(u64, u64),
    /// The remaining units of the last answer, plus this many units.
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
    /// Until the last wait or the last reset is over, or one nanosecond earlier.
    Wait(u64),
    Reset(u64),
    Back(u64),
}

/// Takes at times that never run back.
pub fn takes() -> impl Strategy<Value = Step> {
    (Just(Op::Take), cost(), gap(false)).prop_map(|(op, cost, gap)| Step { op, cost, gap })
}

/// All operations. Some of their times lie before the time of the previous step.
pub fn any_step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![6 => Just(Op::Take), 2 => Just(Op::Peek), 1 => Just(Op::Record), 1 => Just(Op::CheckAndRecord),
        1 => Just(Op::Refund)];
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
    /// The units to ask for, after the answer `last`.
    pub fn cost(&self, spec: &Spec, last: Option<&Decision>) -> u64 {
        match self.cost {
            Cost::Units(units) => units,
            Cost::Part(part, more) => spec.most() * part / 16 + more,
            Cost::Remaining(more) => last.and_then(|last| last.remaining).unwrap_or(1) + more,
        }
    }

    /// When to ask, in nanoseconds since the epoch, after the answer `last` at `now`.
    pub fn time(&self, spec: &Spec, now: u64, last: Option<&Decision>) -> u64 {
        let part = |whole: u64, part: u64, of: u128| (u128::from(whole) * u128::from(part) / of) as u64;
        let wait = last.and_then(Decision::retry_after).map_or(0, |wait| wait.as_nanos());
        let reset = last.map_or(0, |last| last.reset_after.as_nanos());
        let time = match self.gap {
            Gap::None => now,
            Gap::Nanos(nanos) => now + nanos,
            Gap::Part(parts) => now + part(spec.period, parts, 1 << 16),
            Gap::Interval(parts) => now + part(spec.period, parts, 256 * u128::from(spec.micros).div_ceil(1_000_000)),
            Gap::Wait(less) => now + wait.saturating_sub(less),
            Gap::Reset(less) => now + reset.saturating_sub(less),
            Gap::Back(nanos) => now.saturating_sub(nanos),
        };
        Time::from_nanos(time).as_nanos()
    }
}
