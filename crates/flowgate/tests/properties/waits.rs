//! Waits are honest: a caller that waits as told passes, and a tick earlier it does not. What is said to remain does.

use flowgate::{Decision, Limiter, Op, Retry, Span, Time, Verdict, WaitError};
use flowgate_testkit::properties::specs::{Algorithm, DAYS, MICROS, Spec, Step, any_spec, any_step, pace, start};
use proptest::prelude::*;

use crate::Store;

/// A trace in absolute numbers, with the answers it got.
struct Run {
    limits: Vec<Spec>,
    count_denied: bool,
    script: Vec<(Op, u64, u64, Decision)>,
}

impl Run {
    fn new(limits: Vec<Spec>, count_denied: bool, start: u64, steps: &[Step]) -> Run {
        let mut run = Run { limits, count_denied, script: Vec::new() };
        let store = run.store();
        let (mut latest, mut last) = (start, None);
        for (index, step) in steps.iter().enumerate() {
            let spec = &run.limits[index % run.limits.len()];
            let cost = step.cost(spec, last.as_ref());
            let now = step.time(spec, latest, last.as_ref());
            let decision = store.apply(step.op, cost, now);
            run.script.push((step.op, cost, now, decision));
            latest = latest.max(now);
            last = Some(decision);
        }
        run
    }

    fn store(&self) -> Store {
        Store::new(self.limits.iter().map(|spec| &spec.limit), self.count_denied)
    }

    /// A store in which the first `steps` have happened. Looking ahead in the one that goes on would age it.
    fn after(&self, steps: usize) -> Store {
        let store = self.store();
        for &(op, cost, now, _) in &self.script[..steps] {
            store.apply(op, cost, now);
        }
        store
    }

    fn name(&self, steps: usize) -> String {
        let limits = self.limits.iter().map(|spec| spec.limit.to_string());
        let script =
            self.script[..steps].iter().map(|(op, cost, now, found)| format!("{op:?} {cost} at {now} -> {found:?}"));
        limits.chain(script).collect::<Vec<_>>().join("\n")
    }

    /// Whether a debt came near the longest one. There, pace denies for good what would pass some day.
    fn saturates(&self) -> bool {
        let long = |(_, cost, _, answer): &(Op, u64, u64, Decision)| {
            self.limits.iter().any(|spec| {
                let interval = u128::from(spec.period) * 1_000_000 / u128::from(spec.micros);
                u128::from(answer.reset_after.as_nanos()) + u128::from(*cost) * interval > u128::from(30_000 * DAYS)
            })
        };
        self.limits.iter().any(hands_out_any_turn) && self.script.iter().any(long)
    }

    /// Waits are exact to this.
    fn tick(&self) -> u64 {
        if self.limits.iter().any(|spec| spec.algorithm == Algorithm::Approx) { MICROS } else { 1 }
    }

    /// Whether there is an instant that long after `now` (time ends in 2262).
    fn comes(now: u64, wait: u64) -> bool {
        now + wait <= Time::MAX.as_nanos()
    }

    fn check_denial(&self, index: usize, retry: Retry) -> Result<(), TestCaseError> {
        let (_, cost, now, _) = self.script[index];
        let store = self.after(index + 1);
        match retry {
            Retry::After(wait) if !Run::comes(now, wait.as_nanos()) => {}
            Retry::After(wait) => {
                let wait = wait.as_nanos();
                let early = store.peek(cost, now + wait.saturating_sub(self.tick()));
                prop_assert!(!early.allowed(), "passes early\n{}\n{:?}", self.name(index + 1), early);
                let found = store.peek(cost, now + wait);
                prop_assert!(found.allowed(), "is denied again\n{}\n{:?}", self.name(index + 1), found);
            }
            Retry::Never => {
                let found = store.peek(cost, now + 36_500 * DAYS);
                prop_assert!(found.never(), "passes some day\n{}\n{:?}", self.name(index + 1), found);
            }
        }
        Ok(())
    }
}

fn hands_out_any_turn(spec: &Spec) -> bool {
    matches!(spec.algorithm, Algorithm::Pace { max_wait: None, .. })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any_step(), 1..30)
}

/// Pace, free at first for a while.
fn pace_after() -> impl Strategy<Value = Spec> {
    (pace(), 1..10u64, 1..5_000_000u64)
        .prop_map(|(spec, free, period)| Spec::parse(&format!("{} after={free}/{period}us", spec.limit)).unwrap())
}

