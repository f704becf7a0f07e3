//! The algorithms by name, and what the limit language says of each.

use super::{MAX_COUNT, Part, Rate};

/// The ways to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Any span of one period admits at most the count. The default.
    Sliding,
    /// A counter per window; the window opens with the first request or follows a calendar.
    Fixed,
    /// Token bucket, funnel, GCRA: a steady rate with a burst.
    Bucket,
    /// Leaky bucket as a queue: requests are given turns instead of being denied.
    Pace,
    /// Two counters that estimate a sliding window.
    Approx,
    /// No limit at all.
    Unlimited,
}

impl Algorithm {
    /// Every algorithm, in the order of the enum. The memory store marks counters with that position, so a new
    /// algorithm goes to the end.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Sliding,
        Algorithm::Fixed,
        Algorithm::Bucket,
        Algorithm::Pace,
        Algorithm::Approx,
        Algorithm::Unlimited,
    ];

    /// The names in the limit language. The first one is canonical.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Algorithm::Sliding => &["sliding", "log"],
            Algorithm::Fixed => &["fixed", "count"],
            Algorithm::Bucket => &["bucket", "token", "funnel", "gcra"],
            Algorithm::Pace => &["pace", "leaky"],
            Algorithm::Approx => &["approx"],
            Algorithm::Unlimited => &["unlimited"],
        }
    }

    /// The canonical name.
    pub const fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The algorithm of a name.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.names().contains(&name))
    }

    /// The largest count of a limit.
    pub const fn max_count(self) -> u64 {
        match self {
            // The counters have 32 bits, and the estimate is exact up to this count.
            Algorithm::Approx => 4_000_000_000,
            _ => MAX_COUNT,
        }
    }

    /// The options of the algorithm.
    pub(super) fn options(self) -> &'static [Part] {
        match self {
            Algorithm::Bucket => &[Part::Burst, Part::Tz, Part::After],
            Algorithm::Pace => &[Part::Burst, Part::MaxWait, Part::Tz, Part::After],
            _ => &[Part::Tz, Part::After],
        }
    }

    /// True if the count may have decimals.
    pub(super) fn takes_decimals(self) -> bool {
        matches!(self, Algorithm::Bucket | Algorithm::Pace)
    }

    /// The default burst: one unit for `pace`, and the units of one period for a bucket.
    pub(super) fn default_burst(self, rate: Rate) -> u64 {
        if self == Algorithm::Pace { 1 } else { rate.count_ceil() }
    }
}
