//! The builder: every way to a limit ends in [`LimitBuilder::build`], which checks all of it.

use std::sync::Arc;

use super::rate::MAX_PERIOD_NANOS;
use super::{After, Algorithm, Limit, LimitError, MAX_COUNT, MaxWait, Part, Period, Rate, Spec, Unit};
use crate::algorithm::{Approx, Bucket, Fixed, Law, Pace, Sliding, Window};
use crate::calendar::{Calendar, TimeZone};
use crate::time::{NANOS_PER_MICRO, Span};

/// The longest wait of `pace` if `max_wait` is not given.
const DEFAULT_MAX_WAIT: MaxWait = MaxWait::AtMost(Span::from_secs(1));

/// A limit in the making.
///
/// ```
/// use flowgate::{Limit, Period, Rate};
///
/// let limit = Limit::fixed(Rate::new(100, Period::DAY)?).tz("Asia/Shanghai").build()?;
/// assert_eq!(limit.to_string(), "fixed 100/1d tz=Asia/Shanghai");
///
/// let error = Limit::sliding(Rate::new(5, Period::MINUTE)?).burst(3).build().unwrap_err();
/// assert_eq!(error.to_string(), "option `burst`: expected one that sliding knows: tz, after");
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct LimitBuilder {
    algorithm: Algorithm,
    rate: Rate,
    burst: Option<u64>,
    max_wait: Option<MaxWait>,
    tz: Option<String>,
    after: Option<(u64, Period)>,
}

impl Limit {
    /// Starts a limit of `rate` in any span of one period.
    pub fn sliding(rate: Rate) -> LimitBuilder {
        LimitBuilder::new(Algorithm::Sliding, rate)
    }

    /// Starts a limit of `rate` per window.
    pub fn fixed(rate: Rate) -> LimitBuilder {
        LimitBuilder::new(Algorithm::Fixed, rate)
    }

    /// Starts a token bucket that refills at `rate`.
    pub fn bucket(rate: Rate) -> LimitBuilder {
        LimitBuilder::new(Algorithm::Bucket, rate)
    }

    /// Starts a queue that lets requests leave at `rate`.
    pub fn pace(rate: Rate) -> LimitBuilder {
        LimitBuilder::new(Algorithm::Pace, rate)
    }

    /// Starts a limit of about `rate` in any span of one period, in 16 bytes.
    pub fn approx(rate: Rate) -> LimitBuilder {
        LimitBuilder::new(Algorithm::Approx, rate)
    }

    /// Starts a limit like this one at another rate. The algorithm and all options stay, the burst included.
    pub fn with_rate(&self, rate: Rate) -> LimitBuilder {
        let Spec { algorithm, burst, max_wait, ref zone, after, .. } = *self.spec;
        let tz = zone.as_ref().map(|zone| zone.name().to_owned());
        LimitBuilder { algorithm, rate, burst, max_wait, tz, after }
    }
}

impl LimitBuilder {
    pub(super) fn new(algorithm: Algorithm, rate: Rate) -> LimitBuilder {
        LimitBuilder { algorithm, rate, burst: None, max_wait: None, tz: None, after: None }
    }

    /// Sets the most that can be taken at once (`bucket`, `pace`).
    pub fn burst(mut self, burst: u64) -> LimitBuilder {
        self.burst = Some(burst);
        self
    }

    /// Sets the longest delay to hand out (`pace`).
    pub fn max_wait(mut self, max_wait: MaxWait) -> LimitBuilder {
        self.max_wait = Some(max_wait);
        self
    }

    /// Sets the zone whose calendar the period of `fixed` or `after` follows.
    pub fn tz(mut self, name: impl Into<String>) -> LimitBuilder {
        self.tz = Some(name.into());
        self
    }

    /// Sets that `free` units per `period` pass before the limit is enforced.
    pub fn after(mut self, free: u64, period: Period) -> LimitBuilder {
        self.after = Some((free, period));
        self
    }

    /// Makes the limit.
    ///
    /// # Errors
    /// When an option does not fit the algorithm or a number is out of range; the error names the part.
    pub fn build(self) -> Result<Limit, LimitError> {
        if self.algorithm == Algorithm::Unlimited {
            return Ok(Limit::unlimited());
        }
        self.check_options()?;
        let zone = self.zone()?;
        let law = self.law(zone.as_ref())?;
        let after = self.after_window(zone.as_ref())?;
        let burst = self.knows(Part::Burst).then(|| self.burst_or_default());
        let max_wait = self.knows(Part::MaxWait).then(|| self.max_wait.unwrap_or(DEFAULT_MAX_WAIT));
        let LimitBuilder { algorithm, rate, after: spec_after, .. } = self;
        let spec = Spec { algorithm, rate: Some(rate), burst, max_wait, zone, after: spec_after };
        Ok(Limit { law, after, spec: Arc::new(spec) })
    }

    fn check_options(&self) -> Result<(), LimitError> {
        let given = [(Part::Burst, self.burst.is_some()), (Part::MaxWait, self.max_wait.is_some())];
        match given.into_iter().find(|&(part, given)| given && !self.knows(part)) {
            Some((part, _)) => Err(self.unknown_option(&part.to_string())),
            None => Ok(()),
        }
    }

    /// True if the algorithm has the option.
    pub(super) fn knows(&self, option: Part) -> bool {
        self.algorithm.options().contains(&option)
    }

