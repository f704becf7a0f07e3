//! `[auth]`: the secrets of clients.

use super::form;
use super::report::Report;
use super::secret::{self, PlacedSecret, Secret};
use super::section::{Keys, Section};

/// The secrets that clients must know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Auth {
    /// The password of `AUTH`; `None`: clients need none.
    pub resp_password: Option<Secret>,
    /// The bearer token for decisions; `None`: clients need none.
    pub api_token: Option<Secret>,
    /// Bearer token for rules, bans and statistics, which is always needed; `None`: the server makes one.
    pub admin_token: Option<Secret>,
    /// Bearer token that allows reading and no change; `None`: only the admin token allows reading.
    pub view_token: Option<Secret>,
    /// Allows listeners beyond loopback without secrets.
    pub insecure: bool,
}

impl Section for Auth {
    const NAME: &'static str = "auth";

    fn visit(&mut self, keys: &mut Keys<'_, '_>) {
        keys.secret(["resp_password", "resp_password_file"], &mut self.resp_password, secret::accept);
        keys.secret(["api_token", "api_token_file"], &mut self.api_token, accept_token);
        keys.secret(["admin_token", "admin_token_file"], &mut self.admin_token, accept_token);
        keys.secret(["view_token", "view_token_file"], &mut self.view_token, accept_token);
        keys.key("insecure", &mut self.insecure, form::boolean());
    }
}

/// A token travels in a header, which carries visible ASCII only.
fn accept_token(report: &mut Report, given: PlacedSecret) -> Option<Secret> {
    if !given.text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let hint = "use letters, digits and signs, without spaces and line breaks; `openssl rand -hex 32` makes one";
        return report.error(given.at, "this token cannot be sent in a header").hint(hint).refuse();
    }
    secret::accept(report, given)
}
