//! A warning is a claim about what the engine will do. Here the engine is asked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers, too")]

use std::path::Path;

use flowgate::{MemoryStore, Op, Span, Time};
use flowgate_engine::config::{Input, LoadedConfig, Message, ReportEntry, load};
use flowgate_engine::{Engine, Request};
use proptest::prelude::*;

fn loaded(text: &str) -> LoadedConfig {
    let input = Input::Text { name: "flowgate.toml", base: Path::new(""), text };
    load(input, []).unwrap_or_else(|report| panic!("{report}\nin\n{text}"))
}

/// The lines that a warning of this beginning points at.
fn warned_lines(loaded: &LoadedConfig, beginning: &str) -> Vec<usize> {
    let entries = loaded.warnings.entries().filter(|entry| entry.message.text.starts_with(beginning));
    entries.map(|entry| entry.position.unwrap().line).collect()
}

#[test]
fn paths_that_are_spelled_otherwise() {
    let warnings = |gate: &str, path: &str| {
        let rule = format!("[[rule]]\nname = 'a'\naction = 'deny'\nwhen = {{ path = {path} }}");
        loaded(&format!("{gate}\n{rule}"))
            .warnings
            .entries()
            .map(|entry| entry.message.text.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings("", "['/Login/', '/a/**', '~^/x(/|$)', '~^/$', '!/b']"), [""; 0]);
    assert_eq!(warnings("", "'!/a;v=1'"), [r#"the path "/a;v=1" is not told from "/a""#]);
    assert_eq!(warnings("", "'~^/docs/$'"), [r#"no path at the gate ends in a slash, as "^/docs/$" wants it"#]);
    let exact = "gate = { path_ignores = [] }";
    assert_eq!((warnings(exact, "'/a;v=1'"), warnings(exact, "'~^/docs/$'")), (vec![], vec![]));
}

#[test]
fn rules_below_a_rule_that_is_spelled_otherwise() {
    let reached = |gate: &str, above: &str, below: &str| {
        let rule = |name: &str, when: &str| format!("{{ name = '{name}', when = {{ {when} }}, action = 'deny' }}");
        let rules = format!("{gate}\nrule = [{}, {}]", rule("above", above), rule("below", below));
        warned_lines(&loaded(&rules), "this rule is never reached").is_empty()
    };
    assert!(reached("", "path = '!/login'", "path = '/Login'"), "the gate makes /login of it");
    assert!(reached("", "host = '!example.com'", "host = 'Example.com:443'"));
    assert!(reached("", "method = '!GET'", "method = 'get'"));
    assert!(!reached("", "path = '/Login'", "path = '/login'"));
    assert!(!reached("", "path = '!/logout'", "path = '/Login'"));
    let exact = "gate = { path_ignores = [] }";
    assert!(!reached(exact, "path = '!/login'", "path = '/Login'"), "two paths");
    assert!(reached(exact, "path = '/Login'", "path = '/login'"));
}

/// Messages and hints about a rule, or several.
fn warnings(rules: &str) -> Vec<String> {
    let hints = |hints: &[Message]| hints.iter().map(|hint| hint.text.as_str()).collect::<Vec<_>>().join("\n");
    let words = |entry: ReportEntry<'_>| format!("{}; {}", entry.message.text, hints(&entry.hints));
    loaded(rules).warnings.entries().map(words).collect()
}

#[test]
fn conditions_that_no_request_at_the_gate_fits() {
    let of = |field: &str, value: &str| {
        warnings(&format!("[[rule]]\nname = 'a'\naction = 'deny'\nwhen = {{ {field} = '{value}' }}"))
    };
    for (field, value) in [
        ("host", "Example.com"),
        ("host", "*.example.com"),
        ("host", "[2001:db8::1]"),
        ("method", "get"),
        ("path", "~^/a?b"),
    ] {
        assert_eq!(of(field, value), [""; 0], "{field} = {value}");
    }
    let hint = "at the gate a host is without its port";
    assert_eq!(
        of("host", "!example.com:443"),
        [format!(r#"the host "example.com:443" is not told from "example.com"; {hint}"#)]
    );
    assert_eq!(of("host", "*:8443"), [format!(r#"no host at the gate has a port, as "*:8443" wants it; {hint}"#)]);
    let query =
        r#"no path at the gate has a query, as "/q?x=1" wants it; ask for path = "/q" and for the field "query.x""#;
    assert_eq!(of("path", "/q?x=1"), [query]);
}

#[test]
fn actions_that_are_probably_meant_otherwise() {
    let of = |action: &str| warnings(&format!("rule = [{{ name = 'a', action = '{action}' }}]"));
    for (action, meant) in [("alow", "allow"), ("dney", "deny"), ("Deny", "deny"), ("capcha", "captcha")] {
        let expected =
            format!(r#"the action "{action}" denies, as every word but "allow" does; did you mean "{meant}"?"#);
        assert_eq!(of(action), [expected]);
    }
    for action in ["allow", "deny", "captcha", "hcaptcha", "recaptcha", "delay", "block", "slow", "queue", "sms"] {
        assert_eq!(of(action), [""; 0], "{action}");
    }
}

#[test]
fn a_permission_below_all_rules_changes_nothing() {
    let rules = |text: &str| {
        let rule = |word: &str| match word {
            "limit" => "limits = ['5/60s']".to_owned(),
            action => format!("action = '{action}'"),
        };
        let rules = text.split(' ').enumerate();
        let rules = rules.map(|(number, word)| {
            format!("[[rule]]\nname = 'r{number}'\nwhen = {{ x = '{number}' }}\n{}\n", rule(word))
        });
        warned_lines(&loaded(&rules.collect::<String>()), "this rule changes nothing")
    };
    assert_eq!(rules("limit allow"), [6]);
    assert_eq!(rules("limit allow allow"), [6, 10]);
    for fine in ["allow limit", "limit allow limit", "allow", "allow allow", "limit deny", "allow deny"] {
        assert_eq!(rules(fine), [0; 0], "{fine}");
    }
}

#[test]
fn a_header_has_its_name_in_any_case() {
    let of = |condition: &str, by: &str| {
        warnings(&format!("[[rule]]\nname = 'a'\nwhen = {{ '{condition}' = '*' }}\nby = ['{by}']\nlimits = ['5/60s']"))
    };
    assert_eq!(of("header.x-key", "header.X-Key"), [""; 0]);
    assert_eq!(of("header.x-key", "header.x-other").len(), 1);
    assert_eq!(of("user", "User").len(), 2, "two fields, and one that gateways do not give");
}

fn limit() -> impl Strategy<Value = String> {
    let sliding = (1..12_u32, 1..9_u32).prop_map(|(count, period)| format!("{count}/{period}s"));
    let grid = (1020..3000_u32, 1..4_u32).prop_map(|(count, period)| format!("{count}/{period}s"));
    let fixed = (1..12_u32, 1..9_u32).prop_map(|(count, period)| format!("fixed {count}/{period}s"));
    let bucket = (1..12_u32, 1..9_u32, 1..12_u32)
        .prop_map(|(count, period, burst)| format!("bucket {count}/{period}s burst={burst}"));
    prop_oneof![3 => sliding, 1 => grid, 2 => fixed, 2 => bucket]
}

/// Forms that meet each other often, over few values.
fn matcher() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        r#""a""#,
        r#""b""#,
        r#"["a", "b"]"#,
        r#"["b", "5"]"#,
        r#""*""#,
        r#""!*""#,
        r#""!a""#,
        r#""!b""#,
        r#"["!*", "a"]"#,
        r#""@vip""#,
        r#""!@vip""#,
        r#""> 3""#,
        r#""1..9""#,
        r#""10.0.0.0/8""#,
        r#""10.0.0.1""#,
        r#""/a/*""#,
        r#""/a/**""#,
        r#""~^/a""#,
        r#""~^$""#,
        r#""**""#,
        r#"{ eq = "*" }"#,
        r#"{ eq = "" }"#,
        r#"{ eq = "10.0.0.1" }"#,
    ])
}

const VALUES: [Option<&str>; 10] = [
    None,
    Some(""),
    Some("a"),
    Some("b"),
    Some("5"),
    Some("*"),
    Some("10.0.0.1"),
    Some("::ffff:10.0.0.1"),
    Some("/a/"),
    Some("/a/b"),
];

fn rule(name: &str, action: &str, when: &[(&str, &str)], by: &[&str]) -> String {
    let conditions: Vec<_> = when.iter().map(|(field, matcher)| format!("{field} = {matcher}")).collect();
    format!("[[rule]]\nname = \"{name}\"\nwhen = {{ {} }}\nby = {by:?}\naction = \"{action}\"\n", conditions.join(", "))
}

fn conditions() -> impl Strategy<Value = (Vec<(&'static str, &'static str)>, Vec<&'static str>)> {
    let when = (prop::option::of(matcher()), prop::option::of(matcher())).prop_map(|(x, y)| {
        [("x", x), ("y", y)].into_iter().filter_map(|(field, matcher)| Some((field, matcher?))).collect()
    });
    let by = prop::sample::subsequence(vec!["x", "y"], 0..=2);
    (when, by)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_that_is_never_reached_never_decides(above in conditions(), below in conditions()) {
        let above = rule("above", "deny", &above.0, &above.1);
        let below = rule("below", "allow", &below.0, &below.1);
        let text = format!("{above}{below}\n[lists]\nvip = {{ values = [\"5\", \"10.0.0.0/8\"] }}\n");
        let loaded = loaded(&text);
        if warned_lines(&loaded, "this rule is never reached").is_empty() {
            return Ok(());
        }
        let engine = Engine::new(&loaded.config.policy, MemoryStore::default()).unwrap();
        for x in VALUES {
            for y in VALUES {
                let mut request = Request::new();
                for (field, value) in [("x", x), ("y", y)] {
                    if let Some(value) = value {
                        request = request.field(field, value);
                    }
                }
                let decision = engine.decide(Op::Take, &request, Time::from_secs(1_700_000_000));
                let rule = decision.rule().map(|rule| rule.name().to_owned());
                prop_assert_ne!(rule.as_deref(), Some("below"), "x = {:?}, y = {:?} in\n{}", x, y, text);
            }
        }
    }

    #[test]
    fn a_limit_that_is_never_reached_is_only_exceeded_with_another(
        limits in prop::collection::vec(limit(), 2..4),
        count_denied in any::<bool>(),
        steps in prop::collection::vec((0..4_000_u64, prop_oneof![4 => 1..4_u64, 1 => 200..1500_u64]), 1..60),
    ) {
        // Each limit on a line of its own, the first on the fourth.
        let lines: Vec<_> = limits.iter().map(|limit| format!("\"{limit}\",\n")).collect();
        let text = format!("[[rule]]\nname = \"r\"\nlimits = [\n{}]\ncount_denied = {count_denied}\n", lines.concat());
        let loaded = loaded(&text);
        let claimed: Vec<_> = warned_lines(&loaded, "this limit is never reached").iter().map(|line| line - 4).collect();
        let engine = Engine::new(&loaded.config.policy, MemoryStore::default()).unwrap();
        let mut now = Time::from_secs(1_700_000_000);
        for (millis, cost) in steps {
            now = now + Span::from_millis(millis);
            let decision = engine.decide(Op::Take, &Request::new().cost(cost), now);
            let parsed = |index: usize| limits[index].parse::<flowgate::Limit>().unwrap();
            let pointless: Vec<_> = claimed.iter().map(|&index| parsed(index)).collect();
            let only_pointless = decision.exceeded().iter().all(|exceeded| {
                let others = (0..limits.len()).filter(|index| !claimed.contains(index));
                pointless.contains(&exceeded.limit) && !others.into_iter().any(|index| parsed(index) == exceeded.limit)
            });
            prop_assert!(
                decision.exceeded().is_empty() || !only_pointless,
                "only {:?} are exceeded in\n{}", decision.exceeded(), text
            );
        }
    }
}
