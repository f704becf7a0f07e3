//! The most that a limit lets through.

use std::collections::HashMap;

use flowgate::Decision;
use flowgate_testkit::properties::calendars;
use flowgate_testkit::properties::specs::{self, Algorithm, Spec, Step, Window, start, takes};
use proptest::prelude::*;

use crate::Store;

/// An admission: the instant at which the request left, and its units.
#[derive(Clone, Copy, Debug)]
struct Admitted {
    at: u64,
    units: u64,
}

fn run(spec: &Spec, start: u64, steps: &[Step]) -> Vec<Admitted> {
    let store = Store::new([&spec.limit], false);
    let (mut now, mut last) = (start, None::<Decision>);
    let mut admitted = Vec::new();
    for step in steps {
        let units = step.cost(spec, last.as_ref());
        now = step.time(spec, now, last.as_ref());
        let decision = store.take(units, now);
        if decision.allowed() && units > 0 {
            admitted.push(Admitted { at: now + decision.delay().as_nanos(), units });
        }
        last = Some(decision);
    }
    admitted
}

/// Calls `check` with the first of every run of admissions, the time from first to last, and the units together.
fn each_span(
    admitted: &[Admitted],
    check: impl Fn(Admitted, u64, u64) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    for (index, &first) in admitted.iter().enumerate() {
        let mut units = 0;
        for last in &admitted[index..] {
            units += last.units;
            check(first, last.at - first.at, units)?;
        }
    }
    Ok(())
}

/// The units that a rate grants in `nanos` nanoseconds, times the time for a unit; see `units`.
fn granted(spec: &Spec, nanos: u64) -> u128 {
    u128::from(nanos) * u128::from(spec.micros)
}

fn units(spec: &Spec, units: u64) -> u128 {
    u128::from(units) * u128::from(spec.period) * 1_000_000
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(takes(), 1..100)
}

proptest! {
    #![proptest_config(crate::cases(300))]

    #[test]
    fn a_bucket_admits_its_burst_and_its_rate(spec in specs::bucket(), start in start(), steps in steps()) {
        let Algorithm::Bucket { burst } = spec.algorithm else { unreachable!() };
        each_span(&run(&spec, start, &steps), |_, span, admitted| {
            prop_assert!(units(&spec, admitted) <= units(&spec, burst) + granted(&spec, span), "{}", spec.limit);
            Ok(())
        })?;
    }

    /// Departures are rounded up to the nanosecond, so two of them may lie a nanosecond too close. What is larger
    /// than the burst leaves at once when its turn has come.
    #[test]
    fn pace_lets_leave_its_burst_and_its_rate(spec in specs::pace(), start in start(), steps in steps()) {
        let Algorithm::Pace { burst, .. } = spec.algorithm else { unreachable!() };
        let admitted = run(&spec, start, &steps);
        each_span(&admitted, |first, span, admitted| {
            let at_once = units(&spec, burst.max(first.units));
            prop_assert!(units(&spec, admitted) <= at_once + granted(&spec, span + 1), "{}", spec.limit);
            Ok(())
        })?;
        for pair in admitted.windows(2).filter(|_| burst == 1) {
            let apart = granted(&spec, pair[1].at - pair[0].at + 1);
            prop_assert!(apart > units(&spec, pair[1].units), "{}: {:?}", spec.limit, pair);
        }
    }

    #[test]
    fn a_fixed_window_admits_its_count(
        spec in prop_oneof![specs::fixed(), specs::calendar()],
        start in start(),
        steps in steps(),
    ) {
        let mut windows = HashMap::<u64, u64>::new();
        let mut ends_at = 0;
        let admitted = run(&spec, start, &steps);
        for &Admitted { at, units } in &admitted {
            if at >= ends_at {
                ends_at = match &spec.algorithm {
                    Algorithm::Fixed(Window::Calendar(unit, zone)) => calendars::end(*unit, zone, at),
                    _ => at + spec.period,
                };
            }
            *windows.entry(ends_at).or_default() += units;
        }
        prop_assert!(windows.values().all(|&units| units <= spec.count()), "{}: {:?}", spec.limit, windows);
        if spec.algorithm == Algorithm::Fixed(Window::Plain(spec.period)) {
            each_span(&admitted, |_, span, units| {
                prop_assert!(span >= spec.period || units <= 2 * spec.count(), "{}", spec.limit);
                Ok(())
            })?;
        }
    }

    #[test]
    fn any_period_admits_the_count_of_sliding(spec in specs::sliding(), start in start(), steps in steps()) {
        each_span(&run(&spec, start, &steps), |_, span, units| {
            prop_assert!(span >= spec.period || units <= spec.count(), "{}: {} in {}", spec.limit, units, span);
            Ok(())
        })?;
    }

    #[test]
    fn approx_keeps_to_its_estimate(spec in specs::approx(), start in start(), steps in steps()) {
        let (n, p) = (u128::from(spec.count()), u128::from(spec.period));
        let admitted = run(&spec, start, &steps);
        let mut windows = HashMap::<u64, u128>::new();
        for &Admitted { at, units } in &admitted {
            let window = at / spec.period;
            let current = windows.entry(window).or_default();
            *current += u128::from(units);
            let current = *current;
            let previous = window.checked_sub(1).and_then(|before| windows.get(&before)).copied().unwrap_or(0);
            let rest = p - u128::from(at % spec.period);
            prop_assert!(previous * rest + current * p <= n * p, "{}: {:?}", spec.limit, windows);
        }
        each_span(&admitted, |_, span, units| {
            prop_assert!(span >= spec.period || u128::from(units) < 2 * n, "{}: {} in {}", spec.limit, units, span);
            Ok(())
        })?;
    }
}

/// Users read "500/s" as one every 2 ms, and so it is.
#[test]
fn pace_never_lets_two_through_within_an_interval() {
    let store = Store::from_limit("pace 500/s max_wait=none");
    let start = 1_700_000_000 * specs::SECONDS;
    let leaves = |turn: u64| {
        let at = start + turn * 37_000;
        at + store.take(1, at).delay().as_nanos()
    };
    let leaving: Vec<u64> = (0..10_000).map(leaves).collect();
    assert!(leaving.windows(2).all(|pair| pair[1] - pair[0] == 2 * specs::MILLIS));
}
