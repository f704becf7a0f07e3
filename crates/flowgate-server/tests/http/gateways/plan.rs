//! A header that the gateway sets is the gateway's word: the examples of docs/gateways/README.md, put where it says.

use super::*;

/// Denies those whom Flowgate takes for `pro`, so that the status tells.
const RULES: &str = r#"
    gate.trusted_proxies = ["127.0.0.1"]
    rule = [{ name = "pro", when = { "header.x-plan" = "pro" }, action = "deny" }]
"#;

/// The lines of the README's example in a language, without its comment.
fn example(language: &str) -> Vec<String> {
    let text = fs::read_to_string(docs().join("README.md")).unwrap();
    let example = text.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap();
    example.lines().skip(1).map(|line| line.to_owned() + "\n").collect()
}

/// The text with `lines` before the first line that contains `place`.
fn insert(text: &str, place: &str, lines: &[String]) -> String {
    let at = text[..text.find(place).unwrap()].rfind('\n').unwrap() + 1;
    text[..at].to_owned() + &lines.concat() + &text[at..]
}

fn check(site: &Site) {
    for (headers, plan) in [
        (&[][..], "free"),
        (&[("X-Plan", "pro")], "free"),
        (&[("X-Api-Key", "invented"), ("X-Plan", "pro")], "free"),
        (&[("X-Api-Key", "k-7f3a9c21")], "pro"),
        (&[("X-Api-Key", "k-7f3a9c21"), ("X-Plan", "free")], "pro"),
    ] {
        let status = site.get("/", headers).status;
        assert_eq!(status, if plan == "pro" { 403 } else { 200 }, "{headers:?}");
    }
}

#[test]
fn nginx_sets_the_plan() {
    let lines = example("nginx");
    let (header, map) = lines.split_last().unwrap();
    let edit = |text: String| {
        let text = insert(&text, "proxy_set_header X-Original-URI", std::slice::from_ref(header));
        insert(&text, "upstream flowgate", map)
    };
    check(&Site::start_with(RULES, &["nginx.conf"], edit, nginx));
}

#[test]
fn caddy_sets_the_plan() {
    let lines = example("caddyfile");
    let (header, map) = lines.split_last().unwrap();
    let edit = |text: String| {
        let text = insert(&text, "header_up -X-Original-URI", std::slice::from_ref(header));
        insert(&text, "route {", map)
    };
    check(&Site::start_with(RULES, &["Caddyfile"], edit, caddy));
}

#[test]
fn haproxy_sets_the_plan() {
    let lines = example("haproxy");
    let edit = |text: String| {
        if text.contains("frontend site") { insert(&text, "http-request lua.flowgate", &lines) } else { text }
    };
    let start = |directory: &Path| {
        fs::write(directory.join("plans.map"), "k-7f3a9c21 pro\n").unwrap();
        haproxy(directory)
    };
    check(&Site::start_with(RULES, &["haproxy.cfg", "flowgate.lua"], edit, start));
}
