//! Bounds, checked by what a client can be sure of.
//!
//! State      For each allowed request the interval from the client's write to the end of the client's read.
//! Rule       The decision lies somewhere in that interval. A request is within a span of time if its whole interval
//!            is. So a count of such requests is never too high, and a count above the bound is an excess for certain.
//! Rule       A documented exception (lost data, a clock that was put forward) raises the bound of every span that it
//!            touches by one allowance; see [`Grant`].

use std::fmt;
use std::time::Duration;

/// From the client's write to the end of its read, both since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) sent: Duration,
    pub(crate) received: Duration,
}

/// The promise of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Any span of length `period` admits at most `count`: `sliding`.
    Span { count: u64, period: Duration },
    /// Disjoint windows of length `period` admit `count` each, and a span of k periods touches k + 1 of them: `fixed`,
    /// `approx`.
    Windows { count: u64, period: Duration },
    /// Any span of length w admits at most `burst + w / interval`: `bucket`, `pace`.
    Bucket { burst: u64, interval: Duration },
}

/// A documented exception: spans that touch the time from `from` to `to` may admit `extra` more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) extra: u64,
}

/// The span that comes closest to its bound, or exceeds it by most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fullest {
    pub(crate) admitted: u64,
    pub(crate) bound: u64,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

impl Fullest {
    /// The number of requests above the bound.
    pub(crate) fn excess(&self) -> u64 {
        self.admitted.saturating_sub(self.bound)
    }

    /// The bound minus the admitted requests; negative if there is an excess.
    pub(crate) fn room(&self) -> i128 {
        i128::from(self.bound) - i128::from(self.admitted)
    }
}

impl fmt::Display for Fullest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fullest { admitted, bound, from, to } = self;
        write!(f, "{admitted} admitted from {from:.3?} to {to:.3?}, the bound is {bound}")
    }
}

/// The store's clock may run slower or faster than the client's by this part, since wall clocks are slewed: 1/1000,
/// twice what the kernel's clock discipline does at most.
const SLEW: u32 = 1000;

/// For limits with windows, spans of up to this many periods are checked.
const PERIODS: u32 = 4;

impl Bound {
    /// The most requests that may pass at once. An exception grants this number again.
    pub(crate) fn allowance(&self) -> u64 {
        match *self {
            Bound::Span { count, .. } | Bound::Windows { count, .. } => count,
            Bound::Bucket { burst, .. } => burst,
        }
    }

    /// The span of the allowed requests that is fullest by this bound; `None` where nothing was allowed.
    pub(crate) fn fullest(&self, allowed: &[Interval], grants: &[Grant]) -> Option<Fullest> {
        match *self {
            Bound::Span { count, period } => fullest_of_length(allowed, grants, period, count),
            Bound::Windows { count, period } => {
                let spans = (1..=PERIODS).filter_map(|periods| {
                    fullest_of_length(allowed, grants, period * periods, count * u64::from(periods + 1))
                });
                spans.min_by_key(Fullest::room)
            }
            Bound::Bucket { burst, interval } => fullest_of_any_length(allowed, grants, burst, interval),
        }
    }
}

/// The fullest span of one length. Only spans that begin with a request are looked at: any other holds no more.
fn fullest_of_length(allowed: &[Interval], grants: &[Grant], length: Duration, bound: u64) -> Option<Fullest> {
    let length = length - length / SLEW;
    let mut by_sent = allowed.to_vec();
    by_sent.sort_unstable_by_key(|interval| interval.sent);
    let spans = by_sent.iter().enumerate().map(|(first, interval)| {
        let (from, to) = (interval.sent, interval.sent + length);
        let candidates = by_sent[first..].iter().take_while(|other| other.sent <= to);
        let admitted = candidates.filter(|other| other.received <= to).count() as u64;
        Fullest { admitted, bound: bound + granted(grants, from, to), from, to }
    });
    spans.min_by_key(Fullest::room)
}

/// The fullest span of any length. A span that begins and ends with a request is fuller than a longer one that holds
/// the same requests, so pairs of a first write and a last read are enough.
fn fullest_of_any_length(allowed: &[Interval], grants: &[Grant], burst: u64, interval: Duration) -> Option<Fullest> {
    let mut by_received = allowed.to_vec();
    by_received.sort_unstable_by_key(|interval| interval.received);
    let mut fullest: Option<Fullest> = None;
    for first in allowed {
        let inside = by_received.iter().filter(|last| last.sent >= first.sent);
        for (last, admitted) in inside.zip(1..) {
            let (from, to) = (first.sent, last.received);
            let length = to - from;
            let leaked = (length + length / SLEW).as_nanos() / interval.as_nanos();
            let leaked = u64::try_from(leaked).unwrap_or(u64::MAX);
            let span = Fullest { admitted, bound: burst + leaked + granted(grants, from, to), from, to };
            if fullest.is_none_or(|fullest| span.room() < fullest.room()) {
                fullest = Some(span);
            }
        }
    }
    fullest
}

