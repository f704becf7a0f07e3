//! The counts to try, and a limit with another count.
//!
//! Rule       Each count is 1.5 times the one before, from an eighth of the configured count to some sixty times of it,
//!            since most wrong limits are too low. Counts that round to the same whole number are tried once, and more
//!            large counts take their place.
//! Rule       A burst that differs from the count scales with it, so the limit keeps its shape. The burst of `pace`,
//!            `after` and all periods stay as configured.

use flowgate::{Limit, LimitError, MAX_COUNT, Rate};

/// Counts that are tried.
const TRIED_COUNTS: usize = 16;
/// Counts below the configured one, before rounding.
const LOWER_COUNTS: u32 = 5;
const MICROS_PER_UNIT: u64 = 1_000_000;

/// The counts to try in millionths, ascending; the configured one is among them.
pub(super) fn counts(limit: &Limit) -> Vec<u64> {
    let Some(rate) = limit.rate() else { return Vec::new() };
    let configured = rate.micros();
    // Whole numbers, unless the configured count is a fraction.
    let grain = if configured.is_multiple_of(MICROS_PER_UNIT) { MICROS_PER_UNIT } else { 1 };
    let most = limit.algorithm().max_count() * MICROS_PER_UNIT;
    let times = |power: u32| u128::from(configured) * 3_u128.pow(power) / 2_u128.pow(power);
    let part = |power: u32| u128::from(configured) * 2_u128.pow(power) / 3_u128.pow(power);
    let rounded = |count: u128| {
        let grains = (count + u128::from(grain) / 2) / u128::from(grain);
        u64::try_from(grains.max(1) * u128::from(grain)).unwrap_or(most).min(most)
    };
    let mut counts: Vec<u64> = (1..=LOWER_COUNTS).rev().map(|power| rounded(part(power))).collect();
    counts.push(configured);
    counts.dedup();
    let mut power = 1;
    while counts.len() < TRIED_COUNTS && counts.last().is_some_and(|last| *last < most) {
        counts.push(rounded(times(power)));
        counts.dedup();
        power += 1;
    }
    counts
}

/// The limit with another count, given in millionths.
pub(super) fn with_count(limit: &Limit, micros: u64) -> Result<Limit, LimitError> {
    let Some(rate) = limit.rate() else { return Ok(limit.clone()) };
    let varied = Rate::from_micros(micros, rate.period())?;
    let builder = limit.with_rate(varied);
    let Some(burst) = limit.burst().filter(|_| limit.max_wait().is_none()) else { return builder.build() };
    let scaled = if burst == rate.micros().div_ceil(MICROS_PER_UNIT) {
        u128::from(micros.div_ceil(MICROS_PER_UNIT))
    } else {
        u128::from(burst) * u128::from(micros) / u128::from(rate.micros())
    };
    builder.burst(u64::try_from(scaled).unwrap_or(MAX_COUNT).clamp(1, MAX_COUNT)).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(limit: &str) -> Vec<u64> {
        counts(&limit.parse().unwrap()).into_iter().map(|micros| micros / MICROS_PER_UNIT).collect()
    }

    #[test]
    fn counts_are_around_the_configured_one() {
        assert_eq!(tried("60/min"), [8, 12, 18, 27, 40, 60, 90, 135, 203, 304, 456, 683, 1025, 1538, 2307, 3460]);
        assert_eq!(tried("1/s"), [1, 2, 3, 5, 8, 11, 17, 26, 38, 58, 86, 130, 195, 292, 438, 657]);
        assert_eq!(tried("5/60s")[..5], [1, 2, 3, 5, 8]);
        assert_eq!(*tried("1000000000000/s").last().unwrap(), MAX_COUNT);
        assert_eq!(*tried("approx 4000000000/s").last().unwrap(), 4_000_000_000);
        let half: Limit = "bucket 0.5/s burst=15".parse().unwrap();
        assert!(counts(&half).contains(&500_000) && counts(&half).contains(&750_000));
    }

    #[test]
    fn every_count_gives_a_limit_and_its_own_gives_itself() {
        for text in [
            "60/min",
            "1/s",
            "sliding 1000000000000/s",
            "fixed 100/day tz=Asia/Shanghai",
            "fixed 1/10s after=30/day tz=UTC",
            "bucket 30/60s burst=15",
            "bucket 0.5/s",
            "bucket 7/s burst=1",
            "pace 500/s burst=3 max_wait=2s",
            "pace 500/s max_wait=none",
            "approx 4000000000/s",
        ] {
            let limit: Limit = text.parse().unwrap();
            let tried = counts(&limit);
            assert!((6..=TRIED_COUNTS).contains(&tried.len()), "{text}: {tried:?}");
            assert!(tried.is_sorted_by(|a, b| a < b), "{text}: {tried:?}");
            for micros in &tried {
                let varied = with_count(&limit, *micros).unwrap_or_else(|error| panic!("{text} at {micros}: {error}"));
                assert_eq!(varied.rate().unwrap().micros(), *micros);
            }
            let own = limit.rate().unwrap().micros();
            assert!(tried.contains(&own));
            assert_eq!(with_count(&limit, own).unwrap(), limit, "{text}");
        }
        let scaled = with_count(&"bucket 30/60s burst=15".parse().unwrap(), 60 * MICROS_PER_UNIT).unwrap();
        assert_eq!(scaled.to_string(), "bucket 60/60s burst=30");
    }
}
