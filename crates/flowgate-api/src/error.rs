//! The answer to a call that failed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What is wrong, and with which part of the call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody<'a> {
    /// What is wrong.
    pub error: Cow<'a, str>,
    /// The field or header that is wrong, if it is one of them.
    pub field: Option<Cow<'a, str>>,
}
