//! Requests by web pages: only pages of this server are let in.
//!
//! Rule       A browser sends `Origin` or `Sec-Fetch-Site`. Its request is let in if the page's origin equals the
//!            `Host`, and the `Host` names the listener itself: `localhost`, a loopback address or the bound address,
//!            at any port.
//! Rule       Under another name, the page is either this server's own behind a domain name, or a foreign page whose
//!            domain resolves to this machine (DNS rebinding). It needs a token, which a foreign page does not have.
//! Rule       Other clients send neither header, and may use any `Host`, such as the name of a container.

use std::net::IpAddr;

use super::error::Error;
use super::head::{self, Header};

const HOST: &str = "host";
const ORIGIN: &str = "origin";
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The page that a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// No page, or a page that this server has served.
    Own,
    /// A page that came from this `Host`, which is a name that any domain can have.
    Named,
}

/// Finds the page of a request; refuses one of another origin. `local` is the address that the client connected to;
/// `None`: a unix socket.
pub(super) fn page(headers: &[Header<'_>], local: Option<IpAddr>) -> Result<Page, Error> {
    if head::value(headers, ORIGIN).is_none() && head::value(headers, SEC_FETCH_SITE).is_none() {
        return Ok(Page::Own);
    }
    match only(headers, HOST) {
        Some(Some(host)) if is_own_page(headers, host) => {
            Ok(if is_own_host(host, local) { Page::Own } else { Page::Named })
        }
        _ => Err(FOREIGN_PAGE),
    }
}

pub(super) const FOREIGN_PAGE: Error = Error::Forbidden(
    "a web page may ask only if this server has served it, under localhost, a loopback address or the address \
     listened on; under another name it needs the admin token or the view token",
);

/// The value of a header that is given once; `Some(None)`: it is absent; `None`: it is given twice, or is not text.
fn only<'h>(headers: &'h [Header<'_>], name: &'h str) -> Option<Option<&'h str>> {
    let mut values = head::values(headers, name);
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => head::printable(value).map(Some),
        (Some(_), Some(_)) => None,
    }
}

