//! Axes: round numbers and round times for their labels.

use flowgate::Time;

use crate::format::utc;

const SECONDS_PER_DAY: u64 = 86_400;
/// The distances between two times on an axis.
const TIME_STEPS_SECONDS: [u64; 20] = [
    1,
    5,
    15,
    30,
    60,
    300,
    900,
    1800,
    3600,
    2 * 3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    SECONDS_PER_DAY,
    2 * SECONDS_PER_DAY,
    7 * SECONDS_PER_DAY,
    28 * SECONDS_PER_DAY,
    91 * SECONDS_PER_DAY,
    364 * SECONDS_PER_DAY,
    3640 * SECONDS_PER_DAY,
];

/// From 0 to at least `most`, in about `number` steps of 1, 2 or 5 times a power of ten.
pub(super) fn ticks(most: f64, number: f64) -> Vec<f64> {
    if !most.is_finite() || most <= 0.0 {
        return vec![0.0, 1.0];
    }
    let rough = most / number;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let steps = (most / step - 1e-9).ceil().max(1.0) as usize;
    (0..=steps).map(|index| index as f64 * step).collect()
}

/// A count on an axis: `0`, `250`, `1.5k`, `20M`.
pub(super) fn short(number: f64) -> String {
    let (number, unit) = match number {
        number if number >= 1e9 => (number / 1e9, "G"),
        number if number >= 1e6 => (number / 1e6, "M"),
        number if number >= 1e4 => (number / 1e3, "k"),
        number => (number, ""),
    };
    let text = format!("{number:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The times between `first` and `last` that get a label, in seconds, each with its label. There are fewer than
/// `number`, unless the span is longer than the largest step can divide.
pub(super) fn times(first: u64, last: u64, number: u64) -> Vec<(u64, String)> {
    let span = last.saturating_sub(first).max(1);
    let step = TIME_STEPS_SECONDS
        .into_iter()
        .find(|step| span / step < number)
        .unwrap_or(TIME_STEPS_SECONDS[TIME_STEPS_SECONDS.len() - 1]);
    let start = first.div_ceil(step) * step;
    let label = |second: u64| {
        let format = match step {
            _ if step >= 91 * SECONDS_PER_DAY => "%b %Y",
            _ if second.is_multiple_of(SECONDS_PER_DAY) => "%b %-d",
            _ if step >= 60 => "%H:%M",
            _ => "%H:%M:%S",
        };
        utc(Time::from_secs(second), format)
    };
    (0..).map(|index| start + index * step).take_while(|second| *second <= last).map(|at| (at, label(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_reach_the_top_in_round_steps() {
        for (most, expected) in [
            (0.0, &[0.0, 1.0][..]),
            (100.0, &[0.0, 50.0, 100.0]),
            (130.0, &[0.0, 50.0, 100.0, 150.0]),
            (0.4, &[0.0, 0.1, 0.2, 0.30000000000000004, 0.4]),
            (7.0, &[0.0, 2.0, 4.0, 6.0, 8.0]),
        ] {
            assert_eq!(ticks(most, 4.0).iter().map(|tick| short(*tick)).collect::<Vec<_>>(), {
                expected.iter().map(|tick| short(*tick)).collect::<Vec<_>>()
            });
        }
        for most in [1e-9, 0.013, 3.0, 99.99, 123_456_789.0, 1e18] {
            let ticks = ticks(most, 4.0);
            assert!((2..=7).contains(&ticks.len()) && ticks[ticks.len() - 1] >= most * 0.999_999, "{most}: {ticks:?}");
        }
        assert_eq!([1500.0, 15_000.0, 2_500_000.0].map(short), ["1500", "15k", "2.5M"]);
    }

    #[test]
    fn times_are_round_and_labelled() {
        let labels = |first, last| times(first, last, 7).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(
            labels(1_431_857_103, 1_431_857_103 + 300_000),
            ["12:00", "May 18", "12:00", "May 19", "12:00", "May 20", "12:00"]
        );
        assert_eq!(labels(1_431_857_103, 1_431_857_110), ["10:05:05", "10:05:10"]);
        assert!(labels(0, Time::MAX.as_nanos() / 1_000_000_000).len() < 40);
    }
}
