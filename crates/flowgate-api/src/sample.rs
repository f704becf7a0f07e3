//! A sample of the traffic: `/v1/sample`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Millis, Text};

/// `POST /v1/sample`: a recording to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleOrder<'a> {
    /// For how long: `5m`.
    #[serde(borrow, rename = "for")]
    pub length: Text<'a>,
}

/// The answer of `/v1/sample`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample<'a> {
    /// The server's time.
    pub now: Millis,
    /// `recording`, `recorded`, `empty`, or `off` by the configuration.
    pub state: Cow<'a, str>,
    /// When the recording began.
    pub since: Option<Millis>,
    /// When the recording ends or has ended; null: it goes on, and the server keeps the last `longest`.
    pub until: Option<Millis>,
    /// The number of recorded requests.
    pub requests: u64,
    /// The bytes that the recorded requests take.
    pub bytes: u64,
    /// The most bytes that a recording may take.
    pub max_bytes: u64,
    /// The longest recording, in seconds.
    pub longest: Millis,
    /// The sample holds one subject in `one_in`; 1: all of them.
    pub one_in: u64,
    /// The field that tells subjects apart.
    pub by: Option<Cow<'a, str>>,
    /// Fields that are not recorded.
    pub left_out: Vec<Cow<'a, str>>,
}
