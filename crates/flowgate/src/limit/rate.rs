//! Counts per period: the numbers of a limit, in range by construction.

use std::fmt;

use super::error::{LimitError, Part};
use crate::time::Span;

/// The largest count, burst, `after` count and cost: 10^12.
pub const MAX_COUNT: u64 = 1_000_000_000_000;

/// Counts are kept in millionths, so that `0.5/s` is exact: six decimals at most.
pub(crate) const MICRO: u64 = 1_000_000;

/// A decimal count has at most this many digits: what a double still holds exactly.
pub(super) const MAX_DIGITS: usize = 15;

pub(super) const MAX_PERIOD_NANOS: u64 = 366 * 86_400 * 1_000_000_000;

/// A unit of time in a limit's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names say it all
pub enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    /// A calendar month; only with a time zone.
    Month,
}

impl Unit {
    /// The length in nanoseconds; `None` for a month, which has no fixed one.
    pub const fn nanos(self) -> Option<u64> {
        Some(match self {
            Unit::Microsecond => 1_000,
            Unit::Millisecond => 1_000_000,
            Unit::Second => 1_000_000_000,
            Unit::Minute => 60_000_000_000,
            Unit::Hour => 3_600_000_000_000,
            Unit::Day => 86_400_000_000_000,
            Unit::Week => 604_800_000_000_000,
            Unit::Month => return None,
        })
    }

    /// The unit of a name in the limit language, such as `s`, `sec` or `second`.
    pub fn from_name(name: &str) -> Option<Unit> {
        Some(match name {
            "us" => Unit::Microsecond,
            "ms" => Unit::Millisecond,
            "s" | "sec" | "second" => Unit::Second,
            "m" | "min" | "minute" => Unit::Minute,
            "h" | "hr" | "hour" => Unit::Hour,
            "d" | "day" => Unit::Day,
            "w" | "week" => Unit::Week,
            "month" => Unit::Month,
            _ => return None,
        })
    }

    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Unit::Microsecond => "us",
            Unit::Millisecond => "ms",
            Unit::Second => "s",
            Unit::Minute => "m",
            Unit::Hour => "h",
            Unit::Day => "d",
            Unit::Week => "w",
            Unit::Month => "month",
        }
    }
}

/// The period of a rate: a whole number of units, from a microsecond to 366 days.
///
/// ```
/// use flowgate::{Period, Unit};
///
/// assert_eq!(Period::new(90, Unit::Second)?.to_string(), "90s");
/// assert!(Period::new(400, Unit::Day).is_err());
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    number: u64,
    unit: Unit,
}

impl Period {
    /// One second.
    pub const SECOND: Period = Period { number: 1, unit: Unit::Second };
    /// One minute.
    pub const MINUTE: Period = Period { number: 1, unit: Unit::Minute };
    /// One hour.
    pub const HOUR: Period = Period { number: 1, unit: Unit::Hour };
    /// One day: 24 hours, or with a time zone the calendar day.
    pub const DAY: Period = Period { number: 1, unit: Unit::Day };
    /// One week: seven days, or with a time zone the calendar week from Monday.
    pub const WEEK: Period = Period { number: 1, unit: Unit::Week };
    /// One calendar month; needs a time zone.
    pub const MONTH: Period = Period { number: 1, unit: Unit::Month };

    /// A period of `number` units.
    ///
    /// # Errors
    /// When it is zero, longer than 366 days, or several months.
    pub fn new(number: u64, unit: Unit) -> Result<Period, LimitError> {
        let written = format_args!("{number}{}", unit.symbol()).to_string();
        let nanos = match unit.nanos() {
            Some(nanos) => number.saturating_mul(nanos),
            None if number == 1 => 1,
            None => {
                return Err(LimitError::new(Part::Period, written, "a single `month`; no other number is supported"));
            }
        };
        if number == 0 || nanos > MAX_PERIOD_NANOS {
            return Err(LimitError::new(Part::Period, written, "a period from 1us to 366d"));
        }
        Ok(Period { number, unit })
    }

    /// A period of `secs` seconds.
    ///
    /// # Errors
    /// When it is zero or longer than 366 days.
    pub fn secs(secs: u64) -> Result<Period, LimitError> {
        Period::new(secs, Unit::Second)
    }

    /// The number of units.
    pub fn number(self) -> u64 {
        self.number
    }

    /// The unit.
    pub fn unit(self) -> Unit {
        self.unit
    }

    /// Written as one unit (`day`, `1d`, not `24h`): such a period can follow a calendar.
    pub fn is_one_unit(self) -> bool {
        self.number == 1
    }

    /// The length; `None` for a month.
    pub fn length(self) -> Option<Span> {
        Some(Span::from_nanos(self.number * self.unit.nanos()?))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            if self.unit == Unit::Month { String::new() } else { self.number.to_string() },
            self.unit.symbol()
        )
    }
}

/// A count per period: `100/60s`, or for `bucket` and `pace` also `0.5/s`.
///
/// ```
/// use flowgate::{Period, Rate};
///
/// let rate = Rate::new(300, Period::MINUTE)?;
/// assert_eq!(rate.to_string(), "300/1m");
/// assert_eq!(Rate::from_micros(500_000, Period::SECOND)?.to_string(), "0.5/1s");
/// # Ok::<(), flowgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    micros: u64,
    period: Period,
}

impl Rate {
    /// `count` per `period`.
    ///
    /// # Errors
    /// When the count is zero or above 10^12.
    pub fn new(count: u64, period: Period) -> Result<Rate, LimitError> {
        if count == 0 || count > MAX_COUNT {
            return Err(LimitError::new(Part::Count, count.to_string(), "a whole number from 1 to 10^12"));
        }
        Ok(Rate { micros: count * MICRO, period })
    }

    /// `micros` millionths per `period`: half a unit a second is `Rate::from_micros(500_000, Period::SECOND)`.
    ///
    /// # Errors
    /// When it is zero, above 10^12 units, or a decimal of more than 15 digits.
    pub fn from_micros(micros: u64, period: Period) -> Result<Rate, LimitError> {
        let written = display_micros(micros);
        if micros == 0 || micros > MAX_COUNT * MICRO {
            return Err(LimitError::new(Part::Count, written, "a number from 0.000001 to 10^12"));
        }
        if written.contains('.') && written.len() - 1 > MAX_DIGITS {
            return Err(LimitError::new(Part::Count, written, format!("a decimal of at most {MAX_DIGITS} digits")));
        }
        Ok(Rate { micros, period })
    }

    /// The whole count; `None` when it has decimals.
    pub fn count(self) -> Option<u64> {
        self.micros.is_multiple_of(MICRO).then_some(self.micros / MICRO)
    }

    /// The count in millionths.
    pub fn micros(self) -> u64 {
        self.micros
    }

    /// The period.
    pub fn period(self) -> Period {
        self.period
    }

    /// The count as it is written.
    pub(super) fn display_count(self) -> String {
        display_micros(self.micros)
    }

    /// The count rounded up: the burst of a bucket that names none.
    pub(crate) fn count_ceil(self) -> u64 {
        self.micros.div_ceil(MICRO)
    }
}

fn display_micros(micros: u64) -> String {
    let (whole, rest) = (micros / MICRO, micros % MICRO);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{}", format!("{rest:06}").trim_end_matches('0'))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", display_micros(self.micros), self.period)
    }
}