/// The number of requests that exceptions grant to a span.
fn granted(grants: &[Grant], from: Duration, to: Duration) -> u64 {
    grants.iter().filter(|grant| grant.from <= to && grant.to >= from).map(|grant| grant.extra).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLIDING: Bound = Bound::Span { count: 3, period: Duration::from_secs(1) };
    const FIXED: Bound = Bound::Windows { count: 3, period: Duration::from_secs(1) };
    const BUCKET: Bound = Bound::Bucket { burst: 2, interval: Duration::from_millis(100) };

    /// Requests that were sent at these milliseconds and answered one millisecond later.
    fn at(millis: &[u64]) -> Vec<Interval> {
        millis.iter().map(|&millis| from_to(millis, millis + 1)).collect()
    }

    fn from_to(sent: u64, received: u64) -> Interval {
        Interval { sent: Duration::from_millis(sent), received: Duration::from_millis(received) }
    }

    #[track_caller]
    fn check(bound: Bound, allowed: &[Interval], admitted: u64, allowance: u64) {
        let fullest = bound.fullest(allowed, &[]).unwrap();
        assert_eq!((fullest.admitted, fullest.bound), (admitted, allowance), "{fullest:?}");
    }

    #[test]
    fn a_full_window_is_legal_and_one_more_is_an_excess() {
        check(SLIDING, &at(&[0, 10, 900, 1001, 1011]), 3, 3);
        check(SLIDING, &at(&[0, 10, 900, 990, 1500]), 4, 3);
        assert_eq!(SLIDING.fullest(&at(&[0, 1, 2, 3, 4]), &[]).unwrap().excess(), 2);
        assert_eq!(SLIDING.fullest(&at(&[0, 1, 2]), &[]).unwrap().excess(), 0);
        assert_eq!(SLIDING.fullest(&[], &[]), None);
    }

    #[test]
    fn an_excess_anywhere_in_a_long_trace_is_found() {
        let mut legal: Vec<u64> = (0..300).map(|request| request * 400).collect();
        check(SLIDING, &at(&legal), 3, 3);
        legal.extend([60_010, 60_020]);
        check(SLIDING, &at(&legal), 5, 3);
    }

    #[test]
    fn a_request_that_may_lie_outside_is_not_counted() {
        // The decision on a request may lie before or after the span.
        check(SLIDING, &[from_to(0, 1100), from_to(200, 210), from_to(220, 230), from_to(240, 250)], 3, 3);
        check(SLIDING, &[from_to(200, 210), from_to(220, 230), from_to(240, 250), from_to(500, 1300)], 3, 3);
        check(SLIDING, &[from_to(200, 210), from_to(220, 230), from_to(240, 250), from_to(500, 1150)], 4, 3);
    }

    #[test]
    fn two_windows_meet_at_their_boundary() {
        check(FIXED, &at(&[980, 985, 990, 1000, 1005, 1010]), 6, 6);
        check(FIXED, &at(&[980, 985, 990, 1000, 1005, 1010, 1020]), 7, 6);
    }

    #[test]
    fn windows_are_told_from_twice_the_rate() {
        // Six a second are twice what is allowed, though any single second admits six.
        let doubled: Vec<u64> = (0..24).map(|request| request / 6 * 1000 + request % 6).collect();
        assert!(FIXED.fullest(&at(&doubled), &[]).unwrap().excess() > 0);
    }

    #[test]
    fn a_bucket_is_checked_over_spans_of_any_length() {
        check(BUCKET, &at(&[0, 1, 100, 200]), 2, 2);
        assert_eq!(BUCKET.fullest(&at(&[0, 1, 2]), &[]).unwrap().excess(), 1);
        // A unit every 90 ms is more than one every 100 ms, which shows only over a long span.
        let fast: Vec<u64> = (0..40).map(|request| request * 90).collect();
        assert!(BUCKET.fullest(&at(&fast), &[]).unwrap().excess() > 0);
        assert_eq!(BUCKET.fullest(&at(&fast[..10]), &[]).unwrap().excess(), 0);
    }

    #[test]
    fn a_grant_counts_for_the_spans_that_it_touches() {
        let grant = |from, to| Grant { from: Duration::from_millis(from), to: Duration::from_millis(to), extra: 3 };
        let allowed = at(&[0, 1, 2, 500, 501, 502]);
        assert_eq!(SLIDING.fullest(&allowed, &[grant(100, 200)]).unwrap().excess(), 0);
        assert_eq!(SLIDING.fullest(&allowed, &[grant(1100, 1200)]).unwrap().excess(), 3);
        assert_eq!(BUCKET.fullest(&at(&[0, 1, 2, 3, 4]), &[grant(2, 2)]).unwrap().excess(), 0);
        assert_eq!(BUCKET.fullest(&at(&[0, 1, 2, 3, 4, 5]), &[grant(2, 2)]).unwrap().excess(), 1);
    }
}
