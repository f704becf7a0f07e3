//! A histogram of durations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use flowgate::Span;

/// Upper bounds in nanoseconds, with their text: from a decision in memory to the timeouts of clients.
const BOUNDS_NANOS: [(u64, &str); 17] = [
    (5_000, "0.000005"),
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (1_000_000_000, "1"),
    (5_000_000_000, "5"),
];

/// Durations, counted by bucket. Threads share one copy, since only samples are noted.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Counts by bucket. The last bucket holds the durations above all bounds.
    buckets: [AtomicU64; BOUNDS_NANOS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    /// Notes `number` durations of the same length.
    pub(crate) fn note(&self, took: Span, number: u64) {
        let nanos = took.as_nanos();
        let bucket = BOUNDS_NANOS.partition_point(|(bound, _)| *bound < nanos);
        self.buckets[bucket].fetch_add(number, Relaxed);
        self.sum_nanos.fetch_add(nanos.saturating_mul(number), Relaxed);
    }

    /// The number of durations in each bucket.
    pub(crate) fn buckets(&self) -> Vec<u64> {
        self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect()
    }

    /// The number of durations up to each bound (`+Inf` last), and the sum in nanoseconds.
    pub(crate) fn read(&self) -> (Vec<(&'static str, u64)>, u64) {
        let bounds = BOUNDS_NANOS.iter().map(|(_, shown)| *shown).chain(["+Inf"]);
        let mut total = 0;
        let mut up_to = |bucket: &AtomicU64| {
            total += bucket.load(Relaxed);
            total
        };
        let counts = bounds.zip(&self.buckets).map(|(bound, bucket)| (bound, up_to(bucket))).collect();
        (counts, self.sum_nanos.load(Relaxed))
    }
}

/// The duration below which a share of the counted durations lies, in microseconds; `None`: none was counted. The
/// durations of a bucket are taken as spread evenly over it.
pub(crate) fn quantile_micros(buckets: &[u64], share: f64) -> Option<u32> {
    let total: u64 = buckets.iter().sum();
    let wanted = share * total as f64;
    let (mut below, mut lower) = (0.0, 0.0);
    for (index, &count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        lower = if index == 0 { 0.0 } else { BOUNDS_NANOS[index.min(BOUNDS_NANOS.len()) - 1].0 as f64 };
        // The last bucket has no upper bound: its durations count as the largest bound.
        let upper = BOUNDS_NANOS.get(index).map_or(lower, |(bound, _)| *bound as f64);
        if below + count as f64 >= wanted {
            let within = (wanted - below) / count as f64;
            return Some(((lower + within * (upper - lower)) / 1000.0).ceil() as u32);
        }
        below += count as f64;
    }
    (total > 0).then_some((lower / 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let histogram = Histogram::default();
        histogram.note(Span::from_micros(5), 2);
        histogram.note(Span::from_nanos(5_001), 1);
        histogram.note(Span::from_secs(60), 1);
        let (counts, sum) = histogram.read();
        assert_eq!(counts[..2], [("0.000005", 2), ("0.00001", 3)]);
        assert_eq!(counts[BOUNDS_NANOS.len() - 1..], [("5", 3), ("+Inf", 4)]);
        assert_eq!(sum, 10_000 + 5_001 + 60_000_000_000);
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let histogram = Histogram::default();
        assert_eq!(quantile_micros(&histogram.buckets(), 0.5), None);
        histogram.note(Span::from_micros(40), 100);
        let half = quantile_micros(&histogram.buckets(), 0.5);
        assert_eq!(half, Some(38), "half of the way from 25 to 50");
        histogram.note(Span::from_secs(60), 100);
        assert_eq!(quantile_micros(&histogram.buckets(), 0.99), Some(5_000_000));
        assert_eq!(quantile_micros(&[0, 0, 7], 1.0), Some(25));
    }

    #[test]
    fn bounds_are_what_they_show() {
        for (nanos, shown) in BOUNDS_NANOS {
            assert_eq!((shown.parse::<f64>().unwrap() * 1e9).round() as u64, nanos);
        }
        assert!(BOUNDS_NANOS.is_sorted());
    }
}
