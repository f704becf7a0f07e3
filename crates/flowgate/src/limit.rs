//! Limits: how often something may happen, valid by construction.
//!
//! A [`Limit`] is written as a text (`"bucket 30/60s burst=15"`, see [`parse`](self)) or built step by step; both
//! ways end in [`LimitBuilder::build`], the one place that decides whether a limit can be. What comes out holds the
//! algorithm with its numbers worked out ([`Law`]), so that a decision only adds and compares.

mod algorithm;
mod build;
mod display;
mod error;
mod parse;
mod rate;
mod share;

use std::str::FromStr;
use std::sync::Arc;

pub use algorithm::Algorithm;
pub use build::LimitBuilder;
pub use error::{LimitError, Part};
pub(crate) use rate::MICRO;
pub use rate::{MAX_COUNT, Period, Rate, Unit};

use crate::algorithm::{Law, Window};
use crate::calendar::TimeZone;
use crate::time::Span;

/// The longest delay that `pace` hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaxWait {
    /// A request whose turn is further away is denied.
    AtMost(Span),
    /// Every request gets a turn.
    Unbounded,
}

/// How often something may happen.
///
/// # The limit language
///
/// ```text
/// limit     = "unlimited" | [algorithm] rate {option}    "100/60s"  "fixed 100/day tz=Asia/Shanghai"  "bucket 0.5/s burst=15"
/// algorithm = sliding (default) | fixed | bucket | pace | approx
/// rate      = count "/" period                           without spaces
/// period    = [number] unit | number                     a bare number is seconds; from 1us to 366d
/// unit      = us | ms | s sec second | m min minute | h hr hour | d day | w week | month
/// option    = burst=N | max_wait=PERIOD | tz=ZONE | after=M/PERIOD
/// ```
///
/// | part | meaning | when absent |
/// |---|---|---|
/// | count | 1 to 10^12 (`approx`: 4\*10^9); `bucket` and `pace` also take decimals, such as `0.5` | |
/// | `burst=` or `capacity=` (`bucket`, `pace`) | the most that can be taken at once | `bucket`: the count, rounded up; `pace`: 1 |
/// | `max_wait=` (`pace`) | the longest delay to hand out; `0s`: none, `none`: any | `1s`: a turn further away is denied |
/// | `tz=` (`fixed`, and any with `after=`) | periods of one unit (`day`, not `24h`) follow that zone's calendar | a window opens with the first request |
/// | `after=` (any) | this many units per period are free before the limit is enforced | enforced from the first unit |
///
/// Other names for the same: `token`, `funnel`, `gcra` are `bucket`; `leaky` is `pace`; `count` is `fixed`; `log` is
/// `sliding`.
///
/// ```
/// use flowgate::{Limit, Period, Rate};
///
/// let limit: Limit = "bucket 30/60s burst=15".parse()?;
/// let same = Limit::bucket(Rate::new(30, Period::secs(60)?)?).burst(15).build()?;
/// assert_eq!(limit, same);
/// assert_eq!(limit.to_string(), "bucket 30/60s burst=15");
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Limit {
    law: Law,
    after: Option<After>,
    spec: Arc<Spec>,
}

/// `after=M/period`: free at first, strict later.
#[derive(Clone, Debug)]
pub(crate) struct After {
    pub(crate) free: u64,
    pub(crate) window: Window,
}

/// The numbers of a limit as they were given, in canonical form: limits with equal specs are the same limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spec {
    algorithm: Algorithm,
    /// The rate; `None` for `unlimited`.
    rate: Option<Rate>,
    /// The burst of `bucket` and `pace`.
    burst: Option<u64>,
    /// The longest wait of `pace`.
    max_wait: Option<MaxWait>,
    zone: Option<TimeZone>,
    after: Option<(u64, Period)>,
}

impl Limit {
    /// No limit: every request is allowed, and nothing is counted.
    pub fn unlimited() -> Limit {
        let algorithm = Algorithm::Unlimited;
        let spec = Spec { algorithm, rate: None, burst: None, max_wait: None, zone: None, after: None };
        Limit { law: Law::Unlimited, after: None, spec: Arc::new(spec) }
    }

    /// The algorithm of the limit.
    pub fn algorithm(&self) -> Algorithm {
        self.spec.algorithm
    }

    /// The count per period; `None` for `unlimited`.
    pub fn rate(&self) -> Option<Rate> {
        self.spec.rate
    }

    /// The burst of `bucket` and `pace`.
    pub fn burst(&self) -> Option<u64> {
        self.spec.burst
    }

    /// The longest delay of `pace`.
    pub fn max_wait(&self) -> Option<MaxWait> {
        self.spec.max_wait
    }

    /// The name of the time zone.
    pub fn tz(&self) -> Option<&str> {
        self.spec.zone.as_ref().map(TimeZone::name)
    }

    /// The free allowance of `after=` and its period.
    pub fn after(&self) -> Option<(u64, Period)> {
        self.spec.after
    }

    /// The span in which a limit grants as much as can be taken at once: the period, or the time in which a burst comes
    /// back, rounded up. `None` for a limit without such a length: `unlimited`, a month, `after=`.
    ///
    /// ```
    /// use flowgate::{Limit, Span};
    ///
    /// let window = |limit: &str| limit.parse::<Limit>().map(|limit| limit.window());
    /// assert_eq!(window("5/60s")?, Some(Span::from_secs(60)));
    /// assert_eq!(window("bucket 30/60s burst=15")?, Some(Span::from_secs(30)));
    /// assert_eq!(window("fixed 100/month tz=UTC")?, None);
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn window(&self) -> Option<Span> {
        match &self.law {
            _ if self.after.is_some() => None,
            Law::Bucket(bucket) => Some(bucket.fill_time()),
            Law::WideBucket(bucket) => Some(bucket.fill_time()),
            Law::Pace(pace) => Some(pace.bucket.fill_time()),
            _ => self.spec.rate?.period().length(),
        }
    }

    /// What must stay for a counter to survive a change of its limit: algorithm and period (with the zone, where
    /// that gives the period its bounds).
    ///
    /// ```
    /// use flowgate::Limit;
    ///
    /// let [old, new]: [Limit; 2] = ["bucket 5/60s".parse()?, "bucket 9/1m burst=3".parse()?];
    /// assert_eq!(old.identity(), new.identity());
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn identity(&self) -> String {
        let Spec { algorithm, rate, zone, after, .. } = &*self.spec;
        let period = |period: Period| match (zone, period.length()) {
            (Some(zone), _) if period.is_one_unit() => format!("{} {}", period.unit().symbol(), zone.name()),
            (_, Some(length)) => length.to_string(),
            (_, None) => period.to_string(),
        };
        let main = rate.map(|rate| rate.period()).map(period).unwrap_or_default();
        let seen = after.map(|(_, after)| format!(" after {}", period(after))).unwrap_or_default();
        format!("{} {main}{seen}", algorithm.name())
    }

    pub(crate) fn law(&self) -> &Law {
        &self.law
    }

    pub(crate) fn after_window(&self) -> Option<&After> {
        self.after.as_ref()
    }
}

impl PartialEq for Limit {
    fn eq(&self, other: &Limit) -> bool {
        self.spec == other.spec
    }
}

impl Eq for Limit {}

impl std::hash::Hash for Limit {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.spec.hash(state);
    }
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Limit, LimitError> {
        parse::limit(text)
    }
}

#[cfg(test)]
mod tests;
