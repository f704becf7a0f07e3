//! The recorded traces of `limits.jsonl` and `never_count_denied.jsonl`.

use serde::Deserialize;

use super::{Numbers, Op};

/// The limits of one rule, and what happens to one subject.
#[derive(Debug, Deserialize)]
pub struct Trace {
    /// The trace's name.
    pub case: String,
    /// The rule's limits.
    pub limits: Vec<String>,
    /// Whether denied requests count.
    pub count_denied: bool,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One request and its answer.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// Microseconds since the epoch.
    pub at_us: u64,
    /// The operation.
    pub op: Op,
    /// The request's cost in units.
    pub cost: u64,
    /// The answer.
    pub expect: Numbers,
}

/// All recorded traces.
pub fn traces() -> Vec<Trace> {
    let mut traces = super::read("limits.jsonl", 200);
    traces.extend(super::read("never_count_denied.jsonl", 30));
    traces
}

/// The traces whose time never runs back. A server's clock and a replay never run back, so the tests of the stores
/// replay the other traces.
pub fn forward_traces() -> Vec<Trace> {
    let mut traces = traces();
    traces.retain(|trace| trace.steps.is_sorted_by_key(|step| step.at_us));
    assert!(traces.len() > 90, "only {} traces run forward", traces.len());
    traces
}

/// Every step of these traces as its trace and its number, in the order of time.
pub fn in_time_order(traces: &[Trace]) -> Vec<(&Trace, usize)> {
    let mut steps = Vec::new();
    for trace in traces {
        steps.extend((0..trace.steps.len()).map(|number| (trace, number)));
    }
    steps.sort_by_key(|(trace, number)| trace.steps[*number].at_us);
    steps
}

impl Trace {
    /// Expects these numbers as the answer to a step.
    ///
    /// # Panics
    ///
    /// If the step has another answer.
    #[track_caller]
    pub fn check(&self, number: usize, found: Numbers) {
        self.compare(number, found, self.steps[number].expect);
    }

    /// Expects these numbers of a protocol, whose spans are whole milliseconds, as the answer to a step.
    ///
    /// # Panics
    ///
    /// If the step has another answer.
    #[track_caller]
    pub fn check_millis(&self, number: usize, found: Numbers) {
        self.compare(number, found, self.steps[number].expect.in_millis());
    }

    #[track_caller]
    fn compare(&self, number: usize, found: Numbers, expected: Numbers) {
        let (Trace { case, limits, .. }, Step { at_us, op, cost, .. }) = (self, &self.steps[number]);
        assert_eq!(found, expected, "{case} {limits:?} step {number}: {op} {cost} at {at_us}");
    }

    /// The limit of a trace that a caller can send with each request: a single one, without `count_denied`.
    pub fn single_limit(&self) -> Option<&str> {
        match self.limits.as_slice() {
            [limit] if !self.count_denied => Some(limit),
            _ => None,
        }
    }

    /// The rule as TOML, for requests whose field `case` is the trace's name.
    pub fn rule_toml(&self) -> String {
        let Trace { case, limits, count_denied, .. } = self;
        let name = case.replace('/', "-");
        format!(
            "[[rule]]\nname = {name:?}\nwhen = {{ case = {case:?} }}\nby = [\"case\"]\nlimits = {limits:?}\n\
             count_denied = {count_denied}\n"
        )
    }
}
