//! Access by bearer tokens, compared in constant time.
//!
//! Rule       Decisions need the API token, if there is one; the admin token serves as well. Everything else of `/v1`
//!            always needs the admin token: the address of a client proves nothing, since a proxy on this machine
//!            passes on requests from the internet.
//! Rule       Of web pages only this server's own have access: see [`origin`].

use std::net::IpAddr;
use std::sync::OnceLock;

use flowgate_engine::config::{self, Secret};
use hyper::header::{AUTHORIZATION, HeaderMap};
use subtle::ConstantTimeEq;

use super::error::Error;
use super::origin;

/// The right that an endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// None.
    Open,
    /// The right to ask for decisions.
    Decide,
    /// The right to change rules and bans, and to read statistics.
    Admin,
}

/// The sender of a request, by its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Unknown,
    Api,
    Admin,
}

#[derive(Debug)]
pub(crate) struct Tokens {
    api: Option<Secret>,
    /// Empty if the configuration has none and the server has no directory to keep one.
    admin: OnceLock<Secret>,
}

impl Tokens {
    pub(crate) fn new(auth: &config::Auth) -> Tokens {
        let admin = auth.admin_token.clone().map_or_else(OnceLock::new, OnceLock::from);
        Tokens { api: auth.api_token.clone(), admin }
    }

    /// Sets the admin token, unless the configuration has one.
    pub(crate) fn set_admin(&self, token: Secret) {
        self.admin.get_or_init(|| token);
    }

    /// Lets a request in, or says what it lacks. `local` is the address that the client connected to.
    pub(crate) fn check(&self, access: Access, headers: &HeaderMap, local: Option<IpAddr>) -> Result<(), Error> {
        if access == Access::Open {
            return Ok(());
        }
        origin::check(headers, local)?;
        self.check_token(access, headers)
    }

    /// As [`Tokens::check`], for any origin: a gateway passes on the headers of a browser.
    pub(crate) fn check_token(&self, access: Access, headers: &HeaderMap) -> Result<(), Error> {
        match (access, self.caller(headers)) {
            (Access::Open, _) | (Access::Decide, Caller::Api) | (_, Caller::Admin) => Ok(()),
            (Access::Decide, Caller::Unknown) if self.api.is_none() => Ok(()),
            (Access::Decide, Caller::Unknown) => Err(Error::Unauthorized("API token")),
            (Access::Admin, _) if self.admin.get().is_none() => Err(Error::Forbidden(
                "this needs the admin token, and the server has no place to keep one: set auth.admin_token_file",
            )),
            (Access::Admin, _) => Err(Error::Unauthorized("admin token")),
        }
    }

    fn caller(&self, headers: &HeaderMap) -> Caller {
        let Some(given) = bearer_token(headers) else { return Caller::Unknown };
        let is = |token: Option<&Secret>| token.is_some_and(|token| given.ct_eq(token.expose().as_bytes()).into());
        match (is(self.admin.get()), is(self.api.as_ref())) {
            (true, _) => Caller::Admin,
            (false, true) => Caller::Api,
            (false, false) => Caller::Unknown,
        }
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        list.iter().map(header).collect()
    }

    fn tokens(api: &str, admin: &str) -> Tokens {
        let secret = |text: &str| Some(Secret::new(text)).filter(|_| !text.is_empty());
        Tokens::new(&config::Auth { api_token: secret(api), admin_token: secret(admin), ..config::Auth::default() })
    }

    fn allowed(tokens: &Tokens, access: Access, header: &'static str) -> bool {
        tokens.check(access, &headers(&[("authorization", header)]), None).is_ok()
    }

    #[test]
    fn tokens_open_what_they_are_for() {
        let both = tokens("api", "admin");
        assert!(allowed(&both, Access::Decide, "Bearer api") && allowed(&both, Access::Decide, "bearer admin"));
        assert!(allowed(&both, Access::Admin, "Bearer admin") && !allowed(&both, Access::Admin, "Bearer api"));
        for wrong in ["", "Bearer", "Bearer ", "Bearer ap", "Bearer apix", "Basic api", "api", "Bearer  api"] {
            assert!(!allowed(&both, Access::Decide, wrong), "{wrong}");
        }
        assert!(tokens("", "admin").check(Access::Decide, &headers(&[]), None).is_ok());
        assert!(both.check(Access::Decide, &headers(&[]), None).is_err());
        assert!(both.check(Access::Open, &headers(&[]), None).is_ok());
    }

    #[test]
    fn administering_always_needs_a_token() {
        let made = tokens("api", "");
        let refused = |headers: &HeaderMap| made.check(Access::Admin, headers, None).unwrap_err();
        for list in
            [&[][..], &[("authorization", "Bearer ")], &[("authorization", "Bearer api")], &[("host", "localhost")]]
        {
            assert!(matches!(refused(&headers(list)), Error::Forbidden(why) if why.contains("auth.admin_token_file")));
        }
        made.set_admin(Secret::new("made"));
        assert!(matches!(refused(&headers(&[("host", "localhost")])), Error::Unauthorized("admin token")));
        assert!(allowed(&made, Access::Admin, "Bearer made") && allowed(&made, Access::Decide, "Bearer made"));
        let configured = tokens("", "configured");
        configured.set_admin(Secret::new("made"));
        assert!(allowed(&configured, Access::Admin, "Bearer configured"));
        assert!(!allowed(&configured, Access::Admin, "Bearer made"), "the configuration comes first");
    }

    #[test]
    fn pages_of_others_are_refused_whatever_they_bear() {
        let both = tokens("api", "admin");
        let page =
            headers(&[("host", "localhost"), ("origin", "http://evil.example"), ("authorization", "Bearer admin")]);
        for (access, expected) in [(Access::Open, true), (Access::Decide, false), (Access::Admin, false)] {
            assert_eq!(both.check(access, &page, None).is_ok(), expected, "{access:?}");
        }
        assert!(both.check_token(Access::Decide, &page).is_ok(), "through a gateway");
    }
}
