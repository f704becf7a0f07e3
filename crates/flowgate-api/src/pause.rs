//! The pause of all rules: `/v1/pause`.

use serde::{Deserialize, Serialize};

use crate::{Millis, Text};

/// The answer of `/v1/pause`: whether the rules are paused, so that none of them denies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whether the rules are paused.
    pub paused: bool,
    /// When the pause began.
    pub since: Option<Millis>,
    /// When the pause ends by itself.
    pub until: Option<Millis>,
}

/// `POST /v1/pause`: a pause to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseOrder<'a> {
    /// For how long: `10m`, `1h`.
    #[serde(borrow, rename = "for")]
    pub length: Text<'a>,
}
