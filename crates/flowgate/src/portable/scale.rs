//! Exact instants of a bucket in whole microseconds and ticks.

use crate::algorithm::{Bucket, FullAt, Ticks};
use crate::limit::Law;
use crate::time::NANOS_PER_MICRO;

/// Whole microseconds, and ticks of the next microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Exact {
    /// Whole microseconds.
    pub micros: u64,
    /// Ticks of the next microsecond; [`AlgorithmTerms::Bucket`](super::AlgorithmTerms::Bucket) says how many it has.
    pub ticks: u64,
}

/// How the ticks of a microsecond follow from those of a nanosecond.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    per_nano: u64,
    /// How many ticks of a nanosecond make a tick of a microsecond; divides 1000.
    coarser: u64,
}

impl Scale {
    /// The coarsest ticks of which both a microsecond and the interval are whole numbers.
    pub(super) fn new<T: Ticks>(bucket: &Bucket<T>) -> Scale {
        let (per_nano, per_unit) = bucket.ticks();
        let mut coarser = NANOS_PER_MICRO;
        let mut rest = (per_unit.wide() % u128::from(coarser)) as u64;
        while rest > 0 {
            (coarser, rest) = (rest, coarser % rest);
        }
        Scale { per_nano, coarser }
    }

    /// Below 10^15: whole counts leave at most 10^12 of them, and decimals have at most 15 digits.
    pub(super) fn per_micro(self) -> u64 {
        // Divides, and the product fits: a nanosecond has less than 10^15 ticks.
        self.per_nano * (NANOS_PER_MICRO / self.coarser)
    }

    /// From ticks of a nanosecond; rounded down, which no whole number of ticks of a microsecond notices.
    pub(super) fn exact(self, ticks: u128, at_most: u64) -> Exact {
        let (ticks, per_micro) = (ticks / u128::from(self.coarser), u128::from(self.per_micro()));
        match u64::try_from(ticks / per_micro) {
            Ok(micros) if micros < at_most => Exact { micros, ticks: (ticks % per_micro) as u64 },
            _ => Exact { micros: at_most, ticks: 0 },
        }
    }

    pub(super) fn full_at(self, Exact { micros, ticks }: Exact) -> FullAt {
        // What a limit with finer ticks has left is less than a microsecond all the same.
        let ticks = u128::from(ticks.min(self.per_micro() - 1)) * u128::from(self.coarser);
        let (nanos, ticks) = Ticks::split(ticks, self.per_nano);
        FullAt { nanos: micros * NANOS_PER_MICRO + nanos, ticks }
    }

    pub(super) fn exact_full_at(self, FullAt { nanos, ticks }: FullAt) -> Exact {
        let (micros, nanos) = (nanos / NANOS_PER_MICRO, nanos % NANOS_PER_MICRO);
        let ticks = u128::from(nanos) * u128::from(self.per_nano) + u128::from(ticks);
        Exact { micros, ticks: (ticks / u128::from(self.coarser)) as u64 }
    }
}

impl Law {
    pub(super) fn scale(&self) -> Option<Scale> {
        match self {
            Law::Bucket(bucket) => Some(Scale::new(bucket)),
            Law::WideBucket(bucket) => Some(Scale::new(bucket)),
            Law::Pace(pace) => Some(Scale::new(&pace.bucket)),
            _ => None,
        }
    }
}
