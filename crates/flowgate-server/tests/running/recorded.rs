//! The recorded traces on one server: a rule for each of them, and all their steps as they happened.
//!
//! A server's clock does not run back, so traces that do are left to the tests of the stores.

#[path = "../../../flowgate/tests/recorded/limits.rs"]
mod limits;

use flowgate::{Op, Time};
use flowgate_engine::{Condition, Decision, Limits, Matcher, RuleDef};
use flowgate_server::Config;
pub(crate) use limits::{Expect, Step, Trace};

/// The traces, and the configuration that decides them by the field `case`.
pub(crate) struct Recorded {
    traces: Vec<Trace>,
}

impl Recorded {
    pub(crate) fn read() -> Recorded {
        let mut traces = limits::traces();
        traces.retain(Trace::runs_forward);
        assert!(traces.len() > 90, "only {} run forward", traces.len());
        Recorded { traces }
    }

    /// Puts the rules into a configuration.
    pub(crate) fn rules(&self, config: &mut Config) {
        config.policy.rules = self.traces.iter().map(rule).collect();
    }

    /// Every step with its trace and its number, in the order of their times.
    pub(crate) fn steps(&self) -> Vec<(&Trace, usize)> {
        let steps = |trace: &'_ Trace| 0..trace.steps.len();
        let mut all: Vec<_> =
            self.traces.iter().flat_map(|trace| steps(trace).map(move |number| (trace, number))).collect();
        all.sort_by_key(|(trace, number)| trace.steps[*number].at_us);
        all
    }
}

fn rule(trace: &Trace) -> RuleDef {
    RuleDef {
        when: vec![Condition::new("case".to_owned(), Matcher::equal(trace.case.as_str()))],
        by: vec!["case".to_owned()],
        limits: Limits::Fixed(trace.limits.iter().map(|limit| limit.parse().unwrap()).collect()),
        count_denied: trace.count_denied,
        ..RuleDef::named(trace.case.replace('/', "-"))
    }
}

impl Step {
    pub(crate) fn time(&self) -> Time {
        Time::from_micros(self.at_us)
    }
}

impl Trace {
    /// The limit, where the trace is one of a single limit that a caller could bring.
    pub(crate) fn single(&self) -> Option<&str> {
        match self.limits.as_slice() {
            [limit] if !self.count_denied => Some(limit),
            _ => None,
        }
    }

    /// Expects what a protocol says of the step of this number, in milliseconds, rounded up.
    #[track_caller]
    pub(crate) fn check_millis(&self, number: usize, found: &Expect) {
        let Step { at_us, op, cost, expect } = &self.steps[number];
        let round = |micros: u64| micros.div_ceil(1000) * 1000;
        let Expect { allowed, limit, remaining, never, .. } = *expect;
        let expected = Expect {
            allowed,
            limit,
            remaining,
            never,
            retry_after_us: expect.retry_after_us.map(round),
            reset_after_us: round(expect.reset_after_us),
            delay_us: round(expect.delay_us),
        };
        assert_eq!(*found, expected, "{} {:?} step {number}: {op} {cost} at {at_us}", self.case, self.limits);
    }
}
