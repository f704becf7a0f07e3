//! The recorded traces of `testdata/vectors/limits.jsonl`, in virtual time.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::{Bench, testdata};

#[test]
fn the_recorded_answers_come_out_of_a_replay() {
    let text = std::fs::read_to_string(testdata("vectors/limits.jsonl")).unwrap();
    let cases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut rules, mut events, mut run_back) = (String::new(), Vec::new(), 0);
    for (number, case) in cases.iter().enumerate() {
        let steps = case["steps"].as_array().unwrap();
        let at = |step: &Value| step["at_us"].as_u64().unwrap();
        // A replay decides what runs back at the latest time, so those traces have other answers.
        if !steps.is_sorted_by_key(at) {
            run_back += 1;
            continue;
        }
        let (limits, denied) = (&case["limits"], &case["count_denied"]);
        writeln!(
            rules,
            "[[rule]]\nname = \"r{number}\"\nwhen = {{ case = \"r{number}\" }}\nlimits = {limits}\ncount_denied = {denied}"
        )
        .unwrap();
        events.extend(steps.iter().map(|step| (at(step), number, step)));
    }
    assert!(cases.len() - run_back > 90, "{run_back} of {} run back", cases.len());
    // One pass through all of them at once, as they happened.
    events.sort_by_key(|(at, _, _)| *at);
    let mut trace = String::new();
    for (at, number, step) in &events {
        let (op, cost) = (&step["op"], &step["cost"]);
        let ts = format!("{}.{:06}", at / 1_000_000, at % 1_000_000);
        writeln!(trace, r#"{{"ts":{ts},"op":{op},"cost":{cost},"fields":{{"case":"r{number}"}}}}"#).unwrap();
    }
    let bench = Bench::new(&rules);
    let decisions = bench.decisions(&["--config", "flowgate.toml", "--input", "-"], trace.as_bytes());
    assert_eq!(decisions.len(), events.len());
    for ((at, number, step), found) in events.iter().zip(&decisions) {
        let name = &cases[*number]["case"];
        assert_eq!(shown(found), expected(&step["expect"]), "{name} at {at}: {step}\n{found}");
    }
    let raw = bench.read("decisions.jsonl");
    let first = raw.lines().next().unwrap();
    let (at, _, _) = events[0];
    assert!(first.starts_with(&format!("{{\"ts\":{}.{:06},", at / 1_000_000, at % 1_000_000)), "{first}");
}

fn expected(expect: &Value) -> Value {
    let millis = |key: &str| expect[key].as_u64().map(|micros| micros.div_ceil(1000));
    json!({
        "allowed": expect["allowed"], "limit": expect["limit"], "remaining": expect["remaining"],
        "retry_after": millis("retry_after_us"), "never": expect["never"],
        "reset_after": millis("reset_after_us"), "delay": millis("delay_us"),
    })
}

/// What a decision line says of the same, in milliseconds.
fn shown(found: &Value) -> Value {
    // Up to a million years a double tells milliseconds apart.
    let millis = |key: &str| found[key].as_f64().map(|seconds| (seconds * 1000.0).round() as u64);
    json!({
        "allowed": found["allowed"], "limit": found["limit"], "remaining": found["remaining"],
        "retry_after": millis("retry_after"), "never": found.get("never").is_some(),
        "reset_after": millis("reset_after"), "delay": millis("delay"),
    })
}
