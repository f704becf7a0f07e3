//! The answer to a call that failed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What is wrong, and with which part of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody<'a> {
    /// What is wrong.
    pub error: Cow<'a, str>,
    /// The field or header that is wrong, if it is one of them.
    pub field: Option<Cow<'a, str>>,
    /// The name of the mistake, which never changes; empty: an earlier version of the server answers.
    #[serde(default)]
    pub code: Cow<'a, str>,
    /// The values in `error`, by name.
    #[serde(default)]
    pub values: Values<'a>,
}

/// The values in a sentence, by name.
pub type Values<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;
