//! A login: `/v1/session`.

use serde::{Deserialize, Serialize};

use crate::{Millis, Text};

/// `POST /v1/session`: a token to trade for a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login<'a> {
    /// The admin token or the view token.
    #[serde(borrow)]
    pub token: Text<'a>,
}

/// The answer of `POST /v1/session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// What to send as `Authorization: Bearer`.
    pub key: String,
    /// When the key ends, in whole seconds since 1970.
    pub until: u64,
    /// What the key may be used for.
    pub rights: Rights,
    /// The server's time.
    pub now: Millis,
}

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rights {
    /// To read and to change everything.
    Admin,
    /// To read.
    View,
}
