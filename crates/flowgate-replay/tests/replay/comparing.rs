//! Two policies on the same traffic.

use serde_json::{Value, json};

use crate::{Trial, trace};

const POLICY: &str = "rule = [{ name = 'block', when = { user = 'x' }, action = 'deny' },
    { name = 'old', by = ['user'], limits = ['3/60s'] }]";
const NEXT_POLICY: &str =
    "rule = [{ name = 'new', by = ['user'], limits = ['2/60s'] }, { name = 'all', limits = ['bucket 6/60s'] }]";

fn events() -> Vec<u8> {
    trace(&[(1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "b"), (6, "x"), (7, "x"), (8, "x"), (9, "c"), (10, "d")])
}

#[test]
fn changes_are_counted_by_rule_and_subject() {
    let summary = Trial::new(POLICY, &events()).compare(NEXT_POLICY).json();
    assert_eq!(summary["denied"], 4, "the fourth of a, three of x");
    let compare = &summary["compare"];
    assert_eq!(compare["policy"], "next.toml");
    let counts = |keys: &[&str]| -> Vec<Value> { keys.iter().map(|key| compare[key].clone()).collect() };
    // User a passes twice, b once and x twice. One unit is left, which c takes.
    assert_eq!(compare["outcome"]["denied"], 4);
    assert_eq!(counts(&["passed_by_both", "denied_by_both"]), [4, 2].map(Value::from));
    assert_eq!(compare["newly_denied"]["requests"], 2);
    assert_eq!(
        compare["newly_denied"]["rules"],
        json!([{"rule": "new", "requests": 1}, {"rule": "all", "requests": 1}])
    );
    let whom = |side: &str| -> Vec<String> {
        let most = compare[side]["most"].as_array().unwrap();
        most.iter().map(|hit| format!("{} {} {}", hit["rule"], hit["subject"], hit["count"]).replace('"', "")).collect()
    };
    assert_eq!(whom("newly_denied"), ["new a 1", "all everyone 1"]);
    assert_eq!(compare["newly_passed"]["rules"], json!([{"rule": "block", "requests": 2}]));
    assert_eq!(whom("newly_passed"), ["block everyone 2"]);
}

#[test]
fn each_policy_spells_paths_its_own_way() {
    let rules = "rule = [{ name = 'login', when = { path = '/login' }, action = 'deny' }]";
    let exact_rules = format!("gate = {{ path_ignores = [] }}\n{rules}");
    let line = |path| format!("1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET {path} HTTP/1.1\" 200 5\n");
    let log = line("/login") + &line("/LOGIN") + &line("/login;x") + &line("/");
    let summary = Trial::new(rules, log.as_bytes()).compare(&exact_rules).json();
    assert_eq!((&summary["denied"], &summary["compare"]["outcome"]["denied"]), (&json!(3), &json!(1)));
    let summary = Trial::new(&exact_rules, log.as_bytes()).json();
    assert_eq!(summary["denied"], 1);
}

#[test]
fn text_of_a_comparison() {
    let text = Trial::new(POLICY, &events()).compare(NEXT_POLICY).summary().text();
    let (_, compared) = text.split_once("\nunder ").unwrap();
    assert_eq!(
        compared,
        "\
next.toml instead of flowgate.toml:

denied        4  40.0 %
newly denied  2  20.0 %
newly passed  2  20.0 %
unchanged     6  60.0 %

newly denied, by the rule of next.toml that denies:

new  1
all  1

newly denied most, of 2 subjects:

rule  subject   requests  first                last
new   a                1  1970-01-01 00:00:03  1970-01-01 00:00:03
all   everyone         1  1970-01-01 00:00:10  1970-01-01 00:00:10

newly passed, by the rule of flowgate.toml that denies:

block  2

newly passed most, of 1 subject:

rule   subject   requests  first                last
block  everyone         2  1970-01-01 00:00:06  1970-01-01 00:00:07
"
    );
}

#[test]
fn a_policy_compared_with_itself_changes_nothing() {
    let summary = Trial::new(POLICY, &events()).compare(POLICY).json();
    let compare = &summary["compare"];
    assert_eq!((&compare["newly_denied"]["requests"], &compare["newly_passed"]["requests"]), (&json!(0), &json!(0)));
    assert_eq!(compare["denied_by_both"], summary["denied"]);
    assert_eq!(compare["outcome"]["rules"], summary["rules"]);
}
