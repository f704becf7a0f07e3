//! The recorded traces of `testdata/vectors/limits.jsonl`, in virtual time.

use std::fmt::Write;

use flowgate_testkit::vectors::Numbers;
use flowgate_testkit::vectors::limits::{Step, Trace, forward_traces, in_time_order};

use crate::Trial;

#[test]
fn the_recorded_answers_come_out_of_a_replay() {
    let traces = forward_traces();
    let rules: String = traces.iter().map(Trace::rule_toml).collect();
    // One run through all traces at once.
    let steps = in_time_order(&traces);
    let mut events = String::new();
    for (trace, number) in &steps {
        let (case, Step { at_us, op, cost, .. }) = (&trace.case, &trace.steps[*number]);
        let ts = seconds(*at_us);
        writeln!(events, r#"{{"ts":{ts},"op":"{op}","cost":{cost},"fields":{{"case":{case:?}}}}}"#).unwrap();
    }
    let raw = Trial::new(&rules, events.as_bytes()).decisions();
    assert_eq!(raw.lines().count(), steps.len());
    for ((trace, number), line) in steps.iter().zip(raw.lines()) {
        trace.check_millis(*number, Numbers::from_json(&serde_json::from_str(line).unwrap()));
    }
    let (first_trace, number) = steps[0];
    assert!(raw.starts_with(&format!("{{\"ts\":{},", seconds(first_trace.steps[number].at_us))), "{raw:.80}");
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
