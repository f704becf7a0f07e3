//! A gateway that asks `/` instead of `/gate` lets no request pass. A proxy in front of the console is not taken for
//! such a gateway.

use super::*;

/// Expects that a gateway with this mistake answers with `status`.
fn check_mistake(site: &Site, status: u16) {
    for path in ["/", "/login"] {
        assert_eq!(site.get(path, &[]).status, status, "{path}");
    }
}

/// The configuration, with Flowgate as the site.
fn before_the_console(text: String) -> String {
    text.replace("127.0.0.1:8080", "127.0.0.1:7070")
}

fn check_console(site: &Site) {
    let page = site.connect().call("HEAD", "/", &[], "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{page:?}");
}

#[test]
fn nginx_that_asks_the_console_lets_nothing_pass() {
    let edit = |text: String| text.replace("http://flowgate/gate/403", "http://flowgate/");
    check_mistake(&Site::start(&["nginx.conf"], edit, nginx), 500);
}

#[test]
fn haproxy_that_asks_the_console_lets_nothing_pass() {
    let edit = |text: String| text.replace("\"/gate\"", "\"/\"");
    check_mistake(&Site::start(&["haproxy.cfg", "flowgate.lua"], edit, haproxy), 404);
}

#[test]
fn caddy_that_asks_the_console_lets_nothing_pass() {
    for other in ["rewrite /\n", ""] {
        let edit = |text: String| text.replace("rewrite /gate\n", other);
        check_mistake(&Site::start(&["Caddyfile"], edit, caddy), 404);
    }
}

#[test]
fn caddy_marks_what_passes_while_nothing_is_limited() {
    let mut site = Site::start(&["Caddyfile"], |text| text, caddy);
    assert_eq!(site.get("/api", &[]).header("x-flowgate-away"), None);
    site.flowgate = None;
    let passed = site.get("/api", &[]);
    assert_eq!((passed.status, passed.header("x-flowgate-away")), (200, Some("true")));
}

#[test]
fn traefik_that_asks_the_console_lets_nothing_pass() {
    for other in ["7070/", "7070"] {
        let edit = |text: String| text.replace("7070/gate", other);
        let site = Site::start(&["traefik.yml", "traefik-flowgate.yml"], edit, traefik);
        eventually("Flowgate answers Traefik", || site.get("/", &[]).body.contains("instead of /gate"));
        check_mistake(&site, 404);
    }
}

#[test]
fn the_console_opens_behind_each_gateway() {
    check_console(&Site::start(&["nginx.conf"], before_the_console, nginx));
    check_console(&Site::start(&["haproxy.cfg", "flowgate.lua"], before_the_console, haproxy));
    check_console(&Site::start(&["Caddyfile"], before_the_console, caddy));
    let site = Site::start(&["traefik.yml", "traefik-flowgate.yml"], before_the_console, traefik);
    eventually("Traefik has read its routes", || site.get("/healthz", &[]).status == 200);
    check_console(&site);
}
