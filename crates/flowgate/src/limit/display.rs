//! A limit as text: canonical, and read back to the same limit.

use std::fmt;

use super::{Limit, MaxWait, Spec, Unit};
use crate::time::Span;

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { algorithm, rate, burst, max_wait, zone, after } = &*self.spec;
        f.write_str(algorithm.name())?;
        let Some(rate) = rate else { return Ok(()) };
        write!(f, " {rate}")?;
        if let Some(burst) = burst.filter(|&burst| burst != algorithm.default_burst(*rate)) {
            write!(f, " burst={burst}")?;
        }
        match max_wait {
            Some(MaxWait::Unbounded) => f.write_str(" max_wait=none")?,
            Some(MaxWait::AtMost(span)) if *span != Span::from_secs(1) => {
                write!(f, " max_wait={}", span.in_units())?;
            }
            _ => {}
        }
        if let Some(zone) = zone {
            write!(f, " tz={}", zone.name())?;
        }
        if let Some((free, period)) = after {
            write!(f, " after={free}/{period}")?;
        }
        Ok(())
    }
}

impl Span {
    /// The span in the largest unit that divides it, rounded down to microseconds: `5m`. Days are the largest unit.
    ///
    /// ```
    /// assert_eq!(flowgate::Span::from_secs(5400).in_units().to_string(), "90m");
    /// ```
    pub fn in_units(self) -> impl fmt::Display {
        fmt::from_fn(move |f| {
            let nanos = self.as_nanos();
            if nanos == 0 {
                return f.write_str("0s");
            }
            let units = [Unit::Day, Unit::Hour, Unit::Minute, Unit::Second, Unit::Millisecond];
            let unit = units.into_iter().find(|unit| unit.nanos().is_some_and(|length| nanos.is_multiple_of(length)));
            let unit = unit.unwrap_or(Unit::Microsecond);
            write!(f, "{}{}", nanos / unit.nanos().unwrap_or(1), unit.symbol())
        })
    }
}
