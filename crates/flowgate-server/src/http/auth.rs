//! Who may ask: bearer tokens, compared in constant time.
//!
//! Rule       Decisions need the API token, if there is one; the admin token serves as well. Everything else of `/v1`
//!            needs the admin token; without one it is open to clients of this machine.
//! Rule       "Of this machine" is meant literally: what a local proxy passes on comes from elsewhere, and so does what
//!            a web page makes a local browser send under a name of its own.

use std::net::IpAddr;

use flowgate_engine::config::{self, Secret};
use hyper::header::{AUTHORIZATION, FORWARDED, HOST, HeaderMap, ORIGIN, VIA};
use subtle::ConstantTimeEq;

use super::error::Error;

/// Who may use an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Open,
    /// Whoever may ask for decisions.
    Decide,
    /// Whoever may change rules and bans, and look inside.
    Admin,
}

#[derive(Debug)]
pub(crate) struct Tokens {
    api: Option<Secret>,
    admin: Option<Secret>,
}

impl Tokens {
    pub(crate) fn new(auth: &config::Auth) -> Tokens {
        Tokens { api: auth.api_token.clone(), admin: auth.admin_token.clone() }
    }

    /// Lets a request in, or says what it lacks.
    pub(crate) fn check(&self, access: Access, peer: IpAddr, headers: &HeaderMap) -> Result<(), Error> {
        match access {
            Access::Open => Ok(()),
            Access::Decide => match &self.api {
                None => Ok(()),
                Some(token) if bears(headers, token) => Ok(()),
                Some(_) if self.admin.as_ref().is_some_and(|token| bears(headers, token)) => Ok(()),
                Some(_) => Err(Error::Unauthorized("API token")),
            },
            Access::Admin => match &self.admin {
                Some(token) if bears(headers, token) => Ok(()),
                Some(_) => Err(Error::Unauthorized("admin token")),
                None if is_local(peer, headers) => Ok(()),
                None => Err(Error::Forbidden(
                    "without auth.admin_token this is open only to clients of the server's own machine, and not \
                     through a proxy",
                )),
            },
        }
    }
}

fn bears(headers: &HeaderMap, token: &Secret) -> bool {
    let Some(given) = headers.get(AUTHORIZATION).map(|value| value.as_bytes()) else { return false };
    let Some((scheme, given)) = given.split_at_checked(b"Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.ct_eq(token.expose().as_bytes()))
}

fn is_local(peer: IpAddr, headers: &HeaderMap) -> bool {
    let passed_on = [FORWARDED, VIA].iter().any(|name| headers.contains_key(name))
        || ["x-forwarded-for", "x-real-ip"].iter().any(|name| headers.contains_key(*name));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    // A browser says which page made it ask.
    let foreign = headers.get(ORIGIN).is_some_and(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        origin.map(|(_, origin)| origin) != host
    });
    peer.to_canonical().is_loopback() && !passed_on && !foreign && host.is_none_or(is_own_name)
}

/// A name that no stranger's domain can lead here under.
fn is_own_name(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((v6, _)) => v6,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        list.iter().map(header).collect()
    }

    fn tokens(api: &str, admin: &str) -> Tokens {
        let secret = |text: &str| Some(Secret::new(text)).filter(|_| !text.is_empty());
        Tokens { api: secret(api), admin: secret(admin) }
    }

    #[test]
    fn tokens_open_what_they_are_for() {
        let allowed = |tokens: &Tokens, access, header: &'static str| {
            tokens.check(access, NEAR, &headers(&[("authorization", header)])).is_ok()
        };
        let both = tokens("api", "admin");
        assert!(allowed(&both, Access::Decide, "Bearer api") && allowed(&both, Access::Decide, "bearer admin"));
        assert!(allowed(&both, Access::Admin, "Bearer admin") && !allowed(&both, Access::Admin, "Bearer api"));
        for wrong in ["", "Bearer", "Bearer ", "Bearer ap", "Bearer apix", "Basic api", "api", "Bearer  api"] {
            assert!(!allowed(&both, Access::Decide, wrong), "{wrong}");
        }
        assert!(tokens("", "admin").check(Access::Decide, NEAR, &headers(&[])).is_ok());
        assert!(both.check(Access::Decide, NEAR, &headers(&[])).is_err());
        assert!(both.check(Access::Open, NEAR, &headers(&[])).is_ok());
    }

    #[test]
    fn without_a_token_only_this_machine_is_admin() {
        let tokens = tokens("api", "");
        let allowed = |peer: &str, list: &[(&'static str, &'static str)]| {
            tokens.check(Access::Admin, peer.parse().unwrap(), &headers(list)).is_ok()
        };
        assert!(allowed("127.0.0.1", &[("host", "localhost:7070")]));
        assert!(allowed("::1", &[("host", "[::1]:7070")]) && allowed("::ffff:127.0.0.1", &[("host", "127.0.0.1")]));
        assert!(allowed("127.0.0.1", &[("host", "127.0.0.1:7070"), ("origin", "http://127.0.0.1:7070")]));
        assert!(!allowed("192.0.2.1", &[("host", "localhost")]));
        assert!(!allowed("127.0.0.1", &[("host", "localhost"), ("x-forwarded-for", "192.0.2.1")]));
        assert!(!allowed("127.0.0.1", &[("host", "localhost"), ("via", "1.1 proxy")]));
        assert!(!allowed("127.0.0.1", &[("host", "rebound.example:7070")]), "a name that was made to lead here");
        assert!(!allowed("127.0.0.1", &[("host", "localhost:7070"), ("origin", "http://evil.example")]));
        assert!(!allowed("127.0.0.1", &[("host", "localhost:7070"), ("origin", "null")]));
    }
}