    /// The error about `written`, an option that the algorithm does not have.
    pub(super) fn unknown_option(&self, written: &str) -> LimitError {
        let known: Vec<String> = self.algorithm.options().iter().map(Part::to_string).collect();
        let expected = format!("one that {} knows: {}", self.algorithm.name(), known.join(", "));
        LimitError::new(Part::Option, written, expected)
    }

    fn zone(&self) -> Result<Option<TimeZone>, LimitError> {
        let Some(name) = &self.tz else { return Ok(None) };
        let fixed = (self.algorithm == Algorithm::Fixed).then(|| self.rate.period());
        let after = self.after.map(|(_, period)| period);
        if fixed.is_none() && after.is_none() && self.rate.period().is_one_unit() {
            let rate = self.rate;
            let expected =
                format!("`fixed` before the rate, whose windows follow the calendar: fixed {rate} tz={name}");
            return Err(LimitError::new(Part::Tz, name, expected));
        }
        if !fixed.into_iter().chain(after).any(Period::is_one_unit) {
            let expected = "no time zone here: it aligns the period of `fixed` or `after` when that is one unit \
                            such as `day` (not `24h`)";
            return Err(LimitError::new(Part::Tz, name, expected));
        }
        let expected = "the name of a time zone such as Asia/Shanghai or UTC";
        TimeZone::named(name).map(Some).ok_or_else(|| LimitError::new(Part::Tz, name, expected))
    }

    fn law(&self, zone: Option<&TimeZone>) -> Result<Law, LimitError> {
        if self.algorithm == Algorithm::Fixed {
            let window = window(self.rate.period(), zone, Part::Period)?;
            return Ok(Law::Fixed(Fixed::new(self.whole_count()?, window)));
        }
        let period = length(self.rate.period(), Part::Period)?;
        Ok(match self.algorithm {
            Algorithm::Sliding => Law::Sliding(Sliding::new(self.whole_count()?, period)),
            Algorithm::Approx => Law::Approx(Approx::new(self.whole_count()?, period)),
            Algorithm::Pace => Law::Pace(Pace::new(self.bucket(period)?, self.longest_delay()?)),
            // `Fixed` and `Unlimited` are done above.
            Algorithm::Bucket | Algorithm::Fixed | Algorithm::Unlimited => {
                let wide = self.bucket(period)?;
                wide.narrow().map_or(Law::WideBucket(wide), Law::Bucket)
            }
        })
    }

    fn whole_count(&self) -> Result<u64, LimitError> {
        let Some(count) = self.rate.count() else {
            return Err(self.bad_count("a whole number; only bucket and pace take decimals"));
        };
        let max = self.algorithm.max_count();
        if count > max {
            let (power, name) = (max.ilog10(), self.algorithm.name());
            let most = format!("{}*10^{power}", max / 10_u64.pow(power));
            return Err(self.bad_count(&format!("a whole number from 1 to {most}, the most that {name} counts")));
        }
        Ok(count)
    }

    fn bad_count(&self, expected: &str) -> LimitError {
        LimitError::new(Part::Count, self.rate.display_count(), expected)
    }

    fn burst_or_default(&self) -> u64 {
        self.burst.unwrap_or_else(|| self.algorithm.default_burst(self.rate))
    }

    fn bucket(&self, period: u64) -> Result<Bucket, LimitError> {
        let burst = self.burst_or_default();
        if burst == 0 || burst > MAX_COUNT {
            return Err(LimitError::new(Part::Burst, burst.to_string(), "a whole number from 1 to 10^12"));
        }
        Bucket::new(self.rate.micros(), period, burst).ok_or_else(|| match self.burst {
            Some(_) => {
                let expected = format!("a burst that {} refills within 36500 days", self.rate);
                LimitError::new(Part::Burst, burst.to_string(), expected)
            }
            None => self.bad_count("a rate that refills the burst within 36500 days"),
        })
    }

    /// The `max_wait`, if a text can express it.
    fn longest_delay(&self) -> Result<MaxWait, LimitError> {
        let max_wait = self.max_wait.unwrap_or(DEFAULT_MAX_WAIT);
        match max_wait {
            MaxWait::AtMost(span)
                if span.as_nanos() > MAX_PERIOD_NANOS || !span.as_nanos().is_multiple_of(NANOS_PER_MICRO) =>
            {
                let expected = "whole microseconds up to 366d, or none";
                Err(LimitError::new(Part::MaxWait, span.to_string(), expected))
            }
            _ => Ok(max_wait),
        }
    }

    fn after_window(&self, zone: Option<&TimeZone>) -> Result<Option<After>, LimitError> {
        let Some((free, period)) = self.after else { return Ok(None) };
        if free == 0 || free > MAX_COUNT {
            return Err(LimitError::new(Part::After, free.to_string(), "a whole number from 1 to 10^12"));
        }
        Ok(Some(After { free, window: window(period, zone, Part::After)? }))
    }
}

/// A period written as one unit follows the zone's calendar, if there is a zone.
fn window(period: Period, zone: Option<&TimeZone>, part: Part) -> Result<Window, LimitError> {
    match zone {
        Some(zone) if period.is_one_unit() => {
            Ok(Window::Calendar(Calendar { unit: period.unit(), zone: zone.clone() }.into()))
        }
        _ => Ok(Window::Plain(length(period, part)?)),
    }
}

fn length(period: Period, part: Part) -> Result<u64, LimitError> {
    let expected = "a period of fixed length; a month needs `fixed` or `after` with a time zone (tz=)";
    let length = period.length().ok_or_else(|| LimitError::new(part, Unit::Month.symbol(), expected))?;
    Ok(length.as_nanos())
}
