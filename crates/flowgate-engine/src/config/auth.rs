//! `[auth]`: the secrets of clients.

use super::report::Report;
use super::secret::{self, PlacedSecret, Secret};
use super::table_reader::TableReader;
use super::value;
use super::writer::Writer;

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

impl Auth {
    pub(crate) fn read(report: &mut Report, mut fields: TableReader<'_>) -> Auth {
        let password = secret::read(report, &mut fields, "resp_password", "resp_password_file");
        let api_token = secret::read(report, &mut fields, "api_token", "api_token_file");
        let admin_token = secret::read(report, &mut fields, "admin_token", "admin_token_file");
        let view_token = secret::read(report, &mut fields, "view_token", "view_token_file");
        let mut auth = Auth {
            resp_password: password.and_then(|given| secret::accept(report, given)),
            api_token: api_token.and_then(|given| accept_token(report, given)),
            admin_token: admin_token.and_then(|given| accept_token(report, given)),
            view_token: view_token.and_then(|given| accept_token(report, given)),
            insecure: false,
        };
        fields.read_into(report, "insecure", &mut auth.insecure, value::boolean);
        fields.finish(report);
        auth
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.section("auth");
        out.secret("resp_password", self.resp_password.as_ref());
        out.secret("api_token", self.api_token.as_ref());
        out.secret("admin_token", self.admin_token.as_ref());
        out.secret("view_token", self.view_token.as_ref());
        out.raw("insecure", self.insecure);
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
