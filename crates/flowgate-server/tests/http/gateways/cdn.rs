//! Gateways behind a CDN or a load balancer, which is the peer of every request: clients are told apart by what the CDN
//! says, and by nothing that a client writes through it.

use super::*;

/// The test's own address plays the CDN; the gateway is at 127.0.0.1.
const RULES: &str = r#"
    [gate]
    trusted_proxies = ["127.0.0.1", "127.0.0.2"]

    [[rule]]
    name = "login"
    when = { path = "/login", method = "GET", host = "shop.example" }
    by = ["ip"]
    limits = ["1/60s"]
"#;

/// The lines that the configuration has for this case, which are comments, with the address of the CDN.
fn behind_a_cdn(text: String) -> String {
    let text = text.replace("203.0.113.0/24", "127.0.0.2/32");
    let in_force = |line: &str| {
        let settings = ["trusted_proxies ", "forwardedHeaders:", "  trustedIPs:"];
        match line.split_once("# ") {
            Some((indent, setting)) if settings.iter().any(|start| setting.starts_with(start)) => {
                format!("{indent}{setting}\n")
            }
            _ => format!("{line}\n"),
        }
    };
    text.lines().map(in_force).collect()
}

impl Site {
    /// What the site answers on `/login` to a client of the CDN that has sent these headers.
    fn log_in_by_cdn(&self, chain: &str, headers: &[(&str, &str)]) -> u16 {
        let mut all = vec![("Host", "shop.example"), ("X-Forwarded-For", chain)];
        all.extend_from_slice(headers);
        self.get("/login", &all).status
    }

    fn check_behind_a_cdn(&self) {
        assert_eq!(self.log_in_by_cdn("5.5.5.5", &[]), 200);
        assert_eq!(self.log_in_by_cdn("5.5.5.5", &[]), 429);
        assert_eq!(self.log_in_by_cdn("6.6.6.6", &[]), 200, "another client");
        assert_eq!(self.log_in_by_cdn("7.7.7.7, 5.5.5.5", &[]), 429, "the CDN has appended the client");
        for lie in [
            ("X-Forwarded-Uri", "/static/a.css"),
            ("X-Forwarded-Method", "PUT"),
            ("X-Forwarded-Host", "elsewhere.example"),
            ("X-Original-URI", "/static/a.css"),
            ("X-Original-Method", "PUT"),
            ("X-Real-Ip", "7.7.7.7"),
            ("Forwarded", "for=7.7.7.7"),
        ] {
            assert_eq!(self.log_in_by_cdn("5.5.5.5", &[lie]), 429, "{lie:?}");
        }
    }
}

#[test]
fn nginx_behind_a_cdn_tells_clients_apart() {
    Site::start_with(RULES, &["nginx.conf"], behind_a_cdn, nginx).check_behind_a_cdn();
}

#[test]
fn haproxy_behind_a_cdn_tells_clients_apart() {
    Site::start_with(RULES, &["haproxy.cfg", "flowgate.lua"], behind_a_cdn, haproxy).check_behind_a_cdn();
}

#[test]
fn caddy_behind_a_cdn_tells_clients_apart() {
    Site::start_with(RULES, &["Caddyfile"], behind_a_cdn, caddy).check_behind_a_cdn();
}

#[test]
fn traefik_behind_a_cdn_tells_clients_apart() {
    let site = Site::start_with(RULES, &["traefik.yml", "traefik-flowgate.yml"], behind_a_cdn, traefik);
    site.until_traefik_has_its_routes();
    site.check_behind_a_cdn();
}

/// Flowgate walks from the right, past proxies that it trusts itself.
#[test]
fn traefik_that_believes_everybody_lets_nobody_choose_an_address() {
    let rules = RULES.replace(r#", "127.0.0.2""#, "");
    let believing = |text: String| behind_a_cdn(text).replace(r#"trustedIPs: ["127.0.0.2/32"]"#, "insecure: true");
    let site = Site::start_with(&rules, &["traefik.yml", "traefik-flowgate.yml"], believing, traefik);
    site.until_traefik_has_its_routes();
    assert_eq!(site.log_in_by_cdn("5.5.5.5", &[]), 200);
    assert_eq!(site.log_in_by_cdn("6.6.6.6", &[]), 429, "Flowgate counts the peer of Traefik");
}
