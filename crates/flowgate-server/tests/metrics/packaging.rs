//! The dashboard, the alerts and the page about metrics name what is there, and all of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::service;

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(packaging(file)).unwrap()
}

fn exposition() -> String {
    service("").0.prometheus()
}

/// The names of all metrics; a histogram's without what it adds to its own.
fn families(exposition: &str) -> BTreeSet<String> {
    let typed = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    typed.map(|typed| typed.split(' ').next().unwrap().to_owned()).collect()
}

/// Every word of a text that looks like one of our metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let ours = words.filter(|word| word.starts_with("flowgate_") || word.starts_with("process_"));
    ours.map(|word| word.strip_suffix("_bucket").unwrap_or(word).to_owned()).collect()
}

#[tokio::test]
async fn every_metric_that_is_named_is_there_and_the_page_names_all() {
    let families = families(&exposition());
    for file in ["grafana/flowgate.json", "prometheus/alerts.yml", "prometheus/README.md"] {
        let named = named(&read(file));
        assert!(named.len() > 8, "{file} names only {named:?}");
        let unknown: Vec<_> = named.difference(&families).collect();
        assert_eq!(unknown, [""; 0], "{file}");
    }
    let page = named(&read("prometheus/README.md"));
    assert_eq!(families.difference(&page).collect::<Vec<_>>(), [""; 0], "not on the page");
}

#[test]
fn every_alert_comes_with_what_to_do() {
    let (alerts, page) = (read("prometheus/alerts.yml"), read("prometheus/README.md"));
    let names: Vec<&str> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "{names:?}");
    let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `Flowgate")).collect();
    let told: Vec<String> = rows.iter().map(|row| format!("Flowgate{}", row.split('`').next().unwrap())).collect();
    assert_eq!(told, names, "the page has a row for each alert, in their order");
}

#[test]
fn the_dashboard_is_one() {
    let dashboard: Value = serde_json::from_str(&read("grafana/flowgate.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut queries) = (BTreeSet::new(), 0);
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels of one id");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            assert_eq!(query.matches('(').count(), query.matches(')').count(), "{query}");
            assert!(query.contains("$job") && query.contains("$instance"), "{query}");
            queries += 1;
        }
    }
    assert!(queries >= panels.len() - 5, "panels without a query");
}

#[tokio::test]
async fn prometheus_takes_the_alerts_and_the_metrics() {
    let promtool = |args: &[&str], input: &str| {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("input");
        fs::write(&file, input).unwrap();
        let mut command = Command::new("promtool");
        let output =
            command.args(args).stdin(fs::File::open(&file).unwrap()).output().expect("promtool (see scripts/test)");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    };
    promtool(&["check", "rules", packaging("prometheus/alerts.yml").to_str().unwrap()], "");
    promtool(&["check", "metrics"], &exposition());

    // Its queries are queries, too: as rules they can be checked. What Grafana fills in is filled in.
    let dashboard: Value = serde_json::from_str(&read("grafana/flowgate.json")).unwrap();
    let mut rules = String::from("groups:\n- name: dashboard\n  rules:\n");
    let targets =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array()).flatten();
    for (number, target) in targets.enumerate() {
        let query = target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
        rules += &format!("  - record: query_{number}\n    expr: {}\n", Value::from(query));
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dashboard.yml");
    fs::write(&file, rules).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");
}
