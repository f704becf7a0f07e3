//! No rate drifts, however awkward its interval and however long it runs.

use flowgate_testkit::properties::specs::{DAYS, SECONDS};

use crate::Store;

/// `count` units per `period`, as whole numbers.
struct Rate {
    limit: &'static str,
    count: u64,
    period: u64,
}

const RATES: [Rate; 7] = [
    Rate { limit: "7/s", count: 7, period: SECONDS },
    Rate { limit: "11/s", count: 11, period: SECONDS },
    Rate { limit: "700001/s", count: 700_001, period: SECONDS },
    Rate { limit: "0.3/s", count: 3, period: 10 * SECONDS },
    Rate { limit: "0.000007/s", count: 7, period: 1_000_000 * SECONDS },
    Rate { limit: "1000000000000/366d", count: 1_000_000_000_000, period: 366 * DAYS },
    Rate { limit: "999999.999999/s", count: 999_999_999_999, period: 1_000_000 * SECONDS },
];

const START: u64 = 1_700_000_000 * SECONDS + 123_456_789;

/// A caller that takes one unit after the other, as soon as may be, gets the n-th exactly n intervals after the burst.
/// (A burst of one would be full again whenever it is waited for, and the rest of that nanosecond lost.)
#[test]
fn the_nth_unit_comes_when_n_intervals_have_passed() {
    for Rate { limit, count, period } in RATES {
        for burst in [2, 7] {
            let store = Store::from_limit(&format!("bucket {limit} burst={burst}"));
            let mut now = START;
            for taken in 0..2_000u64 {
                if let Some(wait) = store.peek(1, now).retry_after() {
                    now += wait.as_nanos();
                }
                assert!(store.take(1, now).allowed());
                let waited = taken.saturating_sub(burst - 1);
                let exact = u128::from(waited) * u128::from(period);
                assert_eq!(u128::from(now - START), exact.div_ceil(u128::from(count)), "{limit}, unit {taken}");
            }
        }
    }
}

/// A billion seconds in large and crooked steps: what was taken is the burst and the rate times the time, exactly.
#[test]
fn a_billion_seconds_grant_exactly_the_rate() {
    for Rate { limit, count, period } in RATES {
        // As large as it may be, so that the bucket is never full and nothing is lost on the way.
        let grants = |nanos: u64| u128::from(nanos) * u128::from(count) / u128::from(period);
        let burst = u64::try_from(grants(36_000 * DAYS)).unwrap().min(1_000_000_000_000);
        let fills_in = u64::try_from(u128::from(burst) * u128::from(period) / u128::from(count)).unwrap();
        let store = Store::from_limit(&format!("bucket {limit} burst={burst}"));
        assert!(store.take(burst, START).allowed());
        let (mut now, mut taken) = (START, 0);
        let mut step = 1_234_567_891;
        while now < START + 1_000_000_000 * SECONDS {
            step = (step * 31 + 7) % fills_in.min(40_000_000 * SECONDS);
            now += step;
            let remaining = store.peek(0, now).remaining.unwrap();
            assert!(store.take(remaining, now).allowed());
            assert!(!store.peek(1, now).allowed(), "{limit}: nothing is left");
            taken += u128::from(remaining);
            assert_eq!(taken, grants(now - START), "{limit} after {} ns", now - START);
        }
    }
}

/// A limit of seven a second admits seven in the first second after the burst, and seven in each second of a long load.
#[test]
fn seven_a_second_are_seven_in_every_second() {
    let store = Store::from_limit("bucket 7/s");
    assert!(store.take(7, START).allowed());
    let mut admitted = 0;
    let mut now = START;
    for second in 1..=3_000 {
        while now <= START + second * SECONDS {
            let decision = store.take(1, now);
            admitted += u64::from(decision.allowed());
            now += decision.retry_after().map_or(0, |wait| wait.as_nanos());
        }
        assert_eq!(admitted, 7 * second, "after {second} seconds");
    }
}
