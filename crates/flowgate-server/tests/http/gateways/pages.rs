//! A page instead of a denial: the examples of the gateways' guides, put where they say.

use super::*;

/// The page of a captcha is allowed by Flowgate, which reads a path in every spelling.
const RULES: &str = r#"
    [gate]
    trusted_proxies = ["127.0.0.1"]

    [[rule]]
    name = "captcha-page"
    when = { path = "/captcha/**" }
    action = "allow"

    [[rule]]
    name = "robot"
    when = { ip = "*" }
    by = ["ip"]
    limits = ["1/60s"]
    action = "captcha"
"#;

/// The first example of a guide.
fn example(guide: &str) -> String {
    let text = fs::read_to_string(docs().join(guide)).unwrap();
    let example = text.split("```").nth(1).unwrap().split_once('\n').unwrap().1;
    example.trim_end_matches(' ').to_owned()
}

/// The text with an example before the first line that contains `place`.
fn insert(text: &str, place: &str, example: &str) -> String {
    let at = text[..text.find(place).unwrap()].rfind('\n').unwrap() + 1;
    text[..at].to_owned() + example + &text[at..]
}

/// Expects that a client over its limit is sent to the captcha, sees it, and goes on once it has solved it.
fn check_captcha(site: &Site) {
    assert_eq!(site.get("/", &[]).status, 200);
    let sent = site.connect().call("HEAD", "/", &[], "");
    // nginx writes the host before it.
    assert!(sent.status == 302 && sent.header("location").unwrap().ends_with("/captcha"), "{sent:?}");
    assert_eq!(site.get("/captcha", &[]).body, "welcome");
    let sent = site.connect().call("HEAD", "/captcha/../x", &[], "");
    assert_eq!(sent.status, 302, "another page");
    let reset = r#"{"fields":{"ip":"127.0.0.2"},"gate":true}"#;
    let flowgate = site.flowgate.as_ref().unwrap();
    let json = [("content-type", "application/json")];
    assert_eq!(flowgate.connect().call("POST", "/v1/reset", &json, reset).status, 200);
    assert_eq!(site.get("/", &[]).status, 200);
}

#[test]
fn nginx_sends_clients_to_a_captcha() {
    let edit = |text: String| insert(&text, "# A limit. Where gate.deny_status", &example("nginx.md"));
    check_captcha(&Site::start_with(RULES, &["nginx.conf"], edit, nginx));
}

#[test]
fn caddy_sends_clients_to_a_captcha() {
    let edit = |text: String| insert(&text, "@limited {", &example("caddy.md"));
    check_captcha(&Site::start_with(RULES, &["Caddyfile"], edit, caddy));
}

#[test]
fn haproxy_sends_clients_to_a_captcha() {
    let edit = |text: String| match text.contains("frontend site") {
        true => insert(&text, "default_backend app", &example("haproxy.md")),
        false => text,
    };
    check_captcha(&Site::start_with(RULES, &["haproxy.cfg", "flowgate.lua"], edit, haproxy));
}

#[test]
fn traefik_shows_a_page_of_the_site() {
    let edit = |text: String| match text.contains("middlewares: [without-lies, flowgate]") {
        true => insert(
            &text.replace("[without-lies, flowgate]", "[without-lies, denied-page, flowgate]"),
            "    flowgate:",
            &example("traefik.md"),
        ),
        false => text,
    };
    let site = Site::start_with(super::RULES, &["traefik.yml", "traefik-flowgate.yml"], edit, traefik);
    site.until_traefik_has_its_routes();
    assert_eq!(site.get("/robot", &[]).status, 200);
    let page = site.get("/robot", &[]);
    assert_eq!((page.status, page.body.as_str(), page.header("retry-after")), (429, "welcome", None));
    assert_eq!(site.get("/private", &[]).header("content-type"), Some("application/problem+json"));
}
