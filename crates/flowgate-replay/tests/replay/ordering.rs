//! Late lines: a replay puts them in order within a window, and warns of later ones.

use std::io::Write;

use flowgate_engine::config::Config;
use flowgate_replay::{DEFAULT_WINDOW, Job, Names, Replay, Source};
use serde_json::{Value, json};

use crate::{Trial, trace};

const POLICY: &str = "rule = [{ name = 'per-user', by = ['user'], limits = ['3/60s'] }]";

/// 600 requests of some users, in an order that differs from that of their times by up to 59 seconds.
fn requests() -> Vec<(u64, &'static str)> {
    let users = ["a", "b", "b", "c", "c", "c"];
    let mut requests: Vec<(u64, &str)> = (0..600).map(|number| (1_000 + number, users[number as usize % 6])).collect();
    // The stride visits every request of a minute once.
    requests.chunks_mut(60).for_each(|minute| {
        let sorted = minute.to_vec();
        (0..minute.len()).for_each(|index| minute[index] = sorted[index * 37 % 60]);
    });
    requests
}

fn figures(summary: &Value) -> [&Value; 6] {
    ["requests", "denied", "rules", "hardest_hit", "timeline", "what_if"].map(|key| &summary[key])
}

#[test]
fn lines_in_disorder_give_the_figures_of_lines_in_order() {
    let shuffled = requests();
    let mut sorted = shuffled.clone();
    sorted.sort();
    let (shuffled, sorted) = (trace(&shuffled), trace(&sorted));
    let of_sorted = Trial::new(POLICY, &sorted).what_if().json();
    let of_shuffled = Trial::new(POLICY, &shuffled).what_if().json();
    assert_eq!(figures(&of_shuffled), figures(&of_sorted));
    assert_eq!((&of_shuffled["late"], &of_shuffled["first"]), (&json!(0), &of_sorted["first"]));
    assert!(of_shuffled["reordered"].as_u64() > Some(400), "{}", of_shuffled["reordered"]);
    assert_eq!((&of_sorted["reordered"], &of_shuffled["reorder_seconds"]), (&json!(0), &json!(60)));

    // Without a window lines are decided at other times, and the summary says so.
    let hasty = Trial::new(POLICY, &shuffled).reorder(0).summary();
    assert_ne!(serde_json::to_value(&hasty.outcome.timeline).unwrap(), of_sorted["timeline"]);
    assert_eq!(Value::from(hasty.late), of_shuffled["reordered"]);
    let [warning] = &hasty.warnings()[..] else { panic!("{:?}", hasty.warnings()) };
    assert!(warning.contains(" of 600 lines came more than 0 s late, by up to 55 s; try --reorder 1m"), "{warning}");
}

#[test]
fn lines_beyond_the_window_are_decided_at_the_latest_time_and_told_of_beside_the_title() {
    let trace = trace(&[(1_000, "a"), (939, "a"), (940, "a"), (999, "a"), (1_000, "a")]);
    let trial = Trial::new("rule = [{ name = 'per-user', by = ['user'], limits = ['4/30s'] }]", &trace);
    let decided: Vec<Value> = trial.decisions().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let order: Vec<_> = decided.iter().map(|line| (line["line"].as_u64(), line["ts"].as_u64())).collect();
    let expected = [(3, 940), (4, 999), (1, 1_000), (2, 939), (5, 1_000)].map(|(line, ts)| (Some(line), Some(ts)));
    assert_eq!(order, expected, "line 2 comes 61 s late");
    let summary = trial.summary();
    assert_eq!(
        (summary.reordered, summary.reordered_by_seconds, summary.late, summary.late_by_seconds),
        (2, 60, 1, 61)
    );
    let warning = "1 of 5 lines came more than 1 min late, by up to 1 min 1 s; try --reorder 2m. They were decided at \
                   the latest time seen, so too much may be denied";
    assert_eq!(summary.warnings(), [warning]);
    assert!(summary.text().contains(&format!("warning: {warning}\n")), "{}", summary.text());
    let page = flowgate_replay::report::page(&summary);
    let title = page.split("<header>").nth(1).and_then(|rest| rest.split("</header>").next()).unwrap();
    assert!(title.contains("</h1>") && title.contains("1 of 5 lines came more than 1 min late"), "{title}");
    assert_eq!(Trial::new(POLICY, &trace).reorder(61).summary().warnings(), [""; 0]);
}

/// Late lines at the start of a rotated log are put in order with the end of the log before it.
#[test]
fn lines_are_put_in_order_across_traces() {
    let config = Config::from_toml(POLICY).unwrap();
    let traces = [trace(&[(100, "a"), (130, "a")]), trace(&[(101, "a"), (102, "b"), (131, "a"), (160, "a")])];
    let mut decisions = Vec::new();
    let writer = flowgate_replay::DecisionWriter::new(&mut decisions, 2);
    let job = Job { config: &config, compare: None, what_if: false, decisions: Some(writer), reorder: DEFAULT_WINDOW };
    let mut replay = Replay::new(job).unwrap();
    for trace in &traces {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(trace).unwrap();
        replay.read(&Source::new(file.path()), None, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    }
    let names = Names { traces: Vec::new(), policy: String::new(), compare: String::new() };
    let (summary, written) = replay.finish(names);
    written.unwrap();
    assert_eq!((summary.late, summary.reordered, summary.outcome.denied), (0, 2, 1));
    let lines: Vec<Value> =
        String::from_utf8(decisions).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let times: Vec<u64> = lines.iter().map(|line| line["ts"].as_u64().unwrap()).collect();
    assert_eq!(times, [100, 101, 102, 130, 131, 160]);
    assert!(lines[0]["file"] != lines[1]["file"] && lines[0]["file"] == lines[3]["file"]);
}