proptest! {
    #![proptest_config(crate::cases(400))]

    #[test]
    fn a_denied_request_passes_after_its_wait_and_not_before(
        limits in prop::collection::vec(any_spec(), 1..4),
        count_denied in prop::bool::weighted(0.25),
        start in start(),
        steps in steps(),
    ) {
        let run = Run::new(limits, count_denied, start, &steps);
        prop_assume!(!run.saturates());
        for (index, (op, _, _, decision)) in run.script.iter().enumerate() {
            if let (Op::Take | Op::Peek, Verdict::Deny(retry)) = (op, decision.verdict) {
                run.check_denial(index, retry)?;
            }
        }
    }

    /// A caller that does not want to be held for long waits for a near turn instead of being given a far one.
    #[test]
    fn a_take_that_may_be_delayed_by_so_much_passes_after_its_wait_and_not_before(
        longest in prop_oneof![Just(0), 0..100_000_000_000_u64, any::<u64>()],
        limits in prop::collection::vec(prop_oneof![3 => pace_after(), 1 => any_spec()], 1..3),
        start in start(),
        steps in steps(),
    ) {
        let run = Run::new(limits, false, start, &steps);
        let &(_, cost, now, _) = run.script.last().unwrap();
        let store = run.after(run.script.len());
        let longest = Span::from_nanos(longest);
        let take = |at: u64| store.apply(Op::TakeWithin(longest), cost, at);
        match take(now).verdict {
            Verdict::Allow { delay } => prop_assert!(delay <= longest),
            Verdict::Deny(Retry::After(wait)) if !Run::comes(now, wait.as_nanos()) => {}
            Verdict::Deny(Retry::After(wait)) => {
                let wait = wait.as_nanos();
                let early = take(now + wait.saturating_sub(run.tick()));
                prop_assert!(!early.allowed(), "{} passes early\n{}", cost, run.name(run.script.len()));
                let found = take(now + wait);
                prop_assert!(found.allowed(), "{} is denied again: {:?}\n{}", cost, found, run.name(run.script.len()));
            }
            Verdict::Deny(Retry::Never) => {
                let found = take(now + 36_500 * DAYS);
                prop_assert!(found.never(), "{} passes some day: {:?}\n{}", cost, found, run.name(run.script.len()));
            }
        }
    }

    #[test]
    fn a_delay_is_the_time_until_there_is_none(spec in pace(), start in start(), steps in steps()) {
        let run = Run::new(vec![spec], false, start, &steps);
        for (index, &(op, cost, now, decision)) in run.script.iter().enumerate() {
            // What is larger than the burst always has to wait for the rest of itself.
            let delay = decision.delay().as_nanos();
            if matches!(op, Op::Take) && cost <= run.limits[0].most() && delay > 0 && Run::comes(now, delay) {
                let turn = now + delay;
                let store = run.after(index);
                prop_assert!(store.peek(cost, turn - 1).delay().as_nanos() == 1, "{}", run.name(index + 1));
                prop_assert!(store.peek(cost, turn).delay().is_zero(), "{}", run.name(index + 1));
            }
        }
    }

    #[test]
    fn after_its_reset_a_state_is_as_if_never_used(spec in any_spec(), start in start(), steps in steps()) {
        let most = spec.most();
        let run = Run::new(vec![spec], false, start, &steps);
        let &(_, _, now, decision) = run.script.last().unwrap();
        let (store, reset) = (run.after(run.script.len()), decision.reset_after.as_nanos());
        prop_assume!(Run::comes(now, reset));
        if reset > 0 {
            let early = store.peek(0, now + reset - 1);
            prop_assert!(early.reset_after.as_nanos() == 1, "{:?}\n{}", early, run.name(run.script.len()));
        }
        // Peeks of a day later let the store forget the state, and then earlier instants are asked about again.
        for cost in [0, 1, 2, most / 2, most, most + 1, 2 * most] {
            for later in [0, 1, MICROS, DAYS] {
                let at = now + reset + later;
                let (found, fresh) = (store.peek(cost, at), store.peek_fresh(cost, at));
                prop_assert_eq!(found, fresh, "{} at {}\n{}", cost, at, run.name(run.script.len()));
            }
        }
    }

    #[test]
    fn what_remains_can_be_taken_and_no_more(spec in any_spec(), start in start(), steps in steps()) {
        let after = spec.after.is_some();
        let run = Run::new(vec![spec], false, start, &steps);
        let store = run.store();
        for (index, &(op, cost, now, decision)) in run.script.iter().enumerate() {
            store.apply(op, cost, now);
            let remaining = decision.remaining.unwrap();
            prop_assert!(remaining <= decision.limit.unwrap());
            let all = store.peek(remaining, now);
            prop_assert!(all.allowed() && all.delay().is_zero(), "{} of\n{}", remaining, run.name(index + 1));
            // While something is free, the limit itself may have room for more than that.
            if !after {
                let more = store.peek(remaining + 1, now);
                prop_assert!(!more.allowed() || !more.delay().is_zero(), "{} of\n{}", remaining, run.name(index + 1));
            }
        }
    }
}

/// A caller that asks for more than pace ever lets go at once is told so at once.
#[test]
fn waiting_for_more_than_the_burst_of_pace_fails_at_once() {
    let limiter = Limiter::new("pace 1000/s burst=2").unwrap();
    assert_eq!(limiter.wait("backend", 3, Span::MAX), Err(WaitError::Never));
    assert!(limiter.wait("backend", 2, Span::MAX).is_ok());
}
