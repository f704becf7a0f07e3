//! Access by bearer tokens, compared in constant time.
//!
//! Rule       Decisions need the API token, if there is one; the admin token serves as well. Everything else of `/v1`
//!            always needs a token: the address of a client proves nothing, since a proxy on this machine passes on
//!            requests from the internet. The view token opens what is read, the admin token everything.
//! Rule       A session key, which a login returns, opens what its token opens: see [`session_key`].
//! Rule       Of web pages only this server's own have access: see [`origin`].

use std::net::IpAddr;
use std::sync::OnceLock;

use flowgate::Time;
use flowgate_api::Rights;
use flowgate_engine::config::{self, Secret};
use subtle::ConstantTimeEq;

use super::error::Error;
use super::head::{self, Header};
use super::origin::{self, Page};
use super::session_key;

/// The right that an endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The endpoint needs no right.
    Open,
    /// The endpoint needs no right. Of web pages only this server's own may call it.
    Login,
    /// The right to ask for decisions.
    Decide,
    /// The right to ask for decisions that change nothing.
    Peek,
    /// The right to read rules, bans and statistics.
    Read,
    /// The right to change rules and bans.
    Admin,
}

/// The sender of a request, by its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    Unknown,
    Api,
    Session(Rights),
}

#[derive(Debug)]
pub(crate) struct Tokens {
    api: Option<Secret>,
    view: Option<Secret>,
    /// The admin token; empty if the configuration has none and the server has no directory to keep one.
    pub(crate) admin: OnceLock<Secret>,
}

impl Tokens {
    pub(crate) fn new(auth: &config::Auth) -> Tokens {
        let admin = auth.admin_token.clone().map_or_else(OnceLock::new, OnceLock::from);
        Tokens { api: auth.api_token.clone(), view: auth.view_token.clone(), admin }
    }

    /// Sets the admin token, unless the configuration has one.
    pub(crate) fn set_admin(&self, token: Secret) {
        self.admin.get_or_init(|| token);
    }

