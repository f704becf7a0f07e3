//! The history of latencies: the median and the 99th percentile of steps of ten seconds and of minutes.
//!
//! Rule       A step is told when it is over, from the durations that its histogram has counted meanwhile. Steps of one
//!            second have the figures of their ten seconds.

use super::Gauges;
use super::rings::{RESOLUTIONS, Resolution, Rings};
use crate::metrics::quantile_micros;

/// The protocols whose durations are kept.
pub(crate) const PROTOCOLS: [&str; 4] = ["resp", "http", "grpc", "store"];

/// The resolutions that are kept.
const KEPT: [Resolution; 2] = [RESOLUTIONS[1], RESOLUTIONS[2]];

/// The latency of a step, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latency {
    pub(crate) p50: Option<u32>,
    pub(crate) p99: Option<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Latencies {
    pub(super) rings: Rings<[Latency; PROTOCOLS.len()]>,
    /// The durations so far when the current step of each of [`KEPT`] began.
    before: [[Vec<u64>; PROTOCOLS.len()]; KEPT.len()],
}

impl Latencies {
    /// Notes the steps that end between the seconds `last` and `now`.
    pub(super) fn record(&mut self, last: u64, now: u64, gauges: &Gauges) {
        for (resolution, before) in KEPT.into_iter().zip(&mut self.before) {
            if last / resolution.step == now / resolution.step {
                continue;
            }
            let ended = self.rings.get_mut(resolution, last);
            for ((latency, before), counts) in ended.iter_mut().zip(before).zip(&gauges.latencies) {
                let new: Vec<u64> = (0..counts.len())
                    .map(|bucket| counts[bucket] - before.get(bucket).copied().unwrap_or(0).min(counts[bucket]))
                    .collect();
                *latency = Latency { p50: quantile_micros(&new, 0.5), p99: quantile_micros(&new, 0.99) };
                before.clone_from(counts);
            }
        }
    }

    /// The latencies of the step that holds `second`.
    pub(super) fn get(&self, resolution: Resolution, second: u64) -> [Latency; PROTOCOLS.len()] {
        let kept = if resolution.step == 1 { KEPT[0] } else { resolution };
        *self.rings.get(kept, second)
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.rings.bytes()
    }
}