/// True if the page comes from this `Host`. If a browser sends both headers, both must say so.
fn is_own_page(headers: &[Header<'_>], host: &str) -> bool {
    let (Some(origin), Some(site)) = (only(headers, ORIGIN), only(headers, SEC_FETCH_SITE)) else { return false };
    let from_host = origin.is_none_or(|origin| {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    });
    // `none`: the user has typed the address.
    from_host && site.is_none_or(|site| site == "same-origin" || site == "none")
}

/// True if a `Host` names this server in a way that a foreign domain cannot.
fn is_own_host(host: &str, local: Option<IpAddr>) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((v6, "")) => (v6, ""),
        Some((v6, port)) => match port.strip_prefix(':') {
            Some(port) => (v6, port),
            None => return false,
        },
        None => host.split_once(':').unwrap_or((host, "")),
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    match name.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(address) => address.is_loopback() || local.is_some_and(|local| local.to_canonical() == address),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> Vec<Header<'static>> {
        list.iter().map(|&(name, value)| Header { name, value: value.as_bytes() }).collect()
    }

    fn allowed(local: &str, list: &[(&'static str, &'static str)]) -> bool {
        page(&headers(list), local.parse().ok()).is_ok_and(|page| page == Page::Own)
    }

    #[test]
    fn hosts_that_are_this_servers_own() {
        let is_own = |host, local: &str| is_own_host(host, local.parse().ok());
        for host in
            ["localhost", "LocalHost:7070", "127.0.0.1", "127.8.9.1:1", "[::1]", "[::1]:7070", "[::ffff:127.0.0.1]"]
        {
            assert!(is_own(host, "192.0.2.1") && is_own(host, "no address"), "{host}");
        }
        for host in ["192.0.2.1", "192.0.2.1:8080", "[::ffff:192.0.2.1]:80"] {
            assert!(is_own(host, "192.0.2.1"), "{host}");
            assert!(!is_own(host, "192.0.2.2") && !is_own(host, "no address"), "{host}");
        }
        for host in [
            "",
            ":7070",
            "[::1].evil.example",
            "[::1]evil.example",
            "[::1]:80.evil.example",
            "[::1",
            "::1",
            "[localhost.evil.example]",
            "localhost.evil.example",
            "localhost:80.evil.example",
            "localhost.",
            "evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:80:80",
            "0.0.0.0",
            "6.6.6.6",
            "localhost, evil.example",
            "user@localhost",
        ] {
            assert!(!is_own(host, "192.0.2.1"), "{host}");
        }
    }

    #[test]
    fn clients_that_are_no_browsers_may_use_any_host() {
        for list in
            [&[][..], &[("host", "flowgate:7070")], &[("host", "a"), ("host", "b")], &[("sec-fetch-mode", "cors")]]
        {
            assert!(allowed("127.0.0.1", list), "{list:?}");
        }
    }

    #[test]
    fn pages_of_this_server_may_ask() {
        for list in [
            &[("host", "localhost:7070"), ("origin", "http://localhost:7070")][..],
            &[("host", "127.0.0.1:7070"), ("origin", "https://127.0.0.1:7070"), ("sec-fetch-site", "same-origin")],
            &[("host", "[::1]:7070"), ("sec-fetch-site", "same-origin")],
            &[("host", "192.0.2.1"), ("sec-fetch-site", "none")],
        ] {
            assert!(allowed("192.0.2.1", list), "{list:?}");
        }
    }

    #[test]
    fn pages_under_a_name_are_told_apart() {
        let of = |list: &[(&'static str, &'static str)]| page(&headers(list), None).ok();
        let named = [("host", "flowgate.example"), ("origin", "https://flowgate.example")];
        assert_eq!(of(&named), Some(Page::Named));
        assert_eq!(of(&[named[0], named[1], ("sec-fetch-site", "same-origin")]), Some(Page::Named));
        assert_eq!(of(&[named[0], named[1], ("sec-fetch-site", "cross-site")]), None);
        assert_eq!(of(&[named[0], ("origin", "https://evil.example")]), None);
        assert_eq!(of(&[named[0], ("sec-fetch-site", "same-site")]), None);
    }

    #[test]
    fn pages_of_others_may_not() {
        for list in [
            // A foreign name that resolves to this machine.
            &[("host", "evil.example:7070"), ("origin", "http://evil.example:7070")][..],
            &[("host", "evil.example:7070"), ("origin", "http://evil.example:7070"), ("sec-fetch-site", "same-origin")],
            &[("host", "[::1].evil.example"), ("origin", "http://[::1].evil.example")],
            &[("host", "localhost:7070"), ("origin", "http://evil.example")],
            // Another port of this machine is another origin.
            &[("host", "localhost:7070"), ("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")],
            &[("host", "localhost:7070"), ("origin", "http://127.0.0.1:7070")],
            &[("host", "localhost:7070"), ("origin", "null")],
            &[("host", "localhost:7070"), ("origin", "localhost:7070")],
            &[("host", "localhost:7070"), ("sec-fetch-site", "cross-site")],
            &[("host", "localhost:7070"), ("sec-fetch-site", "same-site")],
            &[("host", "localhost:7070"), ("origin", "http://localhost:7070"), ("sec-fetch-site", "cross-site")],
            // One of the headers is missing or given twice.
            &[("origin", "http://localhost:7070")],
            &[("sec-fetch-site", "same-origin")],
            &[("host", "localhost"), ("host", "localhost"), ("sec-fetch-site", "same-origin")],
            &[("host", "localhost"), ("host", "evil.example"), ("origin", "http://localhost")],
            &[("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")],
            &[("host", "localhost"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
        ] {
            assert!(!allowed("192.0.2.1", list), "{list:?}");
        }
    }
}