    /// Lets a request in, or returns the error that says what the request lacks. `local` is the address that the client
    /// connected to.
    pub(crate) fn check(
        &self,
        access: Access,
        headers: &[Header<'_>],
        local: Option<IpAddr>,
        now: impl Fn() -> Time,
    ) -> Result<(), Error> {
        if access == Access::Open {
            return Ok(());
        }
        let page = origin::page(headers, local)?;
        if access == Access::Login {
            return Ok(());
        }
        let caller = self.caller(headers, now);
        if page == Page::Named && !matches!(caller, Caller::Session(_)) {
            return Err(origin::FOREIGN_PAGE);
        }
        self.check_caller(access, caller)
    }

    /// As [`Tokens::check`], for any origin: a gateway passes on the headers of a browser.
    pub(crate) fn check_token(
        &self,
        access: Access,
        headers: &[Header<'_>],
        now: impl Fn() -> Time,
    ) -> Result<(), Error> {
        self.check_caller(access, self.caller(headers, now))
    }

    fn check_caller(&self, access: Access, caller: Caller) -> Result<(), Error> {
        match (access, caller) {
            (Access::Open | Access::Login, _)
            | (_, Caller::Session(Rights::Admin))
            | (Access::Decide | Access::Peek, Caller::Api)
            | (Access::Peek | Access::Read, Caller::Session(Rights::View)) => Ok(()),
            (Access::Decide | Access::Admin, Caller::Session(Rights::View)) => {
                Err(Error::Forbidden("the view token changes nothing: this needs the admin token"))
            }
            (Access::Decide | Access::Peek, _) if self.api.is_none() => Ok(()),
            (Access::Decide | Access::Peek, _) => Err(Error::Unauthorized("API token")),
            (Access::Read | Access::Admin, _) if self.admin.get().is_none() => Err(NO_ADMIN_TOKEN),
            (Access::Read | Access::Admin, _) => Err(Error::Unauthorized("admin token")),
        }
    }

    /// Trades a token for a session key that ends at `until`; `None`: the token is wrong.
    pub(crate) fn log_in(&self, token: &str, until: u64) -> Result<Option<(String, Rights)>, Error> {
        let admin = self.admin.get().ok_or(NO_ADMIN_TOKEN)?;
        let is = |secret: &Secret| bool::from(token.as_bytes().ct_eq(secret.expose().as_bytes()));
        let rights = match (is(admin), self.view.as_ref().is_some_and(is)) {
            (true, _) => Rights::Admin,
            (false, true) => Rights::View,
            (false, false) => return Ok(None),
        };
        Ok(Some((session_key::make(token, rights, until), rights)))
    }

    fn caller(&self, headers: &[Header<'_>], now: impl Fn() -> Time) -> Caller {
        let Some(given) = bearer_token(headers) else { return Caller::Unknown };
        let is = |token: Option<&Secret>| token.is_some_and(|token| given.ct_eq(token.expose().as_bytes()).into());
        let (admin, view) = (self.admin.get(), self.view.as_ref());
        match (is(admin), is(view), is(self.api.as_ref())) {
            (true, ..) => return Caller::Session(Rights::Admin),
            (_, true, _) => return Caller::Session(Rights::View),
            (.., true) => return Caller::Api,
            _ => {}
        }
        let Some(key) = session_key::parse(given) else { return Caller::Unknown };
        let token = match key.rights {
            Rights::Admin => admin,
            Rights::View => view,
        };
        let opens = token.is_some_and(|token| key.is_valid(token.expose(), now()));
        if opens { Caller::Session(key.rights) } else { Caller::Unknown }
    }
}

const NO_ADMIN_TOKEN: Error =
    Error::Forbidden("this needs the admin token, and the server has no place to keep one: set auth.admin_token_file");

fn bearer_token<'h>(headers: &'h [Header<'_>]) -> Option<&'h [u8]> {
    let (scheme, token) = head::value(headers, "authorization")?.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> Vec<Header<'static>> {
        list.iter().map(|&(name, value)| Header { name, value: value.as_bytes() }).collect()
    }

    const NOW: u64 = 1_700_000_000;

    fn clock() -> Time {
        Time::from_secs(NOW)
    }

    fn tokens(api: &str, admin: &str) -> Tokens {
        let secret = |text: &str| Some(Secret::new(text)).filter(|_| !text.is_empty());
        Tokens::new(&config::Auth { api_token: secret(api), admin_token: secret(admin), ..config::Auth::default() })
    }

    fn allowed(tokens: &Tokens, access: Access, header: &'static str) -> bool {
        tokens.check(access, &headers(&[("authorization", header)]), None, clock).is_ok()
    }

    #[test]
    fn tokens_open_what_they_are_for() {
        let both = tokens("api", "admin");
        assert!(allowed(&both, Access::Decide, "Bearer api") && allowed(&both, Access::Decide, "bearer admin"));
        assert!(allowed(&both, Access::Admin, "Bearer admin") && !allowed(&both, Access::Admin, "Bearer api"));
        for wrong in ["", "Bearer", "Bearer ", "Bearer ap", "Bearer apix", "Basic api", "api", "Bearer  api"] {
            assert!(!allowed(&both, Access::Decide, wrong), "{wrong}");
        }
        assert!(tokens("", "admin").check(Access::Decide, &headers(&[]), None, clock).is_ok());
        assert!(both.check(Access::Decide, &headers(&[]), None, clock).is_err());
        assert!(both.check(Access::Open, &headers(&[]), None, clock).is_ok());
    }

    #[test]
    fn administering_always_needs_a_token() {
        let made = tokens("api", "");
        let refused = |headers: &[Header<'_>]| made.check(Access::Admin, headers, None, clock).unwrap_err();
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
            assert_eq!(both.check(access, &page, None, clock).is_ok(), expected, "{access:?}");
        }
        assert!(both.check_token(Access::Decide, &page, clock).is_ok(), "through a gateway");
    }

    fn with_view_token() -> Tokens {
        let secret = |text: &str| Some(Secret::new(text));
        let (api_token, admin_token, view_token) = (secret("api"), secret("admin"), secret("view"));
        Tokens::new(&config::Auth { api_token, admin_token, view_token, ..config::Auth::default() })
    }

    #[test]
    fn the_view_token_opens_what_is_read() {
        let tokens = with_view_token();
        for (access, expected) in
            [(Access::Decide, false), (Access::Peek, true), (Access::Read, true), (Access::Admin, false)]
        {
            assert_eq!(allowed(&tokens, access, "Bearer view"), expected, "{access:?}");
            assert!(allowed(&tokens, access, "Bearer admin"), "{access:?}");
        }
        assert!(!allowed(&tokens, Access::Read, "Bearer api") && allowed(&tokens, Access::Peek, "Bearer api"));
    }

    #[test]
    fn a_session_key_opens_what_its_token_opens_until_its_end() {
        let tokens = with_view_token();
        let check = |tokens: &Tokens, key: &str, access, now| {
            let bearer = format!("Bearer {key}");
            let headers = [Header { name: "Authorization", value: bearer.as_bytes() }];
            tokens.check(access, &headers, None, || Time::from_secs(now)).is_ok()
        };
        let key = |token| tokens.log_in(token, NOW + 60).unwrap().unwrap();
        let (admin, rights) = key("admin");
        assert_eq!(rights, Rights::Admin);
        assert!(check(&tokens, &admin, Access::Admin, NOW + 59) && check(&tokens, &admin, Access::Decide, NOW));
        assert!(!check(&tokens, &admin, Access::Admin, NOW + 60), "it has ended");
        let (view, rights) = key("view");
        assert_eq!(rights, Rights::View);
        assert!(check(&tokens, &view, Access::Read, NOW) && !check(&tokens, &view, Access::Admin, NOW));
        for wrong in ["", "api", "admi", "adminx"] {
            assert!(tokens.log_in(wrong, NOW + 60).unwrap().is_none(), "{wrong}");
        }
        assert!(tokens.log_in(&admin, NOW + 600).unwrap().is_none(), "a key does not prolong itself");
        let other = super::tests::tokens("api", "other");
        assert!(!check(&other, &admin, Access::Admin, NOW), "a new token ends all sessions");
        assert!(!check(&other, &view, Access::Read, NOW));
    }

    #[test]
    fn a_page_under_a_name_needs_a_token() {
        let tokens = tokens("", "admin");
        let page = [("host", "flowgate.example"), ("origin", "https://flowgate.example")];
        let bearing = |token| headers(&[page[0], page[1], ("authorization", token)]);
        assert!(tokens.check(Access::Decide, &headers(&page), None, clock).is_err());
        assert!(tokens.check(Access::Admin, &bearing("Bearer wrong"), None, clock).is_err());
        assert!(tokens.check(Access::Decide, &bearing("Bearer admin"), None, clock).is_ok());
        assert!(tokens.check(Access::Admin, &bearing("Bearer admin"), None, clock).is_ok());
        assert!(tokens.check(Access::Login, &headers(&page), None, clock).is_ok());
    }
}
