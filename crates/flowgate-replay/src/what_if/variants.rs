//! The counts to try, and a limit with another count.
//!
//! Rule       Around the configured count each one is 1.5 times the one before. Farther away the steps are larger: down
//!            to a 64th of the configured count, up to some sixty times of it. Counts that round to the same whole
//!            number are tried once, and more large counts take their place.
//! Rule       A burst that differs from the count scales with it, so the limit keeps its shape. The burst of `pace`,
//!            `after` and all periods stay as configured.

use flowgate::{Limit, LimitError, MAX_COUNT, Rate};

/// The number of counts that are tried.
const TRIED_COUNTS: usize = 16;
/// The number of counts below the configured one that are 1.5 times apart, before rounding.
const LOWER_COUNTS: u32 = 5;
/// The two smallest counts are the configured count divided by these numbers.
const FAR_DIVISORS: [u128; 2] = [64, 16];
/// Powers of 1.5 that are left out above the configured count.
const SKIPPED_POWERS: [u32; 2] = [7, 9];
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
    let far = FAR_DIVISORS.iter().map(|divisor| rounded(u128::from(configured) / divisor));
    let mut counts: Vec<u64> = far.chain((1..=LOWER_COUNTS).rev().map(|power| rounded(part(power)))).collect();
    counts.push(configured);
    counts.dedup();
    for power in (1..).filter(|power| !SKIPPED_POWERS.contains(power)) {
        if counts.len() >= TRIED_COUNTS || counts.last().is_none_or(|last| *last >= most) {
            break;
        }
        counts.push(rounded(times(power)));
        counts.dedup();
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
        assert_eq!(tried("60/min"), [1, 4, 8, 12, 18, 27, 40, 60, 90, 135, 203, 304, 456, 683, 1538, 3460]);
        assert_eq!(tried("200/day")[..4], [3, 13, 26, 40]);
        assert_eq!(tried("1/s"), [1, 2, 3, 5, 8, 11, 26, 58, 86, 130, 195, 292, 438, 657, 985, 1478]);
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
