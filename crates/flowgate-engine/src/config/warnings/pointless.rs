//! Limits that never decide anything, since another limit of the same set is always exceeded first.
//!
//! Every limit has a bound over any span (see the algorithms). If the bound of one limit over the span of another is at
//! most the count of the other, the other is exceeded only together with the first.

use flowgate::{Algorithm, Limit};

use crate::config::limits::LimitSet;
use crate::config::report::Report;
use crate::rules::RuleDef;

pub(super) fn find(report: &mut Report, rule: &RuleDef, set: &LimitSet) {
    for (index, (limit, at)) in set.iter().enumerate() {
        if limit.algorithm() == Algorithm::Unlimited && set.len() > 1 {
            let hint = "\"unlimited\" is for a list of its own";
            report.warning(*at, "this has no effect beside other limits").hint(hint).done();
            continue;
        }
        let others = set.iter().enumerate().filter(|(other, _)| *other != index);
        // Of two limits that make each other pointless, the second one is named.
        let stricter = others.into_iter().find(|(other, (stricter, _))| {
            is_pointless(limit, stricter, rule) && (*other < index || !is_pointless(stricter, limit, rule))
        });
        if let Some((_, (stricter, stricter_at))) = stricter {
            let message = format!("this limit is never reached: \"{stricter}\" is always exceeded first");
            report.warning(*at, message).place("that limit is at", *stricter_at).done();
        }
    }
}

/// True if `limit` is certainly exceeded only when `stricter` is.
fn is_pointless(limit: &Limit, stricter: &Limit, rule: &RuleDef) -> bool {
    if limit == stricter {
        return true;
    }
    // A limit with `after` does not bind at first.
    if limit.after().is_some() || stricter.after().is_some() {
        return false;
    }
    let (Some(limit), Some(stricter)) = (Promise::from_limit(limit), Promise::from_limit(stricter)) else {
        return false;
    };
    // If denied requests count, the counters exceed what the stricter limit admits. The comparison is then certain only
    // for two limits of the same algorithm of which the stricter one has at least as long a period.
    if rule.count_denied && (stricter.algorithm != limit.algorithm || stricter.period < limit.period) {
        return false;
    }
    match limit.algorithm {
        Algorithm::Bucket if stricter.algorithm == Algorithm::Bucket => {
            let slower = u128::from(stricter.micros) * u128::from(limit.period)
                <= u128::from(limit.micros) * u128::from(stricter.period);
            slower && stricter.burst <= limit.burst
        }
        // Both limits have windows on the same grid, so both count in the same window.
        Algorithm::Sliding if stricter.is_on_grid_of(&limit) => stricter.count <= limit.count,
        Algorithm::Sliding => {
            let span = limit.period + limit.held_too_long();
            stricter.most_in(span).is_some_and(|most| most <= u128::from(limit.count))
        }
        // Windows of the same length open together, with the first request.
        Algorithm::Fixed if stricter.algorithm == Algorithm::Fixed => {
            stricter.period == limit.period && stricter.count <= limit.count
        }
        Algorithm::Fixed => stricter.most_in(limit.period).is_some_and(|most| most <= u128::from(limit.count)),
        _ => false,
    }
}

/// The numbers of a limit; times in nanoseconds.
struct Promise {
    algorithm: Algorithm,
    micros: u64,
    /// Rounded up for a bucket with a decimal rate, which does not use it.
    count: u64,
    period: u64,
    burst: u64,
}

const MICROS_PER_SECOND: u64 = 1_000_000;

impl Promise {
    /// `None` for a limit that follows a calendar, makes requests wait, or estimates.
    fn from_limit(limit: &Limit) -> Option<Promise> {
        let algorithm = limit.algorithm();
        let plain = matches!(algorithm, Algorithm::Sliding | Algorithm::Fixed | Algorithm::Bucket);
        if !plain || limit.tz().is_some() {
            return None;
        }
        let rate = limit.rate()?;
        Some(Promise {
            algorithm,
            micros: rate.micros(),
            count: rate.micros().div_ceil(MICROS_PER_SECOND),
            period: rate.period().length()?.as_nanos(),
            burst: limit.burst().unwrap_or(0),
        })
    }

    /// The most that it admits in any span of `span` nanoseconds.
    fn most_in(&self, span: u64) -> Option<u128> {
        let periods = u128::from(span.div_ceil(self.period));
        match self.algorithm {
            Algorithm::Sliding => Some(periods * u128::from(self.count)),
            // A span may begin and end within windows.
            Algorithm::Fixed => Some((periods + 1) * u128::from(self.count)),
            Algorithm::Bucket => {
                let refilled = u128::from(span) * u128::from(self.micros)
                    / (u128::from(self.period) * u128::from(MICROS_PER_SECOND));
                // One more, since the division rounds down and the span has two ends.
                Some(u128::from(self.burst) + refilled + 1)
            }
            _ => None,
        }
    }

    /// A sliding window of more than 1024 units keeps its times on a grid and forgets them up to a step late.
    fn held_too_long(&self) -> u64 {
        let micros = self.period.div_ceil(1000);
        if self.is_on_grid() { micros.div_ceil(1024) * 1000 } else { 0 }
    }

    fn is_on_grid(&self) -> bool {
        self.algorithm == Algorithm::Sliding && self.count > 1024
    }

    fn is_on_grid_of(&self, other: &Promise) -> bool {
        self.is_on_grid() && other.is_on_grid() && self.period == other.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: &str, stricter: &str, expected: bool) {
        let rule = RuleDef::named("r");
        let found = is_pointless(&limit.parse().unwrap(), &stricter.parse().unwrap(), &rule);
        assert_eq!(found, expected, "{limit} beside {stricter}");
    }

    #[test]
    fn only_certain_mistakes_are_warned_of() {
        check("100/60s", "5/60s", true);
        check("5/60s", "100/60s", false);
        check("300/60s", "2/s", true);
        check("119/60s", "2/s", false);
        check("120/60s", "2/s", true);
        check("100/60s", "5/61s", true);
        check("1000/day", "1/2m", true); // 720 a day
        check("10000/s", "10000/s", true);
        check("10001/s", "10000/s", true);
        check("10000/s", "10001/s", false);
        check("1025/s", "1024/s", false); // on its grid a second is a little longer
        check("2048/s", "1024/s", true);
        check("approx 5/60s", "approx 5/60s", true);
        check("fixed 10/60s", "fixed 5/60s", true);
        check("fixed 10/60s", "5/60s", true);
        check("9/60s", "fixed 5/60s", false); // up to ten across two windows
        check("10/60s", "fixed 5/60s", true);
        check("bucket 10/s burst=20", "bucket 5/s burst=10", true);
        check("bucket 10/s burst=20", "bucket 5/s burst=30", false);
        check("100/60s", "bucket 1/s burst=10", true);
        check("60/60s", "bucket 1/s burst=10", false);
        check("fixed 100/day tz=UTC", "5/day", false); // a day of the calendar may have 25 hours
        check("100/60s after=5/day", "5/60s", false);
        check("100/60s", "approx 5/60s", false);
        check("100/60s", "pace 1/s", false);
    }

    #[test]
    fn denied_attempts_that_count_reach_the_longer_period() {
        let rule = RuleDef { count_denied: true, ..RuleDef::named("r") };
        let check =
            |limit: &str, stricter: &str| is_pointless(&limit.parse().unwrap(), &stricter.parse().unwrap(), &rule);
        assert!(!check("300/60s", "2/s"));
        assert!(!check("4/4s", "fixed 2/7s"));
        assert!(check("100/60s", "5/60s"));
    }
}
