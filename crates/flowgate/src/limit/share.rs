//! A share: the part of a limit that one of several nodes grants by itself, while what they count together is out of
//! reach.
//!
//! Rule       The count, the burst and the free allowance of `after=` are multiplied by the share and rounded down, but
//!            never to nothing; periods, zones and the longest wait stay. A share of all is the limit itself.
//! Bound      `k` nodes with a share of `1/k` grant together no more than the limit, unless a count is below `k`: then
//!            each grants one.

use super::{Limit, LimitBuilder, Rate};
use crate::share::Share;

/// The share of a larger whole count is a whole count: a decimal has at most 15 digits.
const MAX_COUNT_WITH_DECIMALS: u64 = 1_000_000_000;

impl Limit {
    /// A share of this limit.
    ///
    /// ```
    /// use flowgate::{Limit, Share};
    ///
    /// let (limit, quarter): (Limit, Share) = ("bucket 30/60s burst=15".parse()?, "1/4".parse().unwrap());
    /// assert_eq!(limit.share(quarter).to_string(), "bucket 7.5/60s burst=3");
    /// # Ok::<(), flowgate::LimitError>(())
    /// ```
    pub fn share(&self, share: Share) -> Limit {
        let Some(rate) = self.rate() else { return self.clone() };
        if share == Share::ALL {
            return self.clone();
        }
        let of = |number: u64| share.of_number(number).max(1);
        let burst = self.burst().map(of);
        let slower = match rate.count() {
            Some(count) if count > MAX_COUNT_WITH_DECIMALS || !self.algorithm().takes_decimals() => {
                Rate::new(of(count), rate.period())
            }
            _ => Rate::from_micros(of(rate.micros()), rate.period()),
        };
        let slower = slower.unwrap_or(rate);
        // Rounding may give a bucket that is too slow to be valid. A burst of one, or the bucket's own rate, makes it
        // valid again.
        let attempts = [(slower, burst), (slower, burst.map(|_| 1)), (rate, burst.map(|_| 1))];
        let mut built = attempts.into_iter().map(|(rate, burst)| self.with(rate, burst, of).build());
        built.find_map(Result::ok).unwrap_or_else(|| self.clone())
    }

    /// The limit with another rate, burst and free allowance.
    fn with(&self, rate: Rate, burst: Option<u64>, free: impl Fn(u64) -> u64) -> LimitBuilder {
        let mut builder = self.with_rate(rate);
        if let Some(burst) = burst {
            builder = builder.burst(burst);
        }
        if let Some((count, period)) = self.after() {
            builder = builder.after(free(count), period);
        }
        builder
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::MICRO;
    use super::*;

    #[track_caller]
    fn check(limit: &str, part: u64, whole: u64, shared: &str) {
        let limit: Limit = limit.parse().unwrap();
        let share = Share::new(part, whole).unwrap();
        assert_eq!(limit.share(share), shared.parse().unwrap(), "{}", limit.share(share));
    }

    #[test]
    fn every_number_is_shared() {
        check("100/60s", 1, 1, "100/60s");
        check("100/60s", 1, 3, "33/60s");
        check("fixed 100/day tz=Asia/Shanghai", 1, 4, "fixed 25/day tz=Asia/Shanghai");
        check("approx 10/60s", 1, 4, "approx 2/60s");
        check("bucket 1/s burst=10", 1, 3, "bucket 0.333333/s burst=3");
        check("pace 500/s max_wait=2s", 1, 2, "pace 250/s burst=1 max_wait=2s");
        check("fixed 10/5s after=9/day tz=UTC", 1, 2, "fixed 5/5s after=4/day tz=UTC");
        check("bucket 1000000000000/s", 1, 3, "bucket 333333333333/s burst=333333333333");
        check("unlimited", 1, 3, "unlimited");
    }

    #[test]
    fn a_share_is_never_zero() {
        check("1/60s", 1, 3, "1/60s");
        check("bucket 0.000001/s burst=1", 1, 3, "bucket 0.000001/s burst=1");
        check("bucket 0.011/366d burst=1", 1, 2, "bucket 0.011/366d burst=1");
    }

    proptest! {
        #[test]
        fn no_share_is_larger_than_the_whole(
            count in 1..=4_000_000_000_u64, burst in 1..1000_u64, whole in 1..50_u64, part in 1..50_u64,
        ) {
            for text in [format!("{count}/1h"), format!("bucket {count}/1h burst={burst}"), format!("approx {count}/7s")] {
                let limit: Limit = text.parse().unwrap();
                let share = limit.share(Share::new(part.min(whole), whole).unwrap());
                prop_assert!(share.rate().unwrap().micros() <= limit.rate().unwrap().micros());
                prop_assert!(share.burst() <= limit.burst());
                let exact = u128::from(limit.rate().unwrap().micros()) * u128::from(part.min(whole)) / u128::from(whole);
                prop_assert!(u128::from(share.rate().unwrap().micros()) <= exact.max(u128::from(MICRO)));
            }
        }
    }
}
